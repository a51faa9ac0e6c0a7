import { button, choices, clip, setAttributes, showToken, slider } from "../core/dom.js";
import { figure, turn } from "../core/figure.js";
import { grid } from "../core/grid.js";
import { fixed } from "../core/numbers.js";
import { leaders, listed } from "../core/plane.js";
import { drive, endsOf, labels } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { attention } from "../math/linear.js";
import { vectorPlane } from "./arrows.js";

async function render({ model, el }) {
  const { tokens } = readJson(model, "_text");
  const start = model.get("_start");
  const largest = Math.max(...[...start, ...model.get("coordinates")].flat().map(Math.abs));
  const reach = model.get("_reach") || Math.max(2, Math.ceil(2.6 * largest) / 2);
  const alone = model.get("_grid") === false; // the plane alone, small, for a place beside another
  const angles = start.map(([x, y]) => Math.atan2(y, x));
  const names = tokens.map((token) => clip(showToken(token)));
  let key = null;

  const fig = figure(el, {
    name: "Self-attention between vectors",
    hint: alone
      ? "Try: drag the tip of an arrow. Pink is what the blue vector becomes."
      : "Try: drag the tip of an arrow, or choose a vector and change its length or its angle. Watch the grid and the pink arrow.",
  });
  const move = (i, vector) =>
    send(
      model,
      "coordinates",
      model.get("coordinates").map((old, j) => (j === i ? vector : old)),
    );
  const choose = (i) => send(model, "selected", i);
  const polar = (length, angle) => {
    const i = model.get("selected");
    angles[i] = angle;
    const direction = [Math.cos(angle), Math.sin(angle)];
    const border = reach / Math.max(...direction.map(Math.abs)); // as far as a drag would go
    move(
      i,
      direction.map((part) => Math.min(length, border) * part),
    );
  };
  const lengthNow = () => Math.hypot(...model.get("coordinates")[model.get("selected")]);

  const which = choices({
    label: "vector",
    options: names.map((name) => clip(name, 16)),
    value: 0,
    onChange: choose,
  });
  const length = slider({
    label: "length",
    min: 0,
    max: reach, // in the plane in every direction; a drag into a corner makes it longer
    step: 0.01,
    value: 1,
    format: (value) => fixed(value),
    onInput: (value) => polar(value, angles[model.get("selected")]),
  });
  const angle = slider({
    label: "angle",
    ...endsOf(model, "angle"),
    step: 1,
    value: 0,
    format: (value) => `${fixed(value, 0)}°`,
    onInput: (value) => polar(lengthNow(), (value * Math.PI) / 180),
  });
  const reset = button({
    label: "start again",
    title: "Put all vectors back",
    onClick: () => send(model, "coordinates", start),
  });
  const sliders = alone ? [] : [which.element, length.element, angle.element];
  fig.controls.append(...sliders, reset.element);

  await turn();
  let over = null; // the arrow under the pointer
  const plane = vectorPlane({
    tokens,
    reach,
    onMove: move,
    // Alone, it is about one vector: the pink arrow stays with it, whichever arrow is moved.
    onSelect: alone ? () => {} : choose,
    onPoint(i) {
      if (alone) return; // there is no grid to answer
      over = i;
      map.light(i, i, false);
      read();
    },
  });
  const map = grid({
    rows: tokens,
    columns: tokens,
    label: "Attention weights",
    maxCell: 60,
    cellName: (row, column, text) => `${names[row]} attends to ${names[column]}: ${text}`,
    onSelect: (row, column) => {
      key = column;
      if (row === model.get("selected")) update();
      else choose(row);
    },
    onHover: read,
  });
  let state = null;
  function update() {
    const vectors = model.get("coordinates");
    const selected = model.get("selected");
    state = { vectors, selected, ...attention(vectors, vectors, vectors, { scale: 1 }) };
    vectors.forEach(([x, y], i) => {
      if (x || y) angles[i] = Math.atan2(y, x); // a vector of length 0 keeps its direction
    });
    which.set(selected);
    length.set(Math.hypot(...vectors[selected]));
    angle.set((angles[selected] * 180) / Math.PI);
    setAttributes(length.input, { "aria-label": `length of ${names[selected]}` });
    setAttributes(angle.input, { "aria-label": `angle of ${names[selected]}` });
    const row = state.weights[selected];
    plane.update({ vectors, selected, weights: row, output: state.output[selected] });
    map.paint(state.weights);
    map.select(selected, key ?? row.indexOf(Math.max(...row)));
    read();
  }

  /** What is pointed at, in both pictures and in the sentence; else the selected vector. */
  function read() {
    plane.relate(map.pointed);
    if (map.pointed) readCell(...map.pointed);
    else if (over !== null) readArrow(over);
    else readSelected();
  }

  function readArrow(i) {
    fig.say(
      "The row of ",
      { text: tokens[i], role: "query" },
      " is what it gives to each word; the column of ",
      { text: tokens[i], role: "key" },
      " is what it gets from each. The length is ",
      { text: fixed(Math.hypot(...state.vectors[i])) },
      ".",
    );
  }

  function readSelected() {
    const { selected, weights, output } = state;
    const row = weights[selected];
    const first = leaders(row);
    const all = first.length > 1 && first.length === row.length;
    const [x, y] = output[selected].map((value) => fixed(value));
    if (alone) {
      const becomes = [" becomes ", { text: `(${x}, ${y})`, role: "output" }, "."];
      fig.say({ text: tokens[selected], role: "query" }, ...becomes);
      return;
    }
    fig.say(
      { text: tokens[selected], role: "query" },
      all
        ? " attends to all alike"
        : first.length > 1
          ? " attends most, and equally, to "
          : " attends most to ",
      ...(all
        ? []
        : listed(
            first.map((i) => (i === selected ? "itself" : tokens[i])),
            "key",
          )),
      ": ",
      { text: fixed(row[first[0]]) },
      first.length > 1 ? " each" : "",
      ". The average of all vectors with its weights is its ",
      { text: "output", role: "output" },
      ", ",
      { text: `(${x}, ${y})` },
      ".",
    );
  }

  function readCell(row, column) {
    fig.say(
      { text: tokens[row], role: "query" },
      " attends to ",
      { text: tokens[column], role: "key" },
      ": ",
      { text: fixed(state.weights[row][column]) },
      ...scoreOf(row, column),
    );
  }

  /** The score as the plane shows it: a length times how far the other arrow reaches along it. */
  function scoreOf(row, column) {
    const length = Math.hypot(...state.vectors[row]);
    const score = state.scores[row][column];
    if (!length) return [". Its score is ", { text: fixed(score) }, "."];
    return [
      ". Its score is ",
      { text: fixed(score) },
      ": ",
      { text: tokens[row], role: "query" },
      " is ",
      { text: fixed(length) },
      " long, and ",
      row === column ? "the same arrow" : { text: tokens[column], role: "key" },
      " reaches ",
      { text: fixed(score / length) },
      " along it.",
    ];
  }

  await turn();
  fig.add(plane, { basis: alone ? 240 : 300 });
  await turn();
  if (!alone) fig.add(map, { basis: 300 });
  fig.exports({
    name: "self-attention",
    csv: () => [
      ["token", "x", "y", ...tokens.map((token) => `weight on ${token}`), "output x", "output y"],
      ...tokens.map((token, i) => [
        token,
        ...state.vectors[i],
        ...state.weights[i],
        ...state.output[i],
      ]),
    ],
  });
  fig.listen(model, "change:coordinates", update);
  fig.listen(model, "change:selected", () => {
    key = map.selected?.[0] === model.get("selected") ? key : null;
    update();
  });
  await turn();
  update();
  const put = (vector) => move(model.get("selected"), within(vector, reach));
  drive(fig, model, {
    set: {
      at: put,
      length: (value) => put(fromPolar(value, angles[model.get("selected")])),
      angle: (degrees) => {
        angles[model.get("selected")] = (degrees * Math.PI) / 180;
        put(fromPolar(lengthNow(), angles[model.get("selected")]));
      },
    },
    facts: () => factsOf(labels(tokens), state, start),
  });
  return fig.end;
}

