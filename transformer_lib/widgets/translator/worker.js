import { unpackWeights } from "../core/weights.js";
import { BEGIN, translate as search } from "../math/beam.js";
import { encoderDecoder } from "../math/transformer.js";

let model = null;

/** The weights, once. */
function load(bytes, config) {
  model = encoderDecoder(config, unpackWeights(bytes));
}

/** The best translations, and of the first of them what each word was predicted from. */
function translate(source, options) {
  const best = search(model, source, options);
  const { ids } = best[0];
  const { logits, cross } = model.start(source).read([BEGIN, ...ids]);
  return { best, cross, chances: ids.map((id, t) => chance(logits[t], id)) };
}

function chance(logits, id) {
  const top = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
  return Math.exp(logits[id] - top) / total;
}

export default { load, translate };
