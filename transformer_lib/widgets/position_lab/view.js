import { choices, element, slider, toggle } from "../core/dom.js";
import { figure, turn } from "../core/figure.js";
import { drive, endsOf } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { METHODS, methodNamed, VIEWS } from "./methods.js";
import { addedByDistance, bounds, compute, effect, pairsToShow, settled, write } from "./model.js";
import { panel } from "./parts.js";
import { drawDistance, drawPenalties, drawScores, drawWeights } from "./score_panels.js";
import { drawClocks, drawCode, drawShift } from "./vector_panels.js";
import { wavelengths } from "./vectors.js";

// Controls that every method has; the others are named in its entry.
const ALWAYS = ["method", "position", "offset", "n_positions"];
const SHOWN = Object.keys(VIEWS);

async function render({ model, el }) {
  const [rows, columns] = model.get("_table_shape");
  const numbers = readFloats(model, "_table");
  const table = Array.from({ length: rows }, (_, p) =>
    Array.from(numbers.subarray(p * columns, (p + 1) * columns)),
  );
  const place = readJson(model, "_place");
  const wantedHere = (name) => !place.controls || place.controls.includes(name);
  const fig = figure(el, {
    name: "Position lab",
    hint: place.hint || methodNamed(model.get("method")).hint,
  });
  let changed = "";
  let last = null;
  const set = (name) => (value) => {
    changed = name;
    send(model, name, value);
  };
  const stops = (list, now) => [...new Set([...list, now])].sort((a, b) => a - b);
  const widths = stops([2, 4, 8, 16, 32, 64, 128], model.get("d_model"));
  const bases = stops([2, 10, 100, 1000, 10000, 100000, 1000000], model.get("base"));
  const stepped = (label, name, list) =>
    slider({
      label,
      min: 0,
      max: list.length - 1,
      step: 1,
      value: list.indexOf(model.get(name)),
      format: (at) => (at < 0 ? write(model.get(name)) : write(list[at])),
      onInput: (at) => set(name)(list[at]),
    });
  const plain = (label, name, min, max, format = String) =>
    slider({ label, min, max, step: 1, value: model.get(name), format, onInput: set(name) });
  /** From the smallest that there is to a usual number, or further if Python began further. */
  function counted(label, name, usual) {
    const { min, max } = endsOf(model, name);
    return plain(label, name, min, Math.min(max, Math.max(usual, model.get(name))));
  }
  const switched = (label, name) => toggle({ label, value: model.get(name), onChange: set(name) });
  const show = choices({
    label: "show",
    options: SHOWN,
    value: 0,
    onChange: (at) => set("view")(SHOWN[at]),
  });
  const controls = {
    method: choices({
      label: "method",
      options: METHODS.map(({ label }) => label),
      value: 0,
      onChange: (at) => set("method")(METHODS[at].name),
    }),
    position: plain("position p", "position", 0, 31),
    offset: plain("offset k", "offset", -31, 31),
    d_model: stepped("components d", "d_model", widths),
    base: stepped("base", "base", bases),
    n_positions: counted("positions", "n_positions", 64),
    n_heads: counted("heads", "n_heads", 16),
    head: plain("head", "head", 0, 7, (head) => String(head + 1)),
    pair: plain("pair i", "pair", 0, 15),
    projected: switched("through random W_Q and W_K", "projected"),
    own_angle: switched("a common bug: the cosine gets its own angle", "own_angle"),
  };
  const traits = Object.keys(controls);
  fig.controls.classList.add("afm-pl-controls");
  if (wantedHere("view")) fig.controls.append(show.element);
  fig.controls.append(...Object.values(controls).map((control) => control.element));
  controls.position.element.classList.add("afm-pl-query");
  controls.offset.element.classList.add("afm-pl-key");

  await turn();
  const read = () => Object.fromEntries(traits.map((name) => [name, model.get(name)]));
  const choose = (hit) => {
    const now = settled({ ...read(), ...hit }, table);
    for (const name of Object.keys(hit)) if (model.get(name) !== now[name]) set(name)(now[name]);
  };
  const panels = {
    clocks: panel(drawClocks, choose),
    code: panel(drawCode, choose),
    penalties: panel(drawPenalties),
    weights: panel(drawWeights),
    scores: panel(drawScores, choose),
    shift: panel(drawShift),
    distance: panel(drawDistance),
  };
  const tests = [panels.shift, panels.distance];
  const both = element("div", { class: "afm-pl-tests" }, ...tests.map((one) => one.element));
  fig.add(panels.clocks, { basis: 330 });
  for (const name of ["code", "penalties", "weights", "scores"]) {
    fig.add(panels[name], { basis: 270 });
  }
  fig.add(
    {
      element: both,
      layout: (width) => tests.forEach((one) => one.layout(width)),
      theme: (colors) => tests.forEach((one) => one.theme(colors)),
    },
    { basis: 330 },
  );

  /** Show the controls and panels of the view that the method has, and no others. */
  function offer(method, view) {
    const wanted = VIEWS[view];
    for (const [name, control] of Object.entries(controls)) {
      const known = ALWAYS.includes(name) || method.controls.includes(name);
      const shown = wantedHere(name) && known && (!wanted || wanted.controls.includes(name));
      control.element.classList.toggle("afm-pl-hidden", !shown);
    }
    for (const [name, one] of Object.entries(panels)) {
      const holder = tests.includes(one) ? one.element : one.element.parentElement;
      const shown = method.panels.includes(name) && (!wanted || wanted.panels.includes(name));
      holder.classList.toggle("afm-pl-hidden", !shown);
    }
    const tested = tests.some((one) => !one.element.classList.contains("afm-pl-hidden"));
    both.parentElement.classList.toggle("afm-pl-hidden", !tested);
  }

  let planned = false;
  /** Once for all settings that change together: one by one, each would be moved inside of the old others. */
  function plan() {
    if (planned) return;
    planned = true;
    queueMicrotask(() => {
      try {
        paint();
      } finally {
        planned = false;
      }
    });
  }

  function paint() {
    const wanted = read();
    const settings = settled(wanted, table);
    const moved = traits.filter((name) => settings[name] !== wanted[name]);
    for (const name of moved) model.set(name, settings[name]);
    if (moved.length) model.save_changes();
    const method = methodNamed(settings.method);
    const lab = compute(settings, table);
    const through = settings.projected && method.encode;
    const scores = `${method.titles.scores}${through ? ", through W_Q and W_K" : ""}`;
    const view = {
      settings,
      method,
      lab,
      waves: method.hasWaves?.(settings) ? wavelengths(settings.d_model, settings.base) : null,
      pairs: lab.rows && pairsToShow(lab.rows[0].length / 2, settings.pair),
      titles: { ...method.titles, scores: (through && method.titles.projected) || scores },
      penalties: method.bias && addedByDistance(method, settings, table),
    };
    for (const [name, [min, max]] of Object.entries(bounds(settings, table))) {
      Object.assign(controls[name].input, { min, max });
    }
    const sliders = {
      ...settings,
      d_model: widths.indexOf(settings.d_model),
      base: bases.indexOf(settings.base),
      method: METHODS.indexOf(method),
    };
    for (const name of traits) controls[name].set(sliders[name]);
    show.set(SHOWN.indexOf(model.get("view")));
    offer(method, model.get("view"));
    const some = VIEWS[model.get("view")];
    const fits = some?.hint && method.controls.includes(some.asks);
    fig.element.querySelector(".afm-caption").textContent =
      place.hint || (fits ? some.hint : method.hint);
    for (const name of method.panels) panels[name].paint(view);
    last = view;
    say(view);
  }

  function say({ settings, method, lab, waves }) {
    const { position: p, offset: k } = settings;
    const first = effect(changed, settings, waves);
    if (waves && ["clocks", "code"].includes(model.get("view"))) {
      sayHands(settings, waves[settings.pair], first);
      return;
    }
    const rest =
      lab.spread < 1e-9
        ? `, and the same for any two positions ${Math.abs(k)} apart in this direction.`
        : `; other positions at this offset differ by up to ${write(lab.spread)}: the offset alone no longer decides.`;
    const missing =
      lab.reach < settings.n_positions
        ? ` Positions from ${lab.reach} on have no row: the library raises an error.`
        : "";
    fig.say(
      first ? `${first} ` : "",
      `${method.measured} of position `,
      { text: String(p), role: "query" },
      " and position ",
      { text: String(p + k), role: "key" },
      " is ",
      { text: write(lab.scores[p][p + k]) },
      rest,
      missing,
    );
  }

  /** Where scores are not shown, the sentence is about one pair's hands. */
  function sayHands({ position: p, offset: k, pair }, wave, first) {
    fig.say(
      first ? `${first} ` : "",
      `From position `,
      { text: String(p), role: "query" },
      " to position ",
      { text: String(p + k), role: "key" },
      ` hand ${pair} turns by `,
      { text: `${write((360 * k) / wave)}°` },
      `, and so between any two positions that are ${Math.abs(k)} apart in this direction.`,
    );
  }

  fig.exports({
    name: `positions-${model.get("method")}`,
    csv: () => {
      const shown = last.lab.rows ?? last.lab.scores;
      const head = last.lab.rows ? "component" : "key";
      return [
        ["position", ...shown[0].map((_, at) => `${head} ${at}`)],
        ...shown.map((row, p) => [p, ...row]),
      ];
    },
  });
  await turn();
  for (const name of [...traits, "view"]) fig.listen(model, `change:${name}`, plan);
  paint();
  drive(fig, model, {
    settled: async () => {}, // after what is planned
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const { method, ...settings } = last.settings;
      const facts = Object.fromEntries(Object.entries(settings).map(([k, v]) => [k, Number(v)]));
      const { position, offset } = settings;
      const score = last.lab.scores[position][position + offset];
      return { ...facts, score, spread: last.lab.spread };
    },
  });
  return fig.end;
}

export default { render };
