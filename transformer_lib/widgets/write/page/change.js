// A cell of the page that can be changed and run, with the names that the cells before it have made:
// these run first, unseen, each time, so that what comes out depends on nothing else. Its stored output
// stays beside the new one. What the reader writes is kept in the browser, as answers are.

import { button, element } from "../../core/dom.js";
import { drop, keep, nameOfCell, recall } from "../kept.js";
import { output } from "../output.js";
import { makePad } from "../pad.js";
import { pythonOf } from "../python.js";
import { listen, ready } from "./engine.js";

const CELLS = "cells"; // the namespace that the cells of a page share

export function change(place, files) {
  const cell = place.closest(".cell");
  const code = cell.querySelector(".cell_input pre").textContent.trimEnd();
  const name = nameOfCell(code);
  const opens = place.querySelector("button");
  const said = output();
  const told = element("p", { role: "status", class: "afm-change-said" });
  let python = null;
  let mine = null; // the turn of Python in which it runs
  const pad = makePad({
    text: recall(name) ?? code,
    label: "The cell's code. Escape, then Tab, leaves it.",
    load: async () => (await window.afm.load(files.editor)).makeEditor,
    onChange(text) {
      if (text === code) drop(name);
      else keep(name, text);
      show();
    },
    onRun: run,
  });
  const go = button({ label: "Run", title: "Ctrl or ⌘ with Enter", onClick: run });
  const halt = button({ label: "Stop", onClick: () => mine.stop() });
  const over = button({ label: "Start over", title: "The book’s own text again", onClick: reset });
  const back = button({ label: "Back to the stored cell", onClick: close });
  go.element.classList.add("afm-write-run");
  const row = element(
    "p",
    { class: "afm-ask-row" },
    go.element,
    halt.element,
    over.element,
    back.element,
  );
  const box = element("div", { hidden: true }, pad.element, row, told, said.element);
  place.append(box);

  function open() {
    setOpen(true);
    pad.focus();
  }

  function close() {
    mine?.stop();
    mine = null;
    said.clear();
    told.textContent = "";
    setOpen(false);
    opens.textContent = pad.text() === code ? "Change it" : "Open your change";
    opens.focus();
  }

  function reset() {
    drop(name);
    pad.set(code);
    pad.mark(null);
    said.clear();
    told.textContent = "";
    show();
    pad.focus();
  }

  function setOpen(isOpen) {
    box.hidden = !isOpen;
    opens.hidden = isOpen;
    cell.classList.toggle("afm-changed", isOpen);
    show();
  }

  function show() {
    go.element.disabled = mine !== null;
    halt.element.hidden = !mine;
    over.element.hidden = mine !== null || pad.text() === code;
  }

  async function run() {
    if (mine) return;
    said.clear();
    pad.mark(null);
    told.textContent = python ? "Running …" : "Python is being loaded …";
    python ??= pythonOf(files);
    const number = Number(place.dataset.afmChange);
    const turn = python.turn((own) => ran(own, pad.text(), number, files, said.add));
    mine = turn;
    show();
    const { problem } = await turn.end;
    if (mine !== turn) return; // closed since
    mine = null;
    if (problem) {
      said.fail(problem);
      pad.mark(problem.line);
    }
    told.textContent = problem ? "" : "What your cell prints:";
    pad.upgrade();
    show();
  }

  return { open };
}

/** { problem }: what went wrong, or null. */
async function ran(own, text, number, files, onPrint) {
  const quiet = listen(); // a cell before it may end at a figure
  const events = listen({ onPrint });
  const loaded = window.afm.load(files.cells);
  await ready(own, files, events);
  const { before, counts } = await loaded;
  await own.do("layAnew", [before.slice(0, counts[number]), CELLS], quiet.on);
  await own.do("run", [text, { namespace: CELLS }], events.on);
  return events;
}
