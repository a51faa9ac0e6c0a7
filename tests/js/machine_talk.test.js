import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { asker } from "../../transformer_lib/widgets/machine/mind.js";
import { factsOf } from "../../transformer_lib/widgets/machine/model.js";
import { lookOf, sayingOf, verdictOf } from "../../transformer_lib/widgets/machine/said.js";
import { slowly } from "../../transformer_lib/widgets/machine/writer.js";

const vocabulary = ["<story>", "mary", "susan", "roses"];
const sentence = (parts) => parts.map((part) => part.text ?? part).join("");

test("what is said of a text", () => {
  const read = { problem: null, allowed: new Map() };
  const verdict = (more, rest = { room: 3, context: 49 }) => verdictOf({ ...read, ...more }, rest);
  assert.equal(verdict({}), "");
  assert.match(verdict({ allowed: new Map([["<story>", 1]]) }), /^The story is complete/);
  assert.match(verdict({}, { room: 0, context: 49 }), /^The machine reads at most 49 words/);
  const problem = { word: "roses", wanted: ["mary", "susan"] };
  assert.match(verdict({ problem }), /^Outside .*: roses cannot .*\(possible: mary, susan\)/);
});

test("what is said of a head", () => {
  const words = ["<story>", "mary", "?"];
  const said = sentence(lookOf("block-3-head-1", [0.04, 0.93, 0.03], words, 2));
  assert.equal(said, " In block 3, head 1, ? looks most at mary, 93 %.");
});

test("what is said of an answer", () => {
  const answer = { chances: [0, 0.1, 0.7, 0.2], vocabulary, off: [], patched: false, right: null };
  const said = (more) => sentence(sayingOf({ ...answer, ...more }));
  assert.equal(said({}), "It says susan, 70 %.");
  assert.equal(said({ right: "susan" }), "It says susan, 70 %: right.");
  assert.equal(said({ right: "mary" }), "It says susan, 70 %: wrong, it is mary.");
  assert.match(said({ patched: true }), /^With vectors of the other story, it says susan/);
  const off = [1, 2, 3, 4].map((head) => `block-1-head-${head}`);
  assert.match(said({ off: off.slice(0, 1) }), /^Without block 1, head 1, it says susan/);
  assert.match(said({ off }), /^Without block 1, head 1; block 1, head 2; block 1, head 3; …, it/);
});

test("while an answer is thought about, no probability is known", () => {
  const read = { problem: null, moves: new Map([["roses", 2]]) };
  const state = { now: ["<story>", "mary"], read, gift: "roses", answer: "mary" };
  const shown = { ...state, vocabulary, off: ["block-1-head-1"], patches: [] };
  const thinking = factsOf({ ...shown, found: null });
  assert.equal(thinking.moves, 2);
  assert.equal(thinking.off, 1);
  assert.deepEqual([thinking.right, thinking["probability mary"]], [null, null]);
  const found = { ids: [0, 1], word: 1, chances: [[], [0, 0.5, 0.25, 0.25]], whole: [0, 1, 0, 0] };
  const known = factsOf({ ...shown, found });
  assert.deepEqual([known.right, known["probability susan"], known["whole mary"]], [0.5, 0.25, 1]);
  assert.equal(factsOf({ ...shown, found: { ...found, word: 0 } })["whole mary"], 0);
  assert.equal(factsOf({ ...shown, answer: null, found: null }).right, 0);
});

/** An `asker` whose answers come when they are told to. */
function slowMind() {
  const log = { asked: [], answered: [], errors: [], give: [] };
  let text = "a";
  const mind = asker({
    question: () => ({ key: text, text }),
    answer: (rest) => {
      log.asked.push(rest);
      return new Promise((resolve, reject) => log.give.push({ resolve, reject }));
    },
    onAnswer: (found) => log.answered.push(found),
    onError: (error) => log.errors.push(error.message),
  });
  return { mind, log, write: (next) => (text = next) };
}

test("one question at a time; the newest is asked next, and those between never", async () => {
  const { mind, log, write } = slowMind();
  const done = mind.ask();
  mind.ask();
  write("b");
  mind.ask();
  write("c");
  assert.deepEqual([mind.isBusy, mind.newest(), log.asked.length], [true, null, 1]);
  log.give[0].resolve("of a");
  await new Promise(setImmediate);
  assert.deepEqual(log.asked, [{ text: "a" }, { text: "c" }]);
  assert.deepEqual([mind.found, mind.newest()], ["of a", null]);
  log.give[1].resolve("of c");
  await done;
  assert.deepEqual(log.answered, ["of c"]);
  assert.deepEqual([mind.isBusy, mind.newest()], [false, "of c"]);
});

test("an error is told, and the next question is asked all the same", async () => {
  const { mind, log } = slowMind();
  const first = mind.ask();
  log.give[0].reject(new Error("no worker"));
  await first;
  assert.deepEqual(log.errors, ["no worker"]);
  const second = mind.ask();
  log.give[1].resolve("of a");
  await second;
  assert.equal(mind.newest(), "of a");
});

test("writing goes on until there is nothing more, or it is stopped", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const later = () => Array.from({ length: 5 }, () => mock.timers.tick(200));
  let left = 2;
  const runs = [];
  const writer = slowly({ next: () => left-- > 0, onChange: (isRunning) => runs.push(isRunning) });
  writer.start();
  assert.ok(writer.isRunning);
  mock.timers.tick(1);
  assert.equal(left, 1);
  later();
  assert.deepEqual([left, writer.isRunning, runs], [-1, false, [true, false]]);
  left = 9;
  writer.start();
  mock.timers.tick(1);
  writer.stop();
  later();
  assert.deepEqual([left, writer.isRunning], [8, false]);
  mock.timers.reset();
});
