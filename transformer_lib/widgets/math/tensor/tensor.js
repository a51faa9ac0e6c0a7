// A tensor as PyTorch has it: typed numbers in a storage, and a shape, strides and an offset over it.
//
//   const x = fresh([2, 3], "float32");     zeros
//   dense(x)                                its numbers row by row: the storage itself where that fits
//   viewOf(x, shape, strides, offset)       another look at the same numbers
//   fail("message", "IndexError")           throws what Python raises
//
// int64 numbers are kept as doubles, which are exact up to 2 ** 53.

export class TorchError extends Error {
  constructor(message, type) {
    super(message);
    this.type = type;
  }
}

export function fail(message, type = "RuntimeError") {
  throw new TorchError(message, type);
}

/** `rank` orders the kinds (bool, whole numbers, real numbers) for type promotion. */
export const DTYPES = {
  bool: { rank: 0, Numbers: Uint8Array, title: "Bool", scalar: "bool" },
  int64: { rank: 1, Numbers: Float64Array, title: "Long", scalar: "long int" },
  float32: { rank: 2, Numbers: Float32Array, title: "Float", scalar: "float" },
  float64: { rank: 2, Numbers: Float64Array, title: "Double", scalar: "double" },
};

/** A Python float, which a number of JavaScript cannot tell from an int. */
export class Real {
  constructor(value) {
    this.value = value;
  }
}

const MOST = 5e7;

export class Tensor {
  constructor(storage, dtype, shape, strides = rowMajor(shape), offset = 0) {
    Object.assign(this, { storage, dtype, shape, strides, offset });
    this.requiresGrad = false;
    this.grad = null;
    this.node = null; // how it was computed, for gradients: see graph.js
    this.base = null; // the tensor that this one is a view of
  }

  get numel() {
    return count(this.shape);
  }

  get isFloat() {
    return DTYPES[this.dtype].rank === 2;
  }

  get isContiguous() {
    let expected = 1;
    for (let d = this.shape.length - 1; d >= 0; d -= 1) {
      if (this.shape[d] !== 1 && this.strides[d] !== expected) return this.numel === 0;
      expected *= this.shape[d];
    }
    return true;
  }
}

export const count = (shape) => shape.reduce((product, size) => product * size, 1);

export function rowMajor(shape) {
  const strides = new Array(shape.length);
  let step = 1;
  for (let d = shape.length - 1; d >= 0; d -= 1) {
    strides[d] = step;
    step *= Math.max(shape[d], 1);
  }
  return strides;
}

export function fresh(shape, dtype = "float32") {
  const size = count(shape);
  if (size > MOST) {
    const most = MOST / 1e6;
    fail(`this page's tensors hold at most ${most} million numbers, and this one needs ${size}`);
  }
  return wrap(new DTYPES[dtype].Numbers(size), shape, dtype);
}

/** A tensor over numbers that nobody else holds. */
export function wrap(data, shape, dtype) {
  return new Tensor({ data, version: 0 }, dtype, shape);
}

/** The same numbers without their history. */
export const plain = (x) => new Tensor(x.storage, x.dtype, x.shape, x.strides, x.offset);

export function viewOf(x, shape, strides, offset = x.offset) {
  const view = new Tensor(x.storage, x.dtype, shape, strides, offset);
  view.base = x.base ?? x;
  return view;
}

/** The place in the storage of each number, row by row. */
export function places({ shape, strides, offset }) {
  const size = count(shape);
  const found = new Int32Array(size);
  if (!size) return found;
  found[0] = offset;
  let filled = 1;
  for (let d = shape.length - 1; d >= 0; d -= 1) {
    for (let i = 1; i < shape[d]; i += 1) {
      const [to, by] = [i * filled, i * strides[d]];
      for (let k = 0; k < filled; k += 1) found[to + k] = found[k] + by;
    }
    filled *= shape[d];
  }
  return found;
}

export function dense(x) {
  const { data } = x.storage;
  if (x.isContiguous) {
    return x.offset === 0 && data.length === x.numel
      ? data
      : data.subarray(x.offset, x.offset + x.numel);
  }
  const from = places(x);
  const numbers = new data.constructor(from.length);
  for (let i = 0; i < from.length; i += 1) numbers[i] = data[from[i]];
  return numbers;
}

