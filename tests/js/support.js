// For the tests under node: numbers that the library computed, and a model as the host makes it.
//
//   const { cases } = fixture("math");      // written by tests/js/math/fixtures_math.py
//   close(actual, expected);                // nested arrays of numbers, equal to 1e-6
//   const model = fakeModel({ temperature: 1 });
//   const pass = fakeWorkers(t, { begin: () => told });   await pass(50);
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";

export function fixture(name) {
  const folders = process.env.AFM_FIXTURES;
  assert.ok(
    folders,
    "run these by `pytest tests/widgets/test_javascript.py`, which writes the numbers first",
  );
  const paths = folders.split(delimiter).map((folder) => join(folder, `${name}.json`));
  return JSON.parse(readFileSync(paths.find(existsSync), "utf8"));
}

export function close(actual, expected, tolerance = 1e-6, where = "value") {
  if (typeof expected === "number") {
    const fits = Math.abs(actual - expected) <= tolerance * Math.max(1, Math.abs(expected));
    assert.ok(fits, `${where}: ${actual} is not ${expected} to ${tolerance}`);
    return;
  }
  assert.equal(actual.length, expected.length, `${where}: length`);
  expected.forEach((item, i) => close(actual[i], item, tolerance, `${where}[${i}]`));
}

/** Workers whose methods are these, each answered at once; what waits goes by `t.mock.timers.tick`. */
export function fakeWorkers(t, methods) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  globalThis.Worker = class {
    constructor() {
      queueMicrotask(() => this.onmessage({ data: {} })); // its script has run
    }

    async postMessage({ id, method, values }) {
      const value = await methods[method](...values);
      this.onmessage({ data: { id, value } });
    }
  };
  return async (ms = 0) => {
    t.mock.timers.tick(ms);
    await new Promise(setImmediate);
  };
}

export function fakeModel(values) {
  const listeners = new Map();
  return {
    saved: 0,
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      (listeners.get(`change:${name}`) ?? []).forEach((callback) => callback());
    },
    on: (event, callback) => listeners.set(event, [...(listeners.get(event) ?? []), callback]),
    off: (event, callback) =>
      listeners.set(
        event,
        (listeners.get(event) ?? []).filter((known) => known !== callback),
      ),
    save_changes() {
      this.saved += 1;
    },
    listening: (event) => (listeners.get(event) ?? []).length,
  };
}
