import { button } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { drive } from "../core/state.js";
import { readJson } from "../core/wire.js";
import { drop, keep, nameOfCell, recall } from "./kept.js";
import { output } from "./output.js";
import { makePad } from "./pad.js";
import { pythonOf } from "./python.js";

const HERE = "This runs Python on the book's page. In a notebook, any cell does the same.";
const STOPPED = "stopped by you; all names are gone";

function render({ model, el }) {
  const { code, setup } = readJson(model, "_text");
  const { seconds } = readJson(model, "_limits");
  const files = model.get("_python");
  const fig = figure(el, {
    name: "Write and run Python",
    hint: files.python ? "Try: change a line, and run it (Ctrl or ⌘ with Enter)." : HERE,
  });
  const name = model.get("name") || nameOfCell(code);
  const first = recall(name) ?? code;
  const said = output();
  let python = null;
  let mine = null; // the turn of Python in which it runs
  let known = 0; // the age of the interpreter that has run the setup
  let runs = 0; // that went through
  let failed = 0;

  const loadEditor = async () => (await window.afm.load(files.editor)).makeEditor;
  const pad = makePad({
    text: first,
    label: "Python code. Escape, then Tab, leaves it.",
    load: files.python ? loadEditor : null,
    onChange: (text) => {
      if (text === code) drop(name);
      else keep(name, text);
      show();
    },
    onRun: run,
  });
  const go = button({ label: "Run", title: "Ctrl or ⌘ with Enter", onClick: run });
  const halt = button({ label: "Stop", onClick: () => mine.stop(STOPPED) });
  const over = button({
    label: "Start over",
    title: "The first text again; what you wrote and all names are forgotten",
    onClick: reset,
  });
  go.element.classList.add("afm-write-run");
  if (files.python) fig.controls.append(go.element, halt.element, over.element);
  fig.add(pad, { basis: 640 }); // a line of the book's code has 76 characters
  fig.add(said, { basis: 400 });
  fig.onEnd(pad.end);

  function show() {
    go.element.disabled = mine !== null;
    halt.element.disabled = !mine;
    over.element.disabled = !mine && pad.text() === code && runs + failed === 0;
  }

  async function run() {
    if (mine || !files.python) return;
    said.clear();
    pad.mark(null);
    fig.say(python ? "Running …" : "Python is being loaded …");
    python ??= pythonOf(files);
    let problem = null;
    const onEvent = (event) => {
      if (event.started) fig.say("Running …");
      else if (event.error) problem = event.error;
      else said.add(event.out ?? `${event.shown}\n`);
    };
    const turn = python.turn(async (own) => {
      await prepare(own, onEvent);
      if (problem) return { problem };
      const ms = await own.do("run", [pad.text(), { namespace: name }], { seconds, onEvent });
      return { problem, ms };
    });
    mine = turn;
    show();
    const end = await turn.end;
    if (mine !== turn) return; // started over since
    mine = null;
    tell(end.problem, end.ms);
    pad.upgrade(); // not sooner: the first output should not wait for colors
    show();
  }

  /** The setup, once for each interpreter; whatever it prints is not shown. */
  async function prepare(own, tellRun) {
    if (!setup || known === own.age) return;
    const onEvent = (event) => (event.error || event.started) && tellRun(event);
    await own.do("run", [setup, { namespace: name }], { seconds, onEvent });
    known = own.age;
  }

  function tell(problem, ms) {
    if (!problem) {
      runs += 1;
      fig.say("It ran in ", { text: duration(ms) }, ".");
    } else {
      failed += 1;
      said.fail(problem);
      pad.mark(problem.line);
      const where = problem.line ? [" in line ", { text: String(problem.line) }] : [];
      fig.say({ text: problem.type, role: "key" }, ...where, `: ${firstLine(problem.message)}`);
    }
    model.set("ran", runs);
    model.save_changes();
  }

  function reset() {
    mine?.stop();
    mine = null;
    python?.forget(name);
    [known, runs, failed] = [0, 0, 0];
    drop(name);
    pad.set(code);
    pad.mark(null);
    said.clear();
    fig.say("");
    model.set("ran", 0);
    show();
  }

  show();
  drive(fig, model, { set: { run }, reset, facts: () => ({ ran: runs, failed }) });
  return fig.end;
}

const duration = (ms) =>
  ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`;
const firstLine = (text) => text.split("\n")[0];

export default { render };
