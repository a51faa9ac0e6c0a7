// Masks and what flows through them. A mask is an array of rows of booleans, true = may attend.
//
//   presetMask("sliding window", n, { window: 3 })     PRESETS lists the names and their sizes
//   firstSizes(PRESETS, n) -> { window: 2, ... }
//   recognize(mask, sizes, preferred) -> name or null  andMasks(a, b)
//   maskedAttention(scores, v, mask, rule) -> { weights, sums, output }
//   carriers(mask, rule) -> [i][j]: 2 key and value j enter output i, 1 j only moves its weights, 0
//   reach(carried, source, layers) -> [layer][i]: is anything of the source left in position i?
//
// A rule is one of three ways to apply a mask (MaskPainter names them); the first is the right one.

import { maskedSoftmax, matmul, softmax } from "./linear.js";

export const MINUS_INFINITY = 0;
export const ZERO_AFTER = 1;
export const LARGE_NEGATIVE = 2;

/** A preset's name, what it lets each word see in words and as a rule (word i sees word j), and the
 * sizes that it can be given: key, label, and first value for n words. */
export const PRESETS = [
  {
    name: "causal",
    about: "Each word sees itself and the words before it.",
    sees: (i, j) => j <= i,
    sizes: [],
  },
  {
    name: "padding",
    about: "Each word sees the real words; what only fills up the row is hidden.",
    sees: (_, j, { real }) => j < real,
    sizes: [{ key: "real", label: "real words", first: (n) => Math.max(1, n - 2) }],
  },
  {
    name: "sliding window",
    about: "Each word sees itself and a few words before it.",
    sees: (i, j, { window }) => j <= i && j > i - window,
    sizes: [{ key: "window", label: "window", first: (n) => Math.min(2, n) }],
  },
  {
    name: "bidirectional",
    about: "Each word sees all words: nothing is hidden.",
    sees: () => true,
    sizes: [],
  },
  {
    name: "block",
    about: "Each word sees the words of its own block, as if each block were a text of its own.",
    sees: (i, j, { block }) => Math.floor(i / block) === Math.floor(j / block),
    sizes: [{ key: "block", label: "block size", first: (n) => Math.ceil(n / 2) }],
  },
];

/** The first sizes of these presets, for n words. */
export function firstSizes(presets, n) {
  const sizes = presets.flatMap((preset) => preset.sizes);
  return Object.fromEntries(sizes.map(({ key, first }) => [key, first(n)]));
}

export function presetMask(name, n, sizes = {}) {
  const may = PRESETS.find((preset) => preset.name === name).sees;
  return Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => may(i, j, sizes)));
}

export function andMasks(a, b) {
  return a.map((row, i) => row.map((allowed, j) => allowed && b[i][j]));
}

export function sameMask(a, b) {
  return a.every((row, i) => row.every((allowed, j) => allowed === b[i][j]));
}

/** The preset that looks like this mask at these sizes, the preferred one first; null if none does. */
export function recognize(mask, sizes, preferred = null) {
  const names = PRESETS.map((preset) => preset.name);
  const order = preferred ? [preferred, ...names] : names;
  return order.find((name) => sameMask(mask, presetMask(name, mask.length, sizes))) ?? null;
}

/** Weights, their row sums, and the output under one of the three rules. */
export function maskedAttention(scores, v, mask, rule) {
  const weights = scores.map((row, i) => {
    if (rule === ZERO_AFTER) return softmax(row).map((w, j) => (mask[i][j] ? w : 0));
    if (rule === LARGE_NEGATIVE) return softmax(row.map((s, j) => (mask[i][j] ? s : -1e9)));
    return maskedSoftmax(row, mask[i]);
  });
  const sums = weights.map((row) => row.reduce((sum, w) => sum + w, 0));
  return { weights, sums, output: matmul(weights, v) };
}

/**
 * What can enter each output, for any finite scores and values. 2: key and value j do. 1: j changes
 * the weights only, by the query (j = i, if there is a choice between keys) or by the denominator.
 */
export function carriers(mask, rule) {
  return mask.map((row, i) => {
    const open = row.filter(Boolean).length;
    if (open === 0) return row.map(() => (rule === LARGE_NEGATIVE ? 2 : 0));
    return row.map((allowed, j) => {
      if (allowed) return 2;
      if (rule === ZERO_AFTER) return 1;
      return i === j && open > 1 ? 1 : 0;
    });
  });
}

/** Layer 0 is the input; in each later layer, the positions that hold something of the source. */
export function reach(carried, source, layers) {
  const levels = [carried.map((_, i) => i === source)];
  for (let layer = 1; layer <= layers; layer += 1) {
    const below = levels[layer - 1];
    levels.push(carried.map((row) => row.some((kind, j) => kind > 0 && below[j])));
  }
  return levels;
}

/** The rows with nothing to attend to. */
export function emptyRows(mask) {
  return mask.flatMap((row, i) => (row.some(Boolean) ? [] : [i]));
}
