import { choices, element, slider, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { readFloats, send } from "../core/wire.js";
import { alibiSlopes } from "../math/positions.js";
import { compute, METHODS, movable, pairsToShow, wavelengths } from "./model.js";
import {
  drawClocks,
  drawCode,
  drawDistance,
  drawPenalties,
  drawScores,
  drawShift,
  drawWeights,
} from "./panels.js";
import { panel } from "./parts.js";

const TRAITS = [
  "method",
  "d_model",
  "base",
  "n_positions",
  "position",
  "offset",
  "pair",
  "projected",
  "own_angle",
  "n_heads",
  "head",
];
const NAMES = ["sinusoidal", "rotary", "ALiBi", "learned"];
const CLOCKS = {
  sinusoidal:
    "Each pair of components is a clock hand: the sine (solid) points right, the cosine (dashed) up",
  rotary:
    "Each pair of components is a hand that is turned: the first (solid) points right, the second (dashed) up",
  learned: "Pairs of the table as hands: nothing makes them turn evenly",
};
const SCORES = {
  sinusoidal: "PE·PEᵀ: every position with every position",
  rotary: "Turned query · turned key, of one word everywhere",
  alibi: "What is added to the scores",
  learned: "Row · row of the table",
};

const plainNumber = new Intl.NumberFormat("en-US", { maximumFractionDigits: 4 }); // slow to make

/** Four significant digits at most, thousands with commas. */
export function write(value) {
  const size = Math.abs(value);
  if (size === 0 || (size < 1e-3 && size > 0)) return size === 0 ? "0" : value.toExponential(1);
  const digits = Math.max(0, Math.min(4, 3 - Math.floor(Math.log10(size))));
  const rounded = size >= 1000 ? Math.round(value) : Number(value.toFixed(digits));
  return plainNumber.format(rounded).replace("-", "−");
}

/** The settings with every number inside of what the others allow. */
export function settled(settings, tableShape) {
  const clamp = (value, low, high) => Math.min(Math.max(value, low), Math.max(low, high));
  const learned = settings.method === "learned";
  const reach = learned ? Math.min(settings.n_positions, tableShape[0]) : settings.n_positions;
  const offset = clamp(settings.offset, 1 - reach, reach - 1);
  const [first, last] = movable(reach, offset);
  const width = learned ? tableShape[1] : settings.d_model;
  return {
    ...settings,
    offset,
    position: clamp(settings.position, first, last),
    pair: clamp(settings.pair, 0, Math.floor(width / 2) - 1),
    head: clamp(settings.head, 0, settings.n_heads - 1),
  };
}

/** What the control that was touched last does, in one sentence. */
export function effect(changed, settings, waves) {
  const slowest = waves ? write(waves[waves.length - 1]) : "";
  const sentences = {
    base: `At base ${write(settings.base)} the slowest hand needs ${slowest} positions for one turn.`,
    d_model: `${settings.d_model} components make ${settings.d_model / 2} hands; the slowest needs ${slowest} positions for one turn.`,
    n_positions: "A longer text adds rows; those that were there stay as they are.",
    position:
      {
        alibi: "Moving on changes nothing as long as the distance is the same.",
        learned: "Each position has a row of its own, unrelated to its neighbors'.",
      }[settings.method] ?? "Moving on turns both hands of a dial by the same angle.",
    offset:
      {
        alibi: "Each step away costs the same.",
        learned: "In this table the distance has no meaning of its own.",
      }[settings.method] ?? "The distance decides the angle between the two hands of a dial.",
    pair: `This pair is components ${2 * settings.pair} and ${2 * settings.pair + 1}.`,
    own_angle: settings.own_angle
      ? "With an angle of its own, the cosine no longer moves on the sine's circle."
      : "Sine and cosine share an angle again: the hand has one length.",
    projected: settings.projected
      ? "W_Q and W_K are random here."
      : "Without projections you see the encoding itself.",
    head: `Head ${settings.head} counts ${write(alibiSlopes(settings.n_heads)[settings.head])} for each step.`,
  };
  sentences.n_heads = sentences.head;
  return sentences[changed] ?? "";
}

function render({ model, el }) {
  const [rowsOfTable, widthOfTable] = model.get("_table_shape");
  const numbers = readFloats(model, "_table");
  const table = Array.from({ length: rowsOfTable }, (_, p) =>
    Array.from(numbers.subarray(p * widthOfTable, (p + 1) * widthOfTable)),
  );
  const fig = figure(el, {
    name: "Position lab",
    hint: "Try: drag the position. In every dial both hands turn, and the angle between them stays. Then choose rotary and switch on W_Q and W_K.",
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
  const plain = (label, name, min, max) =>
    slider({ label, min, max, step: 1, value: model.get(name), onInput: set(name) });
  const controls = {
    method: choices({
      label: "method",
      options: NAMES,
      value: METHODS.indexOf(model.get("method")),
      onChange: (at) => set("method")(METHODS[at]),
    }),
    position: plain("position p", "position", 0, 31),
    offset: plain("distance k", "offset", -31, 31),
    d_model: stepped("components d", "d_model", widths),
    base: stepped("base", "base", bases),
    n_positions: plain("positions", "n_positions", 4, Math.max(64, model.get("n_positions"))),
    n_heads: plain("heads", "n_heads", 1, Math.max(16, model.get("n_heads"))),
    head: plain("head", "head", 0, 7),
    pair: plain("pair i", "pair", 0, 15),
    projected: toggle({
      label: "through random W_Q and W_K",
      value: model.get("projected"),
      onChange: set("projected"),
    }),
    own_angle: toggle({
      label: "a common bug: the cosine gets its own angle",
      value: model.get("own_angle"),
      onChange: set("own_angle"),
    }),
  };
  fig.controls.append(...Object.values(controls).map((control) => control.element));
  controls.position.element.classList.add("afm-pl-query");
  controls.offset.element.classList.add("afm-pl-key");

  const choose = (hit) => {
    const now = settled({ ...read(), ...hit }, [rowsOfTable, widthOfTable]);
    for (const name of Object.keys(hit)) if (model.get(name) !== now[name]) set(name)(now[name]);
  };
  const parts = {
    clocks: panel(drawClocks, choose),
    code: panel(drawCode, choose),
    penalties: panel(drawPenalties),
    weights: panel(drawWeights),
    scores: panel(drawScores, choose),
    shift: panel(drawShift),
    distance: panel(drawDistance),
  };
  const both = element(
    "div",
    { class: "afm-pl-tests" },
    parts.shift.element,
    parts.distance.element,
  );
  const tests = {
    element: both,
    layout: (width) => [parts.shift, parts.distance].forEach((part) => part.layout(width)),
    theme: (colors) => [parts.shift, parts.distance].forEach((part) => part.theme(colors)),
  };
  fig.add(parts.clocks, { basis: 330 });
  for (const name of ["code", "penalties", "weights", "scores"])
    fig.add(parts[name], { basis: 270 });
  fig.add(tests, { basis: 330 });

  function read() {
    return Object.fromEntries(TRAITS.map((name) => [name, model.get(name)]));
  }

  function bounds(settings) {
    const reach =
      settings.method === "learned"
        ? Math.min(settings.n_positions, rowsOfTable)
        : settings.n_positions;
    const width = settings.method === "learned" ? widthOfTable : settings.d_model;
    const limits = {
      position: movable(reach, settings.offset),
      offset: [1 - reach, reach - 1],
      pair: [0, width / 2 - 1],
      head: [0, settings.n_heads - 1],
    };
    for (const [name, [min, max]] of Object.entries(limits))
      Object.assign(controls[name].input, { min, max });
  }

  function show(settings) {
    const { method } = settings;
    const vectors = method !== "alibi";
    const hidden = {
      d_model: !vectors || method === "learned",
      base: !vectors || method === "learned",
      pair: !vectors,
      projected: !vectors,
      own_angle: method !== "sinusoidal",
      n_heads: vectors,
      head: vectors,
    };
    for (const [name, hide] of Object.entries(hidden))
      controls[name].element.classList.toggle("afm-pl-hidden", hide);
    const shown = {
      clocks: vectors,
      code: vectors,
      shift: vectors,
      penalties: !vectors,
      weights: !vectors,
      scores: true,
      distance: true,
    };
    for (const [name, on] of Object.entries(shown)) {
      const holder = name === "shift" ? parts.shift.element : parts[name].element.parentElement;
      if (name !== "distance") holder.classList.toggle("afm-pl-hidden", !on);
    }
    return Object.keys(shown).filter((name) => shown[name]);
  }

  function paint() {
    const wanted = read();
    const settings = settled(wanted, [rowsOfTable, widthOfTable]);
    const moved = TRAITS.filter((name) => settings[name] !== wanted[name]);
    if (moved.length) {
      moved.forEach((name) => model.set(name, settings[name])); // each paints again, settled by then
      model.save_changes();
      return;
    }
    const { method, own_angle: broken, projected } = settings;
    const formula = method === "sinusoidal" || method === "rotary";
    const lab = compute({ ...settings, own_angle: broken && method === "sinusoidal" }, table);
    const waves = formula ? wavelengths(settings.d_model, settings.base) : null;
    const pairs = lab.rows && pairsToShow(lab.rows[0].length / 2, settings.pair);
    const through = projected && method !== "alibi" ? ", through W_Q and W_K" : "";
    const view = {
      settings,
      lab,
      waves,
      pairs,
      write,
      scoresTitle: SCORES[method] + through,
      clocksTitle: CLOCKS[method],
      slopes: alibiSlopes(settings.n_heads),
      rowName: (p) =>
        method === "rotary" ? `q(${p})` : method === "learned" ? `row ${p}` : `PE(${p})`,
    };
    bounds(settings);
    const sliders = {
      ...settings,
      d_model: widths.indexOf(settings.d_model),
      base: bases.indexOf(settings.base),
      method: METHODS.indexOf(method),
    };
    for (const name of TRAITS) controls[name].set(sliders[name]);
    for (const name of show(settings)) parts[name].paint(view);
    last = view;
    say(view);
  }

  function say({ settings, lab, waves }) {
    const { position: p, offset: k, method } = settings;
    const same = lab.spread < 1e-9;
    const equal = method === "alibi" ? "The penalty" : "The product";
    const rest = same
      ? `, and so for every two positions ${Math.abs(k)} apart in this direction.`
      : `; other positions at this distance differ by up to ${write(lab.spread)}: the distance alone no longer decides.`;
    const first = effect(changed, settings, waves);
    const missing =
      lab.reach < settings.n_positions
        ? ` Positions from ${lab.reach} on have no row: the library raises an error.`
        : "";
    fig.say(
      first ? `${first} ` : "",
      `${equal} of position `,
      { text: String(p), role: "query" },
      " and position ",
      { text: String(p + k), role: "key" },
      " is ",
      { text: write(lab.scores[p][p + k]) },
      rest,
      missing,
    );
  }

  fig.exports({
    name: `positions-${model.get("method")}`,
    csv: () => {
      const rows = last.lab.rows ?? last.lab.scores;
      const head = last.lab.rows ? "component" : "key";
      return [
        ["position", ...rows[0].map((_, at) => `${head} ${at}`)],
        ...rows.map((row, p) => [p, ...row]),
      ];
    },
  });
  TRAITS.forEach((name) => fig.listen(model, `change:${name}`, paint));
  paint();
  return fig.end;
}

export default { render };
