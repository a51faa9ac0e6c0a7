// The machine written by hand, read: its two maps, and the content of each slot of its stream.

import { softmax } from "../math/linear.js";
import { gpt } from "../math/transformer.js";

export const SLOTS = ["token", "before", "says"];
const CLEAR = 0.6; // from this share on a slot holds one letter; below, several
const NOTHING = 0.01;

/** reader(config, weights, slots)(ids) -> { maps: [first, second], stream, chances } */
export function reader(config, weights, slots) {
  const model = gpt(config, weights);
  return (ids) => {
    const stream = [];
    const keep = (x) => stream.push(x.slice());
    const { logits, maps } = model.start().read(ids, {
      watch: (place, x) => place === "start" && keep(x),
      record: (_, x) => {
        keep(x);
      },
    });
    const held = (x, at, [from, to]) =>
      Array.from(x.subarray(at * config.d_model + from, at * config.d_model + to));
    return {
      maps: maps.map(([head]) => head.map((row) => Array.from(row))),
      stream: stream.map((x) =>
        ids.map((_, at) =>
          Object.fromEntries(SLOTS.map((name) => [name, held(x, at, slots[name])])),
        ),
      ),
      chances: logits.map((row) => softmax(Array.from(row))),
    };
  };
}

/** What a slot holds, as a letter: "" for nothing, "…" for a mixture of several. */
export function letterOf(numbers, letters) {
  const most = Math.max(...numbers);
  if (most < NOTHING) return "";
  return most < CLEAR ? "…" : letters[numbers.indexOf(most)];
}

/** Whether any place fits this one: the first head has noted the same letter there. (The first place
 * has noted itself, and is left out.) */
export function anyFits(first, words, at) {
  return first.some((row, key) => key > 0 && key <= at && words[most(row)[0]] === words[at]);
}

/** Of the first head of a block: the score of each entry of one slot, as the query, with each of
 * another, as the key, before the softmax: what its matrices of queries and keys come to. */
export function fits(config, weights, layer, [q0, q1], [k0, k1]) {
  const wide = config.d_model / config.n_heads;
  const [query, key] = ["query", "key"].map(
    (name) => weights.get(`blocks.${layer}.attention.${name}.weight`).data,
  );
  return Array.from({ length: q1 - q0 }, (_, i) =>
    Array.from({ length: k1 - k0 }, (__, j) => {
      let sum = 0;
      for (let h = 0; h < wide; h += 1) {
        sum += query[h * config.d_model + q0 + i] * key[h * config.d_model + k0 + j];
      }
      return sum / Math.sqrt(wide);
    }),
  );
}

/** Where the row looks most, and how much. */
export function most(row) {
  const at = row.indexOf(Math.max(...row));
  return [at, row[at]];
}
