// Tries, when the book is built, what the page will do: run by book/trial.py under node.
//
//   node trial.mjs task.json     { engine, npm, exercises: [{ id, name, stub, call, solution, program }] }
//     prints { engine, exercises: [{ program, why, ms }] }: the code as the page's Python reads it; `why`
//     is null where an exercise can be asked on the page, else what was in the way

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { start } from "../transformer_lib/widgets/write/session.js";
import { prepare } from "../transformer_lib/widgets/write/source.js";

const FOLDER = new URL("../transformer_lib/widgets/write/python/", import.meta.url);
const { engine, npm, exercises } = JSON.parse(readFileSync(process.argv[2], "utf8"));

let events = [];
const { loadMicroPython } = await import(pathToFileURL(npm));
const session = await start({
  load: loadMicroPython,
  python: ["names", "torch_page", "layers", "cells"].map((name) =>
    readFileSync(new URL(`${name}.py`, FOLDER), "utf8"),
  ),
  tell: (event) => events.push(event),
});

function told(work) {
  events = [];
  work();
  const one = (name) => events.find((event) => event[name])?.[name];
  return { error: one("error"), verdict: one("verdict") };
}

const prepared = (text) => prepare(text).code;
const read = [prepared(engine[0]), ...engine.slice(1).map(([name, text]) => [name, prepared(text)])];
session.readEngine(read);

/** What is in the way: of the code before, of the empty answer, or of the solution. */
function whyNot({ id, name, stub, call, solution }, program) {
  const before = told(() => session.lay(program, id));
  if (before.error) return before.error.message;
  const task = { namespace: id, name, call };
  const empty = told(() => session.check(stub, task));
  if (empty.error || empty.verdict?.passed !== null) return said("the empty answer", empty);
  const right = told(() => session.check(solution, task));
  return right.verdict?.passed === true ? null : said("the solution", right);
}

const said = (what, { error, verdict }) => `${what}: ${error?.message ?? verdict?.text}`;

const tried = exercises.map((asked) => {
  const { modules, context } = asked.program;
  const program = {
    modules: modules.map(([name, text]) => [name, prepared(text)]),
    context: prepared(context),
  };
  const from = performance.now();
  const why = asked.choice ? null : whyNot(asked, program);
  return { program, why, ms: performance.now() - from };
});
console.log(JSON.stringify({ engine: read, exercises: tried }));
