// The selected word's output, compared in both orders of the words.
//
//   comparison({ tokens, outputs }) -> { element, show({ word, orders, now, both }) }
//     orders: [order, order], now: the one that is shown, both: the outputs in each

import { clip, element, showToken } from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { verdictOf } from "./reading.js";

const COMPARED = 8; // components

export function comparison({ tokens, outputs }) {
  const node = element("div", { class: "afm-compare" });

  function line(order, y, on) {
    const words = order.map((at) => clip(showToken(tokens[at]), 20)).slice(0, 12);
    const numbers = y.slice(0, COMPARED).map((value, c) => {
      const name = element("span", { class: "afm-label" }, clip(outputs[c], 16));
      const number = element("span", { class: "afm-output" }, fixed(value));
      return element("span", { class: "afm-pair" }, name, number);
    });
    const more = y.length > COMPARED ? "…" : "";
    return element(
      "div",
      { class: on ? "afm-order afm-on" : "afm-order" },
      element("span", { class: "afm-sentence", dir: "auto" }, words.join(" ")),
      element("span", { class: "afm-numbers-row" }, ...numbers, more),
    );
  }

  return {
    element: node,
    show({ word, orders, now, both }) {
      const found = orders.map((order, at) => both[at][order.indexOf(word)]);
      const name = element(
        "p",
        { class: "afm-comparison" },
        "What ",
        element("bdi", { class: "afm-query afm-token" }, clip(showToken(tokens[word]), 30)),
        " takes home in both orders: ",
        verdictOf(...found),
      );
      node.replaceChildren(
        name,
        ...orders.map((order, at) => line(order, found[at], order === now)),
      );
    },
  };
}
