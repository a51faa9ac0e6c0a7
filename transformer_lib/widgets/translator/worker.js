import { unpackWeights } from "../core/weights.js";
import { BEGIN, END, translate as search } from "../math/beam.js";
import { encoderDecoder } from "../math/transformer.js";

const NEXT = 3; // of the words that could come, the most probable

let model = null;

/** The weights, once. */
function load(bytes, config) {
  model = encoderDecoder(config, unpackWeights(bytes));
}

/**
 * The best translations; and of the first of them, for each of its words and for its end, what it was
 * predicted from, how probable it was, and which words were the most probable there.
 */
function translate(source, options) {
  const best = search(model, source, options);
  const { ids } = best[0];
  const { logits, cross } = model.start(source).read([BEGIN, ...ids]);
  const chances = logits.map(softmax);
  const wanted = [...ids, END];
  return {
    best,
    cross,
    chances: wanted.map((id, t) => chances[t][id]),
    next: chances.map((row) => mostProbable(row)),
  };
}

function softmax(logits) {
  const top = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const powers = Array.from(logits, (logit) => Math.exp(logit - top));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

function mostProbable(row) {
  const ids = row.map((_, id) => id).sort((one, other) => row[other] - row[one]);
  return ids.slice(0, NEXT).map((id) => ({ id, chance: row[id] }));
}

export default { load, translate };
