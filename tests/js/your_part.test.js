import assert from "node:assert/strict";
import { test } from "node:test";
import { sayingOf } from "../../transformer_lib/widgets/your_part/view.js";

const words = ["<story>", "mary", "?"];
const sides = [
  { parts: [], right: 9, of: 10 },
  { parts: [{ name: "causal_mask", called: "my_mask" }], right: 1, of: 10 },
];
const said = (rows, parts = sides[1].parts) => {
  const both = [sides[0], { ...sides[1], parts }];
  return sayingOf({ words, sides: both, rows, at: 2, head: "block 3, head 1", part: "causal_mask" })
    .map((part) => part.text ?? part)
    .join("");
};
const known = [0.04, 0.93, 0.03];

test("where a head looks, before and with the reader's part, by its name", () => {
  assert.equal(
    said([known, [0.3, 0.6, 0.1]]),
    "In block 3, head 1, ? looks most at mary (93 %); with my_mask, most at mary (60 %). " +
      "Questions answered right: 9 of 10, then 1 of 10.",
  );
  const two = [
    { name: "split_heads", called: "split_heads" },
    { name: "merge_heads", called: "<lambda>" },
  ];
  assert.match(said([known, known], two), /; with your split_heads and your merge_heads, most/);
});

test("words that are looked at alike are counted, and none is named", () => {
  assert.match(said([known, [1, 1, 1]]), /; with my_mask, at 3 words alike \(100 % each\)\./);
  assert.match(said([known, [0, 0.5, 0.5]]), /; with my_mask, at 2 words alike \(50 % each\)\./);
  assert.match(said([known, [0, 0, 0]]), /; with my_mask, at no word\./);
});
