import assert from "node:assert/strict";
import { test } from "node:test";
import {
  drawMany,
  kSteps,
  linesFor,
  look,
  tail,
} from "../../transformer_lib/widgets/sampling_lab/model.js";
import { close } from "./support.js";

test("top-k's slider has each number up to 20, wider steps after it, and ends with all", () => {
  assert.deepEqual(kSteps(1), [1]);
  assert.deepEqual(kSteps(5), [1, 2, 3, 4, 5]);
  const steps = kSteps(50257);
  assert.deepEqual(steps.slice(0, 22), [...Array.from({ length: 20 }, (_, i) => i + 1), 30, 40]);
  assert.equal(steps.at(-1), 50257);
  assert.ok(steps.length < 80 && steps.every((k, i) => i === 0 || k > steps[i - 1]));
});

test("what the figure shows: own and remaining probabilities, entropy, number that remain", () => {
  const found = look(Float32Array.from([0, 0, 0, 0, -60]), {
    temperature: 1,
    topK: null,
    topP: 0.99,
  });
  close(found.own, [0.25, 0.25, 0.25, 0.25, 0]);
  assert.equal(found.remain, 4);
  close(found.entropy, Math.log(4));
});

test("the lines are those that the most even context needs, 8 to 16", () => {
  const certain = [30, ...new Array(40).fill(0)];
  assert.equal(linesFor([certain, certain]), 8);
  const eleven = [...new Array(11).fill(10), ...new Array(30).fill(0)];
  assert.equal(linesFor([certain, eleven]), 12);
  assert.equal(linesFor([new Array(41).fill(0)]), 16);
});

test("each click draws other tokens, the same click the same ones", () => {
  const left = look([1, 0, 0.5], { temperature: 1, topK: null, topP: null });
  assert.deepEqual(drawMany(left, 30, 3, 1), drawMany(left, 30, 3, 1));
  assert.notDeepEqual(drawMany(left, 30, 3, 1), drawMany(left, 30, 3, 2));
  assert.notDeepEqual(drawMany(left, 30, 3, 1), drawMany(left, 30, 4, 1));
});

test("of a long context its end is shown, characters whole and line ends visible", () => {
  assert.equal(tail("mary gave", 20), "mary gave");
  assert.equal(tail("mary gave roses", 6), "…roses");
  assert.equal(tail("first . susan has books", 18), "…susan has books");
  assert.equal(tail("the end.\n", 20), "the end.↵");
  assert.equal(tail("x".repeat(10000), 5), "…xxxx");
  assert.equal(tail("ab👩‍👩‍👧‍👦c", 3), "…👩‍👩‍👧‍👦c");
});
