// The engine of the checks and the book's own code, once in each interpreter.
//
//   const events = listen({ onStart, onPrint, onGroup })     events.problem, .verdict, .tried, .on
//   await ready(own, files, events)                 the engine is read; own: of a turn (python.js)
//   await once(own, name, "lay", [program, id], events)

const SECONDS = 25; // more than an answer has by itself; then the worker is ended
const laid = new Map(); // by name, the age of the interpreter that has it

export function listen({ onStart = () => {}, onPrint = () => {}, onGroup = () => {} } = {}) {
  const found = { problem: null, verdict: null, tried: null };
  const onEvent = (event) => {
    if (event.started) onStart();
    else if (event.error) found.problem ??= event.error;
    else if (event.verdict) found.verdict = event.verdict;
    else if (event.tried) found.tried = event.tried;
    else if (event.group) onGroup(event.group);
    else onPrint(event.out ?? `${event.shown}\n`);
  };
  return Object.assign(found, { on: { seconds: SECONDS, onEvent } });
}

export async function once(own, name, method, values, events) {
  if (laid.get(name) === own.age) return;
  await own.do(method, values, events.on);
  if (!events.problem) laid.set(name, own.age);
}

export async function ready(own, files, events) {
  await once(own, "engine", "readEngine", [await window.afm.load(files.checks)], events);
}
