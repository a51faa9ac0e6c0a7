// The numbers of the scaling lab: random scores at every width, and what a softmax makes of them.

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

/** 1 − p[i], from the other weights: the difference would round to 0 where p[i] is nearly 1. */
const others = (p, i) => p.reduce((sum, weight, j) => (j === i ? sum : sum + weight), 0);

/** The Frobenius norm of the softmax's Jacobian, diag(p) - p pᵀ. */
function jacobianNorm(p) {
  let sum = 0;
  for (let i = 0; i < p.length; i += 1) {
    for (let j = 0; j < p.length; j += 1) {
      const entry = i === j ? p[i] * others(p, i) : p[i] * p[j];
      sum += entry * entry;
    }
  }
  return Math.sqrt(sum);
}

/** Scores, softmax, its largest weight and the slope there, at one width, raw and divided by √d_k. */
export function look(prefix, d_k) {
  const raw = prefix.map((sums) => sums[d_k]);
  const side = (scores) => {
    const weights = softmax(scores);
    const largest = Math.max(...weights);
    return {
      scores,
      weights,
      largest,
      slope: largest * others(weights, weights.indexOf(largest)),
      entropy: entropy(weights),
      jacobian: jacobianNorm(weights),
    };
  };
  return { raw: side(raw), scaled: side(raw.map((score) => score / Math.sqrt(d_k))) };
}

/** How far a score is from the largest other one: below it, or above it where it is the largest. */
export function gapToBest(scores, j) {
  return Math.abs(scores[j] - Math.max(...scores.filter((_, other) => other !== j)));
}

/** The weight of the larger of two scores that differ by `gap`. */
export const weightAt = (gap) => 1 / (1 + Math.exp(-gap));

/** How fast that weight changes with the difference: p(1 − p). */
export function slopeAt(gap) {
  const rest = Math.exp(-Math.abs(gap)); // 1 - p would round to 0 where it is small
  return rest / (1 + rest) ** 2;
}

/** Two random scores differ typically (standard deviation) by √(2 d_k), scaled by √2. */
export function typicalGaps(d_k) {
  return { raw: Math.sqrt(2 * d_k), scaled: Math.SQRT2 };
}
