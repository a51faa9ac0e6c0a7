// A text as one vocabulary cuts it: a title, and its pieces or a note in their place.
//
//   const part = cut(note);   fig.add(part)
//   part.paint({ title, words, name })      words: ids by word, or null: then the note is there

import { element } from "../core/dom.js";
import { pieces } from "../core/owntext.js";

export function cut(note = "") {
  const title = element("p", { class: "afm-part-title" });
  const text = pieces();
  const holder = element("div", {}, note);
  return {
    element: element("div", { class: "afm-vocabulary" }, title, holder),
    layout: text.layout,
    paint(now) {
      title.textContent = now.title;
      if (now.words) {
        holder.replaceChildren(text.element);
        text.paint({ words: now.words, name: now.name, numbered: true });
      } else holder.replaceChildren(note);
    },
  };
}
