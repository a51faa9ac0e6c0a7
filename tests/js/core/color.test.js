import assert from "node:assert/strict";
import { test } from "node:test";
import {
  contrast,
  divergingScale,
  luminance,
  makeScale,
  parseColor,
  sequentialScale,
} from "../../../transformer_lib/widgets/core/color.js";

const LIGHT = { surface: "#ffffff", weight: "#3d3b8e", negative: "#a65a00" };
const DARK = { surface: "#171b21", weight: "#b4bcff", negative: "#f0a24a" };

test("colors are read in the forms that browsers write", () => {
  assert.deepEqual(parseColor("#0072b2"), [0, 114, 178]);
  assert.deepEqual(parseColor("#fff"), [255, 255, 255]);
  assert.deepEqual(parseColor("rgb(1, 2, 3)"), [1, 2, 3]);
  assert.deepEqual(parseColor("rgba(1 2 3 / 0.5)"), [1, 2, 3]);
  assert.throws(() => parseColor("canvastext"), /not a color/);
});

test("contrast is WCAG's: 21 for black on white, 5.19 for the query's blue", () => {
  assert.equal(luminance([255, 255, 255]), 1);
  assert.ok(Math.abs(contrast([0, 0, 0], [255, 255, 255]) - 21) < 1e-9);
  assert.ok(Math.abs(contrast(parseColor("#0072b2"), [255, 255, 255]) - 5.19) < 0.005);
});

test("the number in a cell has a contrast of 4.5 at every value, in both themes", () => {
  for (const colors of [LIGHT, DARK]) {
    for (const scale of [sequentialScale(colors), divergingScale(colors, 3)]) {
      for (let value = scale.low; value <= scale.high; value += 0.005) {
        const ratio = contrast(parseColor(scale.fill(value)), parseColor(scale.text(value)));
        assert.ok(ratio >= 4.5, `${value}: ${ratio}`);
      }
    }
  }
});

test("a scale runs from end to end, and takes the end's color outside", () => {
  const scale = makeScale(["#000000", "#ffffff"], 2, 4);
  assert.equal(scale.fill(2), "rgb(0, 0, 0)");
  assert.equal(scale.fill(3), "rgb(128, 128, 128)");
  assert.equal(scale.fill(4), "rgb(255, 255, 255)");
  assert.equal(scale.fill(99), "rgb(255, 255, 255)");
  assert.equal(scale.fill(-Infinity), "rgb(0, 0, 0)");
  assert.equal(makeScale(["#000", "#fff"], 1, 1).fill(1), "rgb(0, 0, 0)");
  const diverging = divergingScale(LIGHT, 2);
  assert.equal(diverging.fill(2), "rgb(61, 59, 142)");
  assert.equal(diverging.fill(-2), "rgb(166, 90, 0)");
  assert.ok(luminance(parseColor(diverging.fill(0))) > 0.97);
});
