// The numbers of the scaling lab: random scores at every width, and what a softmax makes of them.

import { fixed, precise, short } from "../core/numbers.js";
import { normal } from "../core/random.js";
import { entropy, softmax } from "../math/linear.js";

/** Scores of a random query with n random keys, for every width up to one: prefix[j][d_k] is q·k_j. */
export function drawScores(seed, n, width) {
  const vector = (stream) => {
    const draw = normal(seed * 64 + stream);
    return Float64Array.from({ length: width }, draw);
  };
  const query = vector(0);
  return Array.from({ length: n }, (_, j) => {
    const key = vector(j + 1);
    const sums = new Float64Array(width + 1);
    for (let c = 0; c < width; c += 1) sums[c + 1] = sums[c] + query[c] * key[c];
    return sums;
  });
}

/** The Frobenius norm of the softmax's Jacobian, diag(p) - p pᵀ. */
export function jacobianNorm(p) {
  let sum = 0;
  for (let i = 0; i < p.length; i += 1) {
    for (let j = 0; j < p.length; j += 1) {
      const entry = (i === j ? p[i] : 0) - p[i] * p[j];
      sum += entry * entry;
    }
  }
  return Math.sqrt(sum);
}

/** Scores, softmax, entropy and gradient at one width, raw and divided by √d_k. */
export function look(prefix, d_k) {
  const raw = prefix.map((sums) => sums[d_k]);
  const side = (scores) => {
    const weights = softmax(scores);
    return { scores, weights, entropy: entropy(weights), gradient: jacobianNorm(weights) };
  };
  return { raw: side(raw), scaled: side(raw.map((score) => score / Math.sqrt(d_k))) };
}

/** A factor that reads well: 1.4, 38, 5,200 or 3 × 10^9. */
export function factor(value) {
  if (value < 10) return precise(value);
  if (value < 1e6) return short(Number(value.toPrecision(2)));
  const power = Math.floor(Math.log10(value));
  return `${fixed(value / 10 ** power, 0)} × 10^${power}`;
}
