import assert from "node:assert/strict";
import { test } from "node:test";
import { characters, clip, showToken } from "../../../transformer_lib/widgets/core/dom.js";

test("characters are those that readers count, with or without a segmenter", () => {
  for (let code = 0x20; code < 0x2400; code += 1) {
    const text = `x${String.fromCharCode(code)}${String.fromCharCode(code)}y`;
    const wanted = Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
    assert.deepEqual(characters(text), wanted, code.toString(16));
  }
});

test("tokens are shown with their invisible characters, and shortened by what readers count", () => {
  assert.equal(showToken(" a b \n"), "␣a b ↵");
  assert.equal(showToken("  "), "␣␣");
  assert.equal(showToken("\t\u0000\ud800"), "⇥��");
  assert.equal(showToken(""), "(empty)");
  assert.equal(showToken("ಸುಸಾನ್‌ಗೆ"), "ಸುಸಾನ್‌ಗೆ");
  assert.equal(clip("abcdef", 6), "abcdef");
  assert.equal(clip("abcdefg", 6), "abcde…");
  assert.equal(clip("👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 3), "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦");
  assert.equal(clip("👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦", 2), "👩‍👩‍👧‍👦…");
  assert.equal(clip("x".repeat(1e6), 3), "xx…");
});

test("figures that bring their own copy of this file have ids of their own", async () => {
  const copies = [1, 2].map(
    (copy) => import(`../../../transformer_lib/widgets/core/dom.js?copy=${copy}`),
  );
  const ids = (await Promise.all(copies)).flatMap(({ uniqueId }) => [uniqueId("a"), uniqueId("a")]);
  assert.equal(new Set(ids).size, 4);
});
