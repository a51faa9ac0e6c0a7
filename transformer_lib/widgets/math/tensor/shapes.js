// Shapes: views, which share their base's numbers, and what puts tensors together.

import { assign, clone, to } from "./elementwise.js";
import { record, reduceTo } from "./graph.js";
import {
  count,
  dense,
  dimension,
  fail,
  fresh,
  plain,
  promote,
  rowMajor,
  same,
  sizes,
  stretch,
  typeName,
  viewOf,
  wrap,
} from "./tensor.js";

const list = (...values) => values.flat();

// ---- views ------------------------------------------------------------------------------------

export function permute(x, dims) {
  const rank = x.shape.length;
  if (dims.length !== rank) {
    fail(
      `permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = ${rank} is not equal to len(dims) = ${dims.length}`,
    );
  }
  const order = dims.map((d) => dimension(d, rank));
  if (new Set(order).size !== rank) fail("permute(): duplicate dims are not allowed.");
  const back = order.map((_, d) => order.indexOf(d));
  return record("PermuteBackward0", viewBy(x, order), [x], (g) => [permute(g, back)]);
}

const viewBy = (x, order) =>
  viewOf(
    x,
    order.map((d) => x.shape[d]),
    order.map((d) => x.strides[d]),
  );

export function transpose(x, dim0, dim1) {
  const rank = x.shape.length;
  const [a, b] = [dimension(dim0, rank), dimension(dim1, rank)];
  const order = x.shape.map((_, d) => (d === a ? b : d === b ? a : d));
  return record("TransposeBackward0", viewBy(x, order), [x], (g) => [transpose(g, a, b)]);
}

export function t(x) {
  if (x.shape.length > 2) {
    fail(`t() expects a tensor with <= 2 dimensions, but self is ${x.shape.length}D`);
  }
  const result = viewBy(
    x,
    x.shape.map((_, d) => x.shape.length - 1 - d),
  );
  return record("TBackward0", result, [x], (g) => [t(g)]);
}

/** .T: all dimensions reversed; .mT: the last two swapped. */
export function T(x) {
  const rank = x.shape.length;
  if (rank === 2) return t(x);
  const order = x.shape.map((_, d) => rank - 1 - d);
  return permute(x, order);
}

export function mT(x) {
  if (x.shape.length < 2) {
    fail(
      `tensor.mT is only supported on matrices or batches of matrices. Got ${x.shape.length}-D tensor.`,
    );
  }
  return transpose(x, -2, -1);
}

function inferred(shape, numel) {
  const invalid = () => fail(`shape '${sizes(shape)}' is invalid for input of size ${numel}`);
  const open = shape.indexOf(-1);
  if (shape.some((size) => size < -1)) {
    fail(`invalid shape dimension ${shape.find((size) => size < -1)}`);
  }
  if (open < 0) return count(shape) === numel ? shape : invalid();
  if (shape.indexOf(-1, open + 1) >= 0) fail("only one dimension can be inferred");
  const rest = count(shape.filter((_, d) => d !== open));
  if (rest === 0 && numel === 0) {
    fail(
      `cannot reshape tensor of 0 elements into shape ${sizes(shape)} because the unspecified dimension size -1 can be any value and is ambiguous`,
    );
  }
  if (rest === 0 || numel % rest) invalid();
  return shape.map((size, d) => (d === open ? numel / rest : size));
}

/** Strides with which the same numbers have another shape; null where they need a copy. */
function stridesFor(x, shape) {
  if (!x.numel) return rowMajor(shape);
  const [old, steps] = [[], []];
  x.shape.forEach((size, d) => {
    if (size !== 1) {
      old.push(size);
      steps.push(x.strides[d]);
    }
  });
  const strides = new Array(shape.length).fill(1);
  let [i, j] = [0, 0];
  const filled = shape.map((size, d) => [size, d]).filter(([size]) => size !== 1);
  while (i < old.length && j < filled.length) {
    let [from, upTo] = [old[i], filled[j][0]];
    const [firstOld, firstNew] = [i, j];
    while (from !== upTo) {
      if (from < upTo) {
        i += 1;
        from *= old[i];
      } else {
        j += 1;
        upTo *= filled[j][0];
      }
    }
    for (let k = firstOld; k < i; k += 1) if (steps[k] !== old[k + 1] * steps[k + 1]) return null;
    let step = steps[i];
    for (let k = j; k >= firstNew; k -= 1) {
      strides[filled[k][1]] = step;
      step *= filled[k][0];
    }
    i += 1;
    j += 1;
  }
  for (let d = shape.length - 1; d >= 0; d -= 1) {
    if (shape[d] === 1) strides[d] = d + 1 < shape.length ? strides[d + 1] * shape[d + 1] : 1;
  }
  return strides;
}

