// Computed number by number: functions of one tensor, functions of two (broadcast), and choices.

import { isGradOn, record, reduceTo } from "./graph.js";
import {
  broadcast,
  converted,
  DTYPES,
  dense,
  fail,
  fresh,
  isScalar,
  kindOf,
  numberOf,
  promote,
  same,
  sizes,
  stretch,
  wrap,
  write,
} from "./tensor.js";

export function to(x, dtype) {
  if (x.dtype === dtype) return x;
  const numbers = converted(dense(x), x.dtype, dtype);
  return record("ToCopyBackward0", wrap(numbers.slice(), x.shape, dtype), [x], (g) => [
    to(g, x.dtype),
  ]);
}

export function clone(x) {
  return record("CloneBackward0", wrap(dense(x).slice(), x.shape, x.dtype), [x], (g) => [g]);
}

/** A Python number as a tensor of no dimension, rounded as PyTorch rounds it. */
export function scalar(value, dtype) {
  const x = fresh([], dtype);
  x.storage.data[0] = converted([numberOf(value)], "float64", dtype)[0];
  return x;
}

const asTensor = (value, dtype) => (isScalar(value) ? scalar(value, dtype) : value);
const floating = (dtype) => (DTYPES[dtype].rank === 2 ? dtype : "float32");

// ---- one tensor -------------------------------------------------------------------------------

/** What a slope reads: the tensor, the result, or neither. */
const before = (x) => x;
const after = (_, y) => y;
const neither = () => null;

function unary(name, f, slope, reads = before) {
  return (x) => {
    const source = dense(x);
    const result = fresh(x.shape, floating(x.dtype));
    const { data } = result.storage;
    for (let i = 0; i < data.length; i += 1) data[i] = f(source[i]);
    const read = reads(x, result);
    return record(`${name}Backward0`, result, [x], (g) => [mul(g, slope(read))], [read]);
  };
}

const one = 1;
export const exp = unary("Exp", Math.exp, (y) => y, after);
export const log = unary("Log", Math.log, (x) => div(one, x));
export const log2 = unary("Log2", Math.log2, (x) => div(one, mul(x, Math.LN2)));
export const log10 = unary("Log10", Math.log10, (x) => div(one, mul(x, Math.LN10)));
export const log1p = unary("Log1P", Math.log1p, (x) => div(one, add(x, one)));
export const expm1 = unary("Expm1", Math.expm1, (y) => add(y, one), after);
export const sqrt = unary("Sqrt", Math.sqrt, (y) => div(0.5, y), after);
export const rsqrt = unary(
  "Rsqrt",
  (value) => 1 / Math.sqrt(value),
  (y) => mul(mul(mul(y, y), y), -0.5),
  after,
);
export const sin = unary("Sin", Math.sin, (x) => cos(x));
export const cos = unary("Cos", Math.cos, (x) => neg(sin(x)));
export const tan = unary("Tan", Math.tan, (y) => add(mul(y, y), one), after);
export const tanh = unary("Tanh", Math.tanh, (y) => sub(one, mul(y, y)), after);
export const atan = unary("Atan", Math.atan, (x) => div(one, add(mul(x, x), one)));
export const acos = unary("Acos", Math.acos, (x) => neg(rsqrt(sub(one, mul(x, x)))));
export const asin = unary("Asin", Math.asin, (x) => rsqrt(sub(one, mul(x, x))));
const logistic = (value) => 1 / (1 + Math.exp(-value));
export const sigmoid = unary("Sigmoid", logistic, (y) => mul(y, sub(one, y)), after);
export const reciprocal = unary(
  "Reciprocal",
  (value) => 1 / value,
  (y) => neg(mul(y, y)),
  after,
);
export const silu = unary(
  "Silu",
  (value) => value * logistic(value),
  (x) => mul(sigmoid(x), add(mul(x, sub(one, sigmoid(x))), one)),
);
export const softplus = unary(
  "Softplus",
  (value) => (value > 20 ? value : Math.log1p(Math.exp(value))),
  (x) => sigmoid(x),
);

