// Many tensors of one shape at once, to a function that knows of one of them (as torch.func.vmap):
//
//   const x = new Batched(tensor);             one for each index of the first axis
//   callBatched("matmul", [x, y])              -> a Batched; whatever is not one is the same for all
//   callBatched("item", [x])                   fails with SINGLE: a number has no one value
//
// What can be told of all of them in one operation is; anything else is done one by one.

import { ELEMENTWISE } from "./elementwise.js";
import { Slice } from "./indexing.js";
import { call } from "./operations.js";
import { select } from "./shapes.js";
import { count, fail, rowMajor, same, Tensor } from "./tensor.js";

export const SINGLE = "a single number was asked for, of many tensors at once";

export class Batched {
  constructor(whole) {
    Object.assign(this, { whole, requiresGrad: false, grad: null, node: null });
  }

  get shape() {
    return this.whole.shape.slice(1);
  }

  get dtype() {
    return this.whole.dtype;
  }

  get rank() {
    return this.whole.shape.length - 1;
  }
}

const isBatched = (value) => value instanceof Batched;

export const holdsBatched = (given) =>
  given.some((value) => isBatched(value) || (Array.isArray(value) && holdsBatched(value)));

const ABOUT = {
  shape: (x) => x.shape,
  numel: (x) => count(x.shape),
  stride: (x) => rowMajor(x.shape),
  is_contiguous: () => true,
};
const OF_NUMBERS = new Set(["item", "tolist", "truth", "equal", "repr", "nonzero"]);

export function callBatched(name, given) {
  const [x] = given;
  if (ABOUT[name]) return ABOUT[name](x);
  if (OF_NUMBERS.has(name)) fail(SINGLE);
  const writes = name === "setitem" || name.endsWith("_");
  if (writes && !isBatched(x)) fail(SINGLE);
  if (!writes) {
    try {
      const whole = RULES[name]?.(name, given);
      if (whole) return new Batched(whole);
    } catch {
      // One by one it says what is wrong, with the shapes that the function knows.
    }
  }
  const results = oneByOne(name, given);
  if (writes) x.whole.storage.version += 1;
  return writes ? x : together(results);
}

function oneByOne(name, given) {
  const flat = given.flat(Number.POSITIVE_INFINITY);
  const size = flat.find(isBatched).whole.shape[0];
  const at = (value, b) => {
    if (isBatched(value)) return select(value.whole, 0, b);
    return Array.isArray(value) ? value.map((part) => at(part, b)) : value;
  };
  return Array.from({ length: size }, (_, b) => call(name, at(given, b)));
}

function together(results) {
  const [first] = results;
  if (Array.isArray(first)) return first.map((_, i) => together(results.map((one) => one[i])));
  if (!(first instanceof Tensor)) fail(SINGLE);
  if (!results.every((one) => same(one.shape, first.shape))) fail(SINGLE);
  return new Batched(call("stack", [results, 0]));
}

// ---- all at once; null where that cannot be ------------------------------------------------------

/** Axes of size 1 in front, behind the first: [batch, 3] becomes [batch, 1, 3]. */
function raised({ whole }, rank) {
  const [batch, ...shape] = whole.shape;
  const ones = new Array(rank - shape.length).fill(1);
  return ones.length ? call("reshape", [whole, [batch, ...ones, ...shape]]) : whole;
}

function aligned(given) {
  const rank = Math.max(...given.map((x) => (isTensor(x) ? x.shape.length : 0)));
  return given.map((x) => (isBatched(x) ? raised(x, rank) : x));
}

const isTensor = (value) => isBatched(value) || value instanceof Tensor;
const elementwise = (name, given) => call(name, aligned(given));

/** A dimension, counted where the batch is in front; `more` of them than the tensor has. */
function dimensionOf(dim, rank, more = 0) {
  const span = rank + more;
  if (!Number.isInteger(dim) || dim < -span || dim >= span) fail("it says so one by one");
  return dim < 0 ? dim : dim + 1;
}

const along = (name, [x, dim, ...others]) => {
  if (!isBatched(x) || holdsBatched(others) || dim === null || dim === undefined) return null;
  const dims = [dim].flat().map((one) => dimensionOf(one, x.rank));
  return call(name, [x.whole, Array.isArray(dim) ? dims : dims[0], ...others]);
};

const shaped = (_, [x, shape]) => call("reshape", [x.whole, [x.whole.shape[0], ...shape]]);

const RULES = {
  ...Object.fromEntries(Object.keys(ELEMENTWISE).map((name) => [name, elementwise])),
  matmul(name, given) {
    return given.every((x) => x.shape.length > 1) ? call(name, aligned(given)) : null;
  },
  mT: (name, [x]) => (x.rank > 1 ? call(name, [x.whole]) : null),
  T: (_, [x]) => (x.rank === 2 ? call("mT", [x.whole]) : null),
  transpose: (name, [x, ...dims]) =>
    call(name, [x.whole, ...dims.map((dim) => dimensionOf(dim, x.rank))]),
  unsqueeze: (name, [x, dim]) => call(name, [x.whole, dimensionOf(dim, x.rank, 1)]),
  reshape: shaped,
  view: shaped,
  getitem(name, [x, index]) {
    const isPlain = isBatched(x) && !index.some((part) => isTensor(part) || part === true);
    return isPlain ? call(name, [x.whole, [new Slice(null, null, 1), ...index]]) : null;
  },
};
for (const name of [
  "softmax",
  "log_softmax",
  "logsumexp",
  "sum",
  "mean",
  "amax",
  "amin",
  "cumsum",
]) {
  RULES[name] = along;
}
