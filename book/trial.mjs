// Tries, when the book is built, what the page will do: run by book/python_files.py under node.
//
//   node trial.mjs task.json     { engine, npm, write, exercises: [{ id, name, stub, call, solution, program }],
//                                  imports: [{ modules, context }], cells: [{ code, open, wanted }],
//                                  programs: [{ modules, context }] }
//     prints { engine, exercises: [{ program, why, ms }], before, cells: [number or null], programs }
//
// The code is printed as the page's Python reads it. `why` is null where an exercise can be asked on the
// page, else what was in the way. `before` are the programs that run there before a cell that a reader
// changes; such a cell has the number of them that come before it, and null where it cannot be changed:
// it prints on the page what the notebook stores, or it does not run there.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const task = JSON.parse(readFileSync(process.argv[2], "utf8"));
const { engine, npm, exercises = [], imports = [], cells = [], programs = [] } = task;
const inFolder = (name) => new URL(name, pathToFileURL(`${task.write}/`));
const { start } = await import(inFolder("session.js"));
const { prepare } = await import(inFolder("source.js"));

let events = [];
const { loadMicroPython } = await import(pathToFileURL(npm));
const session = await start({
  load: loadMicroPython,
  python: ["names", "torch_page", "layers", "cells"].map((name) =>
    readFileSync(inFolder(`python/${name}.py`), "utf8"),
  ),
  tell: (event) => events.push(event),
});

function told(work) {
  events = [];
  work();
  const one = (name) => events.find((event) => event[name])?.[name];
  const text = events.map(({ out, shown }) => out ?? (shown ? `${shown}\n` : "")).join("");
  return { text, error: one("error"), verdict: one("verdict") };
}

const prepared = (text) => prepare(text).code;
const read = [prepared(engine[0]), ...engine.slice(1).map(([name, text]) => [name, prepared(text)])];
session.readEngine(read);

/** What is in the way: of the code before, of the empty answer, or of the solution. */
function whyNot({ id, name, stub, call, solution }, program) {
  const before = told(() => session.lay(program, id));
  if (before.error) return before.error.message;
  const asked = { namespace: id, name, call };
  const empty = told(() => session.check(stub, asked));
  if (empty.error || empty.verdict?.passed !== null) return said("the empty answer", empty);
  const right = told(() => session.check(solution, asked));
  return right.verdict?.passed === true ? null : said("the solution", right);
}

const said = (what, { error, verdict }) => `${what}: ${error?.message ?? verdict?.text}`;

const programOf = ({ modules, context }) => ({
  modules: modules.map(([name, text]) => [name, prepared(text)]),
  context: prepared(context),
});

const tried = exercises.map((asked) => {
  const program = programOf(asked.program);
  const from = performance.now();
  const why = asked.choice ? null : whyNot(asked, program);
  return { program, why, ms: performance.now() - from };
});
// ---- cells -------------------------------------------------------------------------------------

// Seconds of this process for one cell: a page that runs all those before a changed one has to be quick.
const MOST = 0.5;
const used = () => process.cpuUsage().user / 1e6;

/** The programs of the cells that run, and for each cell how many of them come before it. */
function tryCells() {
  const before = [];
  for (const program of imports.map(programOf)) {
    if (!told(() => session.lay(program, "imports")).error) before.push(program);
  }
  // A cell with a figure runs as far as that: its names are there for those behind it. What takes long
  // is left out; a first walk finds it.
  const runs = walk(before, cells.map(() => true)).map(({ isSlow }) => !isSlow);
  const seen = walk(before, runs);
  const found = cells.map(({ code }, i) => {
    const count = before.length;
    if (runs[i] && code.trim()) before.push({ modules: [], context: prepared(code) });
    return cells[i].open && seen[i].isFine && seen[i].text === cells[i].wanted ? count : null;
  });
  return { before, cells: found };
}

function walk(before, runs) {
  session.layAnew(before, "cells");
  return cells.map(({ code }, i) => {
    if (!runs[i]) return { isFine: false, isSlow: true };
    const until = used() + MOST;
    session.limit(() => used() > until);
    const { text, error } = told(() => session.run(code, { namespace: "cells" }));
    session.limit(() => false);
    return { isFine: !error, isSlow: used() > until, text };
  });
}

const others = programs.map(programOf);
console.log(JSON.stringify({ engine: read, exercises: tried, ...tryCells(), programs: others }));
