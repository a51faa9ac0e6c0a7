// Sums, means, extremes, softmax, sorting: what is computed along dimensions.

import { eye, ones, tril } from "./creation.js";
import { clone, div, eq, exp, logical_not, mul, named, sub, to, where } from "./elementwise.js";
import { record } from "./graph.js";
import { permute, reshape, transpose, unsqueeze } from "./shapes.js";
import {
  count,
  DTYPES,
  dense,
  dimension,
  dimensions,
  fail,
  fresh,
  numberOf,
  plain,
  Real,
  stretch,
  wrap,
} from "./tensor.js";

/** The numbers with the dimensions `dims` last, as rows: { numbers, length, outer, kept }. */
function rowsOf(x, dims) {
  const others = x.shape.map((_, d) => d).filter((d) => !dims.includes(d));
  const outer = others.map((d) => x.shape[d]);
  const kept = x.shape.map((size, d) => (dims.includes(d) ? 1 : size));
  const inPlace = dims.every((d, i) => d === others.length + i);
  const numbers = dense(inPlace ? x : permute(plain(x), [...others, ...dims]));
  return { numbers, length: count(dims.map((d) => x.shape[d])), outer, kept };
}

/** One number for each row; `f` gets the numbers and where the row begins and ends. */
function fold(x, dim, keepdim, f, dtype = x.dtype) {
  const dims = dimensions(dim, x.shape.length);
  const { numbers, length, outer, kept } = rowsOf(x, dims);
  const result = fresh(keepdim ? kept : outer, dtype);
  const { data } = result.storage;
  const isInner = dims.includes(x.shape.length - 1);
  for (let r = 0; r < data.length; r += 1) {
    data[r] = f(numbers, r * length, (r + 1) * length, isInner);
  }
  return { result, dims, kept, length };
}

/** A gradient or result of a reduction, broadcast against what was reduced. */
const back = (x, kept) => reshape(x, kept);

const FEW = 32;

/** The sum of a row. Of a few float32 numbers it is rounded at each step, in PyTorch's own order:
 * five weights may add up to 1.0000001, and a whole tensor is printed in another way then. */
function total(numbers, from, upTo, isInner) {
  if (numbers instanceof Float32Array && upTo - from <= FEW) {
    return isInner ? interleaved(numbers, from, upTo) : stepwise(numbers, from, upTo, 1);
  }
  let sum = 0;
  for (let i = from; i < upTo; i += 1) sum += numbers[i];
  return sum;
}

function stepwise(numbers, from, upTo, step) {
  let sum = 0;
  for (let i = from; i < upTo; i += step) sum = Math.fround(sum + numbers[i]);
  return sum;
}

/** Along the last dimension, four sums at once. */
function interleaved(numbers, from, upTo) {
  const end = from + 4 * Math.floor((upTo - from) / 4);
  let first = end > from ? stepwise(numbers, from, end, 4) : 0;
  for (let i = end; i < upTo; i += 1) first = Math.fround(first + numbers[i]);
  for (let k = 1; k < 4 && end > from; k += 1) {
    first = Math.fround(first + stepwise(numbers, from + k, end, 4));
  }
  return first;
}

const summed = (dtype) => (DTYPES[dtype].rank < 2 ? "int64" : dtype);

export function sum(x, dim, keepdim, dtype) {
  const source = dtype ? to(x, dtype) : x;
  const { result, kept } = fold(source, dim, keepdim, total, dtype ?? summed(x.dtype));
  const name = dim == null ? "SumBackward0" : "SumBackward1";
  return record(name, result, [source], (g) => [stretched(back(g, kept), x.shape)]);
}

/** expand, with its gradient. */
function stretched(x, shape) {
  const dims = shape.map((size, d) => (size !== x.shape[d] ? d : -1)).filter((d) => d >= 0);
  const grown = (g) => [dims.length ? sum(g, dims, true) : g];
  return record("ExpandBackward0", stretch(x, shape), [x], grown);
}

export function mean(x, dim, keepdim, dtype) {
  const source = dtype ? to(x, dtype) : x;
  if (!source.isFloat) {
    fail(
      `mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: ${DTYPES[x.dtype].title}`,
    );
  }
  const { result, kept, length } = fold(
    source,
    dim,
    keepdim,
    (numbers, from, upTo, isInner) => total(numbers, from, upTo, isInner) / (upTo - from),
  );
  const name = dim == null ? "MeanBackward0" : "MeanBackward1";
  return record(name, result, [source], (g) => [
    div(stretched(back(g, kept), x.shape), new Real(length)),
  ]);
}

