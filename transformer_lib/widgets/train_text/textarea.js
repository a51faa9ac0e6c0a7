// The text that is learned: shown, written, pasted, or read from a file.
//
//   const area = textArea({ limits, onChange: (text) => {}, onRefusal: (sentence) => {} });
//   area.element    what folds away, with what is said of the text above it
//   area.open       the button that opens a file
//   area.set(text)   area.tell(parts)   area.close()   area.focus()
//
// A text that is far too long never gets into the field: to lay it out would hold up the page.

import { element, phrase } from "../core/dom.js";
import { tooLong } from "./corpus.js";

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

  function take(text) {
    if (text === known) return;
    known = text;
    onChange(text);
  }

  field.addEventListener("change", () => take(field.value));
  field.addEventListener("paste", (event) => {
    if (refused(event.clipboardData.getData("text").length)) event.preventDefault();
    else setTimeout(() => take(field.value)); // when it is in the field
  });
  field.addEventListener("drop", (event) => {
    if (refused(event.dataTransfer.getData("text").length)) event.preventDefault();
  });
  file.addEventListener("change", async () => {
    const [one] = file.files;
    file.value = ""; // the same file can be opened again
    if (!one || refused(one.size / 2)) return;
    const text = await one.text();
    field.value = text;
    take(text);
  });

  return {
    element: folded,
    open,
    set(text) {
      known = text;
      field.value = text;
    },
    tell: (parts) => told.replaceChildren("The text", ...parts.map((part) => phrase(part))),
    close() {
      folded.open = false;
    },
    focus() {
      folded.open = true;
      field.focus();
    },
  };
}
