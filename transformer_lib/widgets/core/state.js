// Lets the prose set a figure: a link `[two layers](#set:painter;layers=2;follow=roses)` sets
// it. Settings and keys are declared in Python, in the widget's class (driving.py), and travel in
// `_driving`.
//
//   drive(fig, model, {                  // after the first update
//     set: { at: (point) => move(point) },   // keys that are more than one trait; others are set here
//     reset() {},                        // what is not in the model goes back to the first state, too
//     facts: () => ({ "length gave": 1.2 }),   // what goals (below) read beside the settings
//     settled: async () => {},           // where a worker computes: until what is set is shown
//   });
//   endsOf(model, "layers") -> { min: 1, max: 6 }, for a slider
//   labels(["a", "b", "a"]) -> ["a", "b", "a#2"]      readLink("#set:painter;layers=2")
//   readValue(key, "roses", texts) -> 2, or undefined if the key refuses it
//
// window.afmFigures: { get(name) -> handles, has(name) }; the page's host asks it (afm-host.js).
// A handle is { element, set([[key, text], ...], phrase), facts() }; what has changed comes into view,
// and the reader's place in the text, at `phrase`, is not lost (place.js).

import { element } from "./dom.js";
import { plain, rich } from "./markup.js";
import { showChange, watchChanges } from "./place.js";
import { readJson, send } from "./wire.js";

const NUMBER = /^[-+−]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const LINK = "#set:";
const PARTED = { class: "afm-parted", role: "status" };
const PARTED_TEXT =
  "The kernel has restarted: what you set here no longer reaches it. Run the cell again.";

/** A name for each token: its text; #2, #3 after it where the same text comes again. (driving.py) */
export function labels(tokens) {
  const texts = new Set(tokens);
  const seen = new Map();
  return tokens.map((token) => {
    let count = (seen.get(token) ?? 0) + 1;
    while (count > 1 && texts.has(`${token}#${count}`)) count += 1;
    seen.set(token, count);
    return count === 1 ? token : `${token}#${count}`;
  });
}

/** "#set:painter;layers=2" -> { name: "painter", settings: [["layers", "2"]] } */
export function readLink(target) {
  const [name, ...settings] = target.slice(target.startsWith(LINK) ? LINK.length : 0).split(";");
  return {
    name,
    settings: settings.map((setting) => {
      const [key, ...rest] = setting.split("=");
      return [decode(key), decode(rest.join("="))];
    }),
  };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a lone percent sign
  }
}

function toNumber(text) {
  return NUMBER.test(text) ? Number(text.replace("−", "-")) : undefined;
}

const READERS = {
  flag: (_, text) => (text === "on" ? true : text === "off" ? false : undefined),
  option: ({ values }, text) => (Object.hasOwn(values, text) ? values[text] : undefined),
  action: (_, text) => (text === "" ? true : undefined),
  number({ low, high, multiple, none }, text) {
    if (none && text === none) return null;
    const value = toNumber(text);
    const fits =
      Number.isFinite(value) &&
      !(multiple && value % multiple) &&
      value >= (low ?? -Infinity) &&
      value <= (high ?? Infinity);
    return fits ? value : undefined;
  },
  numbers({ count, whole, low }, text) {
    const values = text.split(",").map(toNumber);
    const fits = (value) =>
      Number.isFinite(value) &&
      !(whole && value !== Math.trunc(value)) &&
      value >= (low ?? -Infinity);
    return values.length === count && values.every(fits) ? values : undefined;
  },
  token: ({ of, first }, text, texts) => tokenAt(texts[of], text, first),
  pair({ rows, columns }, text, texts) {
    for (let at = text.indexOf(","); at >= 0; at = text.indexOf(",", at + 1)) {
      const row = tokenAt(texts[rows], text.slice(0, at));
      const column = tokenAt(texts[columns], text.slice(at + 1));
      if (row !== undefined && column !== undefined) return [row, column];
    }
  },
};

/** Which token a text names, by what it says or by its position. */
function tokenAt(tokens, text, first = 0) {
  const named = labels(tokens).indexOf(text);
  const at = named < 0 && /^\d+$/.test(text) ? Number(text) : named;
  return at >= first && at < tokens.length ? at : undefined;
}

/** What a text means to a key; undefined if the key refuses it. */
export function readValue(key, text, texts) {
  return READERS[key.kind](key, text, texts);
}

/** What a setting's numbers may be, as Python has declared it. */
export function endsOf(model, key) {
  const { low, high } = readJson(model, "_driving").keys[key];
  return { min: low, max: high };
}