export function prod(x, dim, keepdim, dtype) {
  const product = (numbers, from, upTo) => {
    let result = 1;
    for (let i = from; i < upTo; i += 1) result *= numbers[i];
    return result;
  };
  const source = dtype ? to(x, dtype) : x;
  const { result, kept } = fold(source, dim, keepdim, product, dtype ?? summed(x.dtype));
  const rest = (g) => {
    const whole = (y) => stretched(back(y, kept), x.shape);
    if (!dense(source).includes(0)) return [mul(whole(g), div(whole(result), source))];
    const [row, d] = dim == null ? [reshape(source, -1), 0] : [source, dim];
    const others = products(row, d, (n) => logical_not(eye(n, n, "bool")));
    return [mul(whole(g), reshape(others, x.shape))];
  };
  return record("ProdBackward0", result, [source], rest, [source, result]);
}

/** For each place along a dimension, the product of the numbers that its row of a mask keeps. */
function products(x, dim, maskOf) {
  const line = x.shape.length ? x : reshape(x, -1);
  const rows = unsqueeze(transpose(line, dim, -1), -2);
  const kept = where(maskOf(rows.shape.at(-1)), rows, 1);
  return reshape(transpose(prod(kept, -1), dim, -1), x.shape);
}

function spreadOf(root) {
  const name = root ? "StdBackward0" : "VarBackward0";
  return (x, dim, correction = 1, keepdim = false) => {
    if (!x.isFloat) {
      fail(`std and var only support floating point and complex dtypes`);
    }
    const dims = dimensions(dim, x.shape.length);
    const away = numberOf(correction ?? 1);
    const { result, kept, length } = fold(x, dims, keepdim, (numbers, from, upTo) => {
      const n = upTo - from;
      const middle = total(numbers, from, upTo) / n;
      let squares = 0;
      for (let i = from; i < upTo; i += 1) squares += (numbers[i] - middle) ** 2;
      const variance = squares / Math.max(0, n - away);
      return root ? Math.sqrt(variance) : variance;
    });
    const rest = (g) => {
      const slope = mul(sub(x, mean(x, dims, true)), 2 / Math.max(0, length - away));
      const share = root ? where(eq(result, 0), 0, div(g, mul(result, 2))) : g;
      return [mul(slope, stretched(back(share, kept), x.shape))];
    };
    return record(name, result, [x], rest, [x, root && result]);
  };
}
export const std = spreadOf(true);
export const variance = spreadOf(false);

export function norm(x, p, dim, keepdim) {
  const order = p == null || p === "fro" ? 2 : numberOf(p);
  if (!x.isFloat) {
    fail(
      `linalg.vector_norm: Expected a floating point or complex tensor as input. Got ${DTYPES[x.dtype].title}`,
    );
  }
  const { result, kept } = fold(x, dim, keepdim, (numbers, from, upTo) => {
    let found = 0;
    for (let i = from; i < upTo; i += 1) {
      const size = Math.abs(numbers[i]);
      if (order === Infinity) found = Math.max(found, size);
      else found += order === 0 ? Number(size !== 0) : size ** order;
    }
    return order === 0 || order === Infinity ? found : found ** (1 / order);
  });
  const rest = (g) => {
    if (order !== 2) fail("the gradient of this norm is missing in this page; p=2 has one");
    const [one, length] = [back(g, kept), back(result, kept)];
    return [mul(x, where(eq(length, 0), 0, div(one, length)))];
  };
  return record("LinalgVectorNormBackward0", result, [x], rest, [x, result]);
}

// ---- extremes ---------------------------------------------------------------------------------

const higher = (a, b) => a > b || (Number.isNaN(a) && !Number.isNaN(b));
const lower = (a, b) => a < b || (Number.isNaN(a) && !Number.isNaN(b));

function best(wins) {
  return (numbers, from, upTo) => {
    let place = from;
    for (let i = from + 1; i < upTo; i += 1) if (wins(numbers[i], numbers[place])) place = i;
    return place - from;
  };
}

function requireNumbers(x, name, dim) {
  const rank = x.shape.length;
  const isArg = name.startsWith("arg");
  if (dim != null && x.shape[dimension(dim, rank)] === 0) {
    const shown = isArg ? dimension(dim, rank) : dim;
    fail(`${name}(): Expected reduction dim ${shown} to have non-zero size.`, "IndexError");
  }
  if (dim == null && !x.numel) {
    fail(
      `${name}(): Expected reduction dim to be specified for input.numel() == 0.${isArg ? "" : " Specify the reduction dim with the 'dim' argument."}`,
      isArg ? "IndexError" : "RuntimeError",
    );
  }
}

