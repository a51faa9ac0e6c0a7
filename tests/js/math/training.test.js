import assert from "node:assert/strict";
import { test } from "node:test";
import { uniform } from "../../../transformer_lib/widgets/core/random.js";
import { PLAIN } from "../../../transformer_lib/widgets/math/training/machine.js";
import { multiply } from "../../../transformer_lib/widgets/math/training/product.js";
import { simd } from "../../../transformer_lib/widgets/math/training/simd.js";
import { TASKS } from "../../../transformer_lib/widgets/math/training/tasks.js";
import { close } from "../support.js";

// (Gradients, optimizers and runs are compared with the library's in tests/widgets/test_training_engine.py.)

test("a product of any size, of matrices and transposed ones, new or added", () => {
  const draw = uniform(3);
  for (const [n, m, k] of [
    [2, 4, 3],
    [5, 7, 2],
    [1, 3, 5],
    [6, 9, 1],
  ]) {
    const [a, b] = [n * k, k * m].map((size) => Float32Array.from({ length: size }, draw));
    const expected = Array.from({ length: n * m }, (_, at) => {
      const [i, j] = [Math.floor(at / m), at % m];
      return Array.from({ length: k }, (_, t) => a[i * k + t] * b[t * m + j]).reduce(
        (x, y) => x + y,
      );
    });
    const turned = (x, rows, columns) =>
      Float32Array.from(x, (_, at) => x[(at % rows) * columns + Math.floor(at / rows)]);
    const c = new Float32Array(n * m);
    multiply(c, m, a, k, 1, b, m, 1, n, m, k, false);
    close(Array.from(c), expected);
    multiply(c, m, turned(a, n, k), 1, n, turned(b, k, m), 1, k, n, m, k, true);
    const twice = expected.map((x) => 2 * x);
    close(Array.from(c), twice);
  }
});

test("four numbers at a time give the same, at any size, and leave what is beside them alone", () => {
  const fast = simd(2);
  assert.ok(fast.isFast);
  const draw = uniform(4);
  const filled = (machine, count, from) => {
    const made = machine.numbers(count);
    made.set(from);
    return made;
  };
  for (const [n, m, k] of [
    [4, 8, 4],
    [5, 13, 8],
    [7, 17, 12],
    [3, 3, 3],
    [9, 12, 16],
    [1, 1, 4],
    [6, 7, 5],
  ]) {
    for (const [turnedA, turnedB, add] of [0, 1, 2, 3, 4, 5, 6, 7].map((bits) =>
      [1, 2, 4].map((bit) => Boolean(bits & bit)),
    )) {
      const wide = m + 3; // a row of C is part of a wider one
      const numbers = [n * k, k * m, n * wide].map((size) =>
        Float32Array.from({ length: size }, () => draw() - 0.5),
      );
      const results = [PLAIN, fast].map((machine) => {
        const [a, b, c] = numbers.map((one) => filled(machine, one.length, one));
        const [ai, at] = turnedA ? [1, n] : [k, 1];
        const [bt, bj] = turnedB ? [1, k] : [m, 1];
        machine.multiply(c, wide, a, ai, at, b, bt, bj, n, m, k, add);
        return Array.from(c);
      });
      close(results[1], results[0], 2e-6);
    }
  }
  fast.clear();
  assert.ok(fast.numbers(1000).every((number) => number === 0));
  assert.throws(() => fast.numbers(1e6), /the model takes more than the 2 MB that it was given/);
});

/** Where the thing that is asked for was given last: who got it is named two words after it. */
function lastTime(words, ids, t) {
  const given = (s) => ids[s] === ids[t - 1] && words[ids[s - 1]] === "give";
  return 2 + ids.slice(0, t - 1).findLastIndex((_, s) => given(s));
}

/** What a reader who knows the rules, and has read the words before t, expects there. */
const READERS = {
  repeats: (ids, t) => ids[ids.indexOf(ids[t - 1]) + 1],
  pairs: (ids, t) => ids[ids.indexOf(ids[t - 1]) + 1],
  owner: (ids, t) => ids[lastTime(TASKS.owner.words, ids, t)],
  sort: (ids, t) => ids.slice(0, 8).toSorted((a, b) => a - b)[t - 8],
};

for (const [name, task] of Object.entries(TASKS)) {
  test(`${name}: what is asked can be known, and its sources hold it`, () => {
    const draw = uniform(5);
    for (let i = 0; i < 200; i += 1) {
      const { ids, known, sources } = i ? task.text(draw) : task.example(draw);
      assert.equal(ids.length, task.tokens);
      assert.ok(known.some(Boolean));
      known.forEach((asked, t) => {
        if (!asked) return;
        assert.equal(READERS[name](ids, t), ids[t]);
        assert.ok(sources[t].length > 0);
        for (const s of sources[t]) assert.ok(s < t && ids[s] === ids[t]);
      });
    }
  });
}

/** The loss of who guesses among the words that `options` gives, over many texts. */
function guessing(task, options) {
  const draw = uniform(9);
  let [sum, asked] = [0, 0];
  for (let i = 0; i < 5000; i += 1) {
    const { ids, known } = task.text(draw);
    for (let t = 0; t < ids.length; t += 1) {
      if (!known[t]) continue;
      const words = options(ids, t);
      sum -= Math.log(words.filter((word) => word === ids[t]).length / words.length);
      asked += 1;
    }
  }
  return sum / asked;
}

test("the plateaus are the losses of who knows the words, not which", () => {
  const letters = (ids, t) => [...new Set(ids)].filter((id) => id !== ids[t - 1]);
  close(guessing(TASKS.repeats, letters), TASKS.repeats.plateau, 0.01);
  const digits = (ids) => ids.slice(0, 12).filter((_, s) => s % 2 === 1);
  close(guessing(TASKS.pairs, digits), TASKS.pairs.plateau, 0.01);
  const { owner } = TASKS;
  const owners = (ids, t) => {
    const given = [...new Set(ids.filter((_, s) => s < t && s % 4 === 1 && ids[s + 1] === 1))];
    return given.map((thing) => READERS.owner([...ids.slice(0, t - 1), thing], t));
  };
  assert.equal(owner.words[1], "to");
  close(guessing(owner, owners), owner.plateau, 0.01);
});
