// Python on the page: one interpreter for all its figures, in a worker, loaded when it is first used.
//
//   const python = pythonOf(model.get("_python"));
//   const end = await python.run(code, { namespace, seconds, onEvent });
//                                   -> { ms } or { stopped: "a sentence" }
//   python.do("check", [code, task], { seconds, onEvent })    another method of worker.js, likewise
//   python.stop("a sentence")       ends the worker, and with it all names; the next run begins anew
//   python.warm()                   begins to load
//   python.age                      of the names: another worker has none
//
// Events are those of session.js, and { started } before them. Runs wait for one another.

import { remote } from "../core/remote.js";

const PLACE = "afmPython"; // figures of other kinds share it, too

export function pythonOf({ python }) {
  window[PLACE] ??= interpreter(() => window.afm.load(python));
  return window[PLACE];
}

export function interpreter(load) {
  let far = null; // a promise of the worker
  let running = null; // { onEvent, stop }
  let turn = Promise.resolve();
  let age = 1;

  async function begin() {
    const { worker, wasm } = await load();
    const started = remote(worker, { onEvent: (event) => running?.onEvent(event) });
    if (!(await started.isApart))
      throw new Error("this page may not start a worker, which Python needs");
    await started.call("begin", wasm);
    return started;
  }

  function worker() {
    far ??= begin();
    return far.catch((error) => {
      far = null;
      throw error;
    });
  }

  function once(method, values, { seconds, onEvent }) {
    return new Promise((resolve, reject) => {
      let apart = null;
      let timer = null;
      const end = (settle, value) => {
        clearTimeout(timer);
        running = null;
        settle(value);
      };
      const stop = (stopped) => {
        if (apart) {
          apart.end();
          far = null;
          age += 1;
        }
        end(resolve, { stopped });
      };
      const mine = { onEvent, stop };
      running = mine;
      const begun = (started) => {
        if (running !== mine) return; // stopped while it was loaded
        apart = started;
        onEvent({ started: true });
        const text = `stopped after ${seconds} seconds: is there a loop that does not end?`;
        timer = setTimeout(stop, seconds * 1000, text);
        const ran = apart.call(method, ...values);
        ran.then(
          (ms) => end(resolve, { ms }),
          (error) => end(reject, error),
        );
      };
      worker().then(begun, (error) => end(reject, error));
    });
  }

  function inTurn(method, values, options) {
    const done = turn.then(() => once(method, values, options));
    turn = done.catch(() => {});
    return done;
  }

  return {
    get age() {
      return age;
    },
    warm: () => worker().catch(() => {}), // said when it is asked to run
    run: (code, { namespace, ...options }) => inTurn("run", [code, { namespace }], options),
    do: inTurn,
    stop: (sentence) => running?.stop(sentence),
    forget: async (namespace) => far && (await far).call("forget", namespace),
  };
}
