// The library's models, equal to transformer_lib/gpt.py and encoder_decoder.py (tested to 1e-4):
// every wiring, in float32, without gradients.
//
//   const model = gpt(config, weights);                 // weights: name -> { data, shape } (weights.js)
//   const text = model.start();                         // an empty cache
//   const { logits, maps } = text.read([3, 1, 4]);      // the tokens after those that were read
//   text.rewind(1);                                     // forgets the newest
//   const other = text.fork();                          // goes its own way from here
//
//   const translator = encoderDecoder(config, weights);
//   const target = translator.start([5, 6, 7]);         // reads the source; target.source holds its maps
//   const { logits, maps, cross } = target.read([BEGIN]);
//
// A list of vectors is one array, row after row. `logits` are those after each token read, `maps` by
// layer and head: maps[layer][head] is an array of rows of weights, a row for each token read.
// read(ids, { off, record }): `off` is a set of parts that add nothing, "0.attention", "1.feed_forward",
// "0.cross_attention" or one head of them, "0.attention.3"; `record(layer, x)` sees the stream after
// each block, and may change it. `watch(place, x)` sees what each part makes of the tokens read: "start"
// (the stream as it enters the first block), "0.norm_1", "0.mixed" (what the heads bring, side by side),
// "0.attention" (what the attention adds), "0.hidden", "0.feed_forward", "final_norm".
// A translator also takes `see(name, i, { x, result, after })`, in start and in read: the stream before
// part i of a block ("decoder.0"), what the part gives, the stream after.

import { alibiSlopes, rotaryAngles, sinusoidal } from "./positions.js";

const EPSILON = 1e-5;

/** x [rows, in] times the transpose of a matrix [out, in], plus a bias. */
export function linear(x, rows, { data, shape }, bias = null) {
  const [out, inner] = shape;
  const y = new Float32Array(rows * out);
  for (let r = 0; r < rows; r += 1) {
    const from = r * inner;
    for (let o = 0; o < out; o += 1) {
      const at = o * inner;
      let sum = 0;
      for (let i = 0; i < inner; i += 1) sum += x[from + i] * data[at + i];
      y[r * out + o] = bias ? sum + bias.data[o] : sum;
    }
  }
  return y;
}

const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));
const geluTanh = (x) =>
  0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
const ACTIVATIONS = {
  relu: (x) => Math.max(x, 0),
  gelu,
  gelu_tanh: geluTanh,
  relu_squared: (x) => (x > 0 ? x * x : 0),
};

/** The error function, off by less than 2e-7: Abramowitz and Stegun 1964, 7.1.26, is not enough for
 * 1e-6, so a continued fraction and a series, where each of them converges fast. */