function argument(name, wins) {
  return (x, dim, keepdim) => {
    if (x.dtype === "bool") fail(`${name}(): does not support bool input`);
    requireNumbers(x, name, dim);
    return fold(x, dim, keepdim, best(wins), "int64").result;
  };
}
export const argmax = argument("argmax", higher);
export const argmin = argument("argmin", lower);

/** Picks from each row the number at an index: its gradient goes there. */
function picked(x, indices, dim, keepdim, name) {
  const d = dimension(dim, x.shape.length);
  const result = gatherAlong(x, keepdim ? indices : unsqueezed(indices, d, x), d);
  const shaped = keepdim || !x.shape.length ? result : reshape(result, indices.shape);
  return named(shaped, x, name);
}

const unsqueezed = (indices, d, x) => (x.shape.length ? unsqueeze(indices, d) : indices);

function extreme(name, wins) {
  const title = `${name[0].toUpperCase()}${name.slice(1)}Backward`;
  return (x, dim, keepdim) => {
    requireNumbers(x, name, dim);
    if (dim != null) {
      const { result } = fold(x, dim, keepdim, best(wins), "int64");
      return [picked(x, result, dim, keepdim, `${title}0`), result];
    }
    return named(amount(x, null, false, wins), x, `${title}1`);
  };
}

function amount(x, dim, keepdim, wins) {
  const place = best(wins);
  const { result, kept } = fold(
    x,
    dim,
    keepdim,
    (numbers, from, upTo) => numbers[from + place(numbers, from, upTo)],
  );
  const rest = (g) => {
    const winners = to(eq(x, back(result, kept)), x.dtype);
    const shares = sum(winners, dim, true);
    return [mul(winners, div(back(g, kept), dim == null ? back(shares, kept) : shares))];
  };
  return record("AmaxBackward0", result, [x], rest, [x, result]);
}
export const max = extreme("max", higher);
export const min = extreme("min", lower);
export const amax = (x, dim, keepdim) => {
  [dim ?? null].flat().forEach((one) => requireNumbers(x, "amax", one));
  return amount(x, dim, keepdim, higher);
};
export const amin = (x, dim, keepdim) => {
  [dim ?? null].flat().forEach((one) => requireNumbers(x, "amin", one));
  return named(amount(x, dim, keepdim, lower), x, "AminBackward0");
};

function truth(f) {
  return (x, dim, keepdim) => fold(x, dim, keepdim, f, "bool").result;
}
export const any = truth((numbers, from, upTo) => {
  for (let i = from; i < upTo; i += 1) if (numbers[i] !== 0) return 1;
  return 0;
});
export const all = truth((numbers, from, upTo) => {
  for (let i = from; i < upTo; i += 1) if (numbers[i] === 0) return 0;
  return 1;
});
export function count_nonzero(x, dim) {
  const nonzero = (numbers, from, upTo) => {
    let found = 0;
    for (let i = from; i < upTo; i += 1) found += Number(numbers[i] !== 0);
    return found;
  };
  return fold(x, dim, false, nonzero, "int64").result;
}

// ---- softmax and its kind: as many numbers as before -------------------------------------------

/** f writes each row of a result from the same row of x. */
function along(x, dim, f, dtype = x.dtype) {
  const rank = x.shape.length;
  const d = dimension(dim, rank);
  if (!rank) {
    const result = fresh([], dtype);
    f(dense(x), result.storage.data, 0, 1);
    return result;
  }
  const { numbers, length, outer } = rowsOf(x, [d]);
  const moved = fresh([...outer, x.shape[d]], dtype);
  const { data } = moved.storage;
  for (let at = 0; at < data.length; at += length) f(numbers, data, at, at + length);
  const order = Array.from({ length: rank }, (_, i) => (i < d ? i : i === d ? rank - 1 : i - 1));
  return d === rank - 1 ? moved : wrap(dense(permute(moved, order)), x.shape, dtype);
}

function requireFloat(x, name, dim) {
  const isLast = dimension(dim, x.shape.length) === Math.max(0, x.shape.length - 1);
  if (!x.isFloat && x.numel) {
    fail(
      `"${name}${isLast ? "_lastdim" : ""}_kernel_impl" not implemented for '${DTYPES[x.dtype].title}'`,
      "NotImplementedError",
    );
  }
}

