// A run of training in the worker, and what is remembered of it. It knows nothing of the picture.
//
//   const run = training(model, { settings, begun, gone, changed });     settings() -> for the worker
//   run.fresh();    a new run, which waits for its start; run.ready, a promise, when it is there
//   run.go();   run.stop();   run.end();
//   run.complete({ step, prompt, ... })     what the model of that step writes (worker.js)
//   run.log          history(), null while there is no run
//   run.told         what the worker said of it
//   run.isRunning    run.problem   why nothing can be trained here, or ""
//
// `begun()` is called when a run is ready, `gone(moment)` after each answer of the worker, and
// `changed()` where it starts, stops or fails.

import { remote } from "../core/remote.js";

const SLICE = 40; // ms of training at a time
const WINDOW = 20; // steps that a loss is the mean of
const LONG = 180; // seconds after which a run pauses by itself
const WORSE = 0.1; // nats above the lowest loss on held-out text: it learns by heart

/** The losses of all steps, and the moments: [{ step, unseen, heads }], in order. */
export function history(first) {
  const [losses, means] = [[], []];
  const moments = [first];
  return {
    losses,
    means,
    moments,
    seconds: 0,
    get last() {
      return losses.length;
    },
    add({ losses: more, moment, ms }) {
      for (const loss of more) {
        losses.push(loss);
        const some = losses.slice(-WINDOW);
        means.push(some.reduce((sum, value) => sum + value, 0) / some.length);
      }
      if (moment) moments.push(moment);
      this.seconds += ms / 1000;
    },
    /** The mean loss of the steps that led to this one. */
    loss: (step) => means[step - 1] ?? Number.NaN,
    /** The newest moment that is not of a later step. */
    momentAt: (step) => moments.findLast((moment) => moment.step <= step) ?? moments[0],
    /** The step of the moment that a slider gets to: of one further on, if it is moved on. */
    towards(step, from) {
      const next = moments.find((moment) => moment.step >= step);
      return (step > from && next ? next : this.momentAt(step)).step;
    },
    /** The moment of the lowest loss on held-out text, up to a step. */
    best(step = Number.POSITIVE_INFINITY) {
      const past = moments.filter((moment) => moment.step <= step);
      return past.reduce((best, moment) => (moment.unseen < best.unseen ? moment : best));
    },
  };
}

/** Whether the model only learns by heart now: on held-out text it has long been better. */
export function isPast(log) {
  const best = log.best();
  return log.last > 1.5 * best.step && log.moments.at(-1).unseen > best.unseen + WORSE;
}

export function training(model, { settings, begun, gone, changed }) {
  const far = remote(model.get("_worker"));
  const run = { log: null, told: null, isRunning: false, problem: "", ready: Promise.resolve() };
  let number = 0; // of the run: answers for an older one are thrown away
  let turn = 0; // of the loop that goes: one that was stopped ends, though another goes by then
  let planned = false; // a run is to begin

  /** Several settings that change together begin one run. */
  function fresh() {
    stop();
    number += 1;
    run.log = null;
    if (planned) return;
    planned = true;
    run.ready = Promise.resolve().then(begin);
  }

  async function begin() {
    planned = false;
    const mine = number;
    try {
      const told = await far.call("begin", settings());
      if (mine !== number) return;
      run.told = told;
      run.problem = told.problem ?? "";
      run.log = told.problem ? null : history(told.first);
    } catch (error) {
      if (mine === number) fail(error);
      return;
    }
    begun();
  }

  function fail(error) {
    run.isRunning = false;
    run.problem = `The model could not be trained here: ${error.message}`;
    changed();
  }

  async function go() {
    await run.ready;
    if (run.isRunning || !run.log) return;
    run.isRunning = true;
    changed();
    turn += 1;
    const [mine, its] = [number, turn];
    const { log } = run;
    const wasPast = isPast(log);
    const from = log.seconds;
    try {
      while (run.isRunning && its === turn && mine === number) {
        const got = await far.call("advance", { ms: SLICE });
        if (mine !== number) return;
        log.add(got);
        gone(got.moment);
        if (log.seconds - from > LONG || (isPast(log) && !wasPast)) break;
        await new Promise((resolve) => setTimeout(resolve, 0)); // the page's turn, where there is no worker
      }
      const moment = its === turn && mine === number ? await far.call("pause") : null;
      if (mine !== number) return;
      if (moment) {
        log.moments.push(moment);
        gone(moment);
      }
    } catch (error) {
      if (mine === number) fail(error);
      return;
    }
    if (its !== turn) return;
    stop();
    changed();
  }

  function stop() {
    run.isRunning = false;
  }

  return Object.assign(run, {
    fresh,
    go,
    stop,
    complete: (options) => far.call("complete", options),
    end() {
      number += 1;
      stop();
      far.end();
    },
  });
}
