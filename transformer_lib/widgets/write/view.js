import { button } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { drive } from "../core/state.js";
import { readJson } from "../core/wire.js";
import { drop, keep, recall } from "./kept.js";
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
  const name = model.get("name") || "write";
  const first = recall(name) ?? code;
  const said = output();
  let python = null;
  let isRunning = false;
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
  const halt = button({ label: "Stop", onClick: () => python?.stop(STOPPED) });
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
    go.element.disabled = isRunning;
    halt.element.disabled = !isRunning;
    over.element.disabled = !isRunning && pad.text() === code && runs + failed === 0;
  }

  async function run() {
    if (isRunning || !files.python) return;
    isRunning = true;
    said.clear();
    pad.mark(null);
    show();
    fig.say(python ? "Running …" : "Python is being loaded …");
    python ??= pythonOf(files);
    let problem = null;
    const onEvent = (event) => {
      if (event.started) fig.say("Running …");
      else if (event.error) problem = event.error;
      else said.add(event.out ?? `${event.shown}\n`);
    };
    try {
      const options = { namespace: name, seconds, onEvent };
      const prepared = await prepare(options);
      const isReady = !problem && !prepared.stopped;
      const end = isReady ? await python.run(pad.text(), options) : prepared;
      tell(end.stopped ? { type: "Stopped", message: end.stopped, line: null } : problem, end.ms);
    } catch (error) {
      tell({ type: "Python could not start", message: error.message, line: null });
    }
    isRunning = false;
    pad.upgrade(); // not sooner: the first output should not wait for colors
    show();
  }

  /** The setup, once for each interpreter; whatever it prints is not shown. */
  async function prepare(options) {
    if (!setup || (known && known === python.age)) return {};
    const onEvent = (event) => (event.error || event.started) && options.onEvent(event);
    const end = await python.run(setup, { ...options, onEvent });
    known = end.stopped ? 0 : python.age;
    return end;
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
    python?.stop(STOPPED);
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