const fromPolar = (length, angle) => [length * Math.cos(angle), length * Math.sin(angle)];

/** The vector itself, or shorter, so that its tip is in the plane. */
function within(vector, reach) {
  const farthest = Math.max(...vector.map(Math.abs));
  return farthest > reach ? vector.map((value) => (value * reach) / farthest) : vector;
}

/** The numbers that a goal may ask for, by name (widget.py, Facts). */
function factsOf(names, { vectors, scores, weights, output }, start) {
  const facts = {};
  const degrees = (radians) => (radians * 180) / Math.PI;
  const size = (vector) => Math.hypot(...vector);
  names.forEach((one, i) => {
    facts[`length ${one}`] = size(vectors[i]);
    facts[`angle ${one}`] = degrees(Math.atan2(vectors[i][1], vectors[i][0]));
    [facts[`output x ${one}`], facts[`output y ${one}`]] = output[i];
    names.forEach((other, j) => {
      const cosine = scores[i][j] / (size(vectors[i]) * size(vectors[j]) || 1);
      facts[`score ${one} ${other}`] = scores[i][j];
      facts[`weight ${one} ${other}`] = weights[i][j];
      facts[`between ${one} ${other}`] = degrees(Math.acos(Math.min(1, Math.max(-1, cosine))));
    });
  });
  const growth = vectors.map((vector, i) => size(vector) / (size(start[i]) || 1));
  facts["longest growth"] = Math.max(...growth);
  return facts;
}

export default { render };
