// The position lab's numbers, computed from its settings: pure functions, no page.
//
//   const lab = compute({ method, d_model, base, n_positions, position, offset, projected, own_angle,
//                         n_heads, head }, table)
//   lab.queries, lab.keys   [position][component]: the vector at each position (none for ALiBi)
//   lab.scores              [query position][key position]; lab.reach: rows that exist
//   lab.turned, lab.arrived R(k) applied to row p, and row p + k; lab.missed: worst gap at any p
//   lab.spread              how much scores at the offset k differ along the text

import { short } from "../core/numbers.js";
import { causalMask, dot, maskedSoftmax } from "../math/linear.js";
import { methodNamed } from "./methods.js";
import { shifter } from "./vectors.js";

/** A number as the lab writes it: at most four significant digits. */
export const write = (value) => short(value, 4);

/** How far apart the largest and the smallest score at the offset k are. */
export function spreadAt(scores, offset) {
  const along = scores.map((row, p) => row[p + offset]).filter((score) => score !== undefined);
  return along.length ? Math.max(...along) - Math.min(...along) : 0;
}

/** The positions p for which p + k is a position, too: [first, last]. */
export function movable(reach, offset) {
  return [Math.max(0, -offset), Math.min(reach - 1, reach - 1 - offset)];
}

/** From where to where each setting may go, given the others: { position: [min, max], ... }. */
export function bounds(settings, table) {
  const method = methodNamed(settings.method);
  const reach = method.rows(settings, table);
  return {
    offset: [1 - reach, reach - 1],
    position: movable(reach, settings.offset),
    pair: [0, Math.floor(method.width(settings, table) / 2) - 1],
    head: [0, settings.n_heads - 1],
  };
}

/** The settings with every number inside of what the others allow. */
export function settled(settings, table) {
  const clamp = (value, [low, high]) => Math.min(Math.max(value, low), Math.max(low, high));
  const offset = clamp(settings.offset, bounds(settings, table).offset);
  const limits = bounds({ ...settings, offset }, table);
  return {
    ...settings,
    offset,
    position: clamp(settings.position, limits.position),
    pair: clamp(settings.pair, limits.pair),
    head: clamp(settings.head, limits.head),
  };
}

/** What each head adds to a score, by the distance of the key back: [head][distance]. */
export function addedByDistance(method, settings, table) {
  return Array.from({ length: settings.n_heads }, (_, head) => {
    const added = method.bias({ ...settings, head }, table);
    return [...added.at(-1)].reverse();
  });
}

const KEPT = 4;
const recent = []; // what does not depend on the position is computed once while the slider moves

function encodedAndScored(settings, table) {
  const { method, d_model, base, n_positions, projected, own_angle } = settings;
  const key = [method, d_model, base, n_positions, projected, own_angle].join();
  const known = recent.find((entry) => entry.key === key && entry.table === table);
  if (known) return known;
  const encoded = methodNamed(method).encode(settings, table, 0, n_positions);
  const { queries, keys, rows = queries } = encoded;
  const scores = queries.map((query) => keys.map((other) => dot(query, other)));
  recent.unshift({ key, table, queries, keys, rows, scores });
  recent.length = Math.min(recent.length, KEPT);
  return recent[0];
}

export function compute(settings, table) {
  const { position, offset } = settings;
  const method = methodNamed(settings.method);
  if (method.bias) {
    const scores = method.bias(settings, table);
    const past = causalMask(scores.length);
    const weights = scores.map((row, p) => maskedSoftmax(row, past[p]));
    return { reach: scores.length, scores, weights, spread: spreadAt(scores, offset) };
  }
  const { queries, keys, rows, scores } = encodedAndScored(settings, table);
  const shift = shifter(rows[0].length, method.turns * offset, settings.base);
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

/** One sentence on the effect of the control that was touched last. */
export function effect(changed, settings, waves) {
  const own = methodNamed(settings.method).effects[changed];
  const slowest = waves && `${write(waves.at(-1))} positions for one turn.`;
  const usual = {
    ...(waves && {
      base: `At base ${write(settings.base)} the slowest hand needs ${slowest}`,
      d_model: `${settings.d_model} components make ${settings.d_model / 2} hands; the slowest needs ${slowest}`,
      position: "Moving on turns both hands of a dial by the same angle.",
      offset: "The offset decides the angle between the two hands of a dial.",
    }),
    n_positions: "A longer text adds rows; those that were there stay as they are.",
    pair: `This pair is components ${2 * settings.pair} and ${2 * settings.pair + 1}.`,
    own_angle: settings.own_angle
      ? "With an angle of its own, the cosine no longer moves on the sine's circle."
      : "Sine and cosine share an angle again: the hand has one length.",
    projected: settings.projected
      ? "W_Q and W_K are random here."
      : "Without projections you see the encoding itself.",
  };
  return (own instanceof Function ? own(settings) : own) ?? usual[changed] ?? "";
}
