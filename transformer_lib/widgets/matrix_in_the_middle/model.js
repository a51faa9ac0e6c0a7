// The matrix in the middle, applied to a sentence.

import { matmul, softmax, transpose } from "../math/linear.js";

/** Scores X A Xᵀ and, row by row, their softmax. */
export function lookAt(vectors, matrix) {
  const scores = matmul(matmul(vectors, matrix), transpose(vectors));
  return { scores, weights: scores.map((row) => softmax(row)) };
}

/** The pairs [query, key] of words whose score an entry of the matrix enters. */
export function pairsOf(vectors, asking, answering) {
  return vectors.flatMap((query, i) =>
    vectors.flatMap((key, j) => (query[asking] * key[answering] ? [[i, j]] : [])),
  );
}

/** The entries [asking, answering] that can enter the score of a pair, with what each adds. */
export function termsOf(vectors, matrix, query, key) {
  return matrix.flatMap((row, f) =>
    row.flatMap((entry, g) => {
      const share = vectors[query][f] * vectors[key][g];
      return share ? [{ asking: f, answering: g, adds: share * entry }] : [];
    }),
  );
}

/** How many entries differ from the first matrix. */
export function moved(matrix, start) {
  return matrix.flat().filter((entry, at) => Math.abs(entry - start.flat()[at]) > 1e-9).length;
}

/** The largest difference between a score and the one in the other direction. */
export function asymmetry(scores) {
  return Math.max(...scores.flatMap((row, i) => row.map((s, j) => Math.abs(s - scores[j][i]))));
}

/** The matrix with one entry set. */
export function withEntry(matrix, [row, column], value) {
  return matrix.map((line, i) =>
    i === row ? line.map((entry, j) => (j === column ? value : entry)) : line,
  );
}

/** Whether two matrices are equal, to what can be seen. */
export function equal(one, other) {
  return one.every((row, i) => row.every((entry, j) => Math.abs(entry - other[i][j]) < 1e-6));
}

/** Each word's vector as rows of numbers, out of a flat array. */
export function rowsOf(flat, width) {
  return Array.from({ length: flat.length / width }, (_, i) =>
    Array.from(flat.slice(i * width, (i + 1) * width)),
  );
}
