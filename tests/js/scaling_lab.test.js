import assert from "node:assert/strict";
import { test } from "node:test";

import { drawScores, factor, look } from "../../transformer_lib/widgets/scaling_lab/model.js";
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
      close(side.gradient, right.gradient);
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

test("factors read well", () => {
  assert.deepEqual([1.37, 38.2, 5234, 3.1e9].map(factor), ["1.4", "38", "5,200", "3 × 10^9"]);
});