export const logsigmoid = unary(
  "LogSigmoid",
  (value) => Math.min(value, 0) - Math.log1p(Math.exp(-Math.abs(value))),
  (x) => sigmoid(neg(x)),
);

/** The error function, from its series and its continued fraction, to the last digits of a double. */
function erfOf(value) {
  const x = Math.abs(value);
  if (Number.isNaN(x)) return value;
  let result = 1;
  if (x < 2.5) {
    let term = x;
    let sum = x;
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n += 1) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    result = (2 / Math.sqrt(Math.PI)) * sum;
  } else if (x < 6) {
    let tail = 0;
    for (let k = 60; k > 0; k -= 1) tail = k / 2 / (x + tail);
    result = 1 - Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + tail);
  }
  return value < 0 ? -result : result;
}

const bell = (x) => mul(exp(mul(mul(x, x), -0.5)), 1 / Math.sqrt(2 * Math.PI));
export const erf = unary("Erf", erfOf, (x) => mul(exp(neg(mul(x, x))), 2 / Math.sqrt(Math.PI)));
const geluExact = unary(
  "Gelu",
  (value) => value * 0.5 * (1 + erfOf(value / Math.SQRT2)),
  (x) => add(mul(add(erf(mul(x, Math.SQRT1_2)), one), 0.5), mul(x, bell(x))),
);
export function gelu(x, approximate) {
  if (approximate !== "tanh") return geluExact(x);
  const inner = mul(add(x, mul(pow(x, 3), 0.044715)), Math.sqrt(2 / Math.PI));
  return mul(mul(x, 0.5), add(tanh(inner), one));
}

/** Functions whose result has the dtype of what they are given. */
function keeping(name, f, slope, refuse = null, reads = neither) {
  return (x) => {
    if (x.dtype === "bool" && refuse) {
      const isKernel = refuse.endsWith("_cpu");
      if (isKernel) fail(`"${refuse}" not implemented for 'Bool'`, "NotImplementedError");
      fail(refuse);
    }
    const source = dense(x);
    const result = fresh(x.shape, x.dtype);
    const { data } = result.storage;
    // Whole numbers have no -0.
    for (let i = 0; i < data.length; i += 1) data[i] = x.isFloat ? f(source[i]) : f(source[i]) + 0;
    const read = reads(x, result);
    return record(`${name}Backward0`, result, [x], (g) => [slope(g, read)], [read]);
  };
}

export const neg = keeping(
  "Neg",
  (value) => -value,
  (g) => neg(g),
  "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
);
export const abs = keeping("Abs", Math.abs, (g, x) => mul(g, sign(x)), "abs_cpu", before);
export const relu = keeping(
  "Relu",
  (value) => (value > 0 || Number.isNaN(value) ? value : 0),
  (g, y) => mul(g, to(gt(y, 0), g.dtype)),
  "Boolean inputs not supported for relu",
  after,
);
const nothing = (g) => mul(g, 0);
export const sign = keeping("Sign", (value) => (value > 0) - (value < 0), nothing);
export const floor = keeping("Floor", Math.floor, nothing, "floor_vml_cpu");
export const ceil = keeping("Ceil", Math.ceil, nothing, "ceil_vml_cpu");
export const trunc = keeping("Trunc", Math.trunc, nothing, "trunc_vml_cpu");
const half = (value) => {
  const down = Math.floor(value);
  const rest = value - down;
  if (rest !== 0.5) return rest < 0.5 ? down : down + 1;
  return down % 2 === 0 ? down : down + 1;
};
const rounded = keeping("Round", half, nothing, "round_vml_cpu");
export function round(x, decimals) {
  if (!decimals) return rounded(x);
  return div(rounded(mul(x, 10 ** decimals)), 10 ** decimals);
}

function test(f) {
  return (x) =>
    wrap(
      Uint8Array.from(dense(x), (value) => Number(f(value))),
      x.shape,
      "bool",
    );
}
export const isnan = test(Number.isNaN);
export const isinf = test((value) => Math.abs(value) === Infinity);
export const isfinite = test(Number.isFinite);
export const logical_not = test((value) => value === 0);
const notFor = (name, dtype) =>
  fail(`"${name}" not implemented for '${DTYPES[dtype].title}'`, "NotImplementedError");

