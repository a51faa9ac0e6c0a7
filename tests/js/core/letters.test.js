import assert from "node:assert/strict";
import { test } from "node:test";
import { parseLetters } from "../../../transformer_lib/widgets/core/flow.js";

test("a text is written in letters, and what is wrong with it is said", () => {
  assert.deepEqual(parseLetters(" Ab c", "abc", 12), [0, 1, 2]);
  assert.equal(parseLetters("abd", "abc", 12), "“d” is not one of the letters; write a, b, c.");
  assert.equal(parseLetters("a", "abc", 12), "Write two letters at least.");
  assert.equal(parseLetters("aaaa", "abc", 3), "That is 4 letters; 3 fit.");
});
