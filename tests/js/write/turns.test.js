import assert from "node:assert/strict";
import test, { after } from "node:test";
import { listen, once, ready } from "../../../transformer_lib/widgets/write/page/engine.js";
import { interpreter } from "../../../transformer_lib/widgets/write/python.js";

const asked = []; // what each worker is told to do: "1 begin"
let workers = 0;

/** A worker that answers at once; "endless" never, and "begin" as soon as it may. */
class FakeWorker {
  constructor() {
    workers += 1;
    this.number = workers;
    setTimeout(() => this.onmessage({ data: {} })); // its script has run
  }
  async postMessage({ id, method }) {
    asked.push(`${this.number} ${method}`);
    if (method === "begin") await mayBegin;
    if (method !== "endless" && !this.isOver) this.onmessage({ data: { id, value: 1 } });
  }
  terminate() {
    this.isOver = true;
  }
}

let mayBegin = null;
const { Worker } = globalThis;
globalThis.Worker = FakeWorker;
globalThis.window = { afm: { load: async (name) => name } };
after(() => Object.assign(globalThis, { Worker, window: undefined }));

const options = { seconds: 5, onEvent() {} };
const stopped = { problem: { type: "Stopped", message: "stopped by you", line: null } };
const check = (python) =>
  python.turn(async (own) => {
    const events = listen();
    await ready(own, { checks: "engine" }, events);
    await once(own, "a", "lay", [], events);
    await own.do("check", [], options);
    return "checked";
  });
const moment = () => new Promise((resolve) => setTimeout(resolve, 20));

test("what is stopped while Python is loaded is not taken for done", async () => {
  const python = interpreter(async () => ({ worker: "export default {}", wasm: "" }));
  let go = null;
  mayBegin = new Promise((resolve) => {
    go = resolve;
  });
  const first = check(python);
  await moment();
  first.stop();
  assert.deepEqual(await first.end, stopped);
  go();
  assert.equal(await check(python).end, "checked");
  assert.deepEqual(asked.splice(0), ["1 begin", "1 readEngine", "1 lay", "1 check"]);
});

test("a turn that waits is stopped alone, and one that runs takes no other with it", async () => {
  const python = interpreter(async () => ({ worker: "export default {}", wasm: "" }));
  const runs = python.turn((own) => own.do("endless", [], options));
  const [waits, next] = [check(python), check(python)];
  await moment();
  waits.stop();
  assert.deepEqual(await waits.end, stopped);
  await moment();
  assert.deepEqual(asked.splice(0), ["2 begin", "2 endless"]);
  runs.stop();
  runs.stop();
  assert.deepEqual(await runs.end, stopped);
  assert.equal(await next.end, "checked");
  runs.stop();
  assert.equal(await check(python).end, "checked");
  const checked = ["3 begin", "3 readEngine", "3 lay", "3 check", "3 check"];
  assert.deepEqual(asked.splice(0), checked);
});
