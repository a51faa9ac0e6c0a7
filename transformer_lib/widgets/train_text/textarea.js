// The text that is learned: shown, written, pasted, or read from a file.
//
//   const area = textArea({ limits, onChange: (text) => {}, onRefusal: (sentence) => {} });
//   area.element    what folds away, with what is said of the text above it
//   area.open       the button that opens a file
//   area.set(text)   area.tell(parts)   area.close()   area.focus()
//
// Of a long text the field shows the beginning only, and a text that is far too long is not taken: to
// lay it out would hold up the page.

import { element, phrase } from "../core/dom.js";
import { tooLong } from "./corpus.js";

const WHOLE = 25_000; // characters that the field shows as they are ...
const BEGINNING = 4_000; // ... and so many of a longer text

export function textArea({ limits, onChange, onRefusal }) {
  const field = element("textarea", {
    class: "afm-text-field",
    "aria-label": "The text that is learned",
    ...{ rows: 5, spellcheck: "false", autocapitalize: "off", autocomplete: "off", dir: "auto" },
    placeholder: "Write or paste a text here: a few pages of anything.",
  });
  const told = element("span", {}, "The text");
  const file = element("input", { type: "file", accept: "text/*,.txt,.md,.csv,.tex" });
  const open = element("label", { class: "afm-button afm-text-file" }, "open a file", file);
  const folded = element(
    "details",
    { class: "afm-text-folded" },
    element("summary", {}, told),
    field,
  );
  let known = "";

  const refused = (length) => {
    if (length <= 2 * limits.most) return false;
    onRefusal(tooLong(limits.most));
    return true;
  };

  function show(text) {
    known = text;
    field.readOnly = text.length > WHOLE; // what is changed in it would be taken for the text
    field.value = field.readOnly ? `${text.slice(0, BEGINNING)}\n… (and so on)` : text;
  }

  function take(text) {
    if (text === known) return;
    show(text);
    onChange(text);
  }

  field.addEventListener("change", () => take(field.value));
  field.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text");
    if (text.length <= WHOLE) {
      setTimeout(() => take(field.value)); // when it is in the field
      return;
    }
    event.preventDefault();
    if (!refused(text.length)) take(text);
  });
  field.addEventListener("drop", (event) => {
    if (event.dataTransfer.getData("text").length > WHOLE) event.preventDefault();
  });
  file.addEventListener("change", async () => {
    const [one] = file.files;
    file.value = ""; // the same file can be opened again
    if (!one || refused(one.size / 2)) return;
    take(await one.text());
  });

  return {
    element: folded,
    open,
    set(text) {
      if (text !== known) show(text);
    },
    tell: (parts) => told.replaceChildren("The text", ...parts.map((part) => phrase(part))),
    close() {
      folded.open = false;
    },
    /** To be written in: over a text that is not shown as a whole, another one is pasted. */
    focus() {
      folded.open = true;
      if (field.readOnly) {
        field.value = "";
        field.readOnly = false;
      }
      field.focus();
    },
  };
}
