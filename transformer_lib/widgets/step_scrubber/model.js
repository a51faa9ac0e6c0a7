// The numbers behind the step scrubber: every stage of multi-head attention, and for each number
// the numbers that it was made of. Nothing here touches the page.
//
//   const arrays = readArrays(flat, [tokens, dModel, heads, dHead])
//   const run = runHeads(arrays, { heads, causal, placed, order })      // every stage, every head
//   matrixOf("k", run, head)                      // any matrix of the strip, by its name
//   const stage = stageOf(step, run, head)        // { left, top, result }: the matrices of this step
//   operandsOf(step, run, head, i, j)             // [["q", [row, column, rows, columns]], ...]: what
//                                                 // number (i, j) was made of
//   termsOf(step, run, head, i, j)                // the arithmetic of one number, as parts of text
//
// The strip's matrices: x, W_Q, q, W_K, k, W_V, v, scores, scaled, mask, masked, weights, z0, z1 ...
// (one for each head), concat, W_O, y.

import { fixed } from "../core/numbers.js";
import { causalMask, dot, maskedSoftmax, matmul, transpose } from "../math/linear.js";

export const STEPS = ["Q", "K", "V", "QKᵀ", "÷√dₖ", "mask", "softmax", "·V", "concat", "·W_O"];
const SHOWN_TERMS = 5; // of a sum with more than
const ALL_TERMS = 6;
const RESULTS = ["q", "k", "v", "scores", "scaled", "masked", "weights", "z", "concat", "y"];
const WEIGHTS = ["W_Q", "W_K", "W_V", "W_O"];

/** The matrix that a step makes. */
export const resultOf = (step, head) => (step === 7 ? `z${head}` : RESULTS[step]);

/** The step that makes a matrix; -1 for what is given. */
export const stepOf = (id) => RESULTS.indexOf(/^z\d+$/.test(id) ? "z" : id);

/** The head that a matrix belongs to by its name, else null. */
export const headOf = (id) => (/^z\d+$/.test(id) ? Number(id.slice(1)) : null);

/** The matrices that a step works on. */
export function sourcesOf(step, heads) {
  if (step <= 2) return ["x", WEIGHTS[step]];
  if (step === 8) return Array.from({ length: heads }, (_, h) => `z${h}`);
  return {
    3: ["q", "k"],
    4: ["scores"],
    5: ["scaled", "mask"],
    6: ["masked"],
    7: ["weights", "v"],
    9: ["concat", "W_O"],
  }[step];
}

/** Cut the flat array that Python sends: x, places, then weights and biases of Q, K, V and O. */
export function readArrays(flat, [tokens, dModel, heads, dHead]) {
  let at = 0;
  const width = heads * dHead;
  const take = (rows, columns) =>
    Array.from({ length: rows }, () => {
      at += columns;
      return Array.from(flat.subarray(at - columns, at));
    });
  const [x, places] = [take(tokens, dModel), take(tokens, dModel)];
  const layer = (inputs, outputs) => ({ weight: take(inputs, outputs), bias: take(1, outputs)[0] });
  const layers = [layer(dModel, width), layer(dModel, width), layer(dModel, width)];
  return { x, places, layers: [...layers, layer(width, dModel)] };
}

function project(x, { weight, bias }) {
  return matmul(x, weight).map((row) => row.map((value, c) => value + bias[c]));
}

function cutColumns(matrix, heads) {
  const width = matrix[0].length / heads;
  return Array.from({ length: heads }, (_, h) =>
    matrix.map((row) => row.slice(h * width, (h + 1) * width)),
  );
}

/** All stages for all heads. `order[place]` is the word at that place. */
export function runHeads(
  { x: words, places, layers },
  { heads, causal = false, placed = true, order = null },
) {
  const x = (order ?? words.map((_, i) => i)).map((word, place) =>
    words[word].map((value, c) => value + (placed ? places[place][c] : 0)),
  );
  const [q, k, v] = layers.slice(0, 3).map((layer) => cutColumns(project(x, layer), heads));
  const root = Math.sqrt(q[0][0].length);
  const mask = causal ? causalMask(x.length) : x.map(() => x.map(() => true));
  const raw = q.map((one, h) => matmul(one, transpose(k[h])));
  const scaled = raw.map((scores) => scores.map((row) => row.map((value) => value / root)));
  const masked = scaled.map((scores) =>
    scores.map((row, i) => row.map((value, j) => (mask[i][j] ? value : -Infinity))),
  );
  const weights = scaled.map((scores) => scores.map((row, i) => maskedSoftmax(row, mask[i])));
  const z = weights.map((one, h) => matmul(one, v[h]));
  const concat = x.map((_, i) => z.flatMap((one) => one[i]));
  return {
    x,
    q,
    k,
    v,
    root,
    mask,
    raw,
    scaled,
    masked,
    weights,
    z,
    concat,
    output: project(concat, layers[3]),
    layers,
    heads,
  };
}

