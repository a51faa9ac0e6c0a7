import { unpackWeights } from "../core/weights.js";
import { gpt } from "../math/transformer.js";
import { studio } from "./reader.js";

let room = null;

/** The weights, once. */
function load(bytes, config) {
  const weights = unpackWeights(bytes);
  room = studio(gpt(config, weights), weights.get("embedding.weight"));
}

/** What the machine makes of a text: see studio() in reader.js. */
function read(question) {
  return room.read(question);
}

export default { load, read };
