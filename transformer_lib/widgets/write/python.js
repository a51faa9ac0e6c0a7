// Python on the page: one interpreter for all its figures, in a worker, loaded when it is first used.
//
//   const python = pythonOf(model.get("_python"));
//   const mine = python.turn(async (own) => {
//     const ms = await own.do("run", [code, { namespace }], { seconds, onEvent });
//     return { ms };
//   });
//   await mine.end      -> what the turn returns, or { problem } if it was stopped or could not begin
//   mine.stop()         ends this turn alone; if Python runs in it, all names are gone with the worker
//   own.do(method, values, { seconds, onEvent })     a method of worker.js
//   own.age             of the names: another worker has none
//
// Events are those of session.js, and { started } before them. Turns wait for one another.

import { remote } from "../core/remote.js";

const PLACE = "afmPython"; // figures of other kinds share it, too

export function pythonOf({ python }) {
  window[PLACE] ??= interpreter(() => window.afm.load(python));
  return window[PLACE];
}

export function interpreter(load) {
  let far = null; // a promise of the worker
  let tell = () => {}; // onEvent of what runs
  let last = Promise.resolve(); // the end of all turns so far
  let age = 1;

  async function begin() {
    const { worker, wasm } = await load();
    const started = remote(worker, { onEvent: (event) => tell(event) });
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

  function turn(work) {
    let apart = null; // the worker, while it runs something of this turn
    let timer = null;
    let isStopped = false;
    let stop = null;
    const stopped = new Promise((resolve) => {
      stop = (message = "stopped by you") => {
        if (isStopped) return;
        isStopped = true;
        clearTimeout(timer);
        if (apart) {
          apart.end();
          far = null;
          age += 1;
        }
        resolve({ problem: { type: "Stopped", message, line: null } });
      };
    });

    async function run(method, values, { seconds, onEvent }) {
      const started = await worker();
      if (isStopped) throw new Error("stopped while it was loaded");
      apart = started;
      tell = onEvent;
      onEvent({ started: true });
      const text = `stopped after ${seconds} seconds: is there a loop that does not end?`;
      timer = setTimeout(stop, seconds * 1000, text);
      try {
        return await apart.call(method, ...values);
      } finally {
        clearTimeout(timer);
        apart = null;
      }
    }

    const own = {
      do: run,
      get age() {
        return age;
      },
    };
    const before = last;
    const done = before.then(() => isStopped || work(own));
    const end = Promise.race([stopped, done]).catch(({ message }) => ({
      problem: { type: "Python could not start", message, line: null },
    }));
    last = end.then(() => before);
    return { end, stop };
  }

  return {
    turn,
    forget: async (namespace) => far && (await far).call("forget", namespace),
  };
}
