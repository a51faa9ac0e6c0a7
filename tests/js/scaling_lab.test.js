import assert from "node:assert/strict";
import { test } from "node:test";

import {
  drawScores,
  look,
  slopeAt,
  typicalGaps,
  weightAt,
} from "../../transformer_lib/widgets/scaling_lab/model.js";
import { close, fixture } from "./support.js";

test("weights, entropy and the Jacobian's norm are PyTorch's", () => {
  for (const { scores, d_k, raw, scaled } of fixture("scaling_lab").cases) {
    const found = look(
      scores.map((score) => ({ [d_k]: score })),
      d_k,
    );
    for (const [side, right] of [
      [found.raw, raw],
      [found.scaled, scaled],
    ]) {
      close(side.weights, right.weights);
      close(side.entropy, right.entropy);
      close(side.jacobian, right.jacobian);
      close(side.largest, right.largest);
      close(side.slope, right.slope);
    }
  }
});

test("scores have variance d_k, and a wider vector keeps its first components", () => {
  const squares = { 16: 0, 1024: 0 };
  for (let seed = 0; seed < 60; seed += 1) {
    const prefix = drawScores(seed, 10, 1024);
    for (const d_k of [16, 1024]) squares[d_k] += prefix.reduce((sum, s) => sum + s[d_k] ** 2, 0);
    assert.equal(prefix[0][0], 0);
  }
  for (const d_k of [16, 1024]) assert.ok(Math.abs(squares[d_k] / 600 / d_k - 1) < 0.35, `${d_k}`);
});

test("two scores: the slope is the weight's derivative, and keeps its digits far out", () => {
  for (const gap of [0, 0.5, 1.41, 8]) {
    const step = 1e-5;
    close(slopeAt(gap), (weightAt(gap + step) - weightAt(gap - step)) / (2 * step));
  }
  close(slopeAt(Math.SQRT2), weightAt(Math.SQRT2) * (1 - weightAt(Math.SQRT2)));
  assert.ok(Math.abs(slopeAt(90) * Math.exp(90) - 1) < 1e-9);
});

test("two random scores differ typically by √(2 d_k), scaled by √2", () => {
  const squares = { raw: 0, scaled: 0 };
  for (let seed = 0; seed < 400; seed += 1) {
    const prefix = drawScores(seed, 2, 64);
    const { raw, scaled } = look(prefix, 64);
    squares.raw += (raw.scores[0] - raw.scores[1]) ** 2 / 400;
    squares.scaled += (scaled.scores[0] - scaled.scores[1]) ** 2 / 400;
  }
  const typical = typicalGaps(64);
  for (const side of ["raw", "scaled"]) {
    assert.ok(Math.abs(Math.sqrt(squares[side]) / typical[side] - 1) < 0.1, side);
  }
});
