import assert from "node:assert/strict";
import { test } from "node:test";
import { groundTicks, inside } from "../../../transformer_lib/widgets/core/plane.js";

test("a moved point stays inside the plane, on hundredths", () => {
  assert.deepEqual(inside([0.123456, -0.999999], 2), [0.12, -1]);
  assert.deepEqual(inside([7, -7], 2), [2, -2]);
});

test("a plane has a line for each whole number, and a dozen at most however large it is", () => {
  assert.deepEqual(groundTicks(2.4), [-2, -1, 0, 1, 2]);
  assert.deepEqual(groundTicks(1.25), [-1, 0, 1]);
  assert.equal(groundTicks(5.9).length, 11);
  for (const reach of [7, 1e3, 1e6, 2.5e8, 3.4e38]) {
    const ticks = groundTicks(reach);
    assert.ok(ticks.length >= 5 && ticks.length <= 13 && ticks.includes(0), `${reach}: ${ticks}`);
  }
});
