import assert from "node:assert/strict";
import { test } from "node:test";

import {
  cellReading,
  flowReading,
  listing,
  maskWarning,
} from "../../transformer_lib/widgets/mask_painter/reading.js";
import {
  andMasks,
  carriers,
  emptyRows,
  maskedAttention,
  PRESETS,
  presetMask,
  reach,
  recognize,
} from "../../transformer_lib/widgets/math/masks.js";
import { close, fixture } from "./support.js";

const library = fixture("masks");
const sizes = { real: 4, window: 3, block: 3 };
const words = ["mary", "gave", "roses", "to", "susan"];
const plain = (parts) => parts.map((part) => part.text ?? part).join("");

test("every preset is the library's mask, and is recognized", () => {
  assert.deepEqual(
    library.presets.map(([name]) => name),
    PRESETS.map(({ name }) => name),
  );
  for (const [name, given, mask] of library.presets) {
    assert.deepEqual(presetMask(name, 7, given), mask);
    assert.equal(recognize(mask, sizes), name);
  }
});

test("a drawn mask is no preset; of two presets that look alike, the preferred one is named", () => {
  const drawn = presetMask("causal", 5);
  drawn[0][4] = true;
  assert.equal(recognize(drawn, sizes), null);
  const whole = { ...sizes, window: 5 };
  assert.equal(recognize(presetMask("causal", 5), whole, "sliding window"), "sliding window");
  assert.equal(recognize(presetMask("causal", 5), whole), "causal");
});

for (const { name, scores, v, mask, weights, outputs, depends } of library.attention) {
  test(`weights and outputs are torch's under each rule: ${name}`, () => {
    close(maskedAttention(scores, v, mask, 0).weights, weights);
    outputs.forEach((output, rule) => close(maskedAttention(scores, v, mask, rule).output, output));
  });
  test(`what can enter an output is what its gradient depends on: ${name}`, () => {
    depends.forEach((expected, rule) => {
      assert.deepEqual(
        carriers(mask, rule).map((row) => row.map((kind) => kind > 0)),
        expected,
        `rule ${rule}`,
      );
    });
  });
}

for (const { name, mask, levels } of library.reach) {
  test(`what reaches where through four layers: ${name}`, () => {
    assert.deepEqual(reach(carriers(mask, 0), 3, 4), levels);
  });
}

test("row sums: one under -inf, less after zeroing, zero for an empty row", () => {
  const { scores, v, mask } = library.attention.find(({ name }) => name === "drawn");
  assert.deepEqual(emptyRows(mask), [2]);
  close(maskedAttention(scores, v, mask, 0).sums, [1, 1, 0, 1, 1], 1e-12);
  const zeroed = maskedAttention(scores, v, mask, 1).sums;
  assert.ok(zeroed.every((sum) => sum < 1));
  close(maskedAttention(scores, v, mask, 2).sums, [1, 1, 1, 1, 1], 1e-12);
});

test("and combines masks without writing into them", () => {
  const [a, b] = [presetMask("causal", 5), presetMask("padding", 5, { real: 2 })];
  assert.deepEqual(andMasks(a, b)[4], [true, true, false, false, false]);
  assert.deepEqual(a, presetMask("causal", 5));
});

test("the reading follows the chosen word", () => {
  const causal = carriers(presetMask("causal", 5), 0);
  assert.equal(
    plain(flowReading(words, reach(causal, 2, 1), 2)),
    "Something of roses is in roses, to and susan after 1 layer.",
  );
  assert.equal(
    plain(flowReading(words, reach(causal, 2, 3), 2)),
    "Something of roses is in roses, to and susan after 1 layer, and nowhere else after 3.",
  );
  const window = carriers(presetMask("sliding window", 5, { window: 2 }), 0);
  assert.equal(
    plain(flowReading(words, reach(window, 0, 2), 0)),
    "Something of mary is in mary and gave after 1 layer, and in mary, gave and roses after 2 layers.",
  );
});

test("the reading names a leak, and a word that nobody sees", () => {
  const leak = presetMask("causal", 5);
  leak[1][4] = true;
  assert.equal(
    plain(flowReading(words, reach(carriers(leak, 0), 4, 1), 4)),
    "Something of susan is in gave and susan after 1 layer. gave comes before it: in a model that writes word by word, that is a leak.",
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
    "to looks at nothing: the row is empty, and the output is zero.",
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
  assert.equal(plain(cellReading(words, mask, [[1]], 0, 1)), "mary may not look at gave.");
});