/** Write numbers, row by row, into the tensor's storage, and so into its base. */
export function write(x, numbers) {
  const { data } = x.storage;
  if (!x.isContiguous) return writeAt(x, places(x), numbers);
  x.storage.version += 1;
  if (numbers.length) data.set(numbers, x.offset);
}

/** The same for some places of the storage only. */
export function writeAt(x, to, numbers) {
  const { data } = x.storage;
  x.storage.version += 1;
  for (let i = 0; i < to.length; i += 1) data[to[i]] = numbers[i];
}

/** What PyTorch calls the tensor in some of its messages. */
export const typeName = ({ dtype }) =>
  dtype === "bool" ? "CPUBoolType" : `torch.${DTYPES[dtype].title}Tensor`;

export const sizes = (shape) => `[${shape.join(", ")}]`;

/** A dimension counted from the front. */
export function dimension(dim, rank) {
  const span = Math.max(rank, 1);
  if (!Number.isInteger(dim) || dim < -span || dim >= span) {
    fail(
      `Dimension out of range (expected to be in range of [${-span}, ${span - 1}], but got ${dim})`,
      "IndexError",
    );
  }
  return dim < 0 ? dim + span : dim;
}

/** Dimensions of a reduction: none (null or an empty list) means all. */
export function dimensions(dim, rank) {
  if (dim === null || dim === undefined || dim.length === 0) {
    return Array.from({ length: rank }, (_, d) => d);
  }
  const dims = [dim].flat().map((d) => dimension(d, rank));
  const again = dims.find((d, i) => dims.indexOf(d) !== i);
  if (again !== undefined) fail(`dim ${again} appears multiple times in the list of dims`);
  return rank ? dims : [];
}

export function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const backwards = Array.from({ length: rank }, (_, i) => {
    const d = rank - 1 - i;
    const [one, other] = [a[d - rank + a.length] ?? 1, b[d - rank + b.length] ?? 1];
    if (one !== other && one !== 1 && other !== 1) {
      fail(
        `The size of tensor a (${one}) must match the size of tensor b (${other}) at non-singleton dimension ${d}`,
      );
    }
    return one === 1 ? other : one;
  });
  return backwards.reverse();
}

/** The same numbers, repeated without a copy to a larger shape; the shape must fit. */
export function stretch(x, shape) {
  if (same(x.shape, shape)) return x;
  const more = shape.length - x.shape.length;
  const strides = shape.map((size, d) =>
    d < more || (x.shape[d - more] === 1 && size !== 1) ? 0 : x.strides[d - more],
  );
  return viewOf(x, shape, strides);
}

export const same = (a, b) => a.length === b.length && a.every((size, d) => size === b[d]);

export const isScalar = (value) => !(value instanceof Tensor);

/** The dtype of a Python number or truth value, and its value. */
export function kindOf(value) {
  if (typeof value === "boolean") return "bool";
  return value instanceof Real || !Number.isInteger(value) ? "float32" : "int64";
}

export const numberOf = (value) => (value instanceof Real ? value.value : Number(value));

/** The dtype of a result: a tensor's counts before one of no dimension, and that before a number's. */
export function promote(...values) {
  const levels = [null, null, null];
  for (const value of values) {
    const level = isScalar(value) ? 2 : value.shape.length ? 0 : 1;
    const dtype = isScalar(value) ? kindOf(value) : value.dtype;
    levels[level] = levels[level] === null ? dtype : wider(levels[level], dtype);
  }
  return levels.reduce((result, next) => {
    if (result === null || next === null) return result ?? next;
    return DTYPES[next].rank > DTYPES[result].rank ? next : result;
  });
}

function wider(a, b) {
  const order = Object.keys(DTYPES);
  return order.indexOf(a) > order.indexOf(b) ? a : b;
}

/** Numbers as another dtype holds them. */
export function converted(numbers, from, to) {
  if (from === to) return numbers;
  if (to === "bool") return Uint8Array.from(numbers, (value) => Number(value !== 0));
  if (to === "int64") return Float64Array.from(numbers, toInteger);
  return DTYPES[to].Numbers.from(numbers);
}

function toInteger(value) {
  const whole = Math.trunc(value);
  // What a processor makes of a number that fits into no int64.
  return Number.isFinite(whole) ? whole + 0 : -(2 ** 63);
}
