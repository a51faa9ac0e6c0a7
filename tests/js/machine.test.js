import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asked,
  asking,
  candidates,
  drawn,
  partOf,
  readWords,
  silent,
  titles,
} from "../../transformer_lib/widgets/machine/model.js";
import { studio } from "../../transformer_lib/widgets/machine/reader.js";
import { gpt } from "../../transformer_lib/widgets/math/transformer.js";
import { close, fixture } from "./support.js";

const known = fixture("machine");
const { ids, exchange } = known;
const last = ids.length - 1;

function room() {
  const weights = new Map(
    Object.entries(known.weights).map(([name, { data, shape }]) => [
      name,
      { data: Float32Array.from(data), shape },
    ]),
  );
  return studio(gpt(known.config, weights), weights.get("embedding.weight"));
}

const ask = (more = {}) => ({ ids, exchange, word: last, ...more });

test("what every part makes of a word is the library's", () => {
  const found = room().read(ask());
  close(found.chances, known.whole, 1e-4);
  for (const [name, values] of Object.entries(known.parts)) {
    close(found.parts[name], values, 1e-4, name);
  }
  assert.equal(found.twin.join(), known.twin.join());
  close(found.others.slice(2, -1), known.others, 1e-4);
  found.closeness.forEach((levels, at) => {
    close(
      levels.slice(2, -1),
      known.closeness.map((layer) => layer[at]),
      1e-4,
    );
    close(1 - levels.at(-1), known.moved[at], 1e-4);
    assert.equal(levels[0] === 1, ids[at] === known.twin[at]); // the same row of the table
  });
  found.maps.forEach((heads, layer) => {
    heads.forEach((square, head) => {
      close(square, known.maps[layer][head].flat(), 1e-4);
    });
  });
});

test("parts off and a vector put in change the answer as in the library, and only then", () => {
  const here = room();
  const off = silent(["block-1-head-2", "block-2-feed-forward"]);
  close(here.read(ask({ off })).chances, known.off, 1e-4);
  close(here.read(ask({ patches: [[1, 5]] })).chances, known.patched, 1e-4);
  const both = here.read(ask({ off }));
  close(both.whole, known.whole[last], 1e-4);
  assert.equal(both.touched, true);
  assert.equal(here.read(ask()).touched, false);
  close(here.read(ask()).chances, known.whole, 1e-4);
});

test("a text that grows and goes another way gives what it would give in one piece", () => {
  const here = room();
  for (const patches of [[], [[1, 5]]]) {
    for (let end = 1; end <= 9; end += 2) {
      here.read({ ids: [...ids.slice(0, end), 3], exchange, patches, word: 0 });
    }
    const right = patches.length ? known.patched : known.whole;
    close(here.read(ask({ patches })).chances, right, 1e-4);
  }
});

test("names of parts", () => {
  assert.deepEqual(partOf("block-2-head-3"), {
    kind: "head",
    layer: 1,
    head: 2,
    number: 3,
    name: "block 2, head 3",
  });
  assert.equal(partOf("block-1-feed-forward").name, "block 1, feed-forward");
  assert.equal(partOf("block-1").kind, "block");
  assert.deepEqual(partOf("final-norm"), { kind: "final_norm", name: "final norm" });
  assert.deepEqual(silent(["block-1-attention", "block-3-head-8"]), [
    "0.attention",
    "2.attention.7",
  ]);
});

test("the words to choose from: those of the grammar, and what is probable all the same", () => {
  const vocabulary = ["<story>", ".", "mary", "susan", "gave"];
  const allowed = new Map([
    ["mary", 0.5],
    ["susan", 0.5],
  ]);
  const now = [0, 0.001, 0.2, 0.3, 0.499];
  const rows = candidates({ now, whole: [0, 0, 0.6, 0.4, 0], allowed, vocabulary });
  assert.deepEqual(
    rows.map(({ word }) => word),
    ["mary", "susan", "gave"],
  );
  assert.deepEqual([rows[0].exact, rows[2].exact], [0.5, 0]);
});

test("a question is put in place of a sentence that is not finished", () => {
  const words = "<story> mary has roses at first . mary gave".split(" ");
  const question = asking(words, "roses", 7);
  assert.equal(question.slice(7).join(" "), "who has roses ?");
  assert.equal(asked(question, 7, ["roses"]), "roses");
  assert.equal(asked(words, 7, ["roses"]), null);
});

test("what is drawn follows temperature and top-p, and is the same for the same number", () => {
  const chances = [0.6, 0.3, 0.1];
  const many = (options) =>
    Array.from({ length: 300 }, (_, draws) => drawn(chances, { topP: 1, ...options, draws }));
  assert.deepEqual(new Set(many({ temperature: 0 })), new Set([0]));
  assert.deepEqual(new Set(many({ temperature: 1, topP: 0.7 })), new Set([0, 1]));
  assert.equal(new Set(many({ temperature: 1 })).size, 3);
  assert.deepEqual(many({ temperature: 1 }), many({ temperature: 1 }));
});

test("what the reader writes is read however it is spaced; an unknown word is named", () => {
  const vocabulary = ["mary", "has", "roses", "."];
  assert.deepEqual(readWords(" Mary has roses. ", vocabulary), { words: vocabulary });
  assert.deepEqual(readWords("mary eats roses", vocabulary), { unknown: "eats" });
});

test("stories that begin alike are called by their ends", () => {
  const begun = "<story> mary has roses at first . john has books at first .";
  const both = [`${begun} who has roses ?`, `${begun} mary gave it to john . who has roses ?`];
  assert.deepEqual(titles([begun, "<story>"]), [
    "mary has roses at first . john has books at…",
    "<story>",
  ]);
  const [one, other] = titles(both);
  assert.equal(one, "… john has books at first . who has roses ?");
  assert.equal(other, "… mary gave it to john . who has roses ?");
  assert.equal(titles(["<story> a", "<story> b"]).join(), "a,b");
});
