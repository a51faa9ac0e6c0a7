import assert from "node:assert/strict";
import { test } from "node:test";

import {
  contributions,
  operandsOf,
  readArrays,
  runHeads,
  STEPS,
  stageOf,
  termsOf,
} from "../../transformer_lib/widgets/step_scrubber/model.js";
import { cellNumber } from "../../transformer_lib/widgets/step_scrubber/operand.js";
import { readingOf, verdictOf } from "../../transformer_lib/widgets/step_scrubber/reading.js";
import { close, fixture } from "./support.js";

const { cases } = fixture("step_scrubber");
const loaded = cases.map(({ shape, flat, runs }) => ({
  shape,
  runs,
  arrays: readArrays(Float64Array.from(flat), shape),
}));
const textOf = (parts) =>
  parts
    .map((part) => (typeof part === "string" ? part : (part.text ?? `^${part.sup.text}`)))
    .join("");

test("every stage of every head is the library's, in every setting", () => {
  let compared = 0;
  for (const { arrays, runs } of loaded) {
    assert.equal(runs.length, 16);
    for (const { settings, ...stages } of runs) {
      const run = runHeads(arrays, settings);
      for (const [name, numbers] of Object.entries(stages)) close(run[name], numbers, 1e-6, name);
      compared += Object.keys(stages).length;
    }
  }
  assert.equal(compared, 2 * 16 * 9);
});

test("what a step shows is what its operands give", () => {
  for (const { arrays, runs } of loaded) {
    for (const { settings, q, weights, output } of runs) {
      const run = runHeads(arrays, settings);
      const head = settings.heads - 1;
      close(stageOf(0, run, head).result, q[head]);
      close(stageOf(6, run, head).result, weights[head]);
      close(stageOf(9, run, head).result, output);
      for (let step = 0; step < STEPS.length; step += 1) {
        const { kind, left, top, result } = stageOf(step, run, head);
        const from = operandsOf(step, run, head, 1, 0);
        if (kind !== "product") continue;
        assert.deepEqual(from, { left: [1, 0, 1, top.length], top: [0, 0, top.length, 1] });
        const sum = left[1].reduce((total, value, c) => total + value * top[c][0], 0);
        const bias = step <= 2 || step === 9 ? result[1][0] - sum : 0;
        close(result[1][0], sum + bias);
        assert.equal(result.length, left.length);
        assert.equal(result[0].length, top[0].length);
      }
    }
  }
});

test("the causal mask hides the future, and only that", () => {
  const { arrays } = loaded[0];
  const run = runHeads(arrays, { heads: 3, causal: true });
  const { result, open } = stageOf(5, run, 1);
  result.forEach((row, i) =>
    row.forEach((value, j) => {
      assert.equal(value === -Infinity, j > i);
      assert.equal(open[i][j], j <= i);
    }),
  );
  assert.equal(textOf(termsOf(5, run, 1, 1, 4)).endsWith(" becomes −∞"), true);
  assert.equal(textOf(termsOf(6, run, 1, 1, 4)), "e^−∞ = 0 = 0.0000");
});

// mary gave, by hand: two components, two heads of width 1, W_Q = W_K = W_V = W_O = identity.
const eye = [1, 0, 0, 1];
const none = [0, 0];
const small = readArrays(
  Float64Array.from([
    2,
    1,
    0,
    3,
    0,
    0,
    0,
    0,
    ...eye,
    ...none,
    ...eye,
    ...none,
    ...eye,
    ...none,
    ...eye,
    ...none,
  ]),
  [2, 2, 2, 1],
);

test("by hand: scores, softmax and output of two words in two heads", () => {
  const run = runHeads(small, { heads: 2 });
  close(
    run.raw,
    [
      [
        [4, 0],
        [0, 0],
      ],
      [
        [1, 3],
        [3, 9],
      ],
    ],
    1e-12,
  );
  const e = Math.exp(4);
  close(
    run.weights[0],
    [
      [e / (e + 1), 1 / (e + 1)],
      [0.5, 0.5],
    ],
    1e-12,
  );
  close(
    run.output[1],
    [1, (Math.exp(3) * 1 + Math.exp(9) * 3) / (Math.exp(3) + Math.exp(9))],
    1e-12,
  );
  const one = runHeads(small, { heads: 1 });
  close(
    one.raw,
    [
      [
        [5, 3],
        [3, 9],
      ],
    ],
    1e-12,
  ); // the heads' scores, added
  close(contributions(run, 1, 0), [1, 0], 1e-12);
});

test("the arithmetic is written out, longest sums shortened", () => {
  const run = runHeads(small, { heads: 1 });
  assert.equal(textOf(termsOf(3, run, 0, 0, 1)), "2.00 · 0.00 + 1.00 · 3.00 = 3.00");
  assert.equal(textOf(termsOf(4, run, 0, 0, 1)), "3.00 / √2 = 2.12");
  assert.equal(textOf(termsOf(6, run, 0, 0, 0)), "e^3.54 / (e^3.54 + e^2.12) = 0.8044");
  assert.equal(textOf(termsOf(8, runHeads(small, { heads: 2 }), 0, 1, 0)), "1.00 is copied = 1.00");
  const { arrays } = loaded[0];
  const long = textOf(termsOf(9, runHeads(arrays, { heads: 3 }), 0, 0, 0));
  assert.match(long, /^(−?[\d.]+ · −?[\d.]+ \+ ){5}16 smaller terms \+ bias −?[\d.]+ = −?[\d.]+$/);
});

test("a cell has room for three digits", () => {
  assert.deepEqual([16, -11.314, 9.99, 250].map(cellNumber), ["16.0", "−11.3", "9.99", "250"]);
});

test("readings name who asks, who is asked and what the mask hides", () => {
  const run = runHeads(small, { heads: 2, causal: true });
  const say = (step, row, column, columns = ["0", "1"]) =>
    textOf(readingOf({ step, run, head: 0, row, column, words: ["mary", "gave"], columns }));
  assert.equal(
    say(3, 1, 0),
    "gave scores mary in head 0: 0.00, the same as every other word: this query asks nothing.",
  );
  assert.equal(say(3, 0, 1), "mary scores gave in head 0: 0.00 (its largest score is 4.00).");
  assert.equal(say(5, 0, 1), "mary may not see gave, which comes later: the score becomes −∞.");
  assert.equal(say(6, 0, 1), "mary puts nothing on gave: the mask hides it.");
  assert.equal(say(6, 1, 0), "gave puts 50.0 % of its attention in head 0 on mary.");
  assert.equal(
    say(7, 1, 0),
    "gave receives 1.00 in component 0 in head 0, most of it from mary: 1.00.",
  );
  assert.equal(
    say(8, 1, 1),
    "gave keeps what the heads found side by side: component 1 comes from head 1.",
  );
  assert.equal(
    say(9, 1, 0, ["giver", "receiver"]),
    "gave takes home 1.00 in giver: head 0 adds 1.00, head 1 adds 0.00.",
  );
});

test("rounding does not tell two orders apart", () => {
  assert.match(verdictOf([1, 2], [1 + 1e-9, 2]), /the same vector/);
  assert.match(verdictOf([1, 2], [1.001, 2]), /two different vectors/);
});
