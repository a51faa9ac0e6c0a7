import assert from "node:assert/strict";
import { test } from "node:test";
import {
  askAll,
  choiceOf,
  leaning,
  PARTS,
  storyOf,
  unpack,
} from "../../../transformer_lib/widgets/block_lab/model.js";
import { geluTanh, readBlock } from "../../../transformer_lib/widgets/math/block.js";
import { close, fixture } from "../support.js";

const { numbers, text, cases, gelu } = fixture("block");
const { shapes, heads, eps, ids, answers, groups } = JSON.parse(text);
const model = unpack(numbers, shapes, heads, eps);

test("GELU is PyTorch's", () => close(gelu.x.map(geluTanh), gelu.y));

test("the scores are the library's, whichever parts are on", () => {
  assert.equal(cases.length, 2 ** PARTS.length);
  for (const { on, scores } of cases)
    ids.forEach((story, i) => close(readBlock(model, story, on).scores, scores[i]));
});

test("what the parts add, adds up to the scores", () => {
  const found = readBlock(model, ids[0], cases[0].on);
  const parts = [found.start, found.attended, found.thought].map((x) => leaning(model, x));
  const bias = model.head_bias[1] - model.head_bias[0];
  close(
    parts.reduce((a, b) => a + b, bias),
    found.scores[1] - found.scores[0],
  );
});

test("all stories are counted, by their cases", () => {
  const { scores } = cases[0];
  const right = scores.map((row, i) => Number(row.indexOf(Math.max(...row)) === answers[i]));
  const asked = askAll(model, ids, answers, groups, cases[0].on);
  assert.equal(asked.right, right[0] + right[1]);
  assert.deepEqual(
    asked.cases,
    groups.map((name, i) => ({ name, right: right[i], count: 1 })),
  );
});

test("options choose a story, the last turning fastest", () => {
  const sizes = [2, 8, 6];
  assert.equal(storyOf(sizes, [1, 0, 3]), 51);
  for (const story of [0, 5, 47, 48, 95])
    assert.equal(storyOf(sizes, choiceOf(sizes, story)), story);
});
