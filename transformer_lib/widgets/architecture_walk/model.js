// Every number of a sentence's translation, and what there is to say of a part. Tested under node.
//
//   const found = follow(encoderDecoder(config, weights), [5, 6, 7]);
//   const shown = open(readPart("decoder.0.norm_1"), found, config, weights);

import { BEGIN, END } from "../math/beam.js";
import { linear } from "../math/transformer.js";

const ORDER = {
  encoder: ["attention", "feed_forward"],
  decoder: ["attention", "cross_attention", "feed_forward"],
};

/** "decoder.0.norm_1" -> { side, layer, kind: "norm", at: 0 }: the norm after part 0 of the block. */
export function readPart(name) {
  if (name.endsWith("embedding")) {
    const side = name.startsWith("source") ? "encoder" : "decoder";
    return { name, side, layer: null, kind: "embedding", at: 0 };
  }
  if (name === "output") return { name, side: "decoder", layer: null, kind: "output", at: 0 };
  const [side, layer, own] = name.split(".");
  const norm = own.startsWith("norm_");
  const at = norm ? Number(own.slice(5)) - 1 : ORDER[side].indexOf(own);
  return { name, side, layer: Number(layer), kind: norm ? "norm" : own, at };
}

const best = (row) => row.reduce((top, value, i) => (value > row[top] ? i : top), 0);

/** The most probable word at each step: the ids, the begin token first, and whether it ended. */
export function translate(model, source) {
  const writing = model.start(source);
  const ids = [BEGIN];
  while (ids.length < model.config.context) {
    const next = best(writing.read([ids.at(-1)]).logits[0]);
    if (next === END) return { ids, ended: true };
    ids.push(next);
  }
  return { ids, ended: false };
}

/** A translation after some steps: all that the parts give for the words read so far. */
export function follow(model, source, done = Infinity, translation = translate(model, source)) {
  const all = translation.ids.length - (translation.ended ? 0 : 1); // the end is a step, too
  const steps = { done: Math.min(done, all), all };
  const ids = translation.ids.slice(0, steps.done + 1);
  const given = new Map();
  const see = (name, i, values) => given.set(`${name}.${i}`, values);
  const text = model.start(source, { see });
  const { logits, maps, cross } = text.read(ids, { see });
  return {
    ids,
    steps,
    ended: translation.ended && steps.done === all,
    next: logits.map(best), // what each row writes
    source,
    logits,
    given,
    memory: text.source.memory,
    maps: { encoder: text.source.maps, decoder: maps, cross },
  };
}

/** The words of a side: for the decoder, what it has read, the begin token first. */
export const idsOf = (part, found) => (part.side === "encoder" ? found.source : found.ids);

function parametersOf({ name, kind, side }, config, weights) {
  const sum = (test) =>
    [...weights]
      .filter(([key]) => test(key))
      .reduce((total, [, { shape }]) => total + shape.reduce((n, size) => n * size, 1), 0);
  if (kind === "output") return sum((key) => key === "head.weight");
  if (kind === "embedding" && side === "decoder" && config.shared) return 0;
  return sum((key) => key.startsWith(`${name}.`));
}

/** The chances of all tokens after a row. */
export function chances(logits) {
  const top = logits.reduce((most, one) => Math.max(most, one), -Infinity);
  const all = Array.from(logits, (one) => Math.exp(one - top));
  const total = all.reduce((sum, one) => sum + one, 0);
  return all.map((one) => one / total);
}

/** The most probable words after a row, and among how many. */
export function nextWords(logits, tokens, most = 4) {
  const all = chances(logits);
  const order = all.map((_, id) => id).sort((one, other) => all[other] - all[one]);
  const words = order.slice(0, most).map((id) => ({ word: tokens[id], chance: all[id] }));
  return { words, among: all.length };
}

