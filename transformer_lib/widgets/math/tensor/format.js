// Numbers as Python writes them: format(x, ".3f"), to the last digit, and repr(x).
//
//   fixed(0.03125, 4)                "0.0312": a tie goes to the even digit
//   exponential(1234.5, 2)           "1.23e+03"
//   formatted(3.14159, "8.3f")       "   3.142"; throws a TorchError for a specification that is none
//   formatted("roses", ">8")         "   roses"

import { fail } from "./tensor.js";

const special = (x) => (Number.isNaN(x) ? "nan" : x < 0 ? "-inf" : "inf");
const isNegative = (x) => x < 0 || Object.is(x, -0);

/** The last digits of an exact decimal taken off, half to even. */
function cut(digits, count) {
  const kept = digits.slice(0, count);
  const rest = digits.slice(count);
  const isTie = /^50*$/.test(rest);
  const isOdd = "13579".includes(kept.at(-1) ?? "0");
  const up = isTie ? isOdd : rest[0] >= "5";
  return up ? (BigInt(kept || "0") + 1n).toString().padStart(count, "0") : kept;
}

export function fixed(x, digits) {
  if (!Number.isFinite(x)) return special(x);
  const sign = isNegative(x) ? "-" : "";
  if (Math.abs(x) >= 1e21) {
    const whole = BigInt(Math.abs(x)).toString();
    return sign + whole + (digits ? `.${"0".repeat(digits)}` : "");
  }
  const more = Math.min(100, digits + 60);
  const [whole, fraction] = Math.abs(x).toFixed(more).split(".");
  const all = cut(whole + fraction, whole.length + digits).padStart(digits + 1, "0");
  if (!digits) return sign + all;
  return `${sign}${all.slice(0, -digits)}.${all.slice(-digits)}`;
}

export function exponential(x, digits) {
  if (!Number.isFinite(x)) return special(x);
  const [mantissa, power] = Math.abs(x)
    .toExponential(Math.min(100, digits + 60))
    .split("e");
  let exponent = Number(power);
  let all = cut(mantissa.replace(".", ""), digits + 1);
  if (all.length > digits + 1) {
    all = all.slice(0, -1);
    exponent += 1;
  }
  const shown = String(Math.abs(exponent)).padStart(2, "0");
  const sign = isNegative(x) ? "-" : "";
  return `${sign}${all[0]}${digits ? `.${all.slice(1)}` : ""}e${exponent < 0 ? "-" : "+"}${shown}`;
}

function general(x, precision, alternate) {
  if (!Number.isFinite(x)) return special(x);
  const digits = precision || 1;
  const exponent = x === 0 ? 0 : Number(exponential(x, digits - 1).split("e")[1]);
  const trim = (text) => (alternate || !text.includes(".") ? text : text.replace(/\.?0+$/, ""));
  if (exponent >= -4 && exponent < digits) return trim(fixed(x, digits - 1 - exponent));
  const [mantissa, power] = exponential(x, digits - 1).split("e");
  return `${trim(mantissa)}e${power}`;
}

/** repr of a Python float. */
export function floatText(x) {
  if (!Number.isFinite(x)) return special(x);
  if (Object.is(x, -0)) return "-0.0";
  if (Number.isInteger(x) && Math.abs(x) < 1e16) return `${x}.0`;
  const exponent = Math.floor(Math.log10(Math.abs(x)));
  const [mantissa, power] = x.toExponential().split("e");
  if (exponent >= -4 && exponent < 16) return String(x).includes("e") ? fixed(x, 20) : String(x);
  const shown = power.slice(1).padStart(2, "0");
  return `${mantissa}e${power[0]}${shown}`;
}

const SPEC = /^(?:(.)?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/su;

/** format(value, spec) of a text, a whole number (BigInt) or a float (number). */
export function formatted(value, spec) {
  const match = SPEC.exec(spec);
  if (!match) fail(`Invalid format specifier '${spec}'`, "ValueError");
  let [, fill, align, sign, alternate, zero, width, comma, precision, kind] = match;
  if (zero && !align) [fill, align] = ["0", typeof value === "string" ? "<" : "="];
  let text;
  let mark = "";
  if (typeof value === "string") {
    if (kind && kind !== "s") unknown(kind, "str");
    text = precision === undefined ? value : [...value].slice(0, Number(precision)).join("");
  } else {
    const whole = typeof value === "bigint";
    text = numberText(value, kind, precision, alternate, whole);
    if (text.startsWith("-")) [mark, text] = ["-", text.slice(1)];
    else if (sign === "+" || sign === " ") mark = sign;
    if (alternate && whole && /[xXob]/.test(kind)) mark += `0${kind}`;
    if (comma) text = text.replace(/^\d+/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, comma));
  }
  const room = Math.max(0, Number(width ?? 0) - [...(mark + text)].length);
  const pad = (count) => (fill ?? " ").repeat(count);
  switch (align ?? (typeof value === "string" ? "<" : ">")) {
    case "<":
      return mark + text + pad(room);
    case "^":
      return pad(room >> 1) + mark + text + pad(room - (room >> 1));
    case "=":
      return mark + pad(room) + text;
    default:
      return pad(room) + mark + text;
  }
}

const unknown = (kind, type) =>
  fail(`Unknown format code '${kind}' for object of type '${type}'`, "ValueError");

function numberText(value, kind, precision, alternate, whole) {
  if (whole && (!kind || "dnxXobc".includes(kind))) {
    const bases = { x: 16, X: 16, o: 8, b: 2 };
    const digits = value.toString(bases[kind] ?? 10);
    if (kind === "c") return String.fromCodePoint(Number(value));
    return kind === "X" ? digits.toUpperCase() : digits;
  }
  const x = Number(value);
  const digits = precision === undefined ? 6 : Number(precision);
  const lower = kind?.toLowerCase();
  let text;
  if (!kind) text = precision === undefined ? floatText(x) : short(x, digits);
  else if (lower === "f") text = fixed(x, digits);
  else if (lower === "e") text = exponential(x, digits);
  else if (lower === "g" || kind === "n") text = general(x, digits, alternate);
  else if (kind === "%") text = `${fixed(x * 100, digits)}%`;
  else return unknown(kind, whole ? "int" : "float");
  return kind === "F" || kind === "E" || kind === "G" ? text.toUpperCase() : text;
}

const withPoint = (text) => (/[.en]/.test(text) ? text : `${text}.0`);

/** A precision without a letter: as g, but never a whole number without its point. */
function short(x, digits) {
  if (!Number.isFinite(x) || x === 0) return withPoint(general(x, digits));
  const exponent = Number(exponential(x, Math.max(1, digits) - 1).split("e")[1]);
  if (exponent < Math.max(1, digits) - 1) return withPoint(general(x, digits));
  const [mantissa, power] = exponential(x, Math.max(1, digits) - 1).split("e");
  return `${mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa}e${power}`;
}
