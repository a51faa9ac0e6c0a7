import assert from "node:assert/strict";
import { test } from "node:test";
import { anyFits, letterOf } from "../../transformer_lib/widgets/circuit/model.js";

test("a place fits where the same letter was noted; the first place never does", () => {
  const oneBack = [[1], [1, 0], [0, 1, 0], [0, 0, 1, 0]]; // from each place, the place before
  const fit = [..."cacd"].map((_, at) => anyFits(oneBack, [..."cacd"], at));
  assert.deepEqual(fit, [false, false, true, false]);
});

test("a slot in which two letters are even holds several", () => {
  assert.equal(letterOf([0.5, 0.5], "ab"), "…");
  assert.equal(letterOf([0, 0], "ab"), "");
  assert.equal(letterOf([0.67, 0.33], "ab"), "a");
});
