// The soft dictionary's arithmetic.

import { dot, softmax } from "../math/linear.js";

/** The dictionary's answer: the scores, the weights and the average of the values. */
export function lookUp(keys, values, query, temperature) {
  const scores = keys.map((key) => dot(key, query));
  const weights = softmax(scores, temperature);
  return { scores, weights, answer: dot(weights, values) };
}
