import {
  choices,
  clip,
  element,
  select,
  showToken,
  slider,
  svgElement,
  toggle,
} from "../core/dom.js";
import { figure } from "../core/figure.js";
import { grid } from "../core/grid.js";
import { drive, endsOf, labels } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { attentionScores } from "../math/linear.js";
import {
  andMasks,
  carriers,
  emptyRows,
  firstSizes,
  maskedAttention,
  PRESETS,
  presetMask,
  reach,
  recognize,
  sameMask,
} from "../math/masks.js";
import { flow } from "./flow.js";
import { outputs } from "./outputs.js";
import { cellReading, flowReading, maskWarning } from "./reading.js";

const ICON = 5;
const RESULTS = 290; // px: room for the numbers of three components
const HINTS = {
  all: "Try: open one cell above the diagonal. Click it, or drag across several (a finger: hold, then drag); with the keyboard, arrow keys and space (shift with an arrow key keeps drawing). Then look at 1 layer and at 2.",
  weights:
    "Try: hide by another rule, and look at the rows. A click, or space, opens and closes a cell.",
  mask: "Try: click a cell to open or close it, or drag across several (a finger: hold, then drag); with the keyboard, arrow keys and space.",
  layers:
    "Try: open one cell above the diagonal by a click, or with arrow keys and space. Then look at 1 layer and at 2.",
};

