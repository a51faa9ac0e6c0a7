// The controls: the task and the model, the run's buttons, and the step that is looked at.
//
//   const panel = controls(model, limits, { toggle, once, over, look });
//   fig.controls.append(...panel.elements);
//   panel.show({ isRunning, last, step });       last: steps made so far; step: the one in the picture

import { button, choices, element, select, slider, toggle } from "../core/dom.js";
import { send } from "../core/wire.js";

export const TASKS = ["repeats", "pairs", "owner", "sort"];
const NAMES = {
  repeats: "repeats: c a f c a f …",
  pairs: "pairs: a 4 d 1 … d 1 a 4",
  owner: "owner: give roses to mary …",
  sort: "sort: 7 2 4 2 4 7",
};
const OPTIMIZERS = ["adam", "muon"];

export function controls(model, { rates, usual, seeds }, actions) {
  const task = select({
    label: "task",
    value: 0,
    options: TASKS.map((name) => NAMES[name]),
    onChange: (at) => send(model, "task", TASKS[at]),
  });
  const layers = choices({
    label: "layers",
    value: 0,
    options: ["1", "2"],
    onChange: (at) => send(model, "layers", at + 1),
  });
  const smear = toggle({
    label: "smear",
    value: false,
    onChange: (on) => send(model, "smear", on),
  });
  const optimizer = choices({
    label: "optimizer",
    value: 0,
    options: ["Adam", "Muon"],
    onChange(at) {
      model.set("rate", usual[OPTIMIZERS[at]]); // what suits one throws the other about
      send(model, "optimizer", OPTIMIZERS[at]);
    },
  });
  const rate = slider({
    label: "learning rate",
    min: 0,
    max: rates.length - 1,
    step: 1,
    value: 0,
    format: (at) => String(rates[at]),
    onInput: (at) => send(model, "rate", rates[at]),
  });
  const seed = select({
    label: "seed",
    value: 0,
    options: seeds.map(String),
    onChange: (at) => send(model, "seed", seeds[at]),
  });
  const start = button({ label: "start", onClick: actions.toggle });
  const one = button({ label: "one step", onClick: actions.once });
  const over = button({ label: "start over", onClick: actions.over });
  const speed = choices({
    label: "speed",
    value: 0,
    options: ["20 steps a second", "full"],
    onChange: (at) => send(model, "speed", at === 0 ? "watch" : "full"),
  });
  const along = slider({
    label: "after step",
    min: 0,
    max: 0,
    step: 1,
    value: 0,
    onInput: actions.look,
  });
  start.element.classList.add("afm-start");
  return {
    elements: [
      task.element,
      layers.element,
      smear.element,
      optimizer.element,
      rate.element,
      seed.element,
      element("div", { class: "afm-run" }, start.element, one.element, over.element, speed.element),
      element("div", { class: "afm-learning-time" }, along.element),
    ],
    show({ isRunning, last, step }) {
      start.element.textContent = isRunning ? "pause" : last > 0 ? "go on" : "start";
      one.element.disabled = isRunning;
      along.input.disabled = last === 0;
      along.input.max = String(last);
      along.set(step);
      task.set(TASKS.indexOf(model.get("task")));
      layers.set(model.get("layers") - 1);
      smear.set(model.get("smear"));
      optimizer.set(OPTIMIZERS.indexOf(model.get("optimizer")));
      rate.set(rates.indexOf(model.get("rate")));
      seed.set(seeds.indexOf(model.get("seed")));
      speed.set(model.get("speed") === "full" ? 1 : 0);
    },
  };
}
