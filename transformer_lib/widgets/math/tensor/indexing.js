// x[...] and x[...] = y, by everything that PyTorch takes, and gather, scatter, nonzero.
//
// An index is a list of: a whole number, null (a new dimension), "..." (all that is left), a Slice,
// true or false, and tensors of whole numbers or truth values.

import { assign, clone, scalar, to } from "./elementwise.js";
import { isGradOn, record, reduceTo } from "./graph.js";
import { gatherAlong, gatherPlaces } from "./reductions.js";
import { expand, reshape, select, slice, unsqueeze } from "./shapes.js";
import {
  broadcast,
  count,
  DTYPES,
  dense,
  dimension,
  fail,
  fresh,
  isScalar,
  places,
  plain,
  sizes,
  stretch,
  Tensor,
  typeName,
  viewOf,
  wrap,
  writeAt,
} from "./tensor.js";

export class Slice {
  constructor(start, stop, step) {
    Object.assign(this, { start, stop, step });
  }
}

const ELLIPSIS = "...";
const isMask = (part) => part instanceof Tensor && part.dtype === "bool";

/** The index with every dimension spoken for; numbers, slices and new dimensions done as views. */
function looked(x, index) {
  const used = index.reduce((sum, part) => {
    if (part === null || part === ELLIPSIS || typeof part === "boolean") return sum;
    return sum + (isMask(part) ? part.shape.length : 1);
  }, 0);
  if (used > x.shape.length) {
    fail(`too many indices for tensor of dimension ${x.shape.length}`, "IndexError");
  }
  let view = x;
  let d = 0;
  const picks = []; // the tensors, each at its dimension of the view
  for (const [position, part] of index.entries()) {
    if (part === ELLIPSIS) d += x.shape.length - used;
    else if (part === null) {
      view = unsqueeze(view, d);
      d += 1;
    } else if (typeof part === "boolean") {
      view = unsqueeze(view, d);
      picks.push({ at: d, by: fresh([Number(part)], "int64") });
      d += 1;
    } else if (part instanceof Slice) {
      view = slice(view, d, part.start, part.stop, part.step ?? 1);
      d += 1;
    } else if (part instanceof Tensor) {
      picks.push({ at: d, by: part });
      d += isMask(part) ? part.shape.length : 1;
    } else {
      const size = view.shape[d];
      if (part < -size || part >= size) {
        const where = `index ${part} is out of bounds for dimension ${position} with size ${size}`;
        fail(where, "IndexError");
      }
      view = select(view, d, part);
    }
  }
  return { view, picks: picks.flatMap(({ at, by }) => byNumbers(by, view, at)) };
}

/** A mask as the places where it is true, one tensor for each dimension. */
function byNumbers(part, view, d) {
  if (part.dtype === "int64") return [{ at: d, by: part }];
  if (part.dtype !== "bool") {
    fail("tensors used as indices must be long, int, byte or bool tensors", "IndexError");
  }
  part.shape.forEach((size, i) => {
    if (size !== view.shape[d + i]) {
      fail(
        `The shape of the mask ${sizes(part.shape)} at index ${i} does not match the shape of the indexed tensor ${sizes(view.shape)} at index ${d + i}`,
        "IndexError",
      );
    }
  });
  if (!part.shape.length)
    fail("this page cannot index by a truth value of no dimension", "IndexError");
  const found = nonzero(part);
  return part.shape.map((_, i) => ({ at: d + i, by: select(found, 1, i) }));
}

/** For each number of the result, its place in the view, row by row. `look` is told the result's
 * shape before the numbers of the index are looked at. */
