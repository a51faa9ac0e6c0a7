// Singular values and directions, by Jacobi's rotations from one side: slower than what PyTorch
// has, and as exact. Of one matrix; no gradients.

import { record } from "./graph.js";
import { dense, fail, fresh, sizes } from "./tensor.js";

const SWEEPS = 60; // ten are enough for the book's matrices

/** U [m, k], S [k], Vᵀ [k, n] with k = min(m, n), as torch.linalg.svd(x, full_matrices=False). */
export function svd(x) {
  if (x.shape.length !== 2)
    fail(`this page's tensors have svd for one matrix, not ${sizes(x.shape)}`);
  if (!x.isFloat) fail("linalg.svd: Expected a floating point tensor as input.");
  const [m, n] = x.shape;
  const isWide = m < n;
  const from = dense(x);
  const at = (row, column) => from[row * n + column];
  const columns = Array.from({ length: Math.min(m, n) }, (_, j) =>
    Float64Array.from({ length: Math.max(m, n) }, (_, i) => (isWide ? at(j, i) : at(i, j))),
  );
  const turns = columns.map((_, j) => Float64Array.from(columns, (_, i) => Number(i === j)));
  orthogonalize(columns, turns);
  const lengths = columns.map((column) => Math.sqrt(dot(column, column)));
  const order = lengths.map((_, j) => j).sort((i, j) => lengths[j] - lengths[i]);
  const long = unitColumns(order.map((j) => columns[j]));
  const short = order.map((j) => turns[j]);
  const [u, v] = isWide ? [short, long] : [long, short];
  const k = order.length;
  return [
    made([m, k], x, (i) => u[i % k][Math.floor(i / k)]),
    made([k], x, (i) => lengths[order[i]]),
    made([k, n], x, (i) => v[Math.floor(i / n)][i % n]),
  ];
}

function made(shape, x, valueAt) {
  const result = fresh(shape, x.dtype);
  const { data } = result.storage;
  for (let i = 0; i < data.length; i += 1) data[i] = valueAt(i);
  return record("LinalgSvdBackward0", result, [x], () =>
    fail("this page's tensors have no gradient of svd; `make lab` or Colab has all of PyTorch."),
  );
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

/** Turns pairs of columns until all are at right angles, and the same pairs of `turns` with them. */
function orthogonalize(columns, turns) {
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    let isDone = true;
    for (let p = 0; p < columns.length; p += 1) {
      for (let q = p + 1; q < columns.length; q += 1) {
        const [a, b] = [columns[p], columns[q]];
        const [alpha, beta, gamma] = [dot(a, a), dot(b, b), dot(a, b)];
        if (Math.abs(gamma) <= 1e-15 * Math.sqrt(alpha * beta)) continue;
        isDone = false;
        const zeta = (beta - alpha) / (2 * gamma);
        const tangent = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.sqrt(1 + zeta * zeta));
        const cosine = 1 / Math.sqrt(1 + tangent * tangent);
        turn(a, b, cosine, cosine * tangent);
        turn(turns[p], turns[q], cosine, cosine * tangent);
      }
    }
    if (isDone) return;
  }
}

function turn(a, b, cosine, sine) {
  for (let i = 0; i < a.length; i += 1) {
    const [one, other] = [a[i], b[i]];
    a[i] = cosine * one - sine * other;
    b[i] = sine * one + cosine * other;
  }
}

/** Columns of length 1; in place of one without length, any at right angles to all others. */
function unitColumns(columns) {
  const most = Math.sqrt(Math.max(0, ...columns.map((column) => dot(column, column))));
  const found = [];
  let next = 0;
  for (const column of columns) {
    let one = column;
    while (Math.sqrt(dot(one, one)) <= 1e-14 * most || most === 0) {
      one = Float64Array.from(column, (_, i) => Number(i === next));
      next += 1;
      for (const other of [...found, ...found]) {
        const along = dot(one, other);
        one = one.map((value, i) => value - along * other[i]);
      }
      if (Math.sqrt(dot(one, one)) > 1e-3) break;
    }
    const length = Math.sqrt(dot(one, one));
    found.push(one.map((value) => value / length));
  }
  return found;
}

/** Under PyTorch's names. */
export const DECOMPOSITIONS = { svd };
