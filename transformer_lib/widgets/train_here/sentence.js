// The text that is watched, word by word; under each word that can be known, what the model expected.
//
//   const strip = sentence();  fig.add(strip);
//   strip.paint(["c", "a", "f", "c"], [null, null, null, { word: "a", share: 0.4, right: false }]);

import { element } from "../core/dom.js";
import { percentAmong } from "../core/numbers.js";

export function sentence() {
  const list = element("ol", { class: "afm-read", "aria-label": "What the model expects" });
  let items = [];

  function make() {
    const word = element("bdi", { class: "afm-read-word" });
    const guess = element("span", { class: "afm-read-guess" });
    const told = element("span", { class: "afm-read-told" });
    return { word, guess, told, item: element("li", {}, word, guess, told) };
  }

  return {
    element: element(
      "div",
      {},
      element(
        "p",
        { class: "afm-map-caption" },
        "The text, and below each word that can be known, what the model expected there:",
      ),
      list,
    ),
    paint(words, guesses) {
      if (items.length !== words.length) {
        items = words.map(make);
        list.replaceChildren(...items.map(({ item }) => item));
      }
      words.forEach((text, at) => {
        const { word, guess, told, item } = items[at];
        const one = guesses[at];
        word.textContent = text;
        item.classList.toggle("afm-right", Boolean(one?.right));
        item.classList.toggle("afm-wrong", Boolean(one && !one.right));
        guess.textContent = one ? `${one.right ? "✓" : "✗"}${one.word}` : "";
        guess.setAttribute("aria-hidden", "true");
        told.textContent = one
          ? `, expected ${one.word} at ${percentAmong(one.share, 2)}, ${one.right ? "right" : "wrong"}`
          : "";
      });
    },
  };
}