function picking(view, picks, look = () => {}) {
  let shape = [];
  try {
    for (const { by } of picks) shape = broadcast(shape, by.shape);
  } catch {
    const shapes = picks.map(({ by }) => sizes(by.shape)).join(", ");
    fail(
      `shape mismatch: indexing tensors could not be broadcast together with shapes ${shapes}`,
      "IndexError",
    );
  }
  const ats = picks.map(({ at }) => at);
  const areTogether = ats.every((at, i) => i === 0 || at === ats[i - 1] + 1);
  const others = view.shape.map((_, d) => d).filter((d) => !ats.includes(d));
  const front = areTogether ? others.filter((d) => d < ats[0]) : [];
  const behind = others.filter((d) => !front.includes(d));
  const result = [front.map((d) => view.shape[d]), shape, behind.map((d) => view.shape[d])].flat();
  look(result);
  const steps = view.shape.map((_, d) => count(view.shape.slice(d + 1)));
  const among = new Int32Array(count(shape));
  picks.forEach(({ at, by }, nth) => {
    const size = view.shape[at];
    const chosen = dense(stretch(by, shape));
    for (let i = 0; i < among.length; i += 1) {
      const index = chosen[i];
      if (index < -size || index >= size) {
        // As in PyTorch, "dimension" counts the tensors of the index.
        const where = `index ${index} is out of bounds for dimension ${nth} with size ${size}`;
        fail(where, "IndexError");
      }
      among[i] += (index < 0 ? index + size : index) * steps[at];
    }
  });
  const grid = (dims) =>
    places({
      shape: dims.map((d) => view.shape[d]),
      strides: dims.map((d) => steps[d]),
      offset: 0,
    });
  const [before, after] = [grid(front), grid(behind)];
  const found = new Int32Array(count(result));
  let k = 0;
  for (const one of before) {
    for (const two of among) {
      for (const three of after) {
        found[k] = one + two + three;
        k += 1;
      }
    }
  }
  return { shape: result, found };
}

export function getitem(x, index) {
  const { view, picks } = looked(x, index);
  if (!picks.length) return view === x ? alias(x) : view;
  const { shape, found } = picking(view, picks);
  const numbers = dense(view);
  const result = fresh(shape, x.dtype);
  for (let i = 0; i < found.length; i += 1) result.storage.data[i] = numbers[found[i]];
  return record("IndexBackward0", result, [view], (g) => [scatterInto(g, view.shape, found)]);
}

const again = (x) => viewOf(x, x.shape, x.strides);

function alias(x) {
  return record("AliasBackward0", again(x), [x], (g) => [g]);
}

function scatterInto(grad, shape, found) {
  const result = fresh(shape, grad.dtype);
  const numbers = dense(grad);
  for (let i = 0; i < found.length; i += 1) result.storage.data[found[i]] += numbers[i];
  return record("IndexPutBackward0", result, [grad], (g) => {
    const picked = fresh(grad.shape, g.dtype);
    const from = dense(g);
    for (let i = 0; i < found.length; i += 1) picked.storage.data[i] = from[found[i]];
    return [picked];
  });
}

export function setitem(x, index, value) {
  const given = isScalar(value) ? scalar(value, x.dtype) : value;
  const recorded = isGradOn() && (x.requiresGrad || given.requiresGrad);
  if (recorded) {
    if (x.requiresGrad && !x.node) {
      fail("a leaf Variable that requires grad is being used in an in-place operation.");
    }
    return setRecorded(x, index, given);
  }
  put(x, index, given);
  return x;
}

function put(x, index, given) {
  const { view, picks } = looked(again(x), index);
  const value = shortened(plain(given));
  if (!picks.length) {
    requireFits(view, value);
    assign(view, to(value, view.dtype), "copy_");
    return;
  }
  if (value.storage === x.storage) {
    fail(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.",
    );
  }
  let values;
  const { found } = picking(view, picks, (shape) => {
    try {
      values = dense(stretchTo(to(value, x.dtype), shape));
    } catch {
      fail(
        `shape mismatch: value tensor of shape ${sizes(value.shape)} cannot be broadcast to indexing result of shape ${sizes(shape)}`,
      );
    }
  });
  const tensors = index.filter((part) => part instanceof Tensor);
  const isFill = value.numel === 1 && tensors.length === 1 && isMask(tensors[0]);
  if (value.dtype !== x.dtype && !isFill) {
    fail(
      `Index put requires the source and destination dtypes match, got ${DTYPES[x.dtype].title} for the destination and ${DTYPES[value.dtype].title} for the source.`,
    );
  }
  writeAt(view, storedAt(view, found), values);
}

