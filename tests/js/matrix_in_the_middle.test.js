import assert from "node:assert/strict";
import { test } from "node:test";

import {
  asymmetry,
  equal,
  lookAt,
  moved,
  pairsOf,
  rowsOf,
  termsOf,
  withEntry,
} from "../../transformer_lib/widgets/matrix_in_the_middle/model.js";
import { close, fixture } from "./support.js";

const { cases } = fixture("matrix_in_the_middle");

test("scores and weights are the library's", () => {
  for (const { vectors, matrix, scores, weights, asymmetry: apart } of cases) {
    const found = lookAt(vectors, matrix);
    close(found.scores, scores);
    close(found.weights, weights);
    close(asymmetry(found.scores), apart);
  }
});

test("the terms of a pair add up to its score", () => {
  for (const { vectors, matrix, scores } of cases) {
    for (const [i, j] of [
      [0, 1],
      [1, 0],
      [1, 1],
    ]) {
      const sum = termsOf(vectors, matrix, i, j).reduce((total, { adds }) => total + adds, 0);
      close(sum, scores[i][j]);
    }
  }
});

test("an entry reaches the words that have the two features", () => {
  const vectors = [
    [1, 0],
    [0, 2],
    [1, 1],
  ];
  assert.deepEqual(pairsOf(vectors, 0, 1), [
    [0, 1],
    [0, 2],
    [2, 1],
    [2, 2],
  ]);
  assert.deepEqual(pairsOf([[0, 0]], 0, 1), []);
});

test("one entry moves and the first matrix stays as it was", () => {
  const first = [
    [0, 3],
    [0, 0],
  ];
  const second = withEntry(first, [1, 0], -2);
  assert.deepEqual(first, [
    [0, 3],
    [0, 0],
  ]);
  assert.deepEqual(second, [
    [0, 3],
    [-2, 0],
  ]);
  assert.equal(moved(second, first), 1);
  assert.equal(moved(first, first), 0);
  assert.ok(equal(first, withEntry(second, [1, 0], 0)));
  assert.ok(!equal(first, second));
});

test("rows come out of a flat array", () => {
  assert.deepEqual(rowsOf(Float32Array.of(1, 2, 3, 4, 5, 6), 3), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
});
