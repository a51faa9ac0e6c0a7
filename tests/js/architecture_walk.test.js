import assert from "node:assert/strict";
import { test } from "node:test";
import {
  chances,
  choicesOf,
  follow,
  nextWords,
  open,
  readPart,
  translate,
} from "../../transformer_lib/widgets/architecture_walk/model.js";
import { encoderDecoder } from "../../transformer_lib/widgets/math/transformer.js";
import { close, fixture } from "./support.js";

const known = fixture("transformer").pairs.find(({ config }) => config.norm === "post");
const { config } = known;
const weights = new Map(
  Object.entries(known.weights).map(([name, { data, shape }]) => [
    name,
    { data: Float32Array.from(data), shape },
  ]),
);
const found = follow(encoderDecoder(config, weights), known.source);
const layers = Array.from({ length: config.n_layers }, (_, layer) => layer);
const names = [
  "source_embedding",
  ...layers.flatMap((n) =>
    ["attention", "norm_1", "feed_forward", "norm_2"].map((part) => `encoder.${n}.${part}`),
  ),
  "target_embedding",
  ...layers.flatMap((n) =>
    ["attention", "norm_1", "cross_attention", "norm_2", "feed_forward", "norm_3"].map(
      (part) => `decoder.${n}.${part}`,
    ),
  ),
  "output",
];
const shown = (name) => open(readPart(name), found, config, weights);

test("it writes what the library writes", () => {
  const { ids } = known.translations[0].best[0]; // by a search of width 1
  const [one, other] = [found.ids.slice(1), ids];
  const both = Math.min(one.length, other.length); // both may have come to their ends
  assert.ok(both > 0);
  assert.deepEqual(one.slice(0, both), other.slice(0, both));
});

test("after some steps its rows are the first ones of the whole, each with what it writes", () => {
  const machine = encoderDecoder(config, weights);
  const whole = translate(machine, known.source);
  assert.deepEqual(found.ids, whole.ids);
  assert.equal(found.steps.done, found.steps.all);
  assert.equal(found.ended, whole.ended);
  for (let done = 0; done <= found.steps.all; done += 1) {
    const now = follow(machine, known.source, done, whole);
    const read = Math.min(done + 1, whole.ids.length); // the end is written, and not read
    assert.deepEqual(now.ids, whole.ids.slice(0, read));
    assert.equal(now.steps.done, done);
    assert.equal(now.ended, whole.ended && done === found.steps.all);
    assert.deepEqual(now.next, found.next.slice(0, read));
    if (read < whole.ids.length) assert.equal(now.next.at(-1), whole.ids[read]);
    now.logits.forEach((row, i) => close(row, Array.from(found.logits[i]), 1e-4));
    close(now.memory, Array.from(found.memory));
  }
});

test("a translation of the context's length has no end", () => {
  // A model that writes word 5 for ever, of three places.
  const row = () => [0, 0, 0, 0, 0, 1];
  const start = () => ({
    source: { memory: [], maps: [] },
    read: (ids) => ({ logits: ids.map(row), maps: [], cross: [] }),
  });
  const machine = { config: { context: 3 }, start };
  const { ids, steps, ended, next } = follow(machine, [4]);
  assert.deepEqual([ids.slice(1), steps, ended], [[5, 5], { done: 2, all: 2 }, false]);
  assert.deepEqual(next, [5, 5, 5]);
  assert.deepEqual(follow(machine, [4], 1).steps, { done: 1, all: 2 });
});

test("the most probable words, the first one first", () => {
  const { words, among } = nextWords([0, 2, 1], ["no", "yes", "maybe"], 2);
  assert.deepEqual([words.map(({ word }) => word), among], [["yes", "maybe"], 3]);
  const all = chances([0, 2, 1]);
  assert.deepEqual(
    words.map(({ chance }) => chance),
    [all[1], all[2]],
  );
});

test("the parts' parameters add up to the model's", () => {
  const all = [...weights.values()].map(({ shape }) => shape.reduce((n, size) => n * size, 1));
  const sum = (list) => list.reduce((total, one) => total + one, 0);
  assert.equal(sum(names.map((name) => shown(name).parameters)), sum(all));
});

test("each part takes what the one before it has given", () => {
  for (const side of ["encoder", "decoder"]) {
    let before = shown(`${side === "encoder" ? "source" : "target"}_embedding`).out;
    for (const name of names.filter((one) => one.startsWith(side))) {
      const { ins, out } = shown(name);
      assert.equal(ins[0], before, name);
      if (!name.includes("norm")) continue;
      before = out;
    }
    if (side === "encoder") close(before, Array.from(found.memory));
  }
});

test("who may look at how many words, and what the chances are", () => {
  const at = (name, row) => choicesOf(readPart(name), row, shown(name));
  assert.equal(at("decoder.0.attention", 0), 1);
  assert.equal(at("decoder.0.attention", 2), Math.min(3, found.ids.length));
  assert.equal(at("decoder.0.cross_attention", 0), known.source.length);
  assert.equal(at("encoder.0.attention", 0), known.source.length);
  assert.equal(at("encoder.0.norm_1", 0), 0);
  close(chances([0, Math.log(3)]), [0.25, 0.75], 1e-12);
});