/** The matrices of one step. A kind "product" is left · top; "each" works entry by entry. */
export function stageOf(step, run, head) {
  const { x, q, k, v, mask, raw, scaled, masked, weights, z, concat, output, layers } = run;
  if (step <= 2) {
    const top = cutColumns(layers[step].weight, run.heads)[head];
    return { kind: "product", left: x, top, result: [q, k, v][step][head] };
  }
  return [
    { kind: "product", left: q[head], top: transpose(k[head]), result: raw[head] },
    { kind: "each", left: raw[head], top: null, result: scaled[head] },
    {
      kind: "each",
      left: scaled[head],
      top: mask.map((row) => row.map(Number)),
      result: masked[head],
      open: mask,
    },
    { kind: "each", left: masked[head], top: null, result: weights[head], open: mask },
    { kind: "product", left: weights[head], top: v[head], result: z[head] },
    { kind: "blocks", left: concat, top: null, result: concat },
    { kind: "product", left: concat, top: layers[3].weight, result: output },
  ][step - 3];
}

/** A matrix of the strip. */
export function matrixOf(id, run, head) {
  if (id === "x") return run.x;
  if (id === "mask") return run.mask.map((row) => row.map(Number));
  if (id === "W_O") return run.layers[3].weight;
  if (WEIGHTS.includes(id))
    return cutColumns(run.layers[WEIGHTS.indexOf(id)].weight, run.heads)[head];
  return stageOf(stepOf(id), run, headOf(id) ?? head).result;
}

/** For each source of entry (i, j), the rectangle [row, column, rows, columns] that it takes. */
export function operandsOf(step, run, head, i, j) {
  const { kind, left, top } = stageOf(step, run, head);
  const [one, other] = sourcesOf(step, run.heads);
  const row = (at, matrix) => [at, 0, 1, matrix[0].length];
  if (step === 3)
    return [
      [one, row(i, run.q[head])],
      [other, row(j, run.k[head])],
    ];
  if (kind === "product")
    return [
      [one, row(i, left)],
      [other, [0, j, top.length, 1]],
    ];
  if (kind === "blocks") {
    const width = run.z[0][0].length;
    return [[`z${Math.floor(j / width)}`, [i, j % width, 1, 1]]];
  }
  if (step === 6) return [[one, row(i, left)]];
  return [one, other].filter(Boolean).map((id) => [id, [i, j, 1, 1]]);
}

/** The arithmetic of entry (i, j): texts, { text, role } for an operand, { sup } for an exponent. */
export function termsOf(step, run, head, i, j) {
  const { kind, left, top, result } = stageOf(step, run, head);
  const equals = (value, digits) => [" = ", { text: fixed(value, digits), role: "result" }];
  const a = (value) => ({ text: fixed(value), role: "left" });
  const b = (value) => ({ text: fixed(value), role: "top" });
  if (kind === "product") {
    const column = top.map((row) => row[j]);
    const bias =
      step <= 2
        ? cutColumns([run.layers[step].bias], run.heads)[head][0][j]
        : step === 9
          ? run.layers[3].bias[j]
          : 0;
    const terms = left[i].map((value, c) => [value, column[c]]);
    const kept = largest(
      terms.map(([one, other]) => Math.abs(one * other)),
      terms.length > ALL_TERMS ? SHOWN_TERMS : ALL_TERMS,
    );
    const parts = kept.flatMap((c, n) => [n ? " + " : "", a(terms[c][0]), " · ", b(terms[c][1])]);
    const rest = terms.length - kept.length;
    const more = rest ? [` + ${rest} smaller terms`] : [];
    return [
      ...parts,
      ...more,
      ...(bias ? [" + bias ", b(bias)] : []),
      ...equals(dot(left[i], column) + bias),
    ];
  }
  if (step === 4)
    return [a(left[i][j]), " / √", String(run.q[0][0].length), ...equals(result[i][j])];
  if (step === 5)
    return run.mask[i][j]
      ? [a(left[i][j]), " stays", ...equals(result[i][j])]
      : [a(left[i][j]), " becomes ", { text: "−∞", role: "result" }];
  if (step === 8) return [a(left[i][j]), " is copied", ...equals(result[i][j])];
  return softmaxTerms(left[i], run.mask[i], j, result[i][j], a, equals);
}

function softmaxTerms(row, open, j, weight, a, equals) {
  const power = (value) => ["e", { sup: a(value) }];
  if (!open[j]) return ["e", { sup: { text: "−∞", role: "left" } }, " = 0", ...equals(0, 4)];
  const allowed = row.map((_, c) => c).filter((c) => open[c]);
  const kept = largest(
    row.map((value, c) => (open[c] ? Math.exp(value - row[j]) : -1)),
    Math.min(SHOWN_TERMS, allowed.length),
  );
  const rest = allowed.length - kept.length;
  const sum = kept.flatMap((c, n) => [n ? " + " : "", ...power(row[c])]);
  return [
    ...power(row[j]),
    " / (",
    ...sum,
    rest ? ` + ${rest} smaller` : "",
    ")",
    ...equals(weight, 4),
  ];
}

/** The places of the `count` largest numbers, from left to right. */
function largest(sizes, count) {
  const byWeight = sizes
    .map((_, c) => c)
    .sort((one, other) => sizes[other] - sizes[one] || one - other);
  return byWeight.slice(0, count).sort((one, other) => one - other);
}

/** The part that each head adds to entry (i, j) of the output: Z_h W_O of that head alone. */
export function contributions(run, i, j) {
  const blocks = cutColumns([run.concat[i]], run.heads);
  const rows = run.layers[3].weight.map((row) => row[j]);
  const width = blocks[0][0].length;
  return blocks.map(([block], h) => dot(block, rows.slice(h * width, (h + 1) * width)));
}
