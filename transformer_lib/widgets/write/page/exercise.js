// An exercise on the page: the answer is written in Python, run in a worker, and judged by the engine
// that the notebook has. start.js has shown a field for it.

import { button, element } from "../../core/dom.js";
import { drop, keep, recall } from "../kept.js";
import { output } from "../output.js";
import { makePad } from "../pad.js";
import { pythonOf } from "../python.js";
import { listen, once, ready } from "./engine.js";
import { note } from "./progress.js";
import { solutionOf, verdict } from "./verdict.js";

const ENDLESS = "Stopped after 10 s: an endless loop?";
const STOPPED = "Stopped by you.";

export function exercise(place, { id, stub }, files) {
  const before = place.querySelector("textarea"); // what was written while this was loaded
  const said = verdict();
  const printed = output();
  let python = null;
  let isRunning = false;

  const pad = makePad({
    text: before?.value ?? recall(id) ?? stub,
    label: "Your answer in Python. Escape, then Tab, leaves it.",
    load: async () => (await window.afm.load(files.editor)).makeEditor,
    onChange: (text) => {
      if (text === stub) drop(id);
      else keep(id, text);
      show();
    },
    onRun: check,
  });
  const go = button({ label: "Check", title: "Ctrl or ⌘ with Enter", onClick: check });
  const halt = button({ label: "Stop", onClick: () => python?.stop(STOPPED) });
  const over = button({ label: "Start over", onClick: reset });
  go.element.classList.add("afm-write-run");
  const after = solutionOf(place);
  const row = element("p", { class: "afm-ask-row" }, go.element, halt.element, over.element);
  const selected = [before?.selectionStart ?? 0, before?.selectionEnd ?? 0];
  place.replaceChildren(pad.element, row, printed.element, said.element, after.element);
  pad.element.querySelector("textarea").setSelectionRange(...selected);
  show();

  function show() {
    go.element.disabled = isRunning;
    halt.element.hidden = !isRunning;
    over.element.hidden = isRunning || pad.text() === stub;
  }

  async function check() {
    if (isRunning) return;
    isRunning = true;
    printed.clear();
    pad.mark(null);
    said.wait(python ? "Checking …" : "Python is being loaded …");
    show();
    python ??= pythonOf(files);
    const found = await judged(python, id, pad.text(), files, {
      onStart: () => said.wait("Checking …"),
      onPrint: (text) => printed.add(text),
    });
    if (found.problem) {
      printed.fail(found.problem);
      pad.mark(found.problem.line);
      said.clear();
    } else {
      said.show(found);
      const line = found.passed === false && /\bline (\d+),/i.exec(found.text);
      if (line) pad.mark(Number(line[1]));
      if (found.passed) note(id);
      after.show(found.passed !== null);
    }
    isRunning = false;
    pad.upgrade();
    show();
  }

  function reset() {
    drop(id);
    pad.set(stub);
    pad.mark(null);
    said.clear();
    printed.clear();
    after.show(false);
    show();
    pad.focus();
  }

  return { check, focus: pad.focus };
}

/** { passed, text } or { problem: { type, message, line } }. */
async function judged(python, id, text, files, hooks) {
  const events = listen(hooks);
  try {
    const asked = window.afm.load(files.asked); // both at a time
    await ready(python, files, events);
    const { program, name, call } = (await asked).exercises[id];
    await once(python, id, "lay", [program, id], events);
    const task = { namespace: id, name, call };
    const { stopped } = await python.do("check", [text, task], events.on);
    if (stopped) return { passed: false, text: stopped === STOPPED ? STOPPED : ENDLESS };
    const { problem, verdict: said } = events;
    return problem ? { problem } : (said ?? { passed: null, text: "not attempted yet" });
  } catch (error) {
    return { problem: { type: "Python could not start", message: error.message, line: null } };
  }
}
