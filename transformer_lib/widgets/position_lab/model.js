// What the position lab shows, computed from its settings: pure functions, no page.
//
//   const lab = compute({ method, d_model, base, n_positions, position, offset, projected, own_angle,
//                         n_heads, head }, table)
//   lab.queries, lab.keys   [position][component]: what stands at each position (null for ALiBi)
//   lab.scores              [query position][key position]; lab.reach: rows that exist
//   lab.turned, lab.arrived R(k) applied to row p, and row p + k; lab.missed: worst gap at any p
//   lab.spread              how much scores at the distance k differ along the text

import { causalMask, dot, maskedSoftmax } from "../math/linear.js";
import { alibiBias, applyRotary, rotaryAngles, sinusoidal } from "../math/positions.js";

export const METHODS = ["sinusoidal", "rotary", "alibi", "learned"];

/** One frequency for each pair of components: base^(-2i/d). */
export function pairFrequencies(width, base) {
  return rotaryAngles(1, width, { base, start: 1 })[0];
}

/** How many positions each pair needs for one turn. */
export function wavelengths(width, base) {
  return pairFrequencies(width, base).map((frequency) => (2 * Math.PI) / frequency);
}

/** The bug of the lab's switch: the cosine gets an angle of its own, base^(-(2i+1)/d). */
export function ownAngleEncoding(nPositions, width, { base, start = 0 }) {
  return Array.from({ length: nPositions }, (_, row) =>
    Array.from({ length: width }, (_, at) => {
      const angle = (start + row) * Math.exp((-at * Math.log(base)) / width);
      return at % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );
}

/** R(k) as a function of a row: each (sine, cosine) pair shifted by k times its frequency. */
export function shifter(width, offset, base) {
  const angles = pairFrequencies(width, base).map((frequency) => offset * frequency);
  const [cosine, sine] = [angles.map(Math.cos), angles.map(Math.sin)];
  return (row) =>
    row.map((value, at) => {
      const pair = at >> 1;
      return at % 2
        ? value * cosine[pair] - row[at - 1] * sine[pair]
        : value * cosine[pair] + row[at + 1] * sine[pair];
    });
}

/** A stream of normal numbers, the same in every browser (mulberry32 and Box-Muller). */
export function normalStream(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

const drawn = new Map();

/** Two random projections [d][d], W_Q and W_K, that keep lengths about as they are. */
export function randomProjections(width) {
  if (!drawn.has(width)) {
    const normal = normalStream(width);
    const matrix = () =>
      Array.from({ length: width }, () =>
        Array.from({ length: width }, () => normal() / Math.sqrt(width)),
      );
    drawn.set(width, [matrix(), matrix()]);
  }
  return drawn.get(width);
}

const times = (matrix, row) => matrix.map((weights) => dot(weights, row));

/** Rows 0 … n-1 of the method, from position `start` on: { queries, keys }. */
export function encode(settings, table, start = 0, count = settings.n_positions) {
  const { method, base, projected } = settings;
  const width = method === "learned" ? table[0].length : settings.d_model;
  const [wq, wk] = projected ? randomProjections(width) : [];
  if (method === "rotary") {
    const word = Array.from({ length: width }, (_, at) => at % 2); // every hand starts at twelve
    const angles = rotaryAngles(count, width, { base, start });
    const turn = (row) =>
      applyRotary(
        angles.map(() => row),
        angles,
      );
    const queries = turn(projected ? times(wq, word) : word);
    return { queries, keys: projected ? turn(times(wk, word)) : queries };
  }
  const options = { base, start };
  let rows = table.slice(start, start + count);
  if (method === "sinusoidal") {
    rows = settings.own_angle
      ? ownAngleEncoding(count, width, options)
      : sinusoidal(count, width, options);
  }
  if (!projected) return { rows, queries: rows, keys: rows };
  return {
    rows,
    queries: rows.map((row) => times(wq, row)),
    keys: rows.map((row) => times(wk, row)),
  };
}

/** The largest and smallest score at the distance k, and how far apart they are. */
export function spreadAt(scores, offset) {
  const along = scores.map((row, p) => row[p + offset]).filter((score) => score !== undefined);
  return along.length ? Math.max(...along) - Math.min(...along) : 0;
}

/** The positions p for which p + k is a position, too: [first, last]. */
export function movable(reach, offset) {
  return [Math.max(0, -offset), Math.min(reach - 1, reach - 1 - offset)];
}

const KEPT = 4;
const recent = []; // what does not depend on the position is computed once while the slider moves

function encodedAndScored(settings, table) {
  const { method, d_model, base, n_positions, projected, own_angle } = settings;
  const key = [method, d_model, base, n_positions, projected, own_angle].join();
  const known = recent.find((entry) => entry.key === key && entry.table === table);
  if (known) return known;
  const { queries, keys, rows = queries } = encode(settings, table);
  const scores = queries.map((query) => keys.map((other) => dot(query, other)));
  recent.unshift({ key, table, queries, keys, rows, scores });
  recent.length = Math.min(recent.length, KEPT);
  return recent[0];
}

export function compute(settings, table) {
  const { method, position, offset, n_positions: n, n_heads: heads, head } = settings;
  if (method === "alibi") {
    const scores = alibiBias(heads, n, n)[head];
    const past = causalMask(n);
    const weights = scores.map((row, p) => maskedSoftmax(row, past[p]));
    return { reach: n, scores, weights, spread: spreadAt(scores, offset) };
  }
  const { queries, keys, rows, scores } = encodedAndScored(settings, table);
  // Rotary positions turn counterclockwise, which is the clock's R(-k).
  const turns = method === "rotary" ? -offset : offset;
  const shift = shifter(rows[0].length, turns, settings.base);
  const [first, last] = movable(rows.length, offset);
  let missed = 0;
  for (let p = first; p <= last; p += 1) {
    const target = rows[p + offset];
    shift(rows[p]).forEach((value, at) => {
      missed = Math.max(missed, Math.abs(value - target[at]));
    });
  }
  return {
    reach: rows.length,
    rows,
    queries,
    keys,
    scores,
    missed,
    turned: shift(rows[position]),
    arrived: rows[position + offset],
    spread: spreadAt(scores, offset),
  };
}

/** About `count` pairs, evenly from the fastest to the slowest, and the chosen one. */
export function pairsToShow(pairs, chosen, count = 5) {
  const some = Math.min(count, pairs);
  const spread = Array.from({ length: some }, (_, i) =>
    some === 1 ? 0 : Math.round((i * (pairs - 1)) / (some - 1)),
  );
  return [...new Set([...spread, chosen])].sort((a, b) => a - b);
}
