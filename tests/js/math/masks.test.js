import assert from "node:assert/strict";
import { test } from "node:test";
import {
  andMasks,
  carriers,
  emptyRows,
  maskedAttention,
  PRESETS,
  presetMask,
  reach,
  recognize,
} from "../../../transformer_lib/widgets/math/masks.js";
import { close, fixture } from "../support.js";

const library = fixture("masks");
const sizes = Object.assign({}, ...library.presets.map(([, given]) => given));

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

test("a drawn mask is not a preset; of two presets that look alike, the preferred one is named", () => {
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
