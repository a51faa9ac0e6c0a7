import assert from "node:assert/strict";
import { test } from "node:test";
import { linePath } from "../../../transformer_lib/widgets/core/axes.js";

test("a line breaks at gaps, and many points in one pixel keep first, lowest, highest and last", () => {
  assert.equal(linePath([0, 1, 2, 3], [5, 6, null, 8]), "M0.0,5.0L1.0,6.0M3.0,8.0");
  const n = 20000;
  const xs = Array.from({ length: n }, (_, i) => (100 * i) / n);
  const ys = xs.map((_, i) => (i === 777 ? -50 : i % 7));
  const points = linePath(xs, ys).match(/[ML]/g).length;
  assert.ok(points <= 4 * 101, `${points} points`);
  assert.ok(linePath(xs, ys).includes(",-50.0"), "an outlier is lost");
});