export function bitwise_not(x) {
  if (x.dtype === "bool") return logical_not(x);
  if (x.isFloat) notFor("bitwise_not_cpu", x.dtype);
  return wrap(
    dense(x).map((value) => -value - 1),
    x.shape,
    x.dtype,
  );
}

// ---- two tensors ------------------------------------------------------------------------------

/** f of each two numbers, broadcast, as numbers of the dtype `inner`, into an array of `outer`. */
function combine(a, b, f, inner, outer) {
  const x = asTensor(a, inner);
  const y = asTensor(b, inner);
  const shape = broadcast(x.shape, y.shape);
  const result = fresh(shape, outer);
  const { data } = result.storage;
  const left = converted(dense(stretchLate(x, shape)), x.dtype, inner);
  const right = converted(dense(stretchLate(y, shape)), y.dtype, inner);
  const [stepL, stepR] = [Number(left.length > 1), Number(right.length > 1)];
  for (let i = 0; i < data.length; i += 1) data[i] = f(left[i * stepL], right[i * stepR]);
  if (outer === "bool") for (let i = 0; i < data.length; i += 1) data[i] = Number(data[i] !== 0);
  return result;
}

/** A tensor of one number stays as it is: it is read again and again. */
const stretchLate = (x, shape) => (x.numel === 1 ? x : stretch(x, shape));

/** `reads`: what the slopes of a and of b read. */
function binary(name, f, slopes, { reads = () => [], dtype = (d) => d, refuse = null } = {}) {
  return (a, b) => {
    const common = promote(a, b);
    refuse?.(a, b, common);
    const kind = dtype(common);
    const result = combine(a, b, f, kind, kind);
    if (kind === "int64") requireExact(result);
    const back = (g) =>
      slopes(g, a, b, result).map((slope, i) => {
        const x = [a, b][i];
        return isScalar(x) || !x.requiresGrad ? null : to(reduceTo(slope(), x.shape), x.dtype);
      });
    const read = reads(a, b, result).flatMap((parts, i) => ([a, b][i].requiresGrad ? parts : []));
    const saved = read.map((part) => asTensor(part, kind));
    return record(`${name}Backward0`, result, [a, b], back, saved);
  };
}

export function requireExact(result) {
  const { data } = result.storage;
  for (let i = 0; i < data.length; i += 1) {
    if (Math.abs(data[i]) > Number.MAX_SAFE_INTEGER && data[i] !== -(2 ** 63)) {
      fail("whole numbers are exact up to 2 ** 53 in this page, and one here is larger");
    }
  }
}

export const add = binary(
  "Add",
  (x, y) => x + y,
  (g) => [() => g, () => g],
);
export const sub = binary(
  "Sub",
  (x, y) => x - y,
  (g) => [() => g, () => neg(g)],
  {
    refuse(a, b, common) {
      if (common === "bool") {
        fail(
          "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.",
        );
      }
      if ([a, b].some((x) => x === true || x === false || x.dtype === "bool")) {
        fail(
          "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.",
        );
      }
    },
  },
);
export const mul = binary(
  "Mul",
  (x, y) => x * y,
  (g, a, b) => [() => mul(g, b), () => mul(g, a)],
  { reads: (a, b) => [[b], [a]] },
);
export const div = binary(
  "Div",
  (x, y) => x / y,
  (g, a, b) => [() => div(g, b), () => neg(mul(g, div(div(a, b), b)))],
  { reads: (a, b) => [[b], [a, b]], dtype: floating },
);
const NO_INT_POWER = "Integers to negative integer powers are not allowed.";
const power = binary(
  "Pow",
  (x, y) => (x === 1 || y === 0 ? 1 : x ** y),
  (g, a, b, result) => [
    () => where(eq(b, 0), 0, mul(g, mul(b, pow(a, sub(b, one))))),
    () =>
      where(
        logical_and(eq(a, 0), ge(b, 0)),
        0,
        mul(g, mul(result, log(asTensor(a, result.dtype)))),
      ),
  ],
  {
    reads: (a, b, result) => [
      [a, b],
      [a, b, result],
    ],
  },
);
/** Of a negative exponent in a tensor, the fraction is cut off. */
const wholePower = binary(
  "Pow",
  (x, y) => (y < 0 && Math.abs(x) !== 1 ? 0 : x ** y),
  () => [],
);
export function pow(a, b) {
  if (promote(a, b) === "bool") {
    if (isScalar(b)) return numberOf(b) ? clone(a) : eq(a, a); // a ** 0 is True
    notFor("pow", "bool");
  }
  const isWhole = promote(a, b) === "int64";
  if (isWhole && isScalar(b) && numberOf(b) < 0) fail(NO_INT_POWER);
  return isWhole ? wholePower(a, b) : power(a, b);
}

