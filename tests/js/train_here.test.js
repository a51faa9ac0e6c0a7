import assert from "node:assert/strict";
import { test } from "node:test";
import { guesses, history, scores } from "../../transformer_lib/widgets/train_here/model.js";
import { verdictOf } from "../../transformer_lib/widgets/train_here/reading.js";
import { isOver, training } from "../../transformer_lib/widgets/train_here/run.js";
import { close, fakeModel, fakeWorkers } from "./support.js";

const flat = (count, loss) => ({
  losses: Array(count).fill(loss),
  rights: Array(count).fill(0.5),
  frames: [],
});
const begun = () => history({ chance: 2, floor: 0 });

test("a run is judged by the mean of 20 steps", () => {
  const log = begun();
  log.add(flat(1, 2));
  log.add(flat(200, 1));
  assert.equal(log.last, 200);
  assert.equal(log.verdict(30), "learning");
  assert.equal(log.verdict(200), "stuck");
  log.add(flat(19, 0));
  close(log.loss(219), 0.05);
  assert.equal(log.verdict(219), "learning");
  log.add(flat(1, 0));
  assert.equal(log.reachedAt, 220);
  assert.equal(log.verdict(220), "reached");
  assert.equal(log.verdict(200), "stuck"); // as it was then
  assert.equal(log.lostAt, null);
});

test("worse than chance, or not a number, is lost", () => {
  for (const loss of [2.02, Number.NaN, Number.POSITIVE_INFINITY]) {
    const log = begun();
    log.add(flat(30, 1.9));
    log.add(flat(40, loss));
    assert.equal(log.verdict(log.last), "lost", String(loss));
    assert.equal(log.verdict(35), "learning");
    if (loss !== 2.02) continue;
    log.add(flat(20, 0.01));
    assert.equal(log.verdict(log.last), "reached"); // it has come back
    const told = { parameters: 1, words: [], chance: 2 };
    assert.match(
      verdictOf({ told, log }, 3)
        .map((part) => part.text ?? part)
        .join(""),
      /4 steps/,
    );
  }
  const log = begun();
  log.add(flat(100, 2)); // exactly chance
  assert.equal(log.lostAt, null);
});

test("maps of every step at first, then of fewer, and of any step the newest before it", () => {
  const log = begun();
  for (let step = 0; step <= 700; step += 1) {
    const frames = step % log.every === 0 ? [{ step }] : [];
    log.add({ ...flat(1, 1), frames });
    assert.equal(log.frameAt(step).step, step - (step % log.every));
  }
  assert.equal(log.every, 4);
  assert.equal(log.frameAt(0).step, 0);
  assert.equal(log.frameAt(403).step, 400);
});

test("attention on the word before, and on the answer", () => {
  const map = Float32Array.from([1, 0, 0, 0.25, 0.75, 0, 0.5, 0.3, 0.2]);
  const example = { known: [false, false, true], sources: [[], [], [0]] };
  const { before, answer } = scores(map, example);
  close(before, (0.25 + 0.3) / 2);
  close(answer, 0.25); // row 1 is asked for word 2, which word 0 holds
});

test("what is expected where it can be known; a tie is not right", () => {
  const chances = Float32Array.from([0.5, 0.5, 0.25, 0.75, 0, 0]);
  const example = { ids: [0, 0, 1], known: [false, true, true] };
  const [first, second, third] = guesses({ chances }, example, ["a", "b"]);
  assert.equal(first, null);
  assert.equal(second.right, false);
  assert.deepEqual(third, { word: "b", share: 0.75, right: true });
});

test("a run pauses by itself once after the floor, when it is lost, and after 500 steps", () => {
  const reached = { reachedAt: 100, lostAt: null };
  assert.equal(isOver({ ...reached, last: 159 }, 0), false);
  assert.equal(isOver({ ...reached, last: 160 }, 0), true);
  assert.equal(isOver({ ...reached, last: 161 }, 160), false, "who goes on is not stopped again");
  assert.equal(isOver({ last: 70, reachedAt: null, lostAt: 70 }, 30), true);
  assert.equal(isOver({ last: 71, reachedAt: null, lostAt: 70 }, 70), false);
  assert.equal(isOver({ last: 671, reachedAt: null, lostAt: null }, 171), true);
});

test("a run that is started again before it has noticed its pause makes as many steps as before", async (t) => {
  let steps = 0;
  const advance = () => {
    steps += 1;
    return flat(1, 1);
  };
  const begin = () => ({ chance: 2, floor: 0, first: flat(1, 2) });
  const pass = fakeWorkers(t, { begin, advance });
  const model = fakeModel({ _worker: "", speed: "watch" });
  const run = training(model, { begun() {}, gone() {}, changed() {} });
  run.fresh();
  await pass();
  await pass();
  run.go();
  await pass();
  run.stop();
  run.go();
  await pass();
  const before = steps;
  for (let i = 0; i < 4; i += 1) await pass(50);
  assert.equal(steps, before + 4);
});
