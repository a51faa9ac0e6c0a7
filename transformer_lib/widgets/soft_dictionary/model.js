// The soft dictionary's arithmetic.

import { dot, softmax } from "../math/linear.js";

/** The dictionary's answer: the scores, the weights and the average of the values. */
export function lookUp(keys, values, query, temperature) {
  const scores = keys.map((key) => dot(key, query));
  const weights = softmax(scores, temperature);
  return { scores, weights, answer: dot(weights, values) };
}

const STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]; // in each power of ten

/** The temperatures of the slider: round ones, each about a quarter more than the one before. */
export function temperatures(coldest, hottest) {
  const stops = [coldest, hottest];
  for (let power = Math.floor(Math.log10(coldest)); 10 ** power <= hottest; power += 1) {
    for (const step of STEPS) {
      const stop = Number((step * 10 ** power).toPrecision(2));
      if (stop > coldest && stop < hottest) stops.push(stop);
    }
  }
  return stops.sort((a, b) => a - b);
}

/** The index of the temperature that is nearest, as a factor. */
export function nearest(stops, temperature) {
  const far = stops.map((stop) => Math.abs(Math.log(stop / temperature)));
  return far.indexOf(Math.min(...far));
}
