import assert from "node:assert/strict";
import { test } from "node:test";
import {
  apart,
  chain,
  looksAt,
  looksBack,
  readersAfter,
} from "../../../transformer_lib/widgets/math/markov.js";
import { close, fixture } from "../support.js";

const library = fixture("markov");

test("the readers expect what the library's expect", () => {
  library.ids.forEach((ids, row) => {
    for (let t = 0; t < ids.length - 1; t += 1) {
      const found = readersAfter(ids.slice(0, t + 1), library.states);
      for (const [reader, expected] of Object.entries(library.expected))
        close(found[reader], expected[row][t]);
    }
  });
});

test("a chain is the same for its seed, and follows a table", () => {
  assert.deepEqual(chain(3, 50, 4), chain(3, 50, 4));
  assert.notDeepEqual(chain(3, 50, 4), chain(3, 50, 5));
  const ids = chain(3, 30000, 7);
  assert.deepEqual([...new Set(ids)].sort(), [0, 1, 2]);
  // What follows a state has the same chances in the first half as in the second.
  const after = (half) => {
    const counts = [1e-9, 1e-9, 1e-9];
    for (let t = 1; t < half.length; t += 1) if (half[t - 1] === 0) counts[half[t]] += 1;
    const total = counts.reduce((sum, count) => sum + count);
    return counts.map((count) => count / total);
  };
  assert.ok(apart(after(ids.slice(0, 15000)), after(ids.slice(15000))) < 0.03);
});

test("maps that only look where they should have shares of 1", () => {
  const ids = [0, 1, 0, 1, 0];
  const back = ids.map((_, t) => ids.map((__, s) => Number(s === t - 1)));
  assert.equal(looksBack(back), 1);
  // What came after the same state: for place 2 at 1, for 3 at 2, for 4 at 1 and 3.
  const match = ids.map((_, t) => ids.map((__, s) => Number(t > 2 && s === t - 1)));
  close(looksAt(match, ids), (0 + 1 + 1) / 3);
  assert.equal(looksAt([[1]], [0]), 0);
  assert.equal(apart([1, 0], [0, 1]), 1);
  assert.equal(apart([0.5, 0.5], [0.5, 0.5]), 0);
});