/** A part's numbers: what goes in, what comes out, the weights of each head, its parameters. */
export function open(part, found, config, weights) {
  const { side, layer, kind, at } = part;
  const width = config.d_model;
  const at_ = (i, of = layer) => found.given.get(`${side}.${of}.${i}`);
  const rows = idsOf(part, found).length;
  const keys = kind === "cross_attention" ? found.source.length : rows;
  const shown = { rows, keys, width, parameters: parametersOf(part, config, weights) };
  if (kind === "embedding") return { ...shown, ins: [], out: at_(0, 0).x, heads: [] };
  if (kind === "output") {
    const last = at_(ORDER.decoder.length - 1, config.n_layers - 1).after;
    return { ...shown, ins: [last], out: null, heads: [], logits: found.logits };
  }
  const { x, result, after } = at_(at);
  if (kind === "norm") return { ...shown, ins: [x, result], out: after, heads: [] };
  const ins = kind === "cross_attention" ? [x, found.memory] : [x];
  if (kind === "feed_forward") {
    const name = `${part.name}.expand`;
    const hidden = linear(x, rows, weights.get(`${name}.weight`), weights.get(`${name}.bias`));
    return { ...shown, ins, out: result, heads: [], hidden, hiddenWidth: hidden.length / rows };
  }
  const heads = found.maps[kind === "cross_attention" ? "cross" : side][layer];
  return { ...shown, ins, out: result, heads };
}

/** How many words a row of an attention may look at; 0 where nothing is attended to. */
export function choicesOf({ kind, side }, row, { rows, keys }) {
  if (kind === "cross_attention") return keys;
  if (kind !== "attention") return 0;
  return side === "decoder" ? Math.min(row, rows - 1) + 1 : rows;
}

/** A flat array as rows. */
export const inRows = (flat, width) =>
  Array.from({ length: flat.length / width }, (_, r) => flat.subarray(r * width, (r + 1) * width));

const NAMES = {
  embedding: "embedding",
  attention: "attention",
  cross_attention: "cross-attention",
  feed_forward: "feed-forward",
  norm: "add, norm",
  output: "output",
};

/** The text in a part's box. */
export const labelOf = ({ kind, side }) =>
  kind === "attention" && side === "decoder" ? "masked attention" : NAMES[kind];

/** A part's full name. */
export function titleOf(part) {
  const { kind, side, layer } = part;
  if (kind === "output") return "Output";
  const where = layer === null ? "" : `, block ${layer + 1}`;
  return `${side === "encoder" ? "Encoder" : "Decoder"}${where}: ${labelOf(part)}`;
}

/** What a part is for, in a sentence. */
export function purposeOf({ kind, side, at }, [from, to]) {
  const encoder = side === "encoder";
  if (kind === "attention") {
    return encoder
      ? `Each word in ${from} hears from every other, those after it included.`
      : `Each word in ${to} hears from itself and the words before it, never from those after it.`;
  }
  if (kind === "cross_attention") {
    return `Each word in ${to} asks, and the words in ${from} answer: queries from this stack, keys and values from the encoder's last vectors, the memory.`;
  }
  if (kind === "feed_forward") return "Each word alone draws conclusions from what it has heard.";
  if (kind === "norm") {
    const last = at === ORDER[side].length - 1;
    const before = last
      ? "the feed-forward layer"
      : at === 0
        ? "the attention"
        : "the cross-attention";
    return `What ${before} gives is added to the stream, and the sum is normalized, word by word.`;
  }
  if (kind === "output") {
    return "Each row is compared with the vector of every word that the machine knows; the softmax turns that into chances for the next word.";
  }
  return encoder
    ? "A vector for each word, from a table that is learned, plus its place in the sentence."
    : "The same for what has been written so far, with a table of its own. The first token, <s>, says: begin.";
}

/** The shapes as a text: what goes in, what comes out. */
export function shapesOf({ kind }, { rows, keys, width, hiddenWidth, logits }) {
  const stream = `(${rows}, ${width})`;
  if (kind === "embedding") return [`${rows} ids`, stream];
  if (kind === "output") return [stream, `(${rows}, ${logits[0].length})`];
  if (kind === "norm") return [`${stream} + ${stream}`, stream];
  if (kind === "cross_attention") return [`${stream} and (${keys}, ${width})`, stream];
  if (kind === "feed_forward") return [stream, `(${rows}, ${hiddenWidth}), then ${stream}`];
  return [stream, stream];
}