export function drive(
  fig,
  model,
  { set = {}, reset = () => {}, facts = () => ({}), settled = null } = {},
) {
  const { keys, first, goals } = readJson(model, "_driving");
  const texts = model.get("_text") ? readJson(model, "_text") : {};
  // A live region must be there before it speaks; a goal that is reached has its own (below).
  const status = element("p", { class: "afm-unseen", role: "status" });
  fig.element.append(status);

  function setOne(key, text) {
    if (key === "reset" && text === "") {
      for (const [trait, value] of Object.entries(first)) model.set(trait, value);
      reset();
      return true;
    }
    const value = Object.hasOwn(keys, key) ? readValue(keys[key], text, texts) : undefined;
    if (value === undefined) return false;
    if (set[key]) set[key](value);
    else model.set(keys[key].trait, value);
    return true;
  }

  /** Settings that are numbers, 1 and 0 for on and off, and what the view adds. */
  function allFacts() {
    const values = Object.entries(keys).map(([key, { trait }]) => [key, trait && model.get(trait)]);
    const plain = values.filter(([, value]) => ["number", "boolean"].includes(typeof value));
    return { ...Object.fromEntries(plain.map(([key, value]) => [key, Number(value)])), ...facts() };
  }

  const stateNow = () => JSON.stringify(Object.keys(first).map((trait) => model.get(trait)));

  const handle = {
    element: fig.element,
    facts: allFacts,
    async set(settings, phrase = null) {
      const changed = watchChanges(fig.element);
      const before = stateNow();
      const refused = [];
      const done = settings.filter(([key, text]) => {
        const fits = setOne(key, text);
        if (!fits) {
          console.warn(`The figure ${model.get("name")} takes no ${key}=${text}.`);
          refused.push(`The figure takes no ${key}=${text}.`);
        }
        return fits;
      });
      model.save_changes();
      if (!done.length) {
        changed.mark(); // nothing, and it watches no longer
        status.textContent = refused.join(" ");
        return;
      }
      if (settled) await settled();
      const boxes = changed.mark();
      showChange(fig.element, boxes, phrase);
      const any = boxes.length > 0 || stateNow() !== before;
      const told = done.map(([key, text]) => (text ? `${key} ${text}` : key)).join(", ");
      const how = any ? "The figure is set" : "The figure was already set";
      status.textContent = [...refused, `${how}: ${told}.`].join(" ");
    },
  };
  // A notebook says so when its kernel restarts; the new one knows nothing of this figure.
  fig.listen(model, "comm_live_update", () => {
    const caption = fig.element.querySelector(".afm-caption");
    if (!caption.querySelector(".afm-parted")) caption.append(element("p", PARTED, PARTED_TEXT));
  });
  const name = model.get("name");
  if (name) fig.onEnd(register(name, handle));
  showGoals({ fig, model, goals, facts: allFacts });
  return handle;
}

function register(name, handle) {
  window.afmFigures ??= startListening();
  const figures = window.afmFigures;
  figures.set(name, [...(figures.get(name) ?? []), handle]);
  return () => {
    const left = figures.get(name).filter((known) => known !== handle);
    if (left.length) figures.set(name, left);
    else figures.delete(name);
  };
}

/** The first figure with a name listens for all of them. */
function startListening() {
  const figures = new Map();
  // Before a notebook's own handlers, which would follow the link.
  document.addEventListener(
    "click",
    (event) => {
      const link = event.target.closest?.(`[data-afm-set], a[href^="${LINK}"]`);
      if (!link) return;
      event.preventDefault();
      event.stopPropagation();
      const { name, settings } = readLink(link.dataset.afmSet ?? link.getAttribute("href"));
      const handle = nearest(figures.get(name) ?? [], link);
      if (handle) handle.set(settings, link);
      else console.warn(`There is no figure ${name} on this page.`);
    },
    true,
  );
  return figures;
}

/** Of several (a notebook may be open twice), the one that shares the closest frame with the link. */
function nearest(handles, link) {
  for (let frame = link.parentElement; frame; frame = frame.parentElement) {
    const found = handles.find((handle) => frame.contains(handle.element));
    if (found) return found;
  }
  return handles[0];
}

// Goals under a figure: what to bring about, a mark when it is done, a hint after some tries.
//
//   showGoals({ fig, model, goals, facts })      called by drive()
//   holds([["length gave", ">=", 2]], facts) -> are all conditions true?

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

function showGoals({ fig, model, goals, facts }) {
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
