import { button, element, slider, textField } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { flow, parseLetters } from "../core/flow.js";
import { grid } from "../core/grid.js";
import { percent, short } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { loadWeights, unpackWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { apart, chain, looksAt, looksBack, readersAfter } from "../math/markov.js";
import { look, moments, nearest, valueAt } from "./model.js";
import { plot } from "./plot.js";

const FRAME = 180; // ms for each moment while time runs

function render({ model, el }) {
  const { steps, letters, length, curve, readers } = readJson(model, "_text");
  const config = readJson(model, "_config");
  const states = letters.length;
  const names = [...Object.keys(readers), "model"];
  const fig = figure(el, {
    name: "A model through its training",
    hint: "Try: drag the slider through the training, and watch where the two heads begin to look.",
  });
  let modelAt = null; // once the weights are there
  let seen = null; // { expected, maps } of the present step and chain
  let problem = "Loading the weights …";
  let timer = 0;
  let written = ""; // the chain that the field was last given

  const time = slider({
    label: "after step",
    min: 0,
    max: steps.length - 1,
    step: 1,
    value: steps.indexOf(model.get("step")),
    format: (at) => String(steps[at]),
    onInput(at) {
      pause();
      send(model, "step", steps[at]);
    },
  });
  const run = button({ label: "let time run", onClick: () => (timer ? pause() : play()) });
  const another = button({
    label: "another chain",
    title: "Draws a new table of chances, and a chain from it",
    onClick() {
      model.set("ids", []);
      send(model, "seed", model.get("seed") + 1);
    },
  });
  const own = textField({ label: "or write one", autocomplete: "off" });
  own.input.addEventListener("change", () => {
    const read = parseLetters(own.input.value, letters, length);
    if (typeof read === "string") return fig.say(read);
    model.set("position", -1);
    send(model, "ids", read);
  });
  own.element.classList.add("afm-lapse-field");
  time.element.classList.add("afm-lapse-time");
  fig.controls.append(time.element, run.element, another.element, own.element);

  const drawing = flow({
    label: "The letters, and where the two heads look",
    onSelect: (at) => send(model, "position", at),
  });
  const shares = element("p", { class: "afm-map-caption" });
  fig.add({ ...drawing, element: element("div", {}, shares, drawing.element) }, { basis: 600 });
  const picture = plot({
    curve,
    readers,
    onChoose(step) {
      pause();
      send(model, "step", nearest(steps, step));
    },
  });
  fig.add(picture, { basis: 330 });
  const table = grid({
    rows: names,
    columns: [...letters],
    label: "What each reader expects next",
    rowTitle: "",
    columnTitle: "next",
    maxCell: 40,
  });
  const told = element("p", { class: "afm-map-caption" });
  fig.add(
    { ...table, element: element("div", {}, told, table.element) },
    { basis: 210, stays: true },
  );

  const idsNow = () => {
    const ids = model.get("ids");
    return ids.length ? ids : chain(states, length, model.get("seed"));
  };
  const positionNow = (ids) => {
    const at = model.get("position");
    return at < 0 ? ids.length - 1 : Math.min(at, ids.length - 1);
  };

  function play() {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let at = steps.indexOf(model.get("step"));
    if (at === steps.length - 1) at = -1;
    const next = () => {
      at += 1;
      send(model, "step", steps[at]);
      if (at === steps.length - 1) pause();
    };
    timer = setInterval(next, calm ? 4 * FRAME : FRAME);
    fig.reading.setAttribute("aria-live", "off");
    run.element.textContent = "stop";
  }

  function pause() {
    if (!timer) return;
    clearInterval(timer);
    timer = 0;
    fig.reading.setAttribute("aria-live", "polite");
    run.element.textContent = "let time run";
  }

  function update() {
    const step = model.get("step");
    const ids = idsNow();
    const at = positionNow(ids);
    time.set(steps.indexOf(step));
    picture.point(step);
    const text = ids.map((id) => letters[id]).join("");
    if (text !== written) own.input.value = written = text; // else the reader may be writing
    if (!modelAt) return fig.say(problem);
    seen = look(modelAt(step), ids);
    const labels = ids.map((id) => letters[id]);
    const [first, last] = seen.maps;
    const where = last[at].indexOf(Math.max(...last[at]));
    drawing.paint({
      letters: labels,
      maps: [first, last],
      selected: at,
      told: `from letter ${at + 1}, the second head looks most at letter ${where + 1}`,
    });
    const alike = ids.map((_, t) => Array(t + 1).fill(1 / (t + 1)));
    const back = [looksBack(first), looksBack(alike)].map((share) => percent(share, 0));
    const followed = [looksAt(last, ids), looksAt(alike, ids)].map((share) => percent(share, 0));
    shares.replaceChildren(
      element("strong", {}, "Click a letter."),
      ` The first head looks one back with ${back[0]} of its weight (by chance: ${back[1]}), the second with ${followed[0]} at what followed earlier letters like the present one (by chance: ${followed[1]}).`,
    );
    const known = readersAfter(ids.slice(0, at + 1), states);
    table.paint([...Object.values(known), seen.expected[at]]);
    told.textContent = `Expected after letter ${at + 1}, ${labels[at]}:`;
    const [name, off] = Object.entries(known)
      .map(([reader, expected]) => [reader, apart(expected, seen.expected[at])])
      .reduce((best, one) => (one[1] < best[1] ? one : best));
    fig.say(
      "After step ",
      { text: String(step) },
      " the loss is ",
      { text: `${short(valueAt(curve, "loss", step), 4)} nats` },
      `. At letter ${at + 1} the model is nearest to the `,
      { text: name },
      ` reader: the two disagree on ${percent(off)} of the probability.`,
    );
  }

  fig.exports({
    name: "training",
    csv: () => [
      Object.keys(curve),
      ...curve.step.map((_, i) => Object.values(curve).map((column) => column[i])),
    ],
  });
  for (const name of ["step", "position", "ids", "seed"])
    fig.listen(model, `change:${name}`, update);
  fig.onEnd(pause);
  update();
  loadWeights(model, "_packed").then(
    (bytes) => {
      modelAt = moments(config, unpackWeights(bytes));
      update();
    },
    (error) => {
      problem = `The weights could not be loaded: ${error.message}`;
      update();
    },
  );
  drive(fig, model, {
    set: {
      step: (step) => model.set("step", nearest(steps, step)),
      position: (at) => model.set("position", at ?? -1),
    },
    reset: pause,
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const ids = idsNow();
      const at = positionNow(ids);
      const step = model.get("step");
      const known = readersAfter(ids.slice(0, at + 1), states);
      const off = Object.entries(known).map(([reader, expected]) => [
        `off ${reader}`,
        seen ? apart(expected, seen.expected[at]) : Number.NaN,
      ]);
      return {
        step,
        loss: valueAt(curve, "loss", step),
        position: at,
        ...Object.fromEntries(off),
        looks: seen ? looksAt(seen.maps.at(-1), ids) : Number.NaN,
      };
    },
  });
  return fig.end;
}

export default { render };
