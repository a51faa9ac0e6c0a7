// The words nearest to the chosen one, with their cosines: a button each, which chooses that word.
//
//   const list = neighbors({ words, kinds, onPoint(i or null) {}, onChoose(i) {} });   fig.add(list)
//   list.paint({ near: [[4, 0.31], ...], marked: i or null })

import { clip, element, showToken, svgElement } from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { mark } from "./scatter.js";

export function neighbors({ words, kinds, onPoint, onChoose }) {
  const rows = element("ol", { class: "afm-near" });
  const title = element("p", { class: "afm-part-title" }, "nearest in all components, by cosine");

  function rowOf([i, cosine], marked) {
    const picture = svgElement(
      "svg",
      { width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" },
      mark(kinds[i]),
    );
    const bar = element("span", {
      class: "afm-near-bar",
      style: `width:${Math.max(0, 100 * cosine)}%`,
    });
    const word = element(
      "button",
      { type: "button", class: i === marked ? "afm-near-word afm-lit" : "afm-near-word" },
      picture,
      element("span", { class: "afm-near-name" }, clip(showToken(words[i]), 16)),
      element("span", { class: "afm-near-room", "aria-hidden": "true" }, bar),
      element("span", { class: "afm-near-number" }, fixed(cosine)),
    );
    word.addEventListener("click", () => onChoose(i));
    for (const [on, off] of [
      ["pointerenter", "pointerleave"],
      ["focus", "blur"],
    ]) {
      word.addEventListener(on, () => onPoint(i));
      word.addEventListener(off, () => onPoint(null));
    }
    return element("li", { "data-word": String(i) }, word);
  }

  return {
    element: element("div", {}, title, rows),
    paint({ near, marked }) {
      const shown = near.map(([i]) => String(i)).join();
      if (rows.dataset.shown !== shown) {
        const at = [...rows.children].findIndex((row) => row.querySelector(":focus-visible"));
        rows.dataset.shown = shown;
        rows.replaceChildren(...near.map((one) => rowOf(one, marked)));
        rows.children[at]?.firstChild.focus();
      }
      for (const row of rows.children)
        row.firstChild.classList.toggle("afm-lit", Number(row.dataset.word) === marked);
    },
  };
}
