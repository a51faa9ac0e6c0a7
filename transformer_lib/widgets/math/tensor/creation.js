// New tensors.

import { requireExact, scalar, to } from "./elementwise.js";
import { record } from "./graph.js";
import { diagonal } from "./shapes.js";
import {
  converted,
  DTYPES,
  dense,
  fail,
  fresh,
  kindOf,
  numberOf,
  sizes,
  Tensor,
  wrap,
} from "./tensor.js";

/** torch.tensor of numbers row by row, as Python's lists were flattened; `shape` is theirs. */
export function tensor(values, shape, dtype, inferred) {
  const kind = dtype ?? inferred;
  const made = wrap(DTYPES[kind].Numbers.from(converted(values, "float64", kind)), shape, kind);
  if (kind === "int64" && inferred === "int64") requireExact(made);
  return made;
}

function requireSizes(shape) {
  const bad = shape.find((size) => size < 0);
  if (bad !== undefined) {
    fail(`Trying to create tensor with negative dimension ${bad}: ${sizes(shape)}`);
  }
}

export function full(shape, value, dtype) {
  requireSizes(shape);
  const kind = dtype ?? (value instanceof Tensor ? value.dtype : kindOf(value));
  const result = fresh(shape, kind);
  const number =
    value instanceof Tensor ? dense(to(value, kind))[0] : dense(scalar(value, kind))[0];
  result.storage.data.fill(number);
  return result;
}

export const zeros = (shape, dtype) => full(shape, 0, dtype ?? "float32");
export const ones = (shape, dtype) => full(shape, 1, dtype ?? "float32");
export const empty = zeros; // what is in PyTorch's memory is nobody's to know
export const zeros_like = (x, dtype) => zeros(x.shape, dtype ?? x.dtype);
export const ones_like = (x, dtype) => ones(x.shape, dtype ?? x.dtype);
export const empty_like = zeros_like;
export const full_like = (x, value, dtype) => full(x.shape, value, dtype ?? x.dtype);
export const new_zeros = (x, shape, dtype) => zeros(shape, dtype ?? x.dtype);
export const new_ones = (x, shape, dtype) => ones(shape, dtype ?? x.dtype);
export const new_full = (x, shape, value, dtype) => full(shape, value, dtype ?? x.dtype);

export function arange(start, end, step, dtype) {
  const given = [start, end, step].filter((value) => value != null);
  const isReal = given.some((value) => kindOf(value) === "float32");
  const [first, last] = end == null ? [0, numberOf(start)] : [numberOf(start), numberOf(end)];
  const by = step == null ? 1 : numberOf(step);
  if (by === 0) fail("step must be nonzero");
  if ((last - first) * by < 0) {
    fail("upper bound and lower bound inconsistent with step sign");
  }
  const result = fresh([Math.ceil((last - first) / by)], dtype ?? (isReal ? "float32" : "int64"));
  const { data } = result.storage;
  for (let i = 0; i < data.length; i += 1) data[i] = first + i * by;
  return result;
}

export function linspace(start, end, steps, dtype) {
  if (steps < 0) fail("number of steps must be non-negative");
  const result = fresh([steps], dtype ?? "float32");
  const { data } = result.storage;
  const round = result.dtype === "float32" ? Math.fround : Number;
  const [first, last] = [round(numberOf(start)), round(numberOf(end))];
  const step = round(round(last - first) / (steps - 1));
  for (let i = 0; i < steps; i += 1) {
    data[i] = i < steps / 2 ? first + round(step * i) : last - round(step * (steps - i - 1));
  }
  if (steps === 1) data[0] = first;
  return result;
}

export function eye(n, m, dtype) {
  const [rows, columns] = [n, m ?? n];
  if (rows < 0) fail(`n must be greater or equal to 0, got ${rows}`);
  const result = fresh([rows, columns], dtype ?? "float32");
  for (let i = 0; i < Math.min(rows, columns); i += 1) result.storage.data[i * columns + i] = 1;
  return result;
}

/** Zero what is not below (tril) or not above (triu) a diagonal. */
function triangle(name, keeps) {
  const cut = (x, diagonal = 0) => {
    const rank = x.shape.length;
    if (rank < 2) fail(`${name}: input tensor must have at least 2 dimensions`);
    const [rows, columns] = x.shape.slice(-2);
    const result = wrap(dense(x).slice(), x.shape, x.dtype);
    const { data } = result.storage;
    for (let i = 0; i < data.length; i += 1) {
      const column = i % columns;
      const row = Math.floor(i / columns) % rows;
      if (!keeps(column - row, diagonal ?? 0)) data[i] = 0;
    }
    const title = name === "tril" ? "TrilBackward0" : "TriuBackward0";
    return record(title, result, [x], (g) => [cut(g, diagonal)]);
  };
  return cut;
}
export const tril = triangle("tril", (distance, diagonal) => distance <= diagonal);
export const triu = triangle("triu", (distance, diagonal) => distance >= diagonal);

export function one_hot(x, classes = -1) {
  if (x.dtype !== "int64") {
    fail(`one_hot is only applicable to index tensor of type LongTensor.`);
  }
  const numbers = dense(x);
  if (numbers.some((value) => value < 0)) fail("Class values must be non-negative.");
  const most = numbers.reduce((a, b) => Math.max(a, b), -1) + 1;
  if (!numbers.length && (classes ?? -1) <= 0) {
    fail("Can not infer total number of classes from empty tensor.");
  }
  const width = (classes ?? -1) === -1 ? most : classes;
  if (most > width) fail("Class values must be smaller than num_classes.");
  const result = fresh([...x.shape, width], "int64");
  numbers.forEach((value, i) => {
    result.storage.data[i * width + value] = 1;
  });
  return result;
}

/** A vector on the diagonal of a matrix, or the diagonal of a matrix. */
export function diag_embed(x, offset = 0) {
  const n = x.shape.at(-1);
  const shift = offset ?? 0;
  const side = n + Math.abs(shift);
  const result = fresh([...x.shape.slice(0, -1), side, side], x.dtype);
  dense(x).forEach((value, i) => {
    const [batch, k] = [Math.floor(i / n), i % n];
    const [row, column] = [k + Math.max(0, -shift), k + Math.max(0, shift)];
    result.storage.data[(batch * side + row) * side + column] = value;
  });
  return record("DiagEmbedBackward0", result, [x], (g) => [diagonal(g, shift, -2, -1)]);
}

/** Under PyTorch's names. */
export const CREATION = {
  arange,
  diag_embed,
  empty,
  empty_like,
  eye,
  full,
  full_like,
  linspace,
  new_full,
  new_ones,
  new_zeros,
  one_hot,
  ones,
  ones_like,
  tensor,
  tril,
  triu,
  zeros,
  zeros_like,
};
