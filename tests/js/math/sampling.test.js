import assert from "node:assert/strict";
import { test } from "node:test";

import { uniform } from "../../../transformer_lib/widgets/core/random.js";
import {
  countDraws,
  draw,
  filterLogits,
  ranked,
} from "../../../transformer_lib/widgets/math/sampling.js";
import { close, fixture } from "../support.js";

const { cases } = fixture("sampling");
const falling = (list) => [...list].sort((a, b) => b - a);

test("what temperature, top-k, top-p and min-p leave is the library's", () => {
  assert.ok(cases.length > 3000);
  for (const { logits, settings, kept, probabilities, tied } of cases) {
    const where = JSON.stringify([settings, logits.slice(0, 6)]);
    const left = filterLogits(logits, settings);
    if (tied) {
      close(falling(left.probabilities), falling(probabilities), 1e-6, where);
    } else {
      assert.deepEqual(
        left.cut.map((reason) => reason === null),
        kept,
        where,
      );
      close(left.probabilities, probabilities, 1e-6, where);
    }
  }
});

test("equal logits keep their order, and what cuts a token is named", () => {
  const logits = [1, 3, 1, 3, 0];
  assert.deepEqual(ranked(logits), [1, 3, 0, 2, 4]);
  assert.deepEqual(filterLogits(logits, { topK: 3 }).cut, [null, null, "top-k", null, "top-k"]);
  assert.deepEqual(filterLogits(logits, { temperature: 0 }).probabilities, [0, 1, 0, 0, 0]);
  assert.deepEqual(filterLogits(logits, { temperature: 0 }).cut, [
    "greedy",
    null,
    "greedy",
    "greedy",
    "greedy",
  ]);
  const options = { topK: 3, topP: 0.9, minP: 0.5 };
  assert.deepEqual(filterLogits([3, 2, 0, -1], options).cut, [null, "min-p", "top-p", "top-k"]);
});

test("the running total is that of the distribution that top-p looks at", () => {
  const logits = [0.5, 0.25, 0.125, 0.125].map(Math.log);
  close(filterLogits(logits, { topP: 0.6 }).totals, [0.5, 0.75, 0.875, 1]);
  close(filterLogits(logits, { topK: 2 }).totals, [2 / 3, 1, 1, 1]);
});

test("draws follow the probabilities, and the same chance gives the same token", () => {
  const { probabilities, order } = filterLogits([2, 0.5, 1, -1, 0], { temperature: 0.8, topK: 4 });
  const next = uniform(11);
  const counts = countDraws(
    Array.from({ length: 20000 }, () => draw(probabilities, order, next())),
    5,
  );
  close(
    counts.map((count) => count / 20000),
    probabilities,
    0.012,
  );
  assert.equal(counts[3], 0, "a token that top-k has cut was drawn");
  assert.equal(draw(probabilities, order, 0), 0);
  assert.equal(
    draw([0.3, 0, 0.3 - 1e-12], [0, 2, 1], 0.99999),
    2,
    "rounding must not draw what is cut",
  );
});