/** Where in memory these places of a view are: of an expanded one, several are the same. */
function storedAt(view, found) {
  const all = places(view);
  return found.map((at) => all[at]);
}

export function index_put_(x, indices, value, accumulates) {
  if (!accumulates) return setitem(x, indices, value);
  if (isGradOn() && (x.requiresGrad || value.requiresGrad)) {
    fail("this page's tensors have no gradient of index_put_ with accumulate=True");
  }
  const { view, picks } = looked(again(x), indices);
  const { shape, found } = picking(view, picks);
  if (value.dtype !== x.dtype) {
    fail(
      `Index put requires the source and destination dtypes match, got ${DTYPES[x.dtype].title} for the destination and ${DTYPES[value.dtype].title} for the source.`,
    );
  }
  const values = dense(stretchTo(value, shape));
  storedAt(view, found).forEach((at, i) => {
    view.storage.data[at] += values[i];
  });
  view.storage.version += 1;
  return x;
}

/** Without leading dimensions of size 1. */
function shortened(value) {
  const first = value.shape.findIndex((size) => size !== 1);
  return reshape(value, first < 0 ? [] : value.shape.slice(first));
}

function requireFits(view, value) {
  const shift = view.shape.length - value.shape.length;
  if (shift < 0) {
    fail(
      `expand(${typeName(value)}{${sizes(value.shape)}}, size=${sizes(view.shape)}): the number of sizes provided (${view.shape.length}) must be greater or equal to the number of dimensions in the tensor (${value.shape.length})`,
    );
  }
  const bad = value.shape.findLastIndex((size, d) => size !== 1 && size !== view.shape[d + shift]);
  if (bad >= 0) {
    fail(
      `The expanded size of the tensor (${view.shape[bad + shift]}) must match the existing size (${value.shape[bad]}) at non-singleton dimension ${bad + shift}.  Target sizes: ${sizes(view.shape)}.  Tensor sizes: ${sizes(value.shape)}`,
    );
  }
}

function stretchTo(x, shape) {
  const whole = broadcast(x.shape, shape);
  if (whole.length !== shape.length || whole.some((size, d) => size !== shape[d])) fail("");
  return stretch(x, shape);
}

/** Write with a way back: what was there before gets no gradient where it is gone. */
function setRecorded(x, index, given) {
  if (x.base) {
    fail(
      "a view is written into while gradients are recorded, which this page's tensors cannot; write into the tensor itself, or build the result by torch.stack or torch.cat",
    );
  }
  const old = Object.assign(plain(x), { requiresGrad: x.requiresGrad, node: x.node });
  put(x, index, given);
  const { shape } = shortened(given);
  record("CopySlices", x, [old, given], (g) => {
    const kept = clone(plain(g));
    put(kept, index, scalar(0, g.dtype));
    const got = reduceTo(getitem(g, index), shape);
    return [kept, to(reshape(got, given.shape), given.dtype)];
  });
  return x;
}

// ---- gather and its kind ----------------------------------------------------------------------

function requireIndex(x, index, name) {
  if (index.dtype !== "int64") {
    fail(`${name}(): Expected dtype int32/int64 for index`);
  }
  if (x.shape.length !== index.shape.length) {
    fail(
      `Index tensor must have the same number of dimensions as ${name === "gather" ? "input" : "self"} tensor`,
    );
  }
}

