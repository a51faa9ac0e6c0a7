// repr of a tensor, by the rules of torch/_tensor_str.py.

import { exponential, fixed } from "./format.js";
import { dense, fail } from "./tensor.js";

const DEFAULT = { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: null };
const PROFILES = {
  default: DEFAULT,
  short: { ...DEFAULT, precision: 2, edgeitems: 2 },
  full: { ...DEFAULT, threshold: Infinity },
};
const options = { ...DEFAULT };

export function setPrintoptions(precision, threshold, edgeitems, linewidth, profile, sciMode) {
  if (profile != null) {
    if (!PROFILES[profile]) fail(`'${profile}'`, "KeyError");
    Object.assign(options, PROFILES[profile]);
  }
  for (const [name, value] of Object.entries({ precision, threshold, edgeitems, linewidth })) {
    if (value != null) options[name] = value;
  }
  options.sci_mode = sciMode ?? null; // as in PyTorch: each call sets it
}

/** Nested arrays of a tensor's numbers, of the ends only where it is summarized. */
function rows(numbers, shape, summarize, at = 0) {
  if (!shape.length) return numbers[at];
  const [size, ...rest] = shape;
  const step = rest.reduce((product, n) => product * n, 1);
  const all = Array.from({ length: size }, (_, i) => i);
  const { edgeitems } = options;
  const isCut = summarize && size > 2 * edgeitems;
  const kept = isCut ? [...all.slice(0, edgeitems), ...all.slice(size - edgeitems)] : all;
  const parts = kept.map((i) => rows(numbers, rest, summarize, at + i * step));
  return isCut ? Object.assign(parts, { isCut }) : parts;
}

function formatter(values, dtype) {
  if (!dtype.startsWith("float")) {
    const text = dtype === "bool" ? (x) => (x ? "True" : "False") : (x) => String(BigInt(x));
    const width = Math.max(1, ...values.map((x) => text(x).length));
    return { width, format: (x) => text(x).padStart(width) };
  }
  const finite = values.filter((x) => Number.isFinite(x) && x !== 0);
  const { precision } = options;
  if (!finite.length) return { width: 1, format: (x) => whole(x) };
  const sizesOf = finite.map(Math.abs);
  const largest = sizesOf.reduce((a, b) => Math.max(a, b));
  const smallest = sizesOf.reduce((a, b) => Math.min(a, b));
  const isWhole = finite.every(Number.isInteger);
  const sci = options.sci_mode ?? (largest / smallest > 1000 || largest > 1e8 || smallest < 1e-4);
  const text = sci
    ? (x) => exponential(x, precision)
    : isWhole
      ? whole
      : (x) => fixed(x, precision);
  const width = Math.max(1, ...finite.map((x) => text(x).length));
  return { width, format: (x) => text(x).padStart(width) };
}

const whole = (x) => fixed(x, 0) + (Number.isFinite(x) ? "." : "");

function vector(row, indent, { width, format }) {
  const perLine = Math.max(1, Math.floor((options.linewidth - indent) / (width + 2)));
  const data = row.map(format);
  if (row.isCut) data.splice(options.edgeitems, 0, " ...");
  const lines = [];
  for (let i = 0; i < data.length; i += perLine) lines.push(data.slice(i, i + perLine).join(", "));
  return `[${lines.join(`,\n${" ".repeat(indent + 1)}`)}]`;
}

function nested(row, depth, indent, how) {
  if (depth === 0) return how.format(row);
  if (depth === 1) return vector(row, indent, how);
  const parts = row.map((part) => nested(part, depth - 1, indent + 1, how));
  if (row.isCut) parts.splice(options.edgeitems, 0, "...");
  return `[${parts.join(`,${"\n".repeat(depth - 1)}${" ".repeat(indent + 1)}`)}]`;
}

export function repr(x, isParameter = false) {
  const prefix = "tensor(";
  const indent = prefix.length;
  const suffixes = [];
  let text = "[]";
  if (x.numel === 0) {
    if (x.shape.length !== 1) suffixes.push(`size=(${x.shape.join(", ")})`);
    if (x.dtype !== "float32") suffixes.push(`dtype=torch.${x.dtype}`);
  } else {
    if (x.dtype === "float64") suffixes.push("dtype=torch.float64");
    const shown = rows(dense(x), x.shape, x.numel > options.threshold);
    const values = x.shape.length ? shown.flat(Infinity) : [shown];
    text = nested(shown, x.shape.length, indent, formatter(values, x.dtype));
  }
  if (x.node) suffixes.push(`grad_fn=<${x.node.name}>`);
  else if (x.requiresGrad) suffixes.push("requires_grad=True");
  let result = prefix + text;
  let last = result.length - result.lastIndexOf("\n") + 1;
  for (const suffix of suffixes) {
    if (last + suffix.length + 2 > options.linewidth) {
      result += `,\n${" ".repeat(indent)}${suffix}`;
      last = indent + suffix.length;
    } else {
      result += `, ${suffix}`;
      last += suffix.length + 2;
    }
  }
  return isParameter ? `Parameter containing:\n${result})` : `${result})`;
}