function erf(x) {
  const a = Math.abs(x);
  if (a < 2.5) {
    let [term, sum] = [a, a];
    for (let n = 1; Math.abs(term) > 1e-9 * sum; n += 1) {
      term *= (-a * a) / n;
      sum += term / (2 * n + 1);
      if (sum === 0) break;
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = 0;
  for (let n = 30; n > 0; n -= 1) fraction = n / 2 / (a + fraction);
  return Math.sign(x) * (1 - Math.exp(-a * a) / ((a + fraction) * Math.sqrt(Math.PI)));
}

/** LayerNorm or RMSNorm of each row, in float64. A norm without numbers is nn.Identity. */
function normalize(x, width, weights, name, rms) {
  if (!weights.has(`${name}.weight`)) return x;
  const gain = weights.get(`${name}.weight`).data;
  const bias = weights.get(`${name}.bias`)?.data;
  const y = new Float32Array(x.length);
  for (let at = 0; at < x.length; at += width) {
    let mean = 0;
    if (!rms) {
      for (let i = 0; i < width; i += 1) mean += x[at + i];
      mean /= width;
    }
    let variance = 0;
    for (let i = 0; i < width; i += 1) variance += (x[at + i] - mean) ** 2;
    const scale = 1 / Math.sqrt(variance / width + EPSILON);
    for (let i = 0; i < width; i += 1) {
      y[at + i] = (x[at + i] - mean) * scale * gain[i] + (bias ? bias[i] : 0);
    }
  }
  return y;
}

function add(x, y) {
  const sum = new Float32Array(x.length);
  for (let i = 0; i < x.length; i += 1) sum[i] = x[i] + y[i];
  return sum;
}

/** How each kind of positions reaches a model: added to the words, by turning queries and keys, or as
 * a bias of the scores. */
export const POSITIONS = { learned: "added", sinusoidal: "added", rotary: "turn", alibi: "bias" };
// Choices that are computed here, and those that only training knows. What a configuration has beside
// them may change what a part computes, and is refused unless it is off.
const KNOWN = [
  "context vocabulary source_vocabulary target_vocabulary shared tied smear n_layers n_heads n_kv_heads",
  "d_model d_ff norm rms_norm qk_norm bias activation positions attention attention_options",
  "dropout projections embedding_std smear_start",
].flatMap((names) => names.split(" "));

/** What all parts of a model need: its sizes, its weights, its positions. `product` is `linear`, or
 * the same in another way. */
export function wiring(config, weights, product = linear) {
  for (const [name, value] of Object.entries(config)) {
    if (value && !KNOWN.includes(name)) {
      throw new Error(`${name} is ${value}, which the page's model does not know`);
    }
  }
  if ((config.attention ?? "multi_head") !== "multi_head") {
    throw new Error(`attention is ${config.attention}; the page computes multi_head only`);
  }
  if (!POSITIONS[config.positions ?? "learned"]) {
    const known = Object.keys(POSITIONS).join(", ");
    throw new Error(`positions are ${config.positions}; the page computes ${known}`);
  }
  const heads = config.n_heads;
  const keyHeads = config.n_kv_heads ?? heads;
  const width = config.d_model;
  const headWidth = width / heads;
  const angles = config.positions === "rotary" ? rotaryAngles(config.context, headWidth) : null;
  const turns = angles?.map((row) => row.map((angle) => [Math.cos(angle), Math.sin(angle)]));
  const slopes = config.positions === "alibi" ? alibiSlopes(heads) : null;

  function project(x, rows, name) {
    return product(x, rows, weights.get(`${name}.weight`), weights.get(`${name}.bias`));
  }

  /** Queries or keys, in place: normalized by heads if asked for, and turned. */
  function placed(x, rows, count, start, positioned) {
    for (let r = 0; r < rows; r += 1) {
      for (let h = 0; h < count; h += 1) {
        const at = (r * count + h) * headWidth;
        if (config.qk_norm) {
          let squares = 0;
          for (let i = 0; i < headWidth; i += 1) squares += x[at + i] ** 2;
          const scale = 1 / Math.sqrt(squares / headWidth + 1e-6);
          for (let i = 0; i < headWidth; i += 1) x[at + i] *= scale;
        }
        if (turns && positioned) {
          for (let i = 0; i < headWidth; i += 2) {
            const [cosine, sine] = turns[start + r][i / 2];
            const [even, odd] = [x[at + i], x[at + i + 1]];
            x[at + i] = even * cosine - odd * sine;
            x[at + i + 1] = even * sine + odd * cosine;
          }
        }
      }
    }
    return x;
  }

  /** Keys and values of rows of vectors, to be read by an attention. */
  function remember(x, rows, name, start, positioned) {
    return {
      k: placed(project(x, rows, `${name}.key`), rows, keyHeads, start, positioned),
      v: project(x, rows, `${name}.value`),
      length: rows,
    };
  }

  /** The attention `name` of x to a memory { k, v, length }; with `causal`, the last row sees all. */
  function attend(x, rows, name, memory, { causal, off, positioned }) {
    const keys = memory.length;
    const start = causal ? keys - rows : 0;
    const q = placed(project(x, rows, `${name}.query`), rows, heads, start, positioned);
    const mixed = new Float32Array(rows * width);
    const maps = [];
    const scale = 1 / Math.sqrt(headWidth);
    for (let h = 0; h < heads; h += 1) {
      const group = Math.floor((h * keyHeads) / heads);
      const rowsOfWeights = [];
      for (let r = 0; r < rows; r += 1) {
        const seen = causal ? start + r + 1 : keys;
        const scores = new Float64Array(seen);
        const from = (r * heads + h) * headWidth;
        let top = -Infinity;
        for (let j = 0; j < seen; j += 1) {
          const at = (j * keyHeads + group) * headWidth;
          let sum = 0;
          for (let i = 0; i < headWidth; i += 1) sum += q[from + i] * memory.k[at + i];
          scores[j] =
            sum * scale - (slopes && positioned ? slopes[h] * Math.abs(start + r - j) : 0);
          top = Math.max(top, scores[j]);
        }
        let total = 0;
        for (let j = 0; j < seen; j += 1) {
          scores[j] = Math.exp(scores[j] - top);
          total += scores[j];
        }
        const row = new Float32Array(keys);
        for (let j = 0; j < seen; j += 1) row[j] = scores[j] / total;
        rowsOfWeights.push(row);
        if (off?.has(`${name}.${h}`)) continue;
        for (let j = 0; j < seen; j += 1) {
          const at = (j * keyHeads + group) * headWidth;
          for (let i = 0; i < headWidth; i += 1) {
            mixed[r * width + h * headWidth + i] += row[j] * memory.v[at + i];
          }
        }
      }
      maps.push(rowsOfWeights);
    }
    return { result: project(mixed, rows, `${name}.output`), maps, mixed };
  }

  function think(x, rows, name, note = null) {
    const inner = project(x, rows, `${name}.expand`);
    if (config.activation === "swiglu") {
      const gate = project(x, rows, `${name}.gate`);
      for (let i = 0; i < inner.length; i += 1) inner[i] *= gate[i] / (1 + Math.exp(-gate[i]));
    } else {
      const activation = ACTIVATIONS[config.activation];
      for (let i = 0; i < inner.length; i += 1) inner[i] = activation(inner[i]);
    }
    note?.("hidden", inner);
    return project(inner, rows, `${name}.contract`);
  }

  /** x through a block whose parts are functions of vectors, one norm each. */
  function wire(x, name, parts, { note = null, see = null } = {}) {
    parts.forEach((part, i) => {
      const before = x;
      const norm = (y) => {
        const z = normalize(y, width, weights, `${name}.norm_${i + 1}`, config.rms_norm);
        note?.(`norm_${i + 1}`, z);
        return z;
      };
      const [read, then] = config.norm === "pre" ? [norm(x), null] : [x, norm];
      const result = part(read);
      if (result) x = add(x, result);
      if (then) x = then(x);
      see?.(name, i, { x: before, result, after: x });
    });
    return x;
  }

  /** Ids as vectors: rows of the table, or others, with the smear and the positions of these places. */
  function embed(ids, name, start, { scale = 1, before = [], rows = null } = {}) {
    const table = weights.get(`${name}.weight`).data;
    const rowOf = (id) =>
      Float32Array.from(table.subarray(id * width, (id + 1) * width), (v) => v * scale);
    const all = rows ?? [...before, ...ids].map(rowOf);
    const x = new Float32Array(ids.length * width);
    const encoding =
      config.positions === "sinusoidal" ? sinusoidal(ids.length, width, { start }) : null;
    const learned = weights.get(`${name}.positions.table.weight`)?.data;
    for (let r = 0; r < ids.length; r += 1) {
      const own = all[before.length + r];
      for (let i = 0; i < width; i += 1) {
        let value = own[i];
        for (let back = 1; back <= (config.smear ?? 0); back += 1) {
          const earlier = all[before.length + r - back];
          if (earlier)
            value += weights.get(`${name}.smear.weights.${back - 1}`).data[i] * earlier[i];
        }
        if (encoding) value += encoding[r][i];
        if (learned) value += learned[(start + r) * width + i];
        x[r * width + i] = value;
      }
    }
    return x;
  }

  const finish = (x, name) =>
    config.norm === "pre" ? normalize(x, width, weights, name, config.rms_norm) : x;
  return { width, project, remember, attend, think, wire, embed, finish };
}

/** Keys and values of one attention, with room for all of a text; a copy of another, if there is one. */
function cacheOf(config, other = null) {
  const size = ((config.n_kv_heads ?? config.n_heads) * config.d_model) / config.n_heads;
  return {
    k: other ? other.k.slice() : new Float32Array(config.context * size),
    v: other ? other.v.slice() : new Float32Array(config.context * size),
    length: other ? other.length : 0,
    extend({ k, v, length }) {
      this.k.set(k, this.length * size);
      this.v.set(v, this.length * size);
      this.length += length;
    },
  };
}

function checkRoom(ids, read, config, vocabulary) {
  if (ids.length === 0) throw new Error("there is nothing to read");
  if (read + ids.length > config.context) {
    throw new Error(`the model reads at most ${config.context} tokens`);
  }
  const unknown = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabulary);
  if (unknown !== undefined) throw new Error(`${unknown} is not the id of a token`);
}

/** A text that is written token by token, with or without a source that is read, too. */
function writing(config, weights, parts, names, readSource, before = null) {
  const { width, remember, attend, think, wire, embed, finish } = parts;
  const caches = Array.from({ length: config.n_layers }, (_, layer) =>
    cacheOf(config, before?.caches[layer]),
  );
  const tokens = [...(before?.tokens ?? [])];
  return {
    tokens,
    fork: () => writing(config, weights, parts, names, readSource, { caches, tokens }),
    rewind(count) {
      tokens.length -= count;
      for (const cache of caches) cache.length -= count;
    },
    read(ids, { off = null, record = null, watch = null, see = null } = {}) {
      checkRoom(ids, tokens.length, config, names.vocabulary);
      const start = tokens.length;
      const rows = ids.length;
      const before = tokens.slice(Math.max(0, start - (config.smear ?? 0)));
      let x = embed(ids, names.embedding, start, { scale: names.scale, before });
      watch?.("start", x);
      const maps = [];
      const cross = [];
      for (let layer = 0; layer < config.n_layers; layer += 1) {
        const name = `${names.blocks}.${layer}`;
        const note = watch && ((part, y) => watch(`${layer}.${part}`, y));
        const silent = (part) => off?.has(`${layer}.${part}`);
        const heads = (part) =>
          off &&
          new Set([...off].map((one) => one.replace(`${layer}.${part}.`, `${name}.${part}.`)));
        const attention = (y) => {
          caches[layer].extend(remember(y, rows, `${name}.attention`, start, true));
          const found = attend(y, rows, `${name}.attention`, caches[layer], {
            causal: true,
            positioned: true,
            off: heads("attention"),
          });
          maps.push(found.maps);
          note?.("mixed", found.mixed);
          note?.("attention", found.result);
          return silent("attention") ? null : found.result;
        };
        const crossing = (y) => {
          const found = attend(y, rows, `${name}.cross_attention`, readSource[layer], {
            causal: false,
            positioned: false,
            off: heads("cross_attention"),
          });
          cross.push(found.maps);
          return silent("cross_attention") ? null : found.result;
        };
        const thinking = (y) => {
          const result = think(y, rows, `${name}.feed_forward`, note);
          note?.("feed_forward", result);
          return silent("feed_forward") ? null : result;
        };
        const all = readSource ? [attention, crossing, thinking] : [attention, thinking];
        x = wire(x, name, all, { note, see });
        if (record) x = record(layer, x) ?? x;
      }
      tokens.push(...ids);
      const last = finish(x, names.norm);
      watch?.("final_norm", last);
      const head = weights.get("head.weight") ?? weights.get(`${names.embedding}.weight`);
      const logits = linear(last, rows, head);
      const size = names.vocabulary;
      return {
        logits: Array.from({ length: rows }, (_, r) => logits.subarray(r * size, (r + 1) * size)),
        maps,
        cross,
        width,
      };
    },
  };
}

export function gpt(config, weights) {
  const parts = wiring(config, weights);
  const names = {
    embedding: "embedding",
    blocks: "blocks",
    norm: "final_norm",
    vocabulary: config.vocabulary,
  };
  return { config, start: () => writing(config, weights, parts, names, null) };
}

export function encoderDecoder(config, weights) {
  const parts = wiring(config, weights);
  const scale = Math.sqrt(config.d_model);
  const target = config.shared ? "source_embedding" : "target_embedding";
  const names = {
    embedding: target,
    blocks: "decoder",
    norm: "decoder_norm",
    vocabulary: config.target_vocabulary,
    scale,
  };

  /** The memory: a vector for each token of the source, and the maps of the attentions that made it. */
  function encode(ids, { see = null } = {}) {
    checkRoom(ids, 0, config, config.source_vocabulary);
    const rows = ids.length;
    const maps = [];
    let x = parts.embed(ids, "source_embedding", 0, { scale });
    for (let layer = 0; layer < config.n_layers; layer += 1) {
      const name = `encoder.${layer}`;
      const all = [
        (y) => {
          const memory = parts.remember(y, rows, `${name}.attention`, 0, true);
          const options = { causal: false, positioned: true, off: null };
          const found = parts.attend(y, rows, `${name}.attention`, memory, options);
          maps.push(found.maps);
          return found.result;
        },
        (y) => parts.think(y, rows, `${name}.feed_forward`),
      ];
      x = parts.wire(x, name, all, { see });
    }
    return { memory: parts.finish(x, "encoder_norm"), maps, rows };
  }

  return {
    config,
    encode,
    start(ids, options = {}) {
      const source = encode(ids, options);
      const read = Array.from({ length: config.n_layers }, (_, layer) =>
        parts.remember(source.memory, source.rows, `decoder.${layer}.cross_attention`, 0, false),
      );
      return { ...writing(config, weights, parts, names, read), source };
    },
  };
}
