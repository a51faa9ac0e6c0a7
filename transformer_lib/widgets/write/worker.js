// Python in a thread of its own. book/python_files.py puts the interpreter and the texts of python/
// before this file, as globalThis.afmInterpreter and afmPython.
//
//   begin(wasm)                  MicroPython's WebAssembly, in base64; returns the ms that it took
//   run(code, { namespace })     tells { out }, { shown }, { error } as events, and returns the ms
//   forget(namespace)            its names are gone
//   layAnew(programs, namespace)
//   readEngine(modules)   lay(program, namespace)   check(code, task)
//   readMachine(parts, packed)   tryIn(code, task)   as in session.js

import { start } from "./session.js";

const tell = (event) => self.postMessage({ event });
let session = null;

async function begin(wasm) {
  const from = performance.now();
  const text = atob(wasm);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  globalThis.afmWasm = bytes;
  const makeInterpreter = await globalThis.afmInterpreter();
  // From a file's address it asks for its bytes, where it would fetch another one.
  const load = (options) => makeInterpreter({ ...options, url: "file:///micropython.wasm" });
  session = await start({ load, python: globalThis.afmPython, tell });
  return performance.now() - from;
}

/** A method of the session, which returns the ms that it took. */
const timed =
  (method) =>
  (...values) => {
    const from = performance.now();
    session[method](...values);
    return performance.now() - from;
  };

export default {
  begin,
  layAnew: timed("layAnew"),
  forget: (namespace) => session.forget(namespace),
  run: timed("run"),
  readEngine: timed("readEngine"),
  lay: timed("lay"),
  check: timed("check"),
  readMachine: timed("readMachine"),
  tryIn: timed("tryIn"),
};
