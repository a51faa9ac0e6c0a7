// Markov chains, and the three readers of them, equal to transformer_lib/data/markov.py (tested).
//
//   chain(3, 24, seed) -> [2, 0, 1, ...]        drawn here: another chain than the library's
//   readersAfter(ids, 3) -> { uniform: [1/3, ...], unigram: [...], bigram: [...] }   what comes next
//   looksAt(map, ids) -> the share of attention on states that followed one like the present

import { uniform } from "../core/random.js";

/** A chain of its own: each row of its table is drawn uniformly from all distributions. */
export function chain(states, length, seed) {
  const draw = uniform(seed);
  const table = Array.from({ length: states }, () =>
    shares(Array.from({ length: states }, () => -Math.log(1 - draw()))),
  );
  const ids = [Math.floor(states * draw())];
  while (ids.length < length) {
    const row = table[ids.at(-1)];
    let [left, next] = [draw(), 0];
    while (next < states - 1 && left >= row[next]) {
      left -= row[next];
      next += 1;
    }
    ids.push(next);
  }
  return ids;
}

/** What each reader expects after these states; counts begin at 1. */
export function readersAfter(ids, states) {
  const ones = () => Array(states).fill(1);
  const [unigram, bigram] = [ones(), ones()];
  ids.forEach((id, at) => {
    unigram[id] += 1;
    if (at > 0 && ids[at - 1] === ids.at(-1)) bigram[id] += 1;
  });
  return { uniform: shares(ones()), unigram: shares(unigram), bigram: shares(bigram) };
}

/** Of a causal map: the mean share, over all states with such a place, on where one followed its like. */
export function looksAt(map, ids) {
  let [sum, rows] = [0, 0];
  map.forEach((weights, t) => {
    const places = ids.flatMap((_, j) => (j > 0 && j <= t && ids[j - 1] === ids[t] ? [j] : []));
    if (!places.length) return;
    sum += places.reduce((total, j) => total + weights[j], 0);
    rows += 1;
  });
  return rows ? sum / rows : 0;
}

/** Of a causal map: the mean share on the state before. */
export function looksBack(map) {
  const some = map.slice(1);
  return some.reduce((total, weights, i) => total + weights[i], 0) / (some.length || 1);
}

/** Half of the sum of all differences: 0 for the same distribution, 1 for those without overlap. */
export function apart(p, q) {
  return p.reduce((sum, value, i) => sum + Math.abs(value - q[i]), 0) / 2;
}

function shares(counts) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.map((count) => count / total);
}
