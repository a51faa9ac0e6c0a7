// The output of a cell, as a notebook shows it, and its error.
//
//   const said = output();   fig.add(said)   said.add("text")   said.fail({ type, message, line })
//   said.clear()

import { element } from "../core/dom.js";

export function output() {
  // It scrolls, and so the keyboard must reach it.
  const text = element("pre", {
    class: "afm-write-out",
    tabindex: "0",
    role: "region",
    "aria-label": "Output",
  });
  const problem = element("pre", { class: "afm-write-problem" });
  const box = element("div", { class: "afm-write-output" }, text, problem);
  const show = () => {
    text.hidden = !text.textContent;
    problem.hidden = !problem.textContent;
  };
  show();
  return {
    element: box,
    add(more) {
      text.append(more);
      show();
      text.scrollTop = text.scrollHeight;
    },
    fail({ type, message, line }) {
      const where = line ? `line ${line}\n` : "";
      const kind = element("strong", {}, type);
      problem.replaceChildren(where, kind, `: ${message}`);
      show();
    },
    clear() {
      text.replaceChildren();
      problem.replaceChildren();
      show();
    },
  };
}