function exponentials(numbers, out, from, upTo) {
  let largest = -Infinity;
  for (let i = from; i < upTo; i += 1) if (!(numbers[i] <= largest)) largest = numbers[i];
  let sum = 0;
  for (let i = from; i < upTo; i += 1) {
    const power = Math.exp(numbers[i] - largest);
    if (out) out[i] = power;
    sum += power;
  }
  return { largest, sum };
}

export function softmax(x, dim, dtype) {
  if (dim == null) {
    fail(
      'softmax() received an invalid combination of arguments - got (Tensor), but expected "dim"',
      "TypeError",
    );
  }
  const source = dtype ? to(x, dtype) : x;
  requireFloat(source, "softmax", dim);
  // Rounded as PyTorch rounds: the powers, their sum, and the shares.
  const scratch = new DTYPES[source.dtype].Numbers(source.numel);
  const result = along(source, dim, (numbers, out, from, upTo) => {
    exponentials(numbers, scratch, from, upTo);
    const sum = total(scratch, from, upTo, false);
    for (let i = from; i < upTo; i += 1) out[i] = scratch[i] / sum;
  });
  const rest = (g) => {
    const weighted = mul(g, result);
    return [sub(weighted, mul(result, sum(weighted, [dim], true)))];
  };
  return record("SoftmaxBackward0", result, [source], rest, [result]);
}

export function log_softmax(x, dim, dtype) {
  const source = dtype ? to(x, dtype) : x;
  requireFloat(source, "log_softmax", dim);
  const result = along(source, dim, (numbers, out, from, upTo) => {
    const { largest, sum } = exponentials(numbers, null, from, upTo);
    for (let i = from; i < upTo; i += 1) out[i] = numbers[i] - largest - Math.log(sum);
  });
  const rest = (g) => [sub(g, mul(exp(result), sum(g, [dim], true)))];
  return record("LogSoftmaxBackward0", result, [source], rest, [result]);
}

export function logsumexp(x, dim, keepdim) {
  const source = x.isFloat ? x : to(x, "float32");
  const { result, kept } = fold(source, dim, keepdim, (numbers, from, upTo) => {
    const { largest, sum } = exponentials(numbers, null, from, upTo);
    return Math.abs(largest) === Infinity ? largest : largest + Math.log(sum);
  });
  const rest = (g) => [mul(back(g, kept), exp(sub(source, back(result, kept))))];
  return record("LogsumexpBackward0", result, [source], rest, [source, result]);
}

export function cumsum(x, dim, dtype) {
  const source = dtype ? to(x, dtype) : x;
  const result = along(
    source,
    dim,
    (numbers, out, from, upTo) => {
      let sum = 0;
      for (let i = from; i < upTo; i += 1) {
        sum += numbers[i];
        out[i] = sum;
      }
    },
    dtype ?? summed(x.dtype),
  );
  return record("CumsumBackward0", result, [source], (g) => [
    sub(mul(sum(g, [dim], true), new Real(1)), sub(cumsum(g, dim), g)),
  ]);
}

export function cumprod(x, dim) {
  if (x.requiresGrad) {
    const running = products(x, dim, (n) => tril(ones([n, n], "bool")));
    return named(clone(running), x, "CumprodBackward0");
  }
  return along(
    x,
    dim,
    (numbers, out, from, upTo) => {
      let product = 1;
      for (let i = from; i < upTo; i += 1) {
        product *= numbers[i];
        out[i] = product;
      }
    },
    summed(x.dtype),
  );
}

// ---- order ------------------------------------------------------------------------------------

/** The places of a row's numbers in order; a tie keeps its order, NaN is largest. */
function ordered(numbers, from, upTo, descending) {
  const places = Array.from({ length: upTo - from }, (_, i) => i);
  const [before, sign] = descending ? [higher, -1] : [lower, 1];
  const compare = (a, b) => {
    const [x, y] = [numbers[from + a], numbers[from + b]];
    if (Number.isNaN(x) || Number.isNaN(y)) return sign * (Number.isNaN(x) - Number.isNaN(y));
    return before(x, y) ? -1 : before(y, x) ? 1 : 0;
  };
  return places.sort((a, b) => compare(a, b) || a - b);
}

export function argsort(x, dim = -1, descending = false) {
  const order = (numbers, out, from, upTo) =>
    ordered(numbers, from, upTo, descending).forEach((place, i) => {
      out[from + i] = place;
    });
  return along(x, dim ?? -1, order, "int64");
}

