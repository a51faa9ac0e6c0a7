// Below a figure YourPart: a reader writes a part of the machine, and the figure's right half shows
// what becomes of it. book/page_machine.py says with what the text can begin.

import { button, element } from "../../core/dom.js";
import { drop, keep, recall } from "../kept.js";
import { output } from "../output.js";
import { makePad } from "../pad.js";
import { pythonOf } from "../python.js";
import { listen, once, ready } from "./engine.js";

const NAME = "yours";
const SECONDS = 180; // a slow phone has the time that it needs
const LEAD =
  "Write a part of the machine and put it in. The right half of the figure above shows what becomes of it. The last line says which part yours replaces, as in a notebook.";
const AGAIN = "You have not answered this exercise yet, so this is how it begins.";

export function yours(place, files) {
  const opens = place.querySelector("button");
  const figureOf = () => place.closest(".cell").querySelector(".afm-your-part")?.afmYours;
  const told = element("p", { role: "status", class: "afm-change-said" });
  const bar = element("progress", { max: "200", value: "0", hidden: true, "aria-label": "Asked" });
  const said = output();
  const starts = element("div", {
    role: "group",
    "aria-label": "Begin with",
    class: "afm-ask-row",
  });
  const tries = element("ol", { class: "afm-yours-tries", "aria-label": "What you have tried" });
  let python = null;
  let begins = null;
  let mine = null; // the turn of Python in which it is tried
  const pad = makePad({
    text: recall(NAME) ?? "",
    label: "Your part in Python. Escape, then Tab, leaves it.",
    load: async () => (await window.afm.load(files.editor)).makeEditor,
    onChange: (text) => keep(NAME, text),
    onRun: run,
  });
  const go = button({ label: "Put it in", title: "Ctrl or ⌘ with Enter", onClick: run });
  const halt = button({ label: "Stop", onClick: () => mine.stop() });
  const back = button({ label: "Back to the chapter’s figure", onClick: close });
  go.element.classList.add("afm-write-run");
  const row = element("p", { class: "afm-ask-row" }, go.element, halt.element, back.element);
  const lead = element("p", {}, LEAD);
  const result = element("div", {}, told, bar, said.element, tries);
  const box = element("div", { hidden: true }, lead, starts, pad.element, row, result);
  place.append(box);

  async function open() {
    begins ??= await window.afm.load(files.yours);
    if (!starts.children.length) {
      starts.append("Begin with", ...begins.versions.map((one) => beginning(one)));
      if (!pad.text()) pad.set(textOf(begins.versions[0]));
    }
    setOpen(true);
    pad.focus();
  }

  function beginning(version) {
    const label = version.exercise ? `your ${version.name}` : version.name;
    return button({
      label,
      onClick() {
        pad.set(textOf(version));
        drop(NAME);
        pad.mark(null);
        said.clear();
        told.textContent = version.exercise && recall(version.exercise) === null ? AGAIN : "";
        pad.focus();
      },
    }).element;
  }

  function close() {
    mine?.stop();
    figureOf()?.show(null);
    setOpen(false);
    opens.focus();
  }

  function setOpen(isOpen) {
    box.hidden = !isOpen;
    opens.hidden = isOpen;
    show();
  }

  function show() {
    go.element.disabled = mine !== null;
    halt.element.hidden = bar.hidden = !mine;
  }

  async function run() {
    const figure = figureOf();
    if (mine || !figure) return;
    said.clear();
    pad.mark(null);
    bar.removeAttribute("value"); // not known yet
    told.textContent = "The machine is being loaded …";
    python ??= pythonOf(files);
    const hooks = {
      onPrint: said.add,
      onStart() {
        told.textContent = "The machine reads …";
      },
      onGroup({ right, of, all }) {
        [bar.max, bar.value] = [all, of];
        told.textContent = `Asked ${of} of ${all} questions: ${right} right so far.`;
      },
    };
    mine = python.turn((own) => put(own, pad.text(), begins, files, figure, hooks));
    show();
    const { problem, tried } = await mine.end;
    mine = null;
    show();
    told.textContent = problem ? "" : answered(tried);
    if (problem) {
      figure.show(null);
      said.fail(problem);
      pad.mark(problem.line);
    } else {
      figure.show(tried);
      const names = [...new Set(tried.parts.map(({ called }) => called))].join(", ");
      tries.append(element("li", {}, `${names}: ${tried.right} of ${tried.of}`));
    }
    pad.upgrade();
  }

  return { open };
}

const answered = ({ right, of, said }) =>
  `It answers ${right} of ${of} questions right. To the story above it says: ${said}.`;

const textOf = ({ text, call, exercise }) =>
  `${((exercise && recall(exercise)) ?? text).trimEnd()}\n\n\n${call}\n`;

/** { tried } or { problem: { type, message, line } }. */
async function put(own, text, begins, files, { words, head }, hooks) {
  const quiet = listen();
  const events = listen(hooks);
  const [layer, number] = head.match(/\d+/g).map((count) => Number(count) - 1);
  const names = [begins.machine, ...begins.weights];
  const loaded = Promise.all(names.map((name) => window.afm.load(name)));
  await ready(own, files, quiet);
  const [machine, ...packed] = await loaded;
  const bytes = packed.map(({ buffer }) => buffer);
  await once(own, NAME, "readMachine", [machine, bytes], quiet);
  if (quiet.problem) return quiet;
  const task = { namespace: NAME, program: begins.program, words, head: [layer, number] };
  await own.do("tryIn", [text, task], { ...events.on, seconds: SECONDS });
  return events;
}