export function divide(a, b, rounding) {
  if (rounding === "floor") return floor_divide(a, b);
  if (rounding !== "trunc") return div(a, b);
  const common = promote(a, b);
  const result = trunc(intByZero(div)(a, b, common));
  if (common === "bool") notFor("div_trunc_cpu", "bool");
  return common === "int64" ? to(result, "int64") : result;
}
const intByZero = (f) => (x, y, kind) => {
  const isEmpty = broadcast(x.shape ?? [], y.shape ?? []).includes(0);
  if (kind === "int64" && !isEmpty && dense(asTensor(y, kind)).some((value) => value === 0)) {
    fail("ZeroDivisionError");
  }
  return f(x, y);
};
const floored = (x, y) => {
  if (y === 0) return x / y;
  if (Number.isNaN(y)) return y;
  if (!Number.isFinite(y)) return Number.isFinite(x) ? (x * y < 0 ? -1 : 0) : Number.NaN;
  return Math.round((x - modulo(x, y)) / y);
};
const floorDivided = binary("FloorDivide", floored, (g) => [() => mul(g, 0), () => mul(g, 0)], {
  refuse(_a, _b, common) {
    if (common === "bool") notFor("div_floor_cpu", "bool");
  },
});
export const floor_divide = (a, b) => intByZero(floorDivided)(a, b, promote(a, b));
const modulo = (x, y) => {
  if (Math.abs(y) === Infinity && Number.isFinite(x)) return x * y < 0 ? y : x;
  const rest = x % y;
  return rest !== 0 && rest < 0 !== y < 0 ? rest + y : rest;
};
const remaining = binary(
  "Remainder",
  modulo,
  (g, a, b) => [() => g, () => neg(mul(g, floorDivided(a, b)))],
  {
    reads: (a, b) => [[], [a, b]],
    refuse(_a, _b, common) {
      if (common === "bool") notFor("remainder_cpu", "bool");
    },
  },
);
export const remainder = (a, b) => intByZero(remaining)(a, b, promote(a, b));

/** The larger or smaller of two: a tie shares the gradient. */
function extreme(name, f, wins) {
  const compute = binary(
    name,
    (x, y) => (Number.isNaN(x) || Number.isNaN(y) ? Number.NaN : f(x, y)),
    (g, a, b) => {
      const share = (x, y) => {
        const ahead = to(wins(x, y), g.dtype);
        return mul(add(ahead, to(logical_not(wins(y, x)), g.dtype)), 0.5);
      };
      return [() => mul(g, share(a, b)), () => mul(g, share(b, a))];
    },
    { reads: (a, b) => Array(2).fill([a, b]) },
  );
  return tensorsOnly(name.toLowerCase(), compute);
}

/** PyTorch takes no numbers here. */
function tensorsOnly(name, compute) {
  return (a, b) => {
    if (isScalar(b)) {
      const type = { bool: "bool", int64: "int", float32: "float" }[kindOf(b)];
      fail(`${name}(): argument 'other' (position 2) must be Tensor, not ${type}`, "TypeError");
    }
    return compute(a, b);
  };
}
export const maximum = extreme("Maximum", Math.max, (x, y) => gt(x, y));
export const minimum = extreme("Minimum", Math.min, (x, y) => lt(x, y));

