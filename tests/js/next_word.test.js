import assert from "node:assert/strict";
import { test } from "node:test";

import { shortlist, surprises, unflatten } from "../../transformer_lib/widgets/next_word/model.js";
import { close, fixture } from "./support.js";

test("surprises and losses are the library's", () => {
  for (const { rows, targets, each, loss } of fixture("next_word").cases) {
    const found = surprises(rows, targets);
    close(found.each, each);
    close(found.loss, loss);
  }
});

test("a certain word is not a surprise, not even by rounding", () => {
  assert.deepEqual(surprises([[1.0000001, 0]], [0]), { each: [0], loss: 0 });
});

test("the shortlist is in order and holds the word that came", () => {
  const row = [0.1, 0.4, 0.05, 0.25, 0.2];
  assert.deepEqual(shortlist(row, 3, 3), [1, 3, 4]);
  assert.deepEqual(shortlist(row, 2, 3), [1, 3, 2]);
  assert.deepEqual(shortlist([0.5, 0.5], 1, 8), [0, 1]);
});

test("rows of a flat array", () => {
  const flat = Float32Array.from({ length: 12 }, (_, i) => i);
  assert.deepEqual(unflatten(flat, 2, 3, 2), [
    [
      [0, 1],
      [2, 3],
      [4, 5],
    ],
    [
      [6, 7],
      [8, 9],
      [10, 11],
    ],
  ]);
});
