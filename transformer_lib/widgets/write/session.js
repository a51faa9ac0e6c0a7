// Python in a worker: MicroPython with PyTorch's names.
//
//   const session = await start({ load, python, tell });
//     load      makes the interpreter: loadMicroPython of its package, with the wasm at hand
//     python    the texts of page_torch.py and page_python.py
//     tell      called with { out: text }, { shown: text }, { error: { type, message, line } }
//   session.run(code, { namespace, cell })
//   session.forget(namespace)

import { formatted } from "../math/tensor/format.js";
import { Slice } from "../math/tensor/indexing.js";
import { call } from "../math/tensor/operations.js";
import { fail, Real, Tensor, TorchError } from "../math/tensor/tensor.js";
import { readError } from "./errors.js";
import { prepare } from "./source.js";

const MOST = { lines: 2000, characters: 200_000, bytes: 1.5e9 };
const HEAP = 8 * 1024 * 1024; // at first; it grows
const STACK = 32 * 1024;
const OFTEN = 40; // ms between two messages of output

export async function start({ load, python, tell }) {
  const output = printer(tell);
  globalThis.afmTensors = bridge(output, tell);
  const interpreter = await load({
    heapsize: HEAP,
    pystack: STACK,
    linebuffer: true,
    stdout: (line) => output.write(`${line}\n`),
    stderr: (line) => output.write(`${line}\n`),
  });
  for (const text of python) interpreter.runPython(text);
  return {
    run(code, { namespace = "main", cell = "cell" } = {}) {
      output.begin(cell);
      globalThis.afmTensors.begin();
      const prepared = prepare(code);
      if (prepared.problem) {
        const { problem, type, line } = prepared;
        tell({ error: { type, message: problem, line } });
        return;
      }
      try {
        globalThis.afmRun(prepared.code, cell, namespace);
      } catch (error) {
        // What ends the interpreter's own work, such as a stack that is too small for a parse.
        const [type, message] = [error.type ?? "RuntimeError", error.message ?? String(error)];
        tell({ error: readError(type, message, "", cell) });
      } finally {
        output.flush();
      }
    },
    forget: (namespace) => globalThis.afmForget(namespace),
    provide: (name, code) => globalThis.afmProvide(name, prepare(code).code),
  };
}

/** Output in few messages, and not without an end. */
function printer(tell) {
  let [waiting, sent, lines, characters, cell] = ["", 0, 0, 0, ""];
  const flush = () => {
    if (waiting) tell({ out: waiting });
    waiting = "";
    sent = performance.now();
  };
  return {
    begin(name) {
      [waiting, lines, characters, cell] = ["", 0, 0, name];
    },
    get cell() {
      return cell;
    },
    flush,
    /** False: more than the page shows. */
    write(text) {
      lines += text.split("\n").length - 1;
      characters += text.length;
      if (lines > MOST.lines || characters > MOST.characters) return false;
      waiting += text;
      if (performance.now() - sent > OFTEN) flush();
      return true;
    },
  };
}

/** What page_torch.py and page_python.py call. Nothing may be thrown through the interpreter. */
function bridge(output, tell) {
  let failed = null;
  // MicroPython lets go of a tensor only when a cell has ended.
  let held = 0;
  const counted = (value) => {
    if (!(value instanceof Tensor) || value.base) return value;
    held += value.storage.data.byteLength;
    if (held < MOST.bytes) return value;
    return fail("this cell's tensors take more than 1.5 GB: does a loop make too many of them?");
  };
  const guarded = (work) => {
    try {
      return work();
    } catch (error) {
      failed = error instanceof TorchError ? error : { type: "RuntimeError", message: `${error}` };
      return null;
    }
  };
  return {
    call: (name, ...given) =>
      guarded(() => counted(returned(call(name, given.map(arrived)) ?? true))),
    begin() {
      held = 0;
    },
    failedType: () => failed.type ?? "RuntimeError",
    failedMessage: () => failed.message,
    real: (value) => new Real(value),
    array: (...parts) => parts,
    slice: (start, stop, step) => new Slice(start ?? null, stop ?? null, step ?? 1),
    isList: (value) => Array.isArray(value),
    size: (list) => list.length,
    part: (list, i) => returned(list[i]),
    dtypeOf: (x) => x.dtype,
    isTensor: (value) => value instanceof Tensor,
    format: (value, spec, kind) =>
      guarded(() => formatted(kind === "int" ? BigInt(value) : value, spec)),
    out: (text) => output.write(text),
    shown(text) {
      output.flush();
      tell({ shown: text });
    },
    erred(type, message, trace) {
      output.flush();
      if (type === "OutputEnd") {
        const most = MOST.lines.toLocaleString("en");
        const text = `the page shows ${most} lines at most, and stopped here: does a loop print too much?`;
        tell({ error: { type: "Output", message: text, line: null } });
      } else tell({ error: readError(type, message, trace, output.cell) });
    },
  };
}

/** Python's None, in lists, too. */
const arrived = (value) => value ?? null;

/** What MicroPython would not take as it is: it makes 32 bits of every whole number. */
function returned(value) {
  if (!Number.isInteger(value)) return value;
  if (Object.is(value, -0)) return "-0.0";
  return Math.abs(value) < 2 ** 31 ? value : String(value);
}
