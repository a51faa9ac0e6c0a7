import assert from "node:assert/strict";
import { test } from "node:test";

import { normal, uniform } from "../../transformer_lib/widgets/core/random.js";
import { brief } from "../../transformer_lib/widgets/scaling_lab/panels.js";
import { drawScores, look } from "../../transformer_lib/widgets/scaling_lab/view.js";
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

test("normal numbers have mean 0 and variance 1, and the same seed gives the same", () => {
  const draw = normal(5);
  const numbers = Array.from({ length: 20000 }, draw);
  const mean = numbers.reduce((a, b) => a + b) / numbers.length;
  const variance = numbers.reduce((sum, x) => sum + (x - mean) ** 2, 0) / numbers.length;
  assert.ok(Math.abs(mean) < 0.03 && Math.abs(variance - 1) < 0.04);
  const [one, other] = [normal(5), normal(5)];
  assert.deepEqual([one(), one(), one()], [other(), other(), other()]);
  assert.notEqual(normal(6)(), normal(5)());
  const next = uniform(1);
  assert.ok(Array.from({ length: 1000 }, next).every((x) => x >= 0 && x < 1));
});

test("scores have variance d_k, and a wider vector keeps its first components", () => {
  const squares = { 16: 0, 1024: 0 };
  for (let seed = 0; seed < 60; seed += 1) {
    const prefix = drawScores(seed, 10);
    for (const d_k of [16, 1024]) squares[d_k] += prefix.reduce((sum, s) => sum + s[d_k] ** 2, 0);
    assert.equal(prefix[0][0], 0);
  }
  for (const d_k of [16, 1024]) assert.ok(Math.abs(squares[d_k] / 600 / d_k - 1) < 0.35, `${d_k}`);
});

test("numbers are short", () => {
  assert.equal(brief(0.31234), "0.31");
  assert.equal(brief(22.64), "22.6");
  assert.equal(brief(0), "0");
  assert.equal(brief(3.1e-9), "3e−9");
});
