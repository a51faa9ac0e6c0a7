import assert from "node:assert/strict";
import { test } from "node:test";

import {
  crossing,
  derive,
  isDense,
  lastNumber,
  nearest,
  textAt,
  trailingMean,
  windowAt,
} from "../../transformer_lib/widgets/training_view/model.js";
import {
  limitsOf,
  lossAxis,
  stepAxis,
} from "../../transformer_lib/widgets/training_view/scales.js";
import { close, fixture } from "./support.js";

test("the smoothed loss is the mean of the last rows, gaps left out", () => {
  for (const { values, window, means } of fixture("training_view").cases) {
    const found = trailingMean(values, window);
    assert.deepEqual(
      found.map((mean) => mean === null),
      means.map((mean) => mean === null),
    );
    close(
      found.map((mean) => mean ?? 0),
      means.map((mean) => mean ?? 0),
    );
  }
  assert.deepEqual(trailingMean([3, null, 1], 1), [3, null, 1]);
  assert.deepEqual(
    [0, 7, 15, 39, 400].map((row) => windowAt(row, 10)),
    [1, 2, 4, 10, 10],
  );
});

test("the text that is shown is the newest up to the step", () => {
  const texts = [
    [0, "xq"],
    [50, "the"],
  ];
  assert.deepEqual(
    [0, 49, 50, 900].map((step) => textAt(texts, step)[1]),
    ["xq", "xq", "the", "the"],
  );
  assert.equal(textAt(texts.slice(1), 49), null);
  assert.equal(textAt([], 3), null);
});

test("what was passed, and when: by the smoothed loss, not by one lucky batch", () => {
  const loss = [3, 3, 3, 3, 3, 3, 3, 0.5, 3, 1, 1, 1, 1, 1, 1, 1];
  const curve = {
    names: ["step", "loss"],
    columns: [loss.map((_, i) => 10 * i), loss],
    loss: "loss",
  };
  const text = {
    baselines: [
      ["chance", 3.1],
      ["bigram", 1.2],
      ["never", 0.4],
    ],
    floor: 0.3,
  };
  const at = (smoothing) =>
    Object.fromEntries(derive(curve, text, smoothing).passed.map((line) => [line.name, line.at]));
  assert.deepEqual(at(1), { never: -1, bigram: 7, chance: 0 });
  assert.deepEqual(at(3), { never: -1, bigram: 10, chance: 0 });
  assert.deepEqual(
    derive(curve, text, 1).passed.map(({ name }) => name),
    ["never", "bigram", "chance"],
  );
  assert.equal(crossing([2, null, 1], 1.5, 1), -1);
});

test("gaps, and the nearest row", () => {
  assert.deepEqual(lastNumber([1, null, 3, null], 3), [2, 3]);
  assert.equal(lastNumber([null, null], 1), null);
  assert.deepEqual(
    [-5, 14, 16, 30, 99].map((step) => nearest([10, 20, 30], step)),
    [0, 0, 1, 2, 2],
  );
  assert.equal(nearest([7], 100), 0);
  assert.equal(nearest([], 3), 0);
});

test("another run's losses are smoothed, what was measured now and then is not", () => {
  const [often, seldom] = [
    [4, 2, 2, 2, 4, 4, 4, 2, null],
    [null, null, 3, null, null, 2, null, null, 1],
  ];
  assert.deepEqual([often, seldom, [null], [3, null]].map(isDense), [true, false, false, false]);
  const columns = [often.map((_, i) => i), often.map(() => 1), often, seldom];
  const curve = { names: ["step", "loss", "other loss", "validation loss"], columns, loss: "loss" };
  const { besides } = derive(curve, { baselines: [], floor: null }, 2);
  assert.deepEqual(
    besides.map(({ smooth }) => smooth),
    [[4, 2, 2, 2, 4, 4, 4, 3, null], seldom],
  );
});

test("the axes hold every loss, baseline and the floor, and room for its name", () => {
  const loss = [3, 2, 1, 0.5];
  const curve = { names: ["step", "loss"], columns: [[1, 10, 100, 1000], loss], loss: "loss" };
  const run = derive(curve, { baselines: [["chance", 3.1]], floor: 0.3 }, 1);
  const box = { top: 10, bottom: 210 };
  const y = lossAxis(run, { smoothed: false, aboveFloor: false }, box, 0);
  for (const level of [...loss, 3.1, 0.3]) assert.ok(y.of(level) > 20 && y.of(level) < 200);
  assert.ok(y.of(0.3) > y.of(0.5), "upside down");
  const above = lossAxis(run, { smoothed: false, aboveFloor: true }, box, 0.3);
  assert.ok(Number.isNaN(above.of(0.2)) && above.of(0.5) < 210);
  const x = stepAxis(run, { logSteps: true, nSteps: 2000 }, { left: 40, right: 640 });
  assert.deepEqual([x.of(1), Math.round(x.of(2000))], [40, 640]);
  assert.ok(Math.abs(x.back(x.of(100)) - 100) < 1e-9);
  assert.deepEqual(limitsOf([null, 3, NaN, 1]), [1, 3]);
  assert.deepEqual(limitsOf([null]), [0, 1]);
});