export function view(x, ...shape) {
  const wanted = inferred(list(...shape), x.numel);
  const strides = stridesFor(x, wanted);
  if (!strides) {
    fail(
      "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
    );
  }
  const result = viewOf(x, wanted, strides);
  return record("ViewBackward0", result, [x], (g) => [reshape(g, x.shape)]);
}

export function reshape(x, ...shape) {
  const wanted = inferred(list(...shape), x.numel);
  if (stridesFor(x, wanted)) return view(x, wanted);
  const result = wrap(dense(x).slice(), wanted, x.dtype);
  return record("UnsafeViewBackward0", result, [x], (g) => [reshape(g, x.shape)]);
}

export function contiguous(x) {
  return x.isContiguous ? x : clone(x);
}

export function flatten(x, start = 0, end = -1) {
  const rank = x.shape.length;
  const [a, b] = [dimension(start ?? 0, rank), dimension(end ?? -1, rank)];
  if (a > b) fail("flatten() has invalid args: start_dim cannot come after end_dim");
  if (!rank) return reshape(x, [1]);
  if (a === b) return x;
  return reshape(x, [
    ...x.shape.slice(0, a),
    count(x.shape.slice(a, b + 1)),
    ...x.shape.slice(b + 1),
  ]);
}

export function unflatten(x, dim, shape) {
  const d = dimension(dim, x.shape.length);
  if (!shape.includes(-1) && count(shape) !== x.shape[d]) {
    fail(
      `unflatten: Provided sizes ${sizes(shape)} don't multiply up to the size of dim ${d} (${x.shape[d]}) in the input tensor`,
    );
  }
  return view(x, [...x.shape.slice(0, d), ...inferred(shape, x.shape[d]), ...x.shape.slice(d + 1)]);
}

export function unsqueeze(x, dim) {
  const d = dimension(dim, x.shape.length + 1);
  const step = d < x.shape.length ? x.shape[d] * x.strides[d] : 1;
  const result = viewOf(x, x.shape.toSpliced(d, 0, 1), x.strides.toSpliced(d, 0, step));
  return record("UnsqueezeBackward0", result, [x], (g) => [squeeze(g, d)]);
}

export function squeeze(x, dim) {
  const rank = x.shape.length;
  const dims = dim == null ? x.shape.map((_, d) => d) : list(dim).map((d) => dimension(d, rank));
  const kept = x.shape.map((_, d) => d).filter((d) => x.shape[d] !== 1 || !dims.includes(d));
  const name = dim == null ? "SqueezeBackward0" : "SqueezeBackward1";
  return record(name, viewBy(x, kept), [x], (g) => [reshape(g, x.shape)]);
}

export function expand(x, ...shape) {
  const wanted = list(...shape);
  const more = wanted.length - x.shape.length;
  if (more < 0) {
    fail(
      `expand(${typeName(x)}{${sizes(x.shape)}}, size=${sizes(wanted)}): the number of sizes provided (${wanted.length}) must be greater or equal to the number of dimensions in the tensor (${x.shape.length})`,
    );
  }
  const full = [...wanted.keys()].reverse().map((d) => {
    const size = wanted[d];
    const has = d < more ? null : x.shape[d - more];
    if (size === -1 && has === null) {
      fail(
        `The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ${d}`,
      );
    }
    if (size !== -1 && has !== null && has !== size && has !== 1) {
      fail(
        `The expanded size of the tensor (${size}) must match the existing size (${has}) at non-singleton dimension ${d}.  Target sizes: ${sizes(wanted)}.  Tensor sizes: ${sizes(x.shape)}`,
      );
    }
    return size === -1 ? has : size;
  });
  full.reverse();
  const stretched = stretch(x, full);
  const result = stretched === x ? viewOf(x, x.shape, x.strides) : stretched;
  return record("ExpandBackward0", result, [x], (g) => [reduceTo(g, x.shape)]);
}