function render({ model, el }) {
  const { words, components = [], hint } = readJson(model, "_text");
  const { rules: ways } = readJson(model, "_limits");
  const [n, dk, dv] = model.get("_sizes_of");
  const { q, k, v } = vectors(readFloats(model, "_vectors"), n, dk, dv);
  const scores = attentionScores(q, k);
  const sizes = firstSizes(PRESETS, n);
  let [preset, chosen, base] = [null, null, null]; // base: the mask that presets are combined with
  let [brush, last, stroke] = [null, null, false];

  const show = model.get("_show") ?? "all"; // all, or the parts of a smaller copy
  const fig = figure(el, { name: "Mask painter", hint: hint || HINTS[show] });

  // The mask: read from the model, so that Python and every view of this widget agree.
  const names = words.map((word) => clip(showToken(word)));
  const maskNow = () => rowsOf(model.get("cells"), n);
  const write = (mask) => send(model, "cells", mask.flat().map(Number));
  const usePreset = (name) => {
    [preset, chosen] = [name, name];
    const drawn = presetMask(name, n, sizes);
    const mask = base ? andMasks(drawn, base) : drawn;
    if (sameMask(mask, maskNow()))
      update(); // nothing to tell, but the choice is new
    else write(mask);
  };

  const keep = (on) => {
    base = on ? maskNow() : null;
    keeping.set(on);
  };

  const presets = choices({
    label: "mask",
    value: 0,
    onChange: (index) => usePreset(PRESETS[index].name),
    options: PRESETS.map((one) => ({ text: one.name, title: one.about, picture: icon(one) })),
  });
  const about = element("p", { class: "afm-legend" });
  const sized = PRESETS.flatMap(({ name, sizes: own }) => own.map((one) => ({ name, ...one })));
  const sliders = sized.map(({ name, key, label }) => ({
    name,
    key,
    control: slider({
      label,
      min: 1,
      max: n,
      step: 1,
      value: sizes[key],
      onInput: (value) => {
        sizes[key] = value;
        usePreset(name);
      },
    }),
  }));
  const keeping = toggle({
    label: "and: keep hidden what is hidden now",
    value: false,
    onChange: (on) => keep(on),
  });
  const rules = select({
    label: "hide by",
    options: ways,
    value: 0,
    onChange: (rule) => send(model, "rule", rule),
  });
  const sources = select({
    label: "follow",
    options: words,
    value: 0,
    onChange: (at) => send(model, "source", at),
  });
  const layers = slider({
    label: "layers",
    ...endsOf(model, "layers"),
    step: 1,
    value: 1,
    onInput: (count) => send(model, "layers", count),
  });
  if (show === "all")
    fig.controls.append(
      presets.element,
      about,
      ...sliders.map(({ control }) => control.element),
      keeping.element,
    );
  if (show === "layers") fig.controls.append(sources.element, layers.element);
  else if (show !== "mask") fig.controls.append(rules.element);

  const paintCell = (i, j, may) => {
    const mask = maskNow();
    if (mask[i][j] === may) return;
    mask[i][j] = may;
    write(mask);
  };
  const map = grid({
    rows: words,
    columns: words,
    label: "Attention weights under the mask",
    maxCell: 52,
    cellName: (i, j, text) => `${names[i]}, ${names[j]}: ${text}`,
    onSelect: (i, j) => {
      if (stroke && brush !== null) paintCell(i, j, brush);
      else read([i, j]);
    },
    onHover: (i, j) => {
      graph.light(i === null ? null : [i, j]);
      read(i === null ? null : [i, j]);
    },
    onPress: (i, j, phase) => {
      if (phase === "end") {
        last = null;
        return;
      }
      if (phase !== "move") brush = !maskNow()[i][j];
      // A fast pointer skips cells: fill in the straight line from the last one.
      for (const [a, b] of phase === "move" && last ? between(last, [i, j]) : [[i, j]])
        paintCell(a, b, brush);
      last = [i, j];
    },
  });
  map.svg.addEventListener("keydown", (event) => (stroke = event.shiftKey), true);
  map.svg.addEventListener("pointerdown", () => (stroke = false), true);

  const results = outputs({ rows: words, width: dv, names: components });
  const warning = element("p", { class: "afm-warning", role: "status" });
  fig.add(
    {
      element: element(
        "div",
        {},
        element(
          "div",
          { class: "afm-beside" },
          map.element,
          ...(show === "layers" ? [] : [results.element]),
        ),
        warning,
      ),
      layout(width) {
        const beside = width >= 520;
        map.layout(beside && show !== "layers" ? width - RESULTS - 12 : width);
        const lines = words.map((_, i) => {
          const cell = map.cell(i, 0);
          const [y, height] = [Number(cell.getAttribute("y")), Number(cell.getAttribute("height"))];
          return beside
            ? { y, height }
            : {
                y: y - Number(map.cell(0, 0).getAttribute("y")) + (components.length ? 40 : 24),
                height,
              };
        });
        results.layout(beside ? RESULTS : width, lines);
      },
      theme(colors) {
        map.theme(colors);
        results.theme(colors);
      },
    },
    { basis: show === "layers" ? 290 : 540 },
  );

  const graph = flow({
    words,
    onSource: (at) => send(model, "source", at),
    onEdge(i, j) {
      map.light(i, j);
      graph.light(i === null ? null : [i, j]);
      read(i === null ? null : [i, j]);
    },
  });
  const traced = element(
    "div",
    {},
    graph.element,
    element(
      "p",
      { class: "afm-legend" },
      "Green: something of the word you follow can be here, carried by keys and values (line) or by the weights alone (dashes). A heavy ring: it can be at a word before its own, so it came from the future.",
    ),
  );
  if (show === "all")
    traced.prepend(
      element(
        "div",
        { class: "afm-controls", style: "padding: 0 0 8px" },
        sources.element,
        layers.element,
      ),
    );
  const tracing = show === "all" || show === "layers";
  if (tracing) fig.add({ element: traced, layout: graph.layout }, { basis: 300 });

  let state = null;
  function read(cell) {
    if (cell) fig.say(...cellReading(words, state.mask, state.weights, ...cell));
    else if (!tracing)
      fig.say(`${state.mask.flat().filter(Boolean).length} of ${n * n} cells are open.`);
    else fig.say(...flowReading(words, state.levels, model.get("source")));
  }

  function update() {
    const [mask, rule] = [maskNow(), model.get("rule")];
    const [source, count] = [model.get("source"), model.get("layers")];
    preset = recognize(mask, sizes, preset);
    const active = base ? chosen : preset;
    presets.set(PRESETS.findIndex(({ name }) => name === active));
    about.textContent = PRESETS.find(({ name }) => name === active)?.about ?? "Your own mask.";
    for (const { name, key, control } of sliders) {
      control.set(sizes[key]);
      control.element.hidden = name !== active;
    }
    rules.set(rule);
    sources.set(source);
    layers.set(count);
    const { weights, sums, output } = maskedAttention(scores, v, mask, rule);
    const carried = carriers(mask, rule);
    const levels = reach(carried, source, count);
    state = { mask, weights, sums, output, levels };
    // Where −1e9 hides a whole row nothing is hidden, so nothing is hatched.
    map.paint(
      weights,
      weights.map((row, i) => row.map((weight, j) => mask[i][j] || weight > 0)),
    );
    results.paint(sums, output);
    if (tracing) graph.paint(carried, levels, source);
    const wrong = maskWarning(words, mask, sums, rule);
    warning.hidden = !wrong;
    warning.replaceChildren(
      ...(wrong ?? []).map((part) =>
        part.text ? element("bdi", {}, clip(showToken(part.text))) : part,
      ),
    );
    read(null);
  }

  fig.exports({
    name: "mask",
    csv: () => [
      ["query", "key", "may attend", "weight"],
      ...words.flatMap((query, i) =>
        words.map((key, j) => [query, key, Number(state.mask[i][j]), state.weights[i][j]]),
      ),
    ],
  });
  for (const trait of ["cells", "source", "layers", "rule"])
    fig.listen(model, `change:${trait}`, update);
  update();
  const firstMask = maskNow();
  const resize = (key) => (count) => {
    sizes[key] = Math.min(n, count);
    const takers = sized.filter((one) => one.key === key).map(({ name }) => name);
    const now = chosen ?? preset;
    usePreset(takers.includes(now) ? now : takers[0]);
  };
  drive(fig, model, {
    set: {
      mask: usePreset,
      ...Object.fromEntries(sized.map(({ key }) => [key, resize(key)])),
      keep,
      open: ([i, j]) => paintCell(i, j, true),
      hide: ([i, j]) => paintCell(i, j, false),
    },
    reset() {
      Object.assign(sizes, firstSizes(PRESETS, n));
      [preset, chosen] = [null, null];
      keep(false);
      update();
    },
    facts: () => factsOf(labels(words), state, firstMask, model),
  });
  return fig.end;
}

