import assert from "node:assert/strict";
import { test } from "node:test";
import {
  linearScale,
  linearTicks,
  logLimits,
  logScale,
  logTicks,
} from "../../../transformer_lib/widgets/core/axes.js";
import { close } from "../support.js";

test("ticks and limits", () => {
  assert.deepEqual(linearTicks(0, 3.1, 5), [0, 1, 2, 3]);
  assert.deepEqual(linearTicks(-0.05, 0.3, 5), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(logTicks(1, 100), [1, 2, 5, 10, 20, 50, 100]);
  assert.deepEqual(logTicks(1, 10000), [1, 10, 100, 1000, 10000]);
  assert.deepEqual(logLimits([-1, 0, 2, 0.5]), [0.4, 2.5]);
  assert.deepEqual(logLimits([1, 1e-9]), [1e-4, 1.25]);
  assert.deepEqual(logLimits([-1]), [0.1, 1]);
});

test("a scale maps its ends to its pixels, and back", () => {
  const x = linearScale([10, 30], [100, 0]);
  assert.deepEqual([10, 15, 30, 40].map(x.of), [100, 75, 0, -50]);
  assert.deepEqual([100, 75, 0].map(x.back), [10, 15, 30]);
  assert.equal(linearScale([3, 3], [0, 50]).of(3), 0, "of no width");
  const steps = logScale([1, 1000], [0, 300]);
  close([1, 10, 1000].map(steps.of), [0, 100, 300], 1e-12);
  close([0, 100, 300].map(steps.back), [1, 10, 1000], 1e-12);
  assert.equal(steps.of(0), 0, "below the first number");
});
