// Python in a worker: MicroPython with PyTorch's names.
//
//   const session = await start({ load, python, tell });
//     load      makes the interpreter: loadMicroPython of its package, with the wasm at hand
//     python    the texts of page_torch.py and page_python.py
//     tell      called with { out: text }, { shown: text }, { error: { type, message, line } }
//   session.run(code, { namespace, cell })
//   session.forget(namespace)
//   session.readEngine(modules)       the engine of the checks, [text, [name, text], ...], once
//   session.lay({ modules, context }, namespace)       code of the book, unseen: what is there before
//   session.layAnew(programs, namespace)     ... and nothing else: random numbers as at first, too
//   session.limit(isOver)             an operation on tensors is an error where this says so
//   session.readMachine(parts, packed)     the machine of chapter 00: { name, python, modules, begun, facts }
//   session.tryIn(code, { namespace, program, words, head })     tells { group: { right, of, all } } and
//                                     { tried: { right, of, said, probability, weights } } as well
//   session.check(code, { namespace, name, call })     tells { verdict: { passed, text } } as well
//
// The book's own code comes as `prepare` has left it (book/page_code.py).

import { callBatched, holdsBatched, SINGLE } from "../math/tensor/batched.js";
import { fixed, formatted } from "../math/tensor/format.js";
import { Slice } from "../math/tensor/indexing.js";
import { call } from "../math/tensor/operations.js";
import { DEFAULT_SEED, initial } from "../math/tensor/random.js";
import { fail, Real, Tensor, TorchError } from "../math/tensor/tensor.js";
import { readError } from "./errors.js";
import { machineOf } from "./machine.js";
import { filled, searched } from "./patterns.js";
import { prepare } from "./source.js";
import { asPython, FIELDS, limited, OPERATORS, parse, traced } from "./syntax.js";

const NOTHING = {
  type: "Nothing was put in",
  message:
    "the last line has to say which part yours replaces, as machine.using(attention_weights=mine) does",
  line: null,
};
const MOST = { lines: 2000, characters: 200_000, bytes: 1.5e9 };
const HEAP = 8 * 1024 * 1024; // at first; it grows
const STACK = 32 * 1024;
const OFTEN = 40; // ms between two messages of output
const FIRST = 50; // messages go at once, or a loop that does not end would keep them
const never = () => false;
let isOver = never; // asked before each operation on tensors

export async function start({ load, python, tell }) {
  const output = printer(tell);
  globalThis.afmTensors = { ...bridge(output, tell), ...forChecks(tell) };
  const interpreter = await load({
    heapsize: HEAP,
    pystack: STACK,
    linebuffer: true,
    stdout: (line) => output.write(`${line}\n`),
    stderr: (line) => line.startsWith("Warning: ") || output.write(`${line}\n`),
  });
  for (const text of python) interpreter.runPython(text);
  let hasEngine = false;
  let machine = null;
  let machineName = "";

  function run(code, { namespace = "main", cell = "cell" } = {}) {
    output.begin(cell);
    globalThis.afmTensors.begin();
    const prepared = prepare(code);
    if (prepared.problem) {
      const { problem, type, line } = prepared;
      tell({ error: { type, message: problem, line } });
      return false;
    }
    return guarded(() => globalThis.afmRun(prepared.code, cell, namespace), cell);
  }

  function guarded(work, cell) {
    try {
      return work() !== false;
    } catch (error) {
      // What ends the interpreter's own work, such as a stack that is too small for a parse.
      const [type, message] = [error.type ?? "RuntimeError", error.message ?? String(error)];
      tell({ error: readError(type, message, "", cell) });
      return false;
    } finally {
      output.flush();
    }
  }

  function lay({ modules, context }, namespace) {
    output.begin("book");
    globalThis.afmTensors.begin();
    guarded(() => {
      for (const [name, code] of modules) globalThis.afmProvide(name, code);
      globalThis.afmContext(context, namespace);
    }, "book");
  }

  return {
    run,
    forget: (namespace) => globalThis.afmForget(namespace),
    lay,
    layAnew(programs, namespace) {
      globalThis.afmForget(namespace);
      initial().seed(DEFAULT_SEED);
      call("set_printoptions", [null, null, null, null, "default", null]);
      for (const program of programs) lay(program, namespace);
    },
    limit(over) {
      isOver = over;
    },
    readEngine([shims, ...modules]) {
      if (hasEngine) return;
      interpreter.runPython(shims);
      for (const [name, code] of modules) globalThis.afmProvideEngine(name, code);
      globalThis.afmBeginChecks();
      hasEngine = true;
    },
    readMachine({ name, python: text, modules, begun, facts }, packed) {
      if (machine) return;
      interpreter.runPython(text);
      for (const [module, code] of modules) globalThis.afmProvide(module, code);
      interpreter.runPython(begun);
      machine = machineOf(facts, packed);
      globalThis.afmMachine = machine;
      machineName = name;
    },
    tryIn(code, { namespace, program, words, head }) {
      lay(program, namespace);
      machine.begin();
      globalThis.afmBeginMachine(machineName, namespace);
      // Nothing is shown of the last line, which puts something in.
      if (!run(`${ending(code)}\npass`, { namespace })) return;
      if (machine.isEmpty) {
        tell({ error: NOTHING });
        return;
      }
      guarded(() => {
        const tried = machine.ask({ words, head, onGroup: (group) => tell({ group }) });
        if (tried) tell({ tried });
      }, "cell");
    },
    check(code, { namespace, name, call }) {
      // Of a cell that raises, no name is judged: it may be that of an answer before.
      if (!run(ending(code), { namespace, cell: "answer" })) return;
      guarded(
        () => globalThis.afmCheck(code, name, prepare(`__verdict__ = ${call}`).code, namespace),
        "answer",
      );
    },
  };
}

