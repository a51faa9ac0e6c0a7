import assert from "node:assert/strict";
import { test } from "node:test";

import {
  answerOf,
  isRight,
  parseNumber,
  sentenceFor,
  tolerance,
  wordsOf,
} from "../../transformer_lib/widgets/predict/model.js";

const number = {
  kind: "number",
  right: 64,
  within: 8,
  unit: "",
  ranges: [
    [null, 10, "low"],
    [10, 20, "hm"],
    [4000, null, "high"],
  ],
  otherwise: "other",
};
const options = {
  kind: "options",
  right: 1,
  options: [
    { text: "*a*", sentence: "no" },
    { text: "b", sentence: "yes" },
  ],
};
const cell = {
  kind: "cell",
  rows: ["x", "y"],
  columns: ["u", "v"],
  right: [1, 0],
  wrong: [[0, 0, "corner"]],
  otherwise: "other",
};

test("numbers are read as people type them", () => {
  for (const [text, value] of [
    ["64", 64],
    [" 64. ", 64],
    ["0.5", 0.5],
    [".5", 0.5],
    ["0,5", 0.5],
    ["0,125", 0.125],
    ["12,345", 12345],
    ["1,234,567.5", 1234567.5],
    ["−3", -3],
    ["–3", -3],
    ["+1e-3", 0.001],
    ["1E6", 1e6],
    ["1/8", 0.125],
    ["-1 / 4", -0.25],
    ["40 %", 40],
    ["40%", 40],
  ]) {
    assert.equal(parseNumber(text, "%"), value, text);
  }
  for (const text of [
    "",
    " ",
    "many",
    "1/0",
    "1/2/3",
    "0x10",
    "1 2",
    "NaN",
    "Infinity",
    "1e999",
    "%",
    "1,2,3",
  ]) {
    assert.equal(parseNumber(text, "%"), null, text);
  }
});

test("a number is right within its tolerance, edges included", () => {
  for (const [guess, right] of [
    [56, true],
    [72, true],
    [55.9, false],
    [72.1, false],
  ]) {
    assert.equal(isRight(number, [guess]), right, String(guess));
  }
  assert.ok(isRight({ ...number, right: 0.3, within: 0.1 }, [0.2])); // 0.3 - 0.2 > 0.1 in floats
  assert.ok(isRight({ ...number, right: 0, within: 0 }, [0]));
  assert.ok(!isRight({ ...number, within: 0 }, [64.001]));
});

test("options and cells are right only as a whole", () => {
  assert.deepEqual([isRight(options, [1]), isRight(options, [0])], [true, false]);
  const found = [isRight(cell, [1, 0]), isRight(cell, [1, 1]), isRight(cell, [0, 0])];
  assert.deepEqual(found, [true, false, false]);
});

test("each guess has its sentence", () => {
  const said = [-1e9, 10, 15, 30, 5000].map((guess) => sentenceFor(number, [guess]));
  assert.deepEqual(said, ["low", "low", "hm", "other", "high"]);
  assert.equal(sentenceFor(number, [60]), "");
  assert.deepEqual([sentenceFor(options, [0]), sentenceFor(options, [1])], ["no", "yes"]);
  assert.equal(sentenceFor(cell, [0, 0]), "corner");
  assert.equal(sentenceFor(cell, [0, 1]), "other");
  assert.equal(sentenceFor(cell, [1, 0]), "");
});

test("guesses and answers in words", () => {
  assert.equal(wordsOf(options, answerOf(options)), "b");
  assert.equal(wordsOf(cell, answerOf(cell)), "y, u");
  assert.equal(wordsOf({ ...number, unit: "nats" }, [12345]), "12,345 nats");
  assert.equal(wordsOf(number, [1 / 3]), "0.3333");
  assert.equal(tolerance(number), "within 8 counts as right");
  assert.equal(tolerance({ ...number, within: 0 }), "");
  assert.equal(tolerance(cell), "");
});