export function gather(x, dim, index) {
  const d = dimension(dim, x.shape.length);
  requireIndex(x, index, "gather");
  const bad = x.shape.findIndex((size, i) => i !== d && index.shape[i] > size);
  if (bad >= 0) {
    fail(
      `Size does not match at dimension ${bad} expected index ${sizes(index.shape)} to be no larger than self ${sizes(x.shape)} apart from dimension ${d}`,
    );
  }
  return gatherAlong(x, index, d);
}

export function scatter(x, dim, index, source) {
  const d = dimension(dim, x.shape.length);
  requireIndex(x, index, "scatter");
  const found = gatherPlaces(x, index, d);
  const result = wrap(dense(x).slice(), x.shape, x.dtype);
  const given = isScalar(source)
    ? stretch(scalar(source, x.dtype), index.shape)
    : index.shape.reduce((part, size, k) => slice(part, k, 0, size), source);
  dense(given).forEach((value, i) => {
    result.storage.data[found[i]] = value;
  });
  const back = (g) => [scatter(g, d, index, 0), gatherAlong(g, index, d)];
  const name = `ScatterBackward${Number(isScalar(source))}`;
  return record(name, result, [x, given], back, [index]);
}

export function index_select(x, dim, index) {
  const d = dimension(dim, x.shape.length);
  const all = x.shape.slice(0, d).map(() => new Slice(null, null, 1));
  if (dense(index).some((i) => i < 0 || i >= x.shape[d])) {
    const bad = dense(index).find((i) => i < 0 || i >= x.shape[d]);
    if (!d) fail("index out of range in self", "IndexError");
    fail(`INDICES element is out of DATA bounds, id=${bad} axis_dim=${x.shape[d]}`);
  }
  const result = getitem(x, [...all, index]);
  if (result.node) result.node.name = "IndexSelectBackward0";
  return result;
}

export function masked_select(x, mask) {
  const shape = broadcast(x.shape, mask.shape);
  if (mask.dtype !== "bool") fail("masked_select: expected BoolTensor for mask");
  const result = getitem(reshape(expand(x, shape), -1), [reshape(expand(mask, shape), -1)]);
  if (result.node) result.node.name = "MaskedSelectBackward0";
  return result;
}

export function nonzero(x) {
  const found = [];
  dense(x).forEach((value, i) => value !== 0 && found.push(i));
  const result = fresh([found.length, x.shape.length], "int64");
  found.forEach((place, row) => {
    let rest = place;
    for (let d = x.shape.length - 1; d >= 0; d -= 1) {
      result.storage.data[row * x.shape.length + d] = rest % x.shape[d];
      rest = Math.floor(rest / x.shape[d]);
    }
  });
  return result;
}

export function flip(x, dims) {
  let result = x;
  const turned = [dims].flat().map((dim) => dimension(dim, x.shape.length));
  for (const d of x.shape.length ? turned : []) {
    const backwards = fresh([x.shape[d]], "int64");
    for (let i = 0; i < x.shape[d]; i += 1) backwards.storage.data[i] = x.shape[d] - 1 - i;
    result = index_select(result, d, backwards);
  }
  if (result.node) result.node.name = "FlipBackward0";
  return result === x ? clone(x) : result;
}

export function repeat_interleave(x, times, dim) {
  const [source, d] = dim == null ? [reshape(x, -1), 0] : [x, dimension(dim, x.shape.length)];
  const size = source.shape[d];
  const many = times instanceof Tensor ? Array.from(dense(times)) : Array(size).fill(times);
  if (many.length === 1 && size > 1) many.push(...Array(size - 1).fill(many[0]));
  if (many.length !== size) fail("repeats must have the same size as input along dim");
  const order = many.flatMap((n, i) => Array(n).fill(i));
  const index = wrap(Float64Array.from(order), [order.length], "int64");
  return index_select(source, d, index);
}

/** Under PyTorch's names. */
export const INDEXING = {
  flip,
  gather,
  getitem,
  index_put_,
  index_select,
  masked_select,
  nonzero,
  repeat_interleave,
  scatter,
  setitem,
};