/** The same text, its loops with a limit; as it is where it is not Python. */
function ending(code) {
  try {
    return limited(code, parse(code));
  } catch {
    return code;
  }
}

const HOW = {
  limited: ending,
  traced: (text) => traced(ending(text), parse(ending(text))),
};

/** What python/engine.py calls. */
const forChecks = (tell) => ({
  now: () => performance.now(),
  isSingle: (message) => message.includes(SINGLE),
  syntax: (text) => orProblem(() => asPython(text, parse(text))),
  syntaxNames: () =>
    [
      ...Object.entries(FIELDS).map(([kind, fields]) => `${kind} ${fields.join(" ")}`),
      ...OPERATORS,
    ].join("\n"),
  prepared: (text, how) =>
    orProblem(() => {
      const { code, problem } = prepare(HOW[how](text));
      if (problem) throw new SyntaxError(problem);
      return code;
    }),
  search: (...given) => globalThis.afmTensors.guarded(() => searched(...given)),
  filled,
  escaped: (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"),
  close(texts, n, cutoff) {
    const [word, ...words] = texts.split("\n");
    return closeMatches(word, words, n, cutoff).join("\n");
  },
  rounded: (value, digits) => Number(fixed(value, digits)),
  unescaped: (text) =>
    text.replace(/(b?)(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")/gs, (part, isBytes) =>
      isBytes ? part : part.replace(/\\(?:\\|x(..)|u(.{4})|U(.{8}))/g, letter),
    ),
  normalized: (form, text) => text.normalize(form),
  textMethod: (name, text) => TEXTS[name](text),
  lineOf: (trace, cell) => readError("", "", trace, cell).line ?? 0,
  reworded: (type, message) => readError(type, message, "", "").message,
  generatorState: () => initial().kept(),
  setGenerator: (state) => initial().restore(state),
  verdict: (passed, text) => tell({ verdict: { passed, text } }),
});

function orProblem(work) {
  try {
    return work();
  } catch (error) {
    return [error.message];
  }
}

function letter(written, ...digits) {
  const code = digits.slice(0, 3).find(Boolean);
  const sign = code ? String.fromCodePoint(Number.parseInt(code, 16)) : "\0";
  return TEXTS.isprintable(sign) ? sign : written;
}

const TEXTS = {
  casefold: (text) => text.toLowerCase(),
  isdecimal: (text) => /^\p{Nd}+$/u.test(text),
  isalnum: (text) => /^[\p{L}\p{N}]+$/u.test(text),
  isidentifier: (text) => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(text),
  isprintable: (text) => !/[\p{C}\p{Z}]/u.test(text.replaceAll(" ", "")),
  istitle: (text) => /^\P{L}*\p{Lu}[^\p{Lu}]*$/u.test(text),
  title: (text) => text.replace(/\p{L}+/gu, (word) => TEXTS.capitalize(word)),
  capitalize: (text) => text.slice(0, 1).toUpperCase() + text.slice(1).toLowerCase(),
};

/** difflib.get_close_matches: what shares the most with a word, in pieces as long as can be. */
function closeMatches(word, words, n, cutoff) {
  const shared = (a, b) => {
    let [best, i, j] = [0, 0, 0];
    for (let p = 0; p < a.length; p += 1) {
      for (let q = 0; q < b.length; q += 1) {
        let size = 0;
        while (p + size < a.length && a[p + size] === b[q + size]) size += 1;
        if (size > best) [best, i, j] = [size, p, q];
      }
    }
    if (!best) return 0;
    const behind = shared(a.slice(i + best), b.slice(j + best));
    return best + shared(a.slice(0, i), b.slice(0, j)) + behind;
  };
  const scored = words.map((other) => {
    const size = other.length + word.length;
    return { other, score: size ? (2 * shared(other, word)) / size : 1 };
  });
  return scored
    .filter(({ score }) => score >= cutoff)
    .sort((a, b) => b.score - a.score || (a.other < b.other ? 1 : -1))
    .slice(0, n)
    .map(({ other }) => other);
}

/** Output in few messages, and not without an end. */
function printer(tell) {
  let [waiting, sent, messages, lines, characters, cell] = ["", 0, 0, 0, 0, ""];
  const flush = () => {
    if (waiting) tell({ out: waiting });
    waiting = "";
    sent = performance.now();
    messages += 1;
  };
  return {
    begin(name) {
      [waiting, messages, lines, characters, cell] = ["", 0, 0, 0, name];
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
      if (messages < FIRST || performance.now() - sent > OFTEN) flush();
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
    guarded,
    call: (name, ...given) =>
      guarded(() => {
        if (isOver()) fail("this takes too long");
        const values = given.map(arrived);
        const result = holdsBatched(values) ? callBatched(name, values) : call(name, values);
        return counted(returned(result ?? true));
      }),
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
    decoded(text, errors) {
      const bytes = Uint8Array.from(text, (sign) => sign.charCodeAt(0));
      const found = new TextDecoder().decode(bytes);
      return errors === "ignore" ? found.replaceAll("\ufffd", "") : found;
    },
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
