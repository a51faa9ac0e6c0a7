// A GPT that computes by a reader's functions, as transformer_lib/interpret/open_parts.py puts them in.
//
//   const machine = opened(config, weights);
//   const { logits, maps } = machine.read(texts, own);
//     texts    lists of ids, all of one length
//     own      [{ name, layer, head, takesMask, call(given, shape, axes), each(givens, shapes, axes) }];
//              of two for one place the last counts; layer and head are null where it is for all
//     logits   [text] -> the scores of the next word      maps   [layer] -> [text, head, word, word]
//
// call(given, shape, axes) returns a tensor of `shape` (-1: any size). The function gets what belongs to
// one index of the first axes, as many as `axes` says for each of the given; null: all at once. `each`
// is `call` of several lists.

import { rotaryAngles } from "./positions.js";
import { call } from "./tensor/operations.js";
import { dense, wrap } from "./tensor/tensor.js";
import { PLAIN } from "./training/machine.js";
import { simd } from "./training/simd.js";
import { linear, POSITIONS, wiring } from "./transformer.js";

const MEGABYTES = 16;
const ROWS = 1024; // at once

export function opened(config, weights) {
  const { n_heads: heads, d_model: width } = config;
  const biased = POSITIONS[config.positions] === "bias";
  if (config.qk_norm || biased || (config.n_kv_heads ?? heads) !== heads) {
    throw new Error("this GPT has more between its queries and weights than these functions");
  }
  const { project, think, wire, embed, finish } = wiring(config, weights, products(weights));

  /** Of the reader's functions the one for a part, a layer and a head; null: the library's. */
  const one = (own, name, layer = null, head = null) =>
    own.findLast(
      (each) =>
        each.name === name &&
        (each.layer === null || each.layer === layer) &&
        (each.head === null || each.head === head),
    ) ?? null;

  /** A part that may be another one in each head: `library()` of all heads, and what is the reader's. */
  function byHeads(own, name, layer, count, library, mine) {
    const found = Array.from({ length: count }, (_, head) => one(own, name, layer, head));
    if (found.every((each) => each === found[0])) {
      return found[0] ? mine(found[0], null) : library();
    }
    const known = found.includes(null) ? library() : null;
    const results = found.map((each, head) => (each ? mine(each, head) : narrowed(known, head)));
    return call("cat", [results, 1]);
  }

  function vectors(texts, own) {
    const n = texts[0].length;
    const mine = one(own, "embedding");
    let rows = null;
    if (mine) {
      const table = weights.get("embedding.weight");
      const ids = wrap(Float64Array.from(texts.flat()), [texts.length, n], "int64");
      const given = [ids, wrap(table.data.slice(), table.shape, "float32")];
      rows = dense(mine.call(given, [texts.length, n, width], [1, 0]));
    }
    const x = new Float32Array(texts.length * n * width);
    texts.forEach((ids, b) => {
      const at = (word) => rows.subarray((b * n + word) * width, (b * n + word + 1) * width);
      const options = rows ? { rows: ids.map((_, word) => at(word)) } : {};
      x.set(embed(ids, "embedding", 0, options), b * n * width);
    });
    return x;
  }

  /** [batch, words, width] -> [batch, heads, words, d] */
  function split(x, own, layer) {
    const mine = one(own, "split_heads", layer);
    const [batch, words] = x.shape;
    if (mine) return mine.call([x, heads], [batch, -1, words, -1], null);
    return call("transpose", [call("reshape", [x, [batch, words, heads, width / heads]]), 1, 2]);
  }

  function turned(x, own, layer) {
    if (config.positions !== "rotary") return x;
    const [batch, count, words, d] = x.shape;
    const angles = rotaryAngles(words, d);
    const library = () => turn(x, angles);
    const held = wrap(Float32Array.from(angles.flat()), [words, d / 2], "float32");
    return byHeads(own, "apply_rotary", layer, count, library, (mine, head) => {
      const here = head === null ? x : narrowed(x, head);
      return mine.call([here, held], [batch, head === null ? count : 1, words, d], [2, 0]);
    });
  }

  /** [heads, words, words], or [words, words] where it is the same in all heads */
  function masks(words, count, own, layer) {
    const triangle = new Uint8Array(words * words);
    for (let i = 0; i < words; i += 1) triangle.fill(1, i * words, i * words + i + 1);
    const found = Array.from({ length: count }, (_, head) => one(own, "causal_mask", layer, head));
    const made = new Map([[null, wrap(triangle, [words, words], "bool")]]);
    for (const mine of found) {
      if (!made.has(mine)) made.set(mine, mine.call([words, words], [words, words], null));
    }
    if (found.every((each) => each === found[0])) return made.get(found[0]);
    return call("stack", [found.map((each) => made.get(each)), 0]);
  }

  function weigh(q, k, own, layer) {
    const [batch, count, words] = q.shape;
    const mask = masks(words, count, own, layer);
    const of = (head) => (head !== null && mask.shape.length > 2 ? narrowed(mask, head, 0) : mask);
    return byHeads(
      own,
      "attention_weights",
      layer,
      count,
      () => softmax(q, k, mask),
      (mine, head) => {
        const here = head === null ? count : 1;
        const [mineQ, mineK] = head === null ? [q, k] : [narrowed(q, head), narrowed(k, head)];
        if (mine.takesMask) {
          const shape = [batch, here, words, words];
          const may = of(head);
          const isOne = may.shape.length < 3;
          const given = isOne ? may : call("expand", [may, shape]);
          return mine.call([mineQ, mineK, given], shape, [2, 2, isOne ? 0 : 2]);
        }
        const places = Array.from({ length: words }, (_, word) => word);
        const narrow = (x, from, count) => call("narrow", [x, 2, from, count]);
        const rows = mine.each(
          places.map((word) => [narrow(mineQ, word, 1), narrow(mineK, 0, word + 1)]),
          places.map((word) => [batch, here, 1, word + 1]),
          [2, 2],
        );
        const result = new Float32Array(batch * here * words * words);
        rows.map(dense).forEach((row, word) => {
          for (let p = 0; p < batch * here; p += 1) {
            const from = p * (word + 1);
            result.set(row.subarray(from, from + word + 1), (p * words + word) * words);
          }
        });
        return wrap(result, [batch, here, words, words], "float32");
      },
    );
  }

  function attend(y, batch, words, own, layer, maps) {
    const name = `blocks.${layer}.attention`;
    const made = (part) =>
      wrap(project(y, batch * words, `${name}.${part}`), [batch, words, width], "float32");
    let [q, k, v] = ["query", "key", "value"].map((part) => split(made(part), own, layer));
    [q, k] = [turned(q, own, layer), turned(k, own, layer)];
    const found = weigh(q, k, own, layer);
    maps.push(found);
    const z = call("matmul", [found, v]);
    const mine = one(own, "merge_heads", layer);
    const shape = [batch, words, width];
    const merged = mine
      ? mine.call([z], shape, null)
      : call("reshape", [call("transpose", [z, 1, 2]), shape]);
    return project(dense(merged), batch * words, `${name}.output`);
  }

  return {
    read(texts, own = []) {
      const [batch, words] = [texts.length, texts[0].length];
      const maps = [];
      let x = vectors(texts, own);
      for (let layer = 0; layer < config.n_layers; layer += 1) {
        const name = `blocks.${layer}`;
        x = wire(x, name, [
          (y) => attend(y, batch, words, own, layer, maps),
          (y) => think(y, batch * words, `${name}.feed_forward`),
        ]);
      }
      const last = new Float32Array(batch * width);
      for (let b = 0; b < batch; b += 1) {
        const end = (b + 1) * words * width;
        last.set(x.subarray(end - width, end), b * width);
      }
      const head = weights.get("head.weight") ?? weights.get("embedding.weight");
      const scores = linear(finish(last, "final_norm"), batch, head);
      const size = head.shape[0];
      const logits = texts.map((_, b) => scores.subarray(b * size, (b + 1) * size));
      return { logits, maps };
    },
  };
}

