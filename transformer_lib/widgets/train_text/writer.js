// A model at one moment of its training, as it writes and as it reads.
//
//   const model = modelOf({ sizes, alphabet, weights });    weights: the trainer's parameters, by name
//   write(model, ids, { count: 200, temperature: 0.8, seed: 1 }) -> the ids that it adds
//   heads(model, ids) -> [layer][head], each a flat Float32Array of a row of weights for each character
//
// It is the library's GPT of math/transformer.js, which keeps keys and values.

import { uniform } from "../core/random.js";
import { draw, filterLogits } from "../math/sampling.js";
import { gpt } from "../math/transformer.js";

export function modelOf({ sizes, alphabet, weights }) {
  const { tokens, layers, heads, width, reach = 0 } = sizes;
  const config = {
    vocabulary: alphabet.length,
    context: tokens,
    n_layers: layers,
    n_heads: heads,
    d_model: width,
    positions: "rotary",
    smear: reach,
    norm: "pre",
    rms_norm: true,
    activation: "relu_squared",
  };
  const all = new Map();
  for (const [name, { rows, columns, data }] of weights) {
    if (name === "embedding.smear.weights") {
      for (let back = 0; back < rows; back += 1) {
        const row = data.subarray(back * columns, (back + 1) * columns);
        all.set(`${name}.${back}`, { data: row, shape: [columns] });
      }
    } else all.set(name, { data, shape: [rows, columns] });
  }
  const gain = { data: new Float32Array(width).fill(1), shape: [width] }; // the trainer has none
  for (let l = 0; l < layers; l += 1) {
    all.set(`blocks.${l}.norm_1.weight`, gain).set(`blocks.${l}.norm_2.weight`, gain);
  }
  all.set("final_norm.weight", gain);
  return gpt(config, all);
}

/** With no more room, it forgets all but the second half of what it has read. */
export function write(model, prompt, { count, temperature, seed }) {
  const { context } = model.config;
  const next = uniform(seed);
  const all = [...prompt];
  let [text, unread] = [model.start(), all.slice(-context / 2)];
  for (let i = 0; i < count; i += 1) {
    if (text.tokens.length + unread.length > context) {
      [text, unread] = [model.start(), all.slice(-context / 2)];
    }
    const logits = text.read(unread).logits.at(-1);
    const { probabilities, order } = filterLogits(Array.from(logits), { temperature });
    const id = draw(probabilities, order, next());
    all.push(id);
    unread = [id];
  }
  return all.slice(prompt.length);
}

export function heads(model, ids) {
  const { maps } = model.start().read(ids);
  return maps.map((layer) =>
    layer.map((rows) => {
      const flat = new Float32Array(ids.length * ids.length);
      rows.forEach((row, t) => flat.set(row, t * ids.length));
      return flat;
    }),
  );
}
