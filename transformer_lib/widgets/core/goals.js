// Goals under a figure: what to bring about, a mark when it is done, a hint after some tries.
//
//   showGoals({ fig, model, goals, facts })      called by drive() in state.js
//   holds([["length gave", ">=", 2]], facts) -> are all conditions true?

import { element } from "./dom.js";
import { plain, rich } from "./markup.js";
import { send } from "./wire.js";

const TRIES = 5;
const PATIENCE = 60_000; // ms from the first try until hints are offered
const EQUAL = 0.005; // figures show two decimals

const COMPARE = {
  ">": (a, b) => a > b,
  "<": (a, b) => a < b,
  ">=": (a, b) => a > b - EQUAL,
  "<=": (a, b) => a < b + EQUAL,
  "=": (a, b) => Math.abs(a - b) < EQUAL,
};

/** Whether all conditions hold. A fact that there is not, or that is NaN, holds nothing. */
export function holds(when, facts) {
  const numberOf = (side) => (typeof side === "number" ? side : (facts[side] ?? Number.NaN));
  return when.every(([left, operator, right]) =>
    COMPARE[operator](numberOf(left), numberOf(right)),
  );
}

export function showGoals({ fig, model, goals, facts }) {
  if (!goals.length) return;
  const first = facts();
  // What holds before anything was done is not an achievement.
  const given = goals.map(({ when }, at) => !model.get("reached")[at] && holds(when, first));
  goals.forEach(({ text }, at) => {
    if (given[at]) console.warn(`This goal holds from the start, and so never counts: ${text}`);
  });
  const items = goals.map(makeItem);
  const status = element("p", { class: "afm-unseen", role: "status" });
  fig.element.append(
    element(
      "div",
      { class: "afm-goals" },
      element("p", { class: "afm-goals-title" }, goals.length > 1 ? "Challenges" : "Challenge"),
      element("ul", {}, ...items.map((item) => item.element)),
      status,
    ),
  );

  let tries = 0;
  let waiting = null;
  let moved = false;
  const offer = () => items.forEach((item, at) => item.offer(!model.get("reached")[at]));
  fig.onEnd(() => clearTimeout(waiting));

  /** A try ends where a hand lets go. */
  function letGo() {
    if (!moved) return;
    moved = false;
    tries += 1;
    waiting ??= setTimeout(offer, PATIENCE);
    if (tries >= TRIES) offer();
  }
  for (const event of ["pointerup", "change", "keyup", "click"]) {
    fig.element.addEventListener(event, letGo);
  }

  let planned = false;
  function look() {
    planned = false;
    const now = facts();
    const before = model.get("reached");
    const reached = goals.map(({ when }, at) => before[at] || (!given[at] && holds(when, now)));
    const fresh = goals.filter((_, at) => reached[at] && !before[at]);
    if (!fresh.length) return;
    send(model, "reached", reached);
    status.textContent = `Reached: ${fresh.map(({ text }) => plain(text)).join(" ")}`;
  }
  fig.listen(model, "change", () => {
    moved = true;
    if (planned) return;
    planned = true; // once for all that changes together
    queueMicrotask(look);
  });
  const show = () => items.forEach((item, at) => item.set(model.get("reached")[at]));
  fig.listen(model, "change:reached", show);
  show();
}

function makeItem({ text, hint }) {
  const mark = element("span", { class: "afm-goal-mark", "aria-hidden": "true" }, "○");
  const state = element("span", { class: "afm-unseen" }, "Not reached yet: ");
  const told = element("p", { class: "afm-goal-hint", hidden: true }, ...rich(hint));
  const ask = element(
    "button",
    { type: "button", class: "afm-button afm-goal-ask", "aria-expanded": "false", hidden: true },
    "hint",
  );
  ask.addEventListener("click", () => {
    told.hidden = !told.hidden;
    ask.setAttribute("aria-expanded", String(!told.hidden));
  });
  const line = element("span", { class: "afm-goal-text" }, state, ...rich(text));
  const node = element("li", { class: "afm-goal" }, mark, line, ask, told);
  return {
    element: node,
    set(reached) {
      mark.textContent = reached ? "✓" : "○";
      state.textContent = reached ? "Reached: " : "Not reached yet: ";
      node.classList.toggle("afm-reached", reached);
      if (reached && told.hidden) ask.hidden = true;
    },
    offer(wanted) {
      if (wanted && hint) ask.hidden = false;
    },
  };
}
