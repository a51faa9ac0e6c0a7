// Where code is written: a plain field at first, and the editor as soon as it is used.
//
//   const pad = makePad({ text, label, load, onChange, onRun });     load: () => Promise of makeEditor, or null
//   pad.element   pad.text()   pad.set(text)   pad.mark(line)   pad.focus()   pad.end()

import { element } from "../core/dom.js";

export function makePad({ text, label, load, onChange, onRun }) {
  const field = element("textarea", {
    class: "afm-write-field",
    "aria-label": label,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    wrap: "off",
  });
  const holder = element("div", { class: "afm-write-pad" }, field);
  let editor = null;
  let marked = null; // a line that the editor marks as soon as it is there
  let asked = false;
  let ended = false;

  function fill(now) {
    field.value = now;
    field.rows = now.split("\n").length;
  }

  async function upgrade() {
    if (asked || !load) return;
    asked = true;
    const makeEditor = await load().catch(() => null);
    if (!makeEditor || ended) return; // the plain field goes on
    const { selectionStart, selectionEnd } = field;
    const hadFocus = document.activeElement === field;
    editor = makeEditor({ parent: holder, text: field.value, label, onChange, onRun });
    field.remove();
    editor.select(selectionStart, selectionEnd);
    if (hadFocus) editor.focus();
    if (marked !== null) editor.mark(marked);
  }

  field.addEventListener("input", () => {
    marked = null;
    field.rows = field.value.split("\n").length;
    onChange(field.value);
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    onRun();
  });
  field.addEventListener("focus", upgrade);
  field.addEventListener("pointerenter", upgrade);
  fill(text);
  return {
    element: holder,
    text: () => editor?.text() ?? field.value,
    set(now) {
      if (editor) editor.set(now);
      else fill(now);
    },
    mark(line) {
      marked = line;
      editor?.mark(line);
    },
    focus: () => (editor ?? field).focus(),
    upgrade,
    end() {
      ended = true;
      editor?.end();
    },
  };
}
