import assert from "node:assert/strict";
import { test } from "node:test";
import { uniform } from "../../transformer_lib/widgets/core/random.js";
import { textTrainer } from "../../transformer_lib/widgets/math/training/text.js";
import {
  compare,
  encode,
  levels,
  RARE,
  readText,
} from "../../transformer_lib/widgets/train_text/corpus.js";
import { history, isPast, training } from "../../transformer_lib/widgets/train_text/run.js";
import worker from "../../transformer_lib/widgets/train_text/worker.js";
import { heads, modelOf, write } from "../../transformer_lib/widgets/train_text/writer.js";
import { close, fakeModel, fakeWorkers } from "./support.js";

const LIMITS = { least: 20, most: 500, alphabet: 8, judged: 30 };

test("a browser that knows no toWellFormed reads texts, too", (t) => {
  const known = String.prototype.toWellFormed;
  t.after(() => Object.assign(String.prototype, { toWellFormed: known }));
  String.prototype.toWellFormed = undefined;
  assert.equal(readText("to be or not to be", { ...LIMITS, least: 5 }).characters, 18);
});

for (const [what, text, problem] of [
  ["empty", "", /There is no text yet/],
  ["blanks", " \n\t ".repeat(30), /There is no text yet/],
  ["one character", "aa a\n".repeat(30), /one single character/],
  ["short", "to be or not", /has 12 characters\. Below 20/],
  ["null bytes", "to be or not to be\0".repeat(3), /null bytes, so it is not plain text/],
  ["long", "to be ".repeat(100), /more than the 500 characters/],
  ["far too long", "to be ".repeat(1e6), /more than the 500 characters/],
  ["emoji, and long", "😀🌹".repeat(300), /more than the 500 characters/],
]) {
  test(`a text that is ${what} is refused with a sentence`, () => {
    assert.match(readText(text, LIMITS).problem, problem);
  });
}

test("a text as characters, a tenth of it held out", () => {
  const raw = "\ufeffRose\u0301 👍\r\nyes\u0007\rno\ud800\t".repeat(5);
  const { text, alphabet, training, heldOut, characters, different, rare } = readText(raw, {
    ...LIMITS,
    alphabet: 50,
  });
  assert.equal(text, "Ros\u00e9 👍\nyes\nno\ufffd\t".repeat(5));
  assert.equal(characters, 5 * 15);
  assert.equal(different, new Set(text).size);
  assert.equal(rare, 0);
  const back = [...training, ...heldOut].map((id) => alphabet[id]).join("");
  assert.equal(back, text);
  assert.equal(heldOut.length, 8);
});

test("the rarest characters of a large alphabet are one sign", () => {
  const raw = `${"aabbccddeeffgg".repeat(4)}xyzw`;
  const { alphabet, training, heldOut, different, rare } = readText(raw, LIMITS);
  assert.equal(different, 11);
  assert.deepEqual(alphabet, [..."abcdefg", RARE]);
  assert.equal(rare, 4);
  const all = [...training, ...heldOut];
  assert.deepEqual(all.slice(-4), Array(4).fill(alphabet.indexOf(RARE)));
});

test("what a reader writes, and a character that the text lacks", () => {
  const alphabet = ["a", "é", "👍"];
  assert.deepEqual(encode("ae\u0301👍", alphabet), { ids: [0, 1, 2] });
  assert.deepEqual(encode("ab", alphabet), { stranger: "b" });
});

test("the lines of readers who count, by hand", () => {
  const alphabet = ["a", "b"];
  const [training, heldOut] = [Int32Array.of(0, 1, 0, 1, 1), Int32Array.of(0, 1, 1)];
  const found = levels({ alphabet, training, heldOut });
  close(found.chance, Math.log(2));
  close(found.unigram, -Math.log(4 / 7)); // b: 3 of 5, and once more
  // After a, b: 2 of 2, and once more; after b, b: 1 of 2, and once more.
  close(found.bigram, -(Math.log(3 / 4) + Math.log(2 / 4)) / 2);
});

test("what a model has written, beside the text", () => {
  const text = "Mary gave roses to Susan. Susan's roses.";
  const alphabet = [...new Set(text)];
  const training = Int32Array.from([...text].slice(0, 24), (letter) => alphabet.indexOf(letter));
  const found = compare("mary gave thorns to ros", { text, training, alphabet });
  assert.deepEqual(found, { words: 4, known: 3, copied: 9 }); // "ary gave "
});

test("a run is past its best when held-out text was long better", () => {
  const log = history({ step: 0, unseen: 4 });
  const add = (count, loss, unseen) =>
    log.add({
      losses: Array(count).fill(loss),
      moment: { step: log.last + count, unseen },
      ms: 500,
    });
  assert.ok(Number.isNaN(log.loss(0)));
  add(100, 3, 2.5);
  add(100, 2, 2);
  close(log.loss(200), 2);
  close(log.loss(110), 2.5);
  assert.equal(log.seconds, 1);
  assert.equal(log.momentAt(199).step, 100);
  assert.equal(log.momentAt(Number.POSITIVE_INFINITY).step, 200);
  add(50, 1, 2.3);
  assert.equal(isPast(log), false); // it may be a bad moment
  add(60, 1, 2.05);
  assert.equal(isPast(log), false); // hardly worse
  add(10, 1, 2.2);
  assert.equal(isPast(log), true);
  assert.equal(log.best().step, 200);
  assert.equal(log.best(150).step, 100);
  assert.equal(log.towards(101, 100), 200);
  assert.equal(log.towards(199, 200), 100);
});