/** The numbers that a goal may ask for, by name (widget.py, Facts). */
function factsOf(names, { mask, weights, sums }, firstMask, model) {
  const cells = mask.flatMap((row, i) => row.map((may, j) => ({ i, j, may })));
  const count = (wanted) => cells.filter(wanted).length;
  const facts = {
    "changed cells": count(({ i, j, may }) => may !== firstMask[i][j]),
    "open cells": count(({ may }) => may),
    "future cells": count(({ i, j, may }) => may && j > i),
    "empty rows": emptyRows(mask).length,
  };
  const carried = carriers(mask, model.get("rule"));
  const most = endsOf(model, "layers").max;
  names.forEach((one, i) => {
    facts[`row sum ${one}`] = sums[i];
    const levels = reach(carried, i, most);
    names.forEach((other, j) => {
      facts[`weight ${one} ${other}`] = weights[i][j];
      for (let layer = 1; layer <= most; layer += 1)
        facts[`${one} reaches ${other} in ${layer}`] = Number(levels[layer][j]);
    });
  });
  return facts;
}

function vectors(flat, n, dk, dv) {
  const take = (start, width) =>
    Array.from({ length: n }, (_, i) =>
      Array.from(flat.subarray(start + i * width, start + (i + 1) * width)),
    );
  return { q: take(0, dk), k: take(n * dk, dk), v: take(2 * n * dk, dv) };
}

function rowsOf(cells, n) {
  return Array.from({ length: n }, (_, i) => cells.slice(i * n, (i + 1) * n).map(Boolean));
}

/** The cells on the straight line from one cell to another, the first left out. */
function between([i0, j0], [i1, j1]) {
  const steps = Math.max(Math.abs(i1 - i0), Math.abs(j1 - j0));
  return Array.from({ length: steps }, (_, step) => {
    const part = (step + 1) / steps;
    return [Math.round(i0 + (i1 - i0) * part), Math.round(j0 + (j1 - j0) * part)];
  });
}

/** A small picture of a preset. */
function icon(preset) {
  const mask = presetMask(preset.name, ICON, firstSizes([preset], ICON));
  const picture = svgElement("svg", {
    class: "afm-maskicon",
    width: 29,
    height: 29,
    "aria-hidden": "true",
  });
  mask.forEach((row, i) =>
    row.forEach((may, j) =>
      picture.append(
        svgElement("rect", {
          x: 6 * j,
          y: 6 * i,
          width: 5,
          height: 5,
          class: may ? "afm-open" : null,
        }),
      ),
    ),
  );
  return picture;
}

export default { render };
