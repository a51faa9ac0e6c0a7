// Runs a GPT on a text that grows, shrinks and changes under the reader's hands.
//
//   const one = reader(model, { off: new Set(["0.attention.3"]), patch: (layer, at) => null });
//   one.read([0, 5, 3]);                  reads only what is new since the last time
//   one.at("0.hidden", 2)                 what a part made of word 2 (places: transformer.js, `watch`);
//                                         "0.end" is the stream after block 0
//   one.chances   one.maps[layer][head]   for each word read: of the next one; rows of weights
//
//   const room = studio(model, table);    the reader's story, the same as it would be untouched, and the
//   room.read({ ids, off, patches, exchange, word })    other story; -> all that the figure shows

import { softmax } from "../math/linear.js";

export function reader(model, { off = null, patch = null } = {}) {
  const { n_layers: layers, n_heads: heads } = model.config;
  const text = model.start();
  const places = new Map(); // place -> a vector for each word
  const chances = [];
  const maps = Array.from({ length: layers }, () => Array.from({ length: heads }, () => []));

  function keep(place, x, count) {
    const width = x.length / count;
    if (!places.has(place)) places.set(place, []);
    const rows = places.get(place);
    for (let r = 0; r < count; r += 1) rows.push(x.slice(r * width, (r + 1) * width));
  }

  return {
    chances,
    maps,
    at: (place, word) => places.get(place)[word],
    read(ids) {
      let same = 0;
      while (same < text.tokens.length && text.tokens[same] === ids[same]) same += 1;
      text.rewind(text.tokens.length - same);
      for (const rows of [...places.values(), chances, ...maps.flat()]) rows.length = same;
      const fresh = ids.slice(same);
      if (!fresh.length) return;
      const found = text.read(fresh, {
        off,
        watch: (place, x) => keep(place, x, fresh.length),
        record(layer, x) {
          const width = x.length / fresh.length;
          fresh.forEach((_, r) => {
            const vector = patch?.(layer, same + r);
            if (vector) x.set(vector, r * width);
          });
          keep(`${layer}.end`, x, fresh.length);
        },
      });
      for (const logits of found.logits) chances.push(softmax(Array.from(logits)));
      found.maps.forEach((layer, l) => {
        layer.forEach((rows, h) => {
          maps[l][h].push(...rows);
        });
      });
    },
  };
}

/** Cosine of the angle between two vectors; 1 if they are the same. */
export function cosine(x, y) {
  let [product, one, other] = [0, 0, 0];
  for (let i = 0; i < x.length; i += 1) {
    product += x[i] * y[i];
    one += x[i] * x[i];
    other += y[i] * y[i];
  }
  return one === 0 || other === 0 ? Number(one === other) : product / Math.sqrt(one * other);
}

/** How far apart two distributions are, from 0 (equal) to 1: the probability that has moved. */
export function moved(p, q) {
  return p.reduce((sum, v, i) => sum + Math.abs(v - q[i]), 0) / 2;
}

/** A text with two words in each other's place. */
export function exchanged(ids, [one, other]) {
  return ids.map((id) => (id === one ? other : id === other ? one : id));
}

export function studio(model, table) {
  const { n_layers: layers, d_model: width } = model.config;
  const plain = reader(model);
  const kept = { changed: null, other: null }; // each with the settings that it belongs to
  const row = (id) => table.data.subarray(id * width, (id + 1) * width);

  function renewed(name, key, make) {
    if (kept[name]?.key !== key) kept[name] = { key, reader: make() };
    return kept[name].reader;
  }

  /** Of a word by level: the table's row, the stream's beginning, after each block; what it says. */
  function levels(one, id, at) {
    const ends = Array.from({ length: layers }, (_, layer) => one.at(`${layer}.end`, at));
    return [row(id), one.at("start", at), ...ends, Float32Array.from(one.chances[at])];
  }

  /** What each part makes of one word. */
  function partsOf(one, id, at) {
    const found = { embedding: row(id).slice(), start: one.at("start", at) };
    for (let layer = 0; layer < layers; layer += 1) {
      const names = ["norm_1", "mixed", "attention", "norm_2", "hidden", "feed_forward", "end"];
      for (const part of names) found[`${layer}.${part}`] = one.at(`${layer}.${part}`, at);
    }
    return { ...found, final_norm: one.at("final_norm", at) };
  }

  return {
    read({ ids, off = [], patches = [], exchange, word }) {
      const silent = off.length ? new Set(off) : null;
      const twin = exchanged(ids, exchange);
      plain.read(ids);
      const other = renewed("other", JSON.stringify(off), () => reader(model, { off: silent }));
      other.read(twin);
      const touched = off.length > 0 || patches.length > 0;
      const patch = (layer, at) =>
        patches.some(([block, place]) => block - 1 === layer && place === at)
          ? other.at(`${layer}.end`, at)
          : null;
      const mine = touched
        ? renewed("changed", JSON.stringify([off, patches, exchange]), () =>
            reader(model, { off: silent, patch }),
          )
        : plain;
      mine.read(ids);
      const closeness = ids.map((id, at) => {
        const [here, there] = [levels(mine, id, at), levels(other, twin[at], at)];
        const says = layers + 2;
        return here.map((vector, level) =>
          level === says ? 1 - moved(vector, there[level]) : cosine(vector, there[level]),
        );
      });
      return {
        ids,
        word,
        twin,
        touched,
        chances: mine.chances.map((row_) => Float32Array.from(row_)),
        whole: Float32Array.from(plain.chances[word]),
        maps: mine.maps.map((layer) => layer.map((rows) => square(rows))),
        parts: partsOf(mine, ids[word], word),
        levels: levels(mine, ids[word], word).map((x) => x.slice()),
        others: levels(other, twin[word], word).map((x) => x.slice()),
        closeness,
      };
    },
  };
}

/** Rows of weights, of which each is as long as the text was then, as one square, row after row. */
function square(rows) {
  const flat = new Float32Array(rows.length * rows.length);
  rows.forEach((row, r) => {
    flat.set(row.subarray(0, Math.min(row.length, rows.length)), r * rows.length);
  });
  return flat;
}
