import assert from "node:assert/strict";
import { test } from "node:test";
import { normal, uniform } from "../../../transformer_lib/widgets/core/random.js";

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