function comparison(f) {
  return (a, b) => combine(a, b, f, promote(a, b), "bool");
}
export const eq = comparison((x, y) => Number(x === y));
export const ne = comparison((x, y) => Number(x !== y));
export const lt = comparison((x, y) => Number(x < y));
export const le = comparison((x, y) => Number(x <= y));
export const gt = comparison((x, y) => Number(x > y));
export const ge = comparison((x, y) => Number(x >= y));
const truth = (f) => comparison((x, y) => Number(f(Number(x !== 0), Number(y !== 0))));
const [both, either, oneOf] = [
  truth((x, y) => x & y),
  truth((x, y) => x | y),
  truth((x, y) => x ^ y),
];
export const logical_and = tensorsOnly("logical_and", both);
export const logical_or = tensorsOnly("logical_or", either);
export const logical_xor = tensorsOnly("logical_xor", oneOf);

function bitwise(name, ofTruths, ofInts) {
  return (a, b) => {
    const kind = promote(a, b);
    if (kind === "bool") return ofTruths(a, b);
    broadcast(a.shape ?? [], b.shape ?? []);
    if (kind !== "int64") notFor(`bitwise_${name}_cpu`, kind);
    return combine(a, b, (x, y) => Number(ofInts(BigInt(x), BigInt(y))), kind, kind);
  };
}
export const bitwise_and = bitwise("and", both, (x, y) => x & y);
export const bitwise_or = bitwise("or", either, (x, y) => x | y);
export const bitwise_xor = bitwise("xor", oneOf, (x, y) => x ^ y);

// ---- choices ----------------------------------------------------------------------------------

export function where(condition, a, b) {
  if (condition.dtype !== "bool") {
    fail(
      `where expected condition to be a boolean tensor, but got a tensor with dtype ${DTYPES[condition.dtype].title}`,
    );
  }
  const kind = promote(a, b);
  const [x, y] = [asTensor(a, kind), asTensor(b, kind)];
  const shape = broadcast(broadcast(condition.shape, x.shape), y.shape);
  const result = fresh(shape, kind);
  const { data } = result.storage;
  const [test, yes, no] = [condition, x, y].map((part) => dense(stretch(part, shape)));
  for (let i = 0; i < data.length; i += 1) data[i] = test[i] ? yes[i] : no[i];
  const back = (g) => [
    to(reduceTo(where(condition, g, 0), x.shape), x.dtype),
    to(reduceTo(where(condition, 0, g), y.shape), y.dtype),
  ];
  return record("WhereBackward0", result, [x, y], back, [condition]);
}

export function masked_fill(x, mask, value) {
  if (mask.dtype !== "bool") {
    fail(`masked_fill_ only supports boolean masks, but got mask with dtype ${naming(mask.dtype)}`);
  }
  if (!isScalar(value) && value.shape.length) {
    fail(
      `masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ${value.shape.length} dimension(s).`,
    );
  }
  const shape = broadcast(mask.shape, x.shape);
  requireCast(value, x.dtype);
  const filled = asTensor(value, x.dtype);
  const [old, test] = [dense(stretch(x, shape)), dense(stretch(mask, shape))];
  const result = fresh(shape, x.dtype);
  const put = dense(to(filled, x.dtype))[0];
  const { data } = result.storage;
  for (let i = 0; i < data.length; i += 1) data[i] = test[i] ? put : old[i];
  const back = (g) => [
    reduceTo(where(mask, 0, g), x.shape),
    filled.requiresGrad ? reduceTo(where(mask, g, 0), []) : null,
  ];
  return record("MaskedFillBackward0", result, [x, filled], back, [mask]);
}

const naming = (dtype) => ({ int64: "long int", float32: "float", float64: "double" })[dtype];

/** A number that the dtype cannot hold at all: infinity as a whole number. */
function requireCast(value, dtype) {
  const shown = isScalar(value) ? numberOf(value) : 0;
  if (dtype === "int64" && !Number.isFinite(shown)) {
    fail("value cannot be converted to type int64_t without overflow");
  }
}

export function clamp(x, min, max) {
  if (min == null && max == null) {
    fail("torch.clamp: At least one of 'min' or 'max' must not be None");
  }
  let result = x;
  if (min != null) result = where(lt(result, min), min, result);
  if (max != null) result = where(gt(result, max), max, result);
  return named(result, x, "ClampBackward1");
}