/** One place of a dimension, which goes. */
export function select(x, dim, index) {
  const rank = x.shape.length;
  if (!rank) fail("select() cannot be applied to a 0-dim tensor.", "IndexError");
  const d = dimension(dim, rank);
  if (index < -x.shape[d] || index >= x.shape[d]) {
    fail(
      `select(): index ${index} out of range for tensor of size ${sizes(x.shape)} at dimension ${d}`,
      "IndexError",
    );
  }
  const place = index < 0 ? index + x.shape[d] : index;
  const offset = x.offset + place * x.strides[d];
  const result = viewOf(x, x.shape.toSpliced(d, 1), x.strides.toSpliced(d, 1), offset);
  return record("SelectBackward0", result, [x], (g) => [
    placed(g, x.shape, (zeros) => select(zeros, d, place)),
  ]);
}

export function slice(x, dim, start, stop, step = 1) {
  const d = dimension(dim, x.shape.length);
  const size = x.shape[d];
  if (step <= 0) fail("step must be greater than zero", "ValueError");
  const bound = (value, otherwise) =>
    value == null ? otherwise : Math.min(size, Math.max(0, value < 0 ? value + size : value));
  const [from, upTo] = [bound(start, 0), bound(stop, size)];
  const length = Math.max(0, Math.ceil((upTo - from) / step));
  const result = viewOf(
    x,
    x.shape.with(d, length),
    x.strides.with(d, x.strides[d] * step),
    x.offset + from * x.strides[d],
  );
  return record("SliceBackward0", result, [x], (g) => [
    placed(g, x.shape, (zeros) => slice(zeros, d, from, upTo, step)),
  ]);
}

/** The way back of a view: zeros, and the gradient where the view looked. */
function placed(grad, shape, look) {
  const zeros = fresh(shape, grad.dtype);
  assign(look(zeros), grad.requiresGrad ? wrap(dense(grad), grad.shape, grad.dtype) : grad);
  return record("SelectBackwardBackward0", zeros, [grad], (g) => [look(g)]);
}

export function narrow(x, dim, start, length) {
  const size = x.shape[dimension(dim, x.shape.length)];
  const first = start < 0 ? start + size : start;
  if (first < 0 || first + length > size) {
    fail(`start (${first}) + length (${length}) exceeds dimension size (${size}).`);
  }
  return slice(x, dim, first, first + length);
}

export function unbind(x, dim = 0) {
  if (!x.shape.length) fail("Dimension specified as 0 but tensor has no dimensions", "IndexError");
  const d = dimension(dim ?? 0, x.shape.length);
  return Array.from({ length: x.shape[d] }, (_, i) => select(x, d, i));
}

export function split(x, size, dim = 0) {
  const d = dimension(dim ?? 0, x.shape.length);
  const whole = x.shape[d];
  const parts = Array.isArray(size)
    ? size
    : Array.from({ length: Math.max(1, Math.ceil(whole / size)) }, (_, i) =>
        Math.min(size, whole - i * size),
      );
  if (parts.reduce((sum, part) => sum + part, 0) !== whole) {
    fail(
      `split_with_sizes expects split_sizes to sum exactly to ${whole} (input tensor's size at dimension ${d}), but got split_sizes=${sizes(parts)}`,
    );
  }
  const ends = runningSum(parts);
  return parts.map((part, i) => slice(x, d, ends[i] - part, ends[i]));
}

const runningSum = (numbers) => {
  let sum = 0;
  return numbers.map((number) => {
    sum += number;
    return sum;
  });
};

export function chunk(x, chunks, dim = 0) {
  const d = dimension(dim ?? 0, x.shape.length);
  if (chunks <= 0) fail(`chunk expects \`chunks\` to be greater than 0, got: ${chunks}`);
  return split(x, Math.max(1, Math.ceil(x.shape[d] / chunks)), d);
}

export function diagonal(x, offset = 0, dim1 = 0, dim2 = 1) {
  const rank = x.shape.length;
  const [a, b] = [dimension(dim1 ?? 0, rank), dimension(dim2 ?? 1, rank)];
  if (a === b) fail(`diagonal dimensions cannot be identical ${dim1}, ${dim2}`);
  const shift = offset ?? 0;
  const [down, right] = [Math.max(0, -shift), Math.max(0, shift)];
  const length = Math.max(0, Math.min(x.shape[a] - down, x.shape[b] - right));
  const others = x.shape.map((_, d) => d).filter((d) => d !== a && d !== b);
  const result = viewOf(
    x,
    [...others.map((d) => x.shape[d]), length],
    [...others.map((d) => x.strides[d]), x.strides[a] + x.strides[b]],
    x.offset + (length ? down * x.strides[a] + right * x.strides[b] : 0),
  );
  return record("DiagonalBackward0", result, [x], (g) => [
    placed(g, x.shape, (zeros) => diagonal(zeros, shift, a, b)),
  ]);
}

