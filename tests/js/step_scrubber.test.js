import assert from "node:assert/strict";
import { test } from "node:test";

import { cellNumber } from "../../transformer_lib/widgets/step_scrubber/matrix.js";
import {
  contributions,
  matrixOf,
  operandsOf,
  readArrays,
  resultOf,
  runHeads,
  STEPS,
  sourcesOf,
  stageOf,
  stepOf,
  termsOf,
} from "../../transformer_lib/widgets/step_scrubber/model.js";
import { equationOf, nameOf, plain } from "../../transformer_lib/widgets/step_scrubber/names.js";
import { planPaper, planStrip } from "../../transformer_lib/widgets/step_scrubber/plan.js";
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
      STEPS.forEach((_, step) => {
        const { kind, left, top, result } = stageOf(step, run, head);
        assert.deepEqual(matrixOf(resultOf(step, head), run, head), result);
        if (kind !== "product") return;
        const sum = left[1].reduce((total, value, c) => total + value * top[c][0], 0);
        const bias = step <= 2 || step === 9 ? result[1][0] - sum : 0;
        close(result[1][0], sum + bias);
        assert.equal(result.length, left.length);
        assert.equal(result[0].length, top[0].length);
      });
    }
  }
});

test("the operands that are lit are the numbers that the entry was made of", () => {
  const { arrays } = loaded[0];
  const run = runHeads(arrays, { heads: 3, causal: true });
  const [i, j, head] = [3, 2, 1];
  const cut = ([id, [row, column, rows, columns]]) =>
    matrixOf(id, run, head)
      .slice(row, row + rows)
      .flatMap((line) => line.slice(column, column + columns));
  const dot = (a, b) => a.reduce((sum, value, c) => sum + value * b[c], 0);
  STEPS.forEach((_, step) => {
    const operands = operandsOf(step, run, head, i, j);
    const value = stageOf(step, run, head).result[i][j];
    const from = operands.map(cut);
    const bias = step <= 2 ? run.layers[step].bias[head * 7 + j] : run.layers[3].bias[j];
    const made = {
      4: () => from[0][0] / Math.sqrt(7),
      5: () => (from[1][0] ? from[0][0] : -Infinity),
      6: () => Math.exp(from[0][j]) / from[0].reduce((sum, one) => sum + Math.exp(one), 0),
      8: () => from[0][0],
    }[step];
    close(value, made?.() ?? dot(...from) + (step <= 2 || step === 9 ? bias : 0), 1e-9);
    const known = sourcesOf(step, run.heads);
    assert.ok(operands.every(([id]) => known.includes(id)));
    assert.equal(stepOf(resultOf(step, head)), step);
  });
  // Not a column of the transposed keys, but a row of the keys.
  assert.deepEqual(operandsOf(3, run, head, i, j)[1], ["k", [j, 0, 1, 7]]);
  assert.equal(operandsOf(8, run, head, 0, 15)[0][0], "z2");
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

test("a cell has room for three digits, a narrow one for fewer", () => {
  const shown = (fits) =>
    [16, -11.314, 9.99, 250, 0.5, -0.25].map((value) => cellNumber(value, fits));
  assert.deepEqual(shown(), ["16.0", "−11.3", "9.99", "250", "0.50", "−0.25"]);
  const short = shown((text) => text.length <= 3);
  assert.deepEqual(short, ["16", "−11", "10", "250", ".50", "−.3"]);
});

// The sizes of chapter 5, and of a larger model.
const TEXTS = {
  words: 37,
  features: 44,
  outputs: 66,
  name: (id, large) => (large ? 60 : 6 * id.length),
};
const SIZES = { tokens: 5, dModel: 6, dHead: 3, heads: 2 };
const planAt = (step, more = {}) =>
  planStrip({ step, head: 0, sizes: SIZES, texts: TEXTS, room: 648, ...more });
const boxOf = ({ x, y, rows, columns, cell: [wide, tall], labels, header }) => ({
  left: x - labels,
  top: y - header,
  right: x + columns * wide,
  bottom: y + rows * tall,
});

test("the strip grows: what is in it stays, and the result is large and last", () => {
  const larger = { tokens: 12, dModel: 24, dHead: 3, heads: 8 };
  for (const sizes of [SIZES, larger, { ...SIZES, dHead: 6, heads: 1 }]) {
    let before = new Set();
    STEPS.forEach((_, step) => {
      const { places, width, height } = planAt(step, { sizes });
      const ids = new Set(places.map(({ id }) => id));
      assert.equal(ids.size, places.length);
      for (const id of before) assert.ok(ids.has(id), `step ${step} lacks ${id}`);
      before = ids;
      const large = places.filter((place) => place.large).map(({ id }) => id);
      const needed = [...sourcesOf(step, sizes.heads), resultOf(step, 0)];
      if (step !== 8 || sizes.heads < 3) assert.deepEqual(new Set(large), new Set(needed));
      const rightmost = places.filter((place) => place.large).map((place) => boxOf(place).right);
      const result = places.find(({ id }) => id === resultOf(step, 0));
      assert.equal(boxOf(result).right, Math.max(...rightmost), `step ${step}`);
      for (const place of places) {
        const { left, top, right, bottom } = boxOf(place);
        assert.ok(left >= 0 && top >= 0 && right <= width && bottom <= height, place.id);
      }
    });
    assert.equal(before.size, 15 + sizes.heads);
  }
});

test("no matrix lies on another, nor does a name", () => {
  for (const plan of [...STEPS.map((_, step) => planAt(step)), paper()]) {
    plan.places.forEach((one, n) => {
      const a = boxOf(one);
      for (const other of plan.places.slice(n + 1)) {
        const b = boxOf(other);
        const apart =
          a.right <= b.left || b.right <= a.left || a.bottom + 9 <= b.top || b.bottom + 9 <= a.top;
        assert.ok(apart, `${one.id} and ${other.id}`);
      }
    });
  }
});

test("nothing jumps: every step is as high, and chapter 5's strip fits the page", () => {
  for (const room of [648, 300]) {
    const heights = new Set(STEPS.map((_, step) => planAt(step, { room }).height));
    assert.equal(heights.size, 1);
  }
  STEPS.forEach((_, step) => assert.ok(planAt(step).width <= 648, `step ${step}`));
});

test("rows that belong together are at one height", () => {
  const middle = (place) => place.y + (place.rows * place.cell[1]) / 2;
  for (const [step, ids] of [
    [0, ["x", "q"]],
    [7, ["weights", "z0"]],
    [9, ["concat", "y"]],
  ]) {
    const { places } = planAt(step);
    const [one, other] = ids.map((id) => places.find((place) => place.id === id));
    assert.ok(Math.abs(middle(one) - middle(other)) <= 1, ids.join());
    assert.equal(one.cell[1], other.cell[1]);
  }
});

function paper() {
  return planPaper({ sizes: SIZES, texts: TEXTS, room: 694 });
}

test("on paper every matrix is there once, and large", () => {
  const { places, width } = paper();
  assert.equal(new Set(places.map(({ id }) => id)).size, 17);
  assert.equal(places.length, 17);
  assert.ok(places.every(({ numbered }) => numbered));
  assert.ok(width <= 694);
});

test("names say the head where there are several", () => {
  const two = { head: 1, heads: 2, root: 3 };
  const one = { head: 0, heads: 1, root: 6 };
  assert.equal(plain(equationOf(0, two)), "Q2 = X WQ(2)");
  assert.equal(plain(equationOf(3, two)), "scores = Q2 K2T");
  assert.equal(plain(equationOf(3, one)), "scores = Q KT");
  assert.equal(plain(nameOf("z0", two)), "Z1");
  assert.equal(plain(nameOf("W_O", two)), "WO");
  assert.equal(plain(nameOf("scaled", one)), "÷ √6");
});

test("readings name who asks, who is asked and what the mask hides", () => {
  const run = runHeads(small, { heads: 2, causal: true });
  const say = (step, row, column, columns = ["0", "1"]) =>
    textOf(readingOf({ step, run, head: 0, row, column, words: ["mary", "gave"], columns }));
  assert.equal(
    say(3, 1, 0),
    "The score of gave for mary in head 1 is 0.00, the same as for every other word: this query asks nothing.",
  );
  assert.equal(
    say(3, 0, 1),
    "The score of mary for gave in head 1 is 0.00 (the largest in its row is 4.00).",
  );
  assert.equal(say(5, 0, 1), "mary may not see gave, which comes later: the score becomes −∞.");
  assert.equal(say(6, 0, 1), "mary puts nothing on gave: the mask hides it.");
  assert.equal(say(6, 1, 0), "gave puts 50.0 % of its attention in head 1 on mary.");
  assert.equal(
    say(7, 1, 0),
    "gave receives 1.00 in component 0 in head 1, the largest part from mary: 1.00.",
  );
  assert.equal(
    say(8, 1, 1),
    "gave keeps what the heads found side by side: component 1 comes from head 2.",
  );
  assert.equal(
    say(9, 1, 0, ["giver", "receiver"]),
    "gave takes home 1.00 in giver: head 1 adds 1.00, head 2 adds 0.00.",
  );
});

test("a reading counts the bias, and a query asks though all keys are equal", () => {
  const layers = small.layers.map((layer, i) =>
    i === 3 ? { ...layer, bias: [0.5, 0, 0, 0] } : layer,
  );
  const x = [small.x[1], small.x[1]];
  const run = runHeads({ ...small, x, layers }, { heads: 2, causal: true });
  const say = (step, column) =>
    textOf(readingOf({ step, run, head: 0, row: 1, column, words: ["a", "b"], columns: ["c"] }));
  assert.match(say(9, 0), /, the bias adds 0\.50\.$/);
  run.q[0][1] = [1, 0];
  assert.match(say(3, 0), /the same as for every other word\.$/);
});

test("rounding does not tell two orders apart", () => {
  assert.match(verdictOf([1, 2], [1 + 1e-9, 2]), /the same vector/);
  assert.match(verdictOf([1, 2], [1.001, 2]), /two different vectors/);
});