export function sort(x, dim = -1, descending = false) {
  const indices = argsort(x, dim, descending);
  return [named(gatherAlong(x, indices, dim ?? -1), x, "SortBackward0"), indices];
}

export function topk(x, k, dim = -1, largest = true) {
  const d = dimension(dim ?? -1, x.shape.length);
  const size = x.shape[d] ?? 1;
  if (k < 0 || k > size) fail("selected index k out of range");
  if (!x.shape.length) return [clone(x), fresh([], "int64")];
  const order = argsort(x, d, largest ?? true);
  const { numbers } = rowsOf(order, [d]);
  const outer = x.shape.toSpliced(d, 1);
  const rows = fresh([...outer, k], "int64");
  const { data } = rows.storage;
  for (let i = 0; i < data.length; i += 1) data[i] = numbers[Math.floor(i / k) * size + (i % k)];
  const rank = x.shape.length;
  const back = Array.from({ length: rank }, (_, i) => (i < d ? i : i === d ? rank - 1 : i - 1));
  const moved = permute(rows, back);
  const indices = wrap(dense(moved).slice(), moved.shape, "int64");
  return [named(gatherAlong(x, indices, d), x, "TopkBackward0"), indices];
}

/** The lower of two middle numbers, as in PyTorch. */
export function median(x, dim, keepdim) {
  requireNumbers(x, "median", dim);
  const middle = (numbers, from, upTo) => {
    const row = ordered(numbers, from, upTo, false);
    const nan = row.find((place) => Number.isNaN(numbers[from + place]));
    return nan ?? row[(row.length - 1) >> 1];
  };
  if (dim == null) {
    const flat = reshape(x, -1);
    const { result } = fold(flat, 0, false, middle, "int64");
    return picked(flat, result, 0, false, "MedianBackward0");
  }
  const { result } = fold(x, dim, keepdim, middle, "int64");
  return [picked(x, result, dim, keepdim, "MedianBackward1"), result];
}

// ---- picking ----------------------------------------------------------------------------------

/** x's numbers at the indices along a dimension: torch.gather. */
export function gatherAlong(x, indices, dim) {
  const d = dimension(dim, x.shape.length);
  const places = gatherPlaces(x, indices, d);
  const numbers = dense(x);
  const result = fresh(indices.shape, x.dtype);
  for (let i = 0; i < places.length; i += 1) result.storage.data[i] = numbers[places[i]];
  return record("GatherBackward0", result, [x], (g) => [scattered(g, x.shape, places)]);
}

function scattered(grad, shape, places) {
  const result = fresh(shape, grad.dtype);
  const numbers = dense(grad);
  for (let i = 0; i < places.length; i += 1) result.storage.data[places[i]] += numbers[i];
  return record("ScatterAddBackward0", result, [grad], (g) => {
    const from = dense(g);
    const picked = fresh(grad.shape, g.dtype);
    for (let i = 0; i < places.length; i += 1) picked.storage.data[i] = from[places[i]];
    return [picked];
  });
}

/** Where, row by row in x, the index along d leads from each place of `indices`. */
export function gatherPlaces(x, indices, d) {
  const found = new Int32Array(indices.numel);
  const numbers = dense(indices);
  const size = x.shape[d] ?? 1;
  const steps = x.shape.map((_, i) => count(x.shape.slice(i + 1)));
  const { shape } = indices;
  const index = new Int32Array(shape.length);
  for (let i = 0; i < found.length; i += 1) {
    const chosen = numbers[i];
    if (chosen < 0 || chosen >= size) {
      fail(`index ${chosen} is out of bounds for dimension ${d} with size ${size}`);
    }
    let at = 0;
    for (let k = 0; k < shape.length; k += 1) at += (k === d ? chosen : index[k]) * steps[k];
    found[i] = at;
    for (let k = shape.length - 1; k >= 0; k -= 1) {
      index[k] += 1;
      if (index[k] < shape[k]) break;
      index[k] = 0;
    }
  }
  return found;
}

/** Under PyTorch's names. */
export const REDUCTIONS = {
  all,
  amax,
  amin,
  any,
  argmax,
  argmin,
  argsort,
  count_nonzero,
  cumprod,
  cumsum,
  log_softmax,
  logsumexp,
  max,
  mean,
  median,
  min,
  norm,
  prod,
  softmax,
  sort,
  std,
  sum,
  topk,
  var: variance,
};
