import assert from "node:assert/strict";
import { test } from "node:test";

import {
  after,
  encoder,
  learn,
  pairsOf,
  shown,
  splitWords,
} from "../../../transformer_lib/widgets/math/bpe.js";
import { fixture } from "../support.js";

const { pattern, cases, shown: odd } = fixture("bpe");

test("words are the library's, by the same pattern", () => {
  const theirs = new RegExp(pattern, "gu");
  for (const { text, words } of cases) {
    assert.deepEqual(splitWords(text), words);
    assert.deepEqual(text.match(theirs), words);
  }
  assert.deepEqual(splitWords(""), []);
});

test("merges are the library's, in the same order", () => {
  for (const { text, merges } of cases) {
    const learned = learn(text, 1);
    const ours = learned.merges.map(({ pair }) => pair.map((id) => learned.tokens[id]));
    assert.deepEqual(ours, merges);
    const often = learn(text).merges;
    assert.deepEqual(often, learned.merges.slice(0, often.length));
    assert.ok(often.every(({ count }) => count > 1));
    assert.ok((learned.merges[often.length]?.count ?? 1) === 1);
  }
});

test("tokens after some of the merges are the library's", () => {
  for (const { text, merges, half } of cases) {
    const learned = learn(text, 1);
    const words = after(learned, Math.floor(merges.length / 2));
    const named = words.map((ids) => ids.map((id) => shown(learned.tokens[id])));
    assert.deepEqual(named, half);
  }
});

test("texts are encoded by merges as the library encodes them", () => {
  for (const { text, words, half, half_merges, half_ids } of cases) {
    const tokenizer = encoder(Uint16Array.from(half_merges), { plain: true });
    const ids = tokenizer.encode(text);
    assert.deepEqual(ids.flat(), half_ids);
    assert.equal(ids.length, words.length);
    const named = ids.map((word) => word.map((id) => shown(tokenizer.bytesOf(id))));
    assert.deepEqual(named, half);
    assert.equal(tokenizer.size, 256 + half_merges.length / 2);
  }
});

test("the pair on top of the table is the one that is merged next", () => {
  for (const { text } of cases) {
    const learned = learn(text);
    learned.merges.forEach(({ pair, count }, i) => {
      assert.deepEqual(pairsOf(after(learned, i))[0], { pair, count });
    });
  }
});

test("bytes that are not a whole character are shown as Python shows them", () => {
  for (const [bytes, text] of odd) assert.equal(shown(bytes), text);
});
