// Python in node as the page has it, for the tests.
//
//   const python = await begin();
//   python.run("1 + 1")  ->  { text: "2\n", error: undefined, ms }

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { start } from "../../../transformer_lib/widgets/write/session.js";

const FOLDER = new URL("../../../transformer_lib/widgets/write/python/", import.meta.url);
const PACKAGE = "@micropython/micropython-webassembly-pyscript/micropython.mjs";

export async function begin() {
  const address = pathToFileURL(join(process.env.AFM_NPM, PACKAGE));
  const { loadMicroPython } = await import(address);
  const names = ["names", "torch_page", "layers", "cells"];
  const python = names.map((name) => readFileSync(new URL(`${name}.py`, FOLDER), "utf8"));
  let events = [];
  const session = await start({
    load: loadMicroPython,
    python,
    tell: (event) => events.push(event),
  });
  const told = (work) => {
    events = [];
    const from = performance.now();
    work();
    const ms = performance.now() - from;
    const text = events.map(({ out, shown }) => out ?? (shown ? `${shown}\n` : "")).join("");
    const one = (name) => events.find((event) => event[name])?.[name];
    return { text, error: one("error"), verdict: one("verdict"), tried: one("tried"), ms };
  };
  return {
    ...session,
    run: (code, namespace = "main") => told(() => session.run(code, { namespace })),
    lay: (program, namespace) => told(() => session.lay(program, namespace)),
    tryIn: (code, options) => told(() => session.tryIn(code, options)),
    check: (code, options) => told(() => session.check(code, options)),
  };
}
