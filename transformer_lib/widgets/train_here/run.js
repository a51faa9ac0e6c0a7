// A run of training in the worker: begun by every setting anew, gone on with until somebody or
// something stops it. It knows nothing of the picture.
//
//   const run = training(model, { begun, gone, changed });
//   run.fresh();     a new run, which waits for its start
//   run.go();        train; run.go(1): one step        run.stop();      run.end();  for good
//   run.told         what stays the same in the run (worker.js), null before the first answer
//   run.log          history() of its steps (model.js)
//   run.isStale      the log is still that of the run before
//   run.before       the mean losses of the run before, where it had the same task
//   run.isRunning    run.problem   why nothing can be trained here, or ""
//
// `begun()` is called when a run is ready, `gone()` after each answer of the worker, and `changed()`
// where it starts, stops or fails.

import { remote } from "../core/remote.js";
import { send } from "../core/wire.js";
import { history } from "./model.js";

const WATCHED = 50; // ms a step, so that one can follow
const SLICE = 40; // ms of training at a time at full speed
const AFTER = 60; // steps that a run goes on after it has reached the floor
const PATIENCE = 500; // steps after which a run pauses by itself

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function training(model, { width, begun, gone, changed }) {
  const far = remote(model.get("_worker"));
  const run = { told: null, log: null, before: null, isStale: true, isRunning: false, problem: "" };
  let number = 0; // of the run: answers for an older one are thrown away
  let turn = 0; // of the loop that goes: one that was stopped ends, though another goes by then
  let planned = false; // a run is to begin
  let ready = Promise.resolve();

  /** Several settings that change together begin one run. */
  function fresh() {
    stop();
    number += 1;
    run.isStale = true;
    if (planned) return;
    planned = true;
    ready = Promise.resolve().then(begin);
  }

  async function begin() {
    planned = false;
    const mine = number;
    const settings = {
      task: model.get("task"),
      layers: model.get("layers"),
      reach: Number(model.get("smear")),
      optimizer: model.get("optimizer"),
      rate: model.get("rate"),
      seed: model.get("seed"),
      width,
    };
    const { told, log } = run;
    if (told && told.task !== settings.task) run.before = null;
    else if (log?.last > 1) run.before = log.losses.map((_, step) => log.loss(step));
    try {
      const answer = await far.call("begin", settings);
      if (mine !== number) return;
      run.told = { ...answer, task: settings.task };
      run.log = history(answer);
      run.isStale = false;
      run.problem = "";
    } catch (error) {
      if (mine === number) fail(error);
      return;
    }
    run.log.add(run.told.first);
    model.set("step", null);
    send(model, "trained", 0);
    begun();
  }

  function fail(error) {
    run.isRunning = false;
    run.problem = `The model could not be trained here: ${error.message}`;
    changed();
  }

  async function go(most = Number.POSITIVE_INFINITY) {
    if (run.isRunning) return;
    run.isRunning = true;
    turn += 1;
    const its = turn;
    changed();
    await ready;
    const { log } = run;
    if (!log) return; // the reader knows why
    const mine = number;
    const from = log.last;
    model.set("step", null);
    while (run.isRunning && its === turn && mine === number && log.last - from < most) {
      const start = performance.now();
      const full = model.get("speed") === "full" && most > 1;
      const what = full ? { ms: SLICE } : { most: 1 };
      try {
        const got = await far.call("advance", { ...what, every: log.every });
        if (mine !== number) return;
        log.add(got);
      } catch (error) {
        return fail(error);
      }
      gone();
      if (isOver(log, from)) break;
      // At full speed, too, the page gets its turn: where there is no worker it needs one.
      await wait(full ? 0 : Math.max(0, WATCHED - (performance.now() - start)));
    }
    if (its === turn && mine === number) stop();
  }

  function stop() {
    if (!run.isRunning) return;
    run.isRunning = false;
    changed();
  }

  function end() {
    number += 1;
    run.isRunning = false;
    far.end();
  }

  return Object.assign(run, { fresh, go, stop, end });
}

/** Whether a run that was started at step `from` pauses by itself now: long after the floor, when it
 * is lost, or after many steps. */
export function isOver({ last, reachedAt, lostAt }, from) {
  if (lostAt !== null && lostAt > from) return true;
  if (reachedAt !== null && last >= reachedAt + AFTER && from < reachedAt + AFTER) return true;
  return last - from >= PATIENCE;
}
