import assert from "node:assert/strict";
import { test } from "node:test";
import { sayingOf } from "../../transformer_lib/widgets/your_part/view.js";

const words = ["<story>", "mary", "?"];
const sides = [
  { right: 9, of: 10 },
  { right: 1, of: 10 },
];
const said = (...rows) =>
  sayingOf({ words, sides, rows, at: 2, head: "block 3, head 1" })
    .map((part) => part.text ?? part)
    .join("");
const known = [0.04, 0.93, 0.03];

test("where a head looks, before and with the reader's part", () => {
  assert.equal(
    said(known, [0.3, 0.6, 0.1]),
    "In block 3, head 1, ? looks most at mary (93 %); with your part, too (60 %). " +
      "Questions answered right: 9 of 10 before, 1 of 10 with yours.",
  );
  assert.match(said(known, [0.1, 0.2, 0.7]), /mary \(93 %\); with your part, at \? \(70 %\)\./);
});

test("words that are looked at alike are counted, and none is named", () => {
  assert.match(said(known, [1, 1, 1]), /; with your part, at 3 words alike \(100 % each\)\./);
  assert.match(said(known, [0, 0.5, 0.5]), /; with your part, at 2 words alike \(50 % each\)\./);
  assert.match(said([1, 1, 1], [1, 1, 1]), /most at 3 words alike .*, at 3 words alike/);
  assert.match(said(known, [0, 0, 0]), /; with your part, at no word\./);
});
