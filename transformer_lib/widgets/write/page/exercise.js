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

export function exercise(place, { id, stub }, files) {
  const before = place.querySelector("textarea"); // what was written while this was loaded
  const said = verdict();
  const printed = output();
  let python = null;
  let mine = null; // the turn of Python in which it is checked

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
  const halt = button({ label: "Stop", onClick: () => mine.stop() });
  const over = button({ label: "Start over", onClick: reset });
  go.element.classList.add("afm-write-run");
  const after = solutionOf(place);
  const row = element("p", { class: "afm-ask-row" }, go.element, halt.element, over.element);
  const isHere = place.contains(document.activeElement); // still, on a slow line
  const selected = [before?.selectionStart ?? 0, before?.selectionEnd ?? 0];
  place.replaceChildren(pad.element, row, printed.element, said.element, after.element);
  pad.element.querySelector("textarea").setSelectionRange(...selected);
  show();

  function show() {
    go.element.disabled = mine !== null;
    halt.element.hidden = !mine;
    over.element.hidden = mine !== null || pad.text() === stub;
  }

  async function check() {
    if (mine) return;
    printed.clear();
    pad.mark(null);
    said.wait(python ? "Checking …" : "Python is being loaded …");
    python ??= pythonOf(files);
    const hooks = { onStart: () => said.wait("Checking …"), onPrint: printed.add };
    mine = python.turn((own) => judged(own, id, pad.text(), files, hooks));
    show();
    const found = await mine.end;
    mine = null;
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

  return { check, focus: () => isHere && pad.focus() };
}

/** { passed, text } or { problem: { type, message, line } }. */
async function judged(own, id, text, files, hooks) {
  const events = listen(hooks);
  const asked = window.afm.load(files.asked); // both at a time
  await ready(own, files, events);
  const { program, name, call } = (await asked).exercises[id];
  await once(own, id, "lay", [program, id], events);
  await own.do("check", [text, { namespace: id, name, call }], events.on);
  const { problem, verdict: said } = events;
  return problem ? { problem } : (said ?? { passed: null, text: "not attempted yet" });
}