export function nan_to_num(x, nan, posinf, neginf) {
  if (!x.isFloat) return clone(x);
  const [largest] = x.dtype === "float64" ? [Number.MAX_VALUE] : [3.4028234663852886e38];
  let result = where(isnan(x), numberOf(nan ?? 0), x);
  result = where(eq(x, Infinity), numberOf(posinf ?? largest), result);
  return where(eq(x, -Infinity), numberOf(neginf ?? -largest), result);
}

/** The result under PyTorch's own name of the operation, which is printed with it. */
export function named(result, x, name) {
  if (result.node && result !== x) result.node.name = name;
  return result;
}

/** torch.isclose */
export function isclose(a, b, rtol, atol, equalNan) {
  if (a.dtype !== b.dtype) {
    fail(`${DTYPES[a.dtype].title} did not match ${DTYPES[b.dtype].title}`);
  }
  const [relative, absolute] = [numberOf(rtol ?? 1e-5), numberOf(atol ?? 1e-8)];
  const close = (x, y) =>
    x === y ||
    (equalNan && Number.isNaN(x) && Number.isNaN(y)) ||
    (Number.isFinite(y) && Math.abs(x - y) <= absolute + relative * Math.abs(y));
  return combine(a, b, (x, y) => Number(close(x, y)), a.dtype, "bool");
}

// ---- in place ---------------------------------------------------------------------------------

/** Write a result into the tensor that it was computed from: x.add_(y), x += y, x[i] = y. */
export function assign(x, result, name = "add_") {
  if (isGradOn() && !x.node && (x.requiresGrad || (x.base?.requiresGrad && !x.base.node))) {
    const what = x.requiresGrad ? "a leaf" : "a view of a leaf";
    fail(`${what} Variable that requires grad is being used in an in-place operation.`);
  }
  if (!same(broadcast(x.shape, result.shape), x.shape)) {
    fail(
      `output with shape ${sizes(x.shape)} doesn't match the broadcast shape ${sizes(broadcast(x.shape, result.shape))}`,
    );
  }
  if (x.numel > 1 && x.strides.some((step, d) => step === 0 && x.shape[d] > 1)) {
    fail(
      "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.",
    );
  }
  if (DTYPES[result.dtype].rank > DTYPES[x.dtype].rank) {
    fail(
      `result type ${DTYPES[result.dtype].title} can't be cast to the desired output type ${DTYPES[x.dtype].title}`,
    );
  }
  if (isGradOn() && x.base && (result.requiresGrad || x.requiresGrad)) {
    fail(
      `${name} would write into a view while gradients are recorded, which this page's tensors cannot; write into the tensor itself, or build the result by torch.stack or torch.cat`,
    );
  }
  const { node } = result;
  write(x, converted(dense(stretch(result, x.shape)), result.dtype, x.dtype));
  if (!node) return x;
  const { storage } = x; // which holds, from now on, what the way back reads of the result
  const own = node.versions.filter((saved) => saved.storage === result.storage);
  for (const saved of own) Object.assign(saved, { storage, version: storage.version });
  return Object.assign(x, { node, requiresGrad: true });
}

/** Under PyTorch's names. */
export const ELEMENTWISE = {
  abs,
  acos,
  add,
  asin,
  atan,
  bitwise_and,
  bitwise_not,
  bitwise_or,
  bitwise_xor,
  ceil,
  clamp,
  clone,
  cos,
  div: divide,
  eq,
  erf,
  exp,
  expm1,
  floor,
  floor_divide,
  ge,
  gelu,
  gt,
  isclose,
  isfinite,
  isinf,
  isnan,
  le,
  log,
  log10,
  log1p,
  log2,
  logical_and,
  logical_not,
  logical_or,
  logical_xor,
  logsigmoid,
  lt,
  masked_fill,
  maximum,
  minimum,
  mul,
  nan_to_num,
  ne,
  neg,
  pow,
  reciprocal,
  relu,
  remainder,
  round,
  rsqrt,
  sigmoid,
  sign,
  silu,
  sin,
  softplus,
  sqrt,
  sub,
  tan,
  tanh,
  to,
  trunc,
  where,
};
