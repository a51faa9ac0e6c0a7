// Names of the strip's matrices: on the strip, as equations, and by a screen reader; and their
// colors.
//
//   nameOf("q", how) -> ["Q", { sub: "1" }]      how: { head, heads, root }, root the number under √
//   shortName("W_Q", how) -> ["W", { sub: "Q" }]    for what is small
//   equationOf(0, how) -> ["Q", { sub: "1" }, " = ", "X ", "W", { sub: "Q" }, ...]
//   spokenOf("q", how) -> "Q, head 1"            plain(parts) -> "Q1"
//   roleOf("W_Q") -> "query"                     query, key, value, output, or "" for none

import { headOf, resultOf } from "./model.js";

const ROLES = { q: "query", W_Q: "query", k: "key", W_K: "key", v: "value", W_V: "value" };
const SPOKEN = {
  scaled: "scaled scores",
  masked: "masked scores",
  x: "X",
  q: "Q",
  k: "K",
  v: "V",
  concat: "Z",
  y: "Y",
};
const OF_ALL_HEADS = new Set(["x", "mask", "concat", "W_O", "y"]);

export const roleOf = (id) =>
  ROLES[id] ?? (headOf(id) !== null || id === "concat" || id === "y" ? "output" : "");

export function nameOf(id, { head, heads, root }) {
  const of = heads > 1 ? [{ sub: String((headOf(id) ?? head) + 1) }] : [];
  if (id.startsWith("W_")) {
    const block = heads > 1 && id !== "W_O" ? [{ sup: `(${head + 1})` }] : [];
    return ["W", { sub: id.slice(2) }, ...block];
  }
  if (headOf(id) !== null) return ["Z", ...of];
  if (["q", "k", "v"].includes(id)) return [id.toUpperCase(), ...of];
  return [{ x: "X", concat: "Z", y: "Y", scaled: `÷ √${root}` }[id] ?? id];
}

/** A small matrix has no room for the head of a weight. */
export const shortName = (id, how) =>
  nameOf(id, how).filter((part) => typeof part === "string" || part.sub);

/** The result of a step and what it is made of. */
export function equationOf(step, how) {
  const name = (id) => nameOf(id, how);
  const result = name(resultOf(step, how.head));
  if (step <= 2) return [...result, " = X ", ...name(["W_Q", "W_K", "W_V"][step])];
  return [
    ["scores = ", ...name("q"), " ", ...name("k"), { sup: "T" }],
    [`scores ÷ √${how.root}`],
    ["masked scores"],
    ["weights = softmax of each row"],
    [...result, " = weights · ", ...name("v")],
    ["Z = all heads, side by side"],
    ["Y = Z ", ...name("W_O")],
  ][step - 3];
}

export function spokenOf(id, { head, heads }) {
  const name = headOf(id) === null ? (SPOKEN[id] ?? id) : "Z";
  return heads > 1 && !OF_ALL_HEADS.has(id) ? `${name}, head ${(headOf(id) ?? head) + 1}` : name;
}

export const plain = (parts) =>
  parts.map((part) => (typeof part === "string" ? part : (part.sub ?? part.sup))).join("");
