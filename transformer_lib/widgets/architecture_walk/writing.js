// The decoder's words so far, the button that lets it write one word more, and the next word's
// chances.
//
//   const line = writing({ label, onWrite(steps), onRow(row) });
//   line.paint({ words, row, ended, steps: { done, all }, next: nextWords(chances, tokens) })
//   listed(next)   the same words as a list of bars        nextWords: in model.js

import { chips } from "../core/chips.js";
import { button, element, showToken } from "../core/dom.js";
import { percentAmong } from "../core/numbers.js";

/** The most probable words, each with a bar. */
export const listed = ({ words, among }) =>
  words.map(({ word, chance }) =>
    element(
      "li",
      {},
      element("bdi", {}, showToken(word)),
      element("span", { class: "afm-walk-bar", style: `width:${100 * chance}px` }),
      element("span", { class: "afm-number" }, percentAmong(chance, among)),
    ),
  );

export function writing({ label, onWrite, onRow }) {
  const line = chips({ label, onSelect: onRow });
  const name = element("p", { class: "afm-walk-caption" });
  const list = element("ol", { class: "afm-walk-chances" });
  let steps = { done: 0, all: 0 };
  const one = button({ label: "write", onClick: () => onWrite(steps.done + 1) });
  const rest = button({ label: "write all", onClick: () => onWrite(steps.all) });
  const anew = button({ label: "begin anew", onClick: () => onWrite(0) });
  one.element.classList.add("afm-walk-write");
  for (const { element: node } of [one, rest, anew]) node.disabled = true; // without a translation
  const buttons = element("div", { class: "afm-walk-buttons" });
  buttons.append(one.element, rest.element, anew.element);
  const title = element("p", { class: "afm-walk-caption" }, label);
  const said = element("div", {}, title, line.element, buttons);
  const root = element("div", { class: "afm-walk-writing" }, said, element("div", {}, name, list));
  return {
    element: root,
    paint({ words, row, ended, steps: now, next }) {
      steps = now;
      line.paint({ words: ended ? [...words, "</s>"] : words, selected: row });
      one.element.disabled = rest.element.disabled = steps.done >= steps.all;
      anew.element.disabled = steps.done === 0;
      name.textContent = ended
        ? `after ${words.at(-1)} came the end`
        : `after ${words.at(-1)}, the next word`;
      list.replaceChildren(...listed(next));
    },
  };
}