/** The same numbers without their history: they may be written into even where x is a leaf. */
export function detach(x) {
  return viewOf(plain(x), x.shape, x.strides);
}

// ---- put together -----------------------------------------------------------------------------

export function cat(tensors, dim = 0) {
  if (!tensors.length) fail("torch.cat(): expected a non-empty list of Tensors", "ValueError");
  const parts = tensors.filter((x) => !(x.shape.length === 1 && !x.shape[0]));
  const flat = tensors.findIndex((x) => !x.shape.length);
  if (flat >= 0) fail(`zero-dimensional tensor (at position ${flat}) cannot be concatenated`);
  const first = parts[0] ?? tensors[0];
  const d = dimension(dim ?? 0, first.shape.length);
  parts.forEach((x) => {
    const at = tensors.indexOf(x);
    if (x.shape.length !== first.shape.length) {
      fail(
        `Tensors must have same number of dimensions: got ${first.shape.length} and ${x.shape.length}`,
      );
    }
    const bad = x.shape.findIndex((size, i) => i !== d && size !== first.shape[i]);
    if (bad >= 0) {
      fail(
        `Sizes of tensors must match except in dimension ${d}. Expected size ${first.shape[bad]} but got size ${x.shape[bad]} for tensor number ${at} in the list.`,
      );
    }
  });
  const dtype = promote(...tensors);
  const total = parts.reduce((sum, x) => sum + x.shape[d], 0);
  const result = fresh(parts.length ? first.shape.with(d, total) : [0], dtype);
  const lengths = parts.map((x) => x.shape[d]);
  const bounds = runningSum(lengths).map((end, i) => [end - lengths[i], end]);
  parts.forEach((x, i) => {
    assign(slice(result, d, ...bounds[i]), plain(x));
  });
  return record("CatBackward0", result, parts, (g) =>
    parts.map((x, i) => to(slice(g, d, ...bounds[i]), x.dtype)),
  );
}

export function stack(tensors, dim = 0) {
  if (!tensors.length) fail("stack expects a non-empty TensorList");
  const [first] = tensors;
  const d = dimension(dim ?? 0, first.shape.length + 1);
  tensors.forEach((x, i) => {
    if (!same(x.shape, first.shape)) {
      fail(
        `stack expects each tensor to be equal size, but got ${sizes(first.shape)} at entry 0 and ${sizes(x.shape)} at entry ${i}`,
      );
    }
  });
  const result = cat(
    tensors.map((x) => unsqueeze(x, d)),
    d,
  );
  if (result.node) result.node.name = "StackBackward0";
  return result;
}

export function repeat(x, ...times) {
  const many = list(...times);
  if (many.length < x.shape.length) {
    fail(
      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
    );
  }
  let result = reshape(x, [...many.slice(x.shape.length).fill(1), ...x.shape]);
  many.forEach((n, d) => {
    if (n !== 1) result = n ? cat(Array(n).fill(result), d) : slice(result, d, 0, 0);
  });
  const copied = result === x || result.base ? clone(result) : result;
  if (copied.node) copied.node.name = "RepeatBackward0";
  return copied;
}

export function tile(x, ...times) {
  const many = list(...times);
  return repeat(x, ...Array(Math.max(0, x.shape.length - many.length)).fill(1), ...many);
}

export function roll(x, shifts, dims) {
  if (dims == null || dims.length === 0) return reshape(roll(reshape(x, -1), shifts, 0), x.shape);
  const [by, along] = [list(shifts), list(dims)];
  if (by.length !== along.length) {
    fail(`shifts and dimensions must align. shifts: ${by.length}, dims:${along.length}`);
  }
  let result = x;
  along.forEach((dim, i) => {
    const d = dimension(dim, x.shape.length);
    const size = x.shape[d];
    const cut = size ? (((size - by[i]) % size) + size) % size : 0;
    result = cat([slice(result, d, cut, size), slice(result, d, 0, cut)], d);
  });
  if (result.node) result.node.name = "RollBackward0";
  return result;
}

/** Under PyTorch's names. */
export const SHAPES = {
  cat,
  chunk,
  contiguous,
  detach,
  diagonal,
  expand,
  flatten,
  mT,
  narrow,
  permute,
  repeat,
  reshape,
  roll,
  select,
  split,
  squeeze,
  stack,
  t,
  T,
  tile,
  transpose,
  unbind,
  unflatten,
  unsqueeze,
  view,
};
