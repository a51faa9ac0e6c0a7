// A text to choose among samples, or to write (own_text.py).
//
//   const own = ownText(model, { before: () => {} });   // before another text is set
//   fig.controls.append(...own.elements);
//   const text = own.show();           // the model's text, now also in the controls
//   own.setSample(i)                   // what a link sets

import { choices, element } from "./dom.js";
import { readJson, send } from "./wire.js";

export function ownText(model, { before = () => {} } = {}) {
  const { samples, contents } = readJson(model, "_text");
  const { characters } = readJson(model, "_limits");

  function setText(text) {
    before();
    const letters = Array.from(text.toWellFormed?.() ?? text).slice(0, characters);
    send(
      model,
      "_letters",
      letters.map((letter) => letter.codePointAt(0)),
    );
  }

  const chooser = choices({
    label: "text",
    options: [...samples, "your own"],
    value: 0,
    onChange(i) {
      if (i < samples.length) setText(contents[i]);
      else field.focus();
    },
  });
  const field = element("textarea", {
    class: "afm-own-text",
    rows: 2,
    maxlength: characters,
    spellcheck: "false",
    autocapitalize: "off",
    dir: "auto",
    "aria-label": "your own text",
  });
  field.addEventListener("input", () => setText(field.value));

  function show() {
    const text = String.fromCodePoint(...model.get("_letters"));
    if (field.value !== text) field.value = text;
    const sample = contents.indexOf(text);
    chooser.set(sample < 0 ? samples.length : sample);
    return text;
  }

  return { elements: [chooser.element, field], show, setSample: (i) => setText(contents[i]) };
}