test("a run that is started again while it pauses goes on", async (t) => {
  let paused = null;
  const pass = fakeWorkers(t, {
    begin: () => ({ first: { step: 0, unseen: 2 } }),
    advance: () => ({ losses: [1], moment: null, ms: 40 }),
    pause: () =>
      new Promise((resolve) => {
        paused = resolve;
      }),
  });
  const nothing = () => {};
  const hooks = { settings: () => ({}), begun: nothing, gone: nothing, changed: nothing };
  const run = training(fakeModel({ _worker: "" }), hooks);
  run.fresh();
  await pass();
  await pass();
  run.go();
  await pass();
  run.stop();
  await pass();
  run.go();
  paused({ step: run.log.last, unseen: 1 });
  await pass();
  assert.ok(run.isRunning);
  assert.equal(run.log.moments.length, 2);
});

/** A trainer that has made a few steps on a round of letters. */
function trained(steps, more = {}) {
  const sizes = { tokens: 12, batch: 4, width: 16, layers: 2, heads: 2, hidden: 24, ...more };
  const alphabet = [..."abcde"];
  const ids = Int32Array.from({ length: 300 }, (_, i) => i % 5);
  const options = { training: ids, heldOut: ids.slice(0, 40), vocabulary: 5, seed: 2 };
  const run = textTrainer({ ...sizes, ...options, optimizer: "adam", rate: 0.01 });
  for (let i = 0; i < steps; i += 1) run.learn();
  return { run, model: modelOf({ sizes, alphabet, weights: run.model.parameters }), sizes };
}

for (const reach of [0, 2]) {
  test(`the writer is the model that has learned: its chances and its heads, smear ${reach}`, () => {
    const { run, model, sizes } = trained(20, { reach });
    run.unseen(); // what it has read last
    const ids = Array.from(run.model.ids.subarray(0, sizes.tokens));
    const { logits } = model.start().read(ids);
    const chances = logits.flatMap((row) => {
      const powers = Array.from(row, Math.exp);
      const sum = powers.reduce((total, power) => total + power, 0);
      return powers.map((power) => power / sum);
    });
    close(chances, Array.from(run.model.probabilities.subarray(0, chances.length)), 1e-5);
    const square = sizes.tokens ** 2;
    heads(model, ids).forEach((layer, l) => {
      const theirs = run.model.attention[l].subarray(0, sizes.heads * square);
      close(
        layer.flatMap((map) => Array.from(map)),
        Array.from(theirs),
        1e-5,
      );
    });
  });
}

test("it writes what it has learned, beyond its context, the same for the same seed", () => {
  const { model } = trained(80);
  const round = (from, count) => Array.from({ length: count }, (_, i) => (from + i) % 5);
  const options = { count: 60, temperature: 0.5, seed: 3 };
  assert.deepEqual(write(model, [0, 1], options), round(2, 60));
  const long = round(1, 40); // longer than its context
  assert.deepEqual(write(model, long, { ...options, temperature: 0 }), round(1, 60));
});

test("the worker: a run from a text to what is written at each of its moments", () => {
  const draw = uniform(5);
  const names = ["mary", "john", "susan"];
  const name = () => names[Math.floor(3 * draw())];
  const text = Array.from({ length: 120 }, () => `${name()} gave roses to ${name()}.\n`).join("");
  const sizes = { tokens: 24, batch: 8, width: 16, layers: 1, heads: 2, hidden: 32 };
  const options = { optimizer: "muon", rate: 0.02, seed: 1, passage: 10 };
  const limits = { least: 100, most: 1e4, alphabet: 100, judged: 200 };
  assert.match(worker.begin({ text: "", limits, ...sizes, ...options }).problem, /no text yet/);
  const told = worker.begin({ text, limits, ...sizes, ...options });
  close(told.first.unseen, told.levels.chance, 1e-4);
  assert.ok(told.isFast);
  assert.equal(told.passage.length, 10);
  const ask = { prompt: "mary gave", temperature: 0.5, count: 80, seed: 1 };
  const noise = worker.complete({ step: 0, ...ask });
  assert.equal([...noise.text].length, 80);
  assert.deepEqual(worker.complete({ step: 0, ...ask, prompt: "zebra" }), { stranger: "z" });
  const moments = [];
  while (moments.length < 20) {
    const { losses, moment } = worker.advance({ ms: 1e6 });
    assert.ok(losses.length > 0);
    moments.push(moment);
  }
  assert.ok(moments.every(({ step }, i) => i === 0 || step > moments[i - 1].step));
  const { unseen, step } = moments.at(-1);
  assert.ok(unseen < told.levels.bigram && unseen < moments[0].unseen);
  const late = worker.complete({ step, ...ask });
  assert.ok(late.known / late.words > 0.8, late.text);
  assert.deepEqual(worker.complete({ step: 0, ...ask }), noise, "a moment's weights are kept");
  assert.equal(worker.advance({ ms: 0, most: 1 }).moment, null);
  assert.equal(worker.pause().step, step + 1);
  assert.equal(worker.pause(), null);
});
