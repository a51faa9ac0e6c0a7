import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cellReading,
  flowReading,
  listing,
  maskWarning,
} from "../../transformer_lib/widgets/mask_painter/reading.js";
import { carriers, presetMask, reach } from "../../transformer_lib/widgets/math/masks.js";

const words = ["mary", "gave", "roses", "to", "susan"];
const plain = (parts) => parts.map((part) => part.text ?? part).join("");

test("the reading follows the chosen word", () => {
  const causal = carriers(presetMask("causal", 5), 0);
  assert.equal(
    plain(flowReading(words, reach(causal, 2, 1), 2)),
    "Something of roses can be in roses, to and susan after 1 layer.",
  );
  assert.equal(
    plain(flowReading(words, reach(causal, 2, 3), 2)),
    "Something of roses can be in roses, to and susan after 1 layer, and in no other word after 3.",
  );
  const window = carriers(presetMask("sliding window", 5, { window: 2 }), 0);
  assert.equal(
    plain(flowReading(words, reach(window, 0, 2), 0)),
    "Something of mary can be in mary and gave after 1 layer, and in mary, gave and roses after 2 layers.",
  );
});

test("the reading names a leak, and a word that nobody sees", () => {
  const leak = presetMask("causal", 5);
  leak[1][4] = true;
  assert.equal(
    plain(flowReading(words, reach(carriers(leak, 0), 4, 1), 4)),
    "Something of susan can be in gave and susan after 1 layer. gave comes before it: in a model that writes word by word, that is a leak.",
  );
  const unseen = presetMask("causal", 5).map((row) => row.map((may, j) => may && j !== 2));
  unseen[2] = [true, false, false, false, false];
  assert.equal(
    plain(flowReading(words, reach(carriers(unseen, 0), 2, 2), 2)),
    "Nobody looks at roses: after 1 layer nothing of it is left.",
  );
});

test("the warning speaks of empty rows and of row sums, each under its rule", () => {
  const mask = presetMask("causal", 5);
  mask[3] = mask[3].map(() => false);
  const sums = [1, 1, 1, 0, 1];
  assert.equal(
    plain(maskWarning(words, mask, sums, 0)),
    "to looks at nothing: all of its weights are set to 0, and so its output is zero.",
  );
  assert.match(
    plain(maskWarning(words, mask, sums, 2)),
    /^to looks at nothing, and −1e9 covers it up/,
  );
  assert.match(
    plain(maskWarning(words, presetMask("causal", 5), [0.4, 0.5, 1, 1, 1], 1)),
    /^The rows of mary and gave sum to less than 1/,
  );
  assert.equal(maskWarning(words, presetMask("causal", 5), [1, 1, 1, 1, 1], 0), null);
});

test("long lists are shortened, and a cell is read with its number", () => {
  const many = Array.from({ length: 9 }, (_, i) => `w${i}`);
  assert.equal(plain(listing(many, [0, 1, 2, 3, 4, 5, 6], "output")), "w0, w1, w2, w3 and 3 more");
  const mask = presetMask("causal", 5);
  assert.equal(
    plain(cellReading(words, mask, [[1], [0.25, 0.75]], 1, 0)),
    "gave looks at mary: 0.25.",
  );
  assert.equal(plain(cellReading(words, mask, [[1, 0]], 0, 1)), "mary may not look at gave.");
  assert.equal(
    plain(cellReading(words, mask, [[0.5, 0.5]], 0, 1)),
    "mary may not look at gave, but does so anyway: 0.50.",
  );
});