const narrowed = (x, head, dim = 1) => call("narrow", [x, dim, head, 1]);

/** `linear`, many numbers at a time. */
function products(weights) {
  const machine = simd(MEGABYTES) ?? PLAIN;
  const matrices = [...weights.values()].filter(({ shape }) => shape.length === 2);
  const widest = Math.max(...matrices.flatMap(({ shape }) => shape));
  const [from, to] = [0, 1].map(() => machine.numbers(ROWS * widest));
  const held = new Map();
  const numbersOf = (data) => {
    if (!held.has(data)) {
      held.set(data, machine.numbers(data.length));
      held.get(data).set(data);
    }
    return held.get(data);
  };
  return (x, rows, { data, shape: [out, inner] }, bias = null) => {
    const y = new Float32Array(rows * out);
    for (let first = 0; first < rows; first += ROWS) {
      const count = Math.min(ROWS, rows - first);
      from.set(x.subarray(first * inner, (first + count) * inner));
      machine.multiply(
        to,
        out,
        from,
        inner,
        1,
        numbersOf(data),
        1,
        inner,
        count,
        out,
        inner,
        false,
      );
      y.set(to.subarray(0, count * out), first * out);
    }
    if (bias) for (let i = 0; i < y.length; i += 1) y[i] += bias.data[i % out];
    return y;
  };
}

function turn(x, angles) {
  const numbers = dense(x);
  const [words, d] = x.shape.slice(-2);
  const y = new Float32Array(numbers.length);
  const turns = angles.map((row) => row.map((angle) => [Math.cos(angle), Math.sin(angle)]));
  for (let at = 0; at < y.length; at += 2) {
    const [cosine, sine] = turns[Math.floor(at / d) % words][(at % d) / 2];
    y[at] = numbers[at] * cosine - numbers[at + 1] * sine;
    y[at + 1] = numbers[at] * sine + numbers[at + 1] * cosine;
  }
  return wrap(y, x.shape, "float32");
}

/** The library's weights: a word that may see nothing gets zeros. */
function softmax(q, k, mask) {
  const scores = call("mul", [call("matmul", [q, call("mT", [k])]), q.shape.at(-1) ** -0.5]);
  const no = call("logical_not", [mask]);
  const rows = call("softmax", [call("masked_fill", [scores, no, -Infinity]), -1, null]);
  return call("masked_fill", [rows, no, 0]);
}
