import { button, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, percent, precise } from "../core/numbers.js";
import { leaders, listed } from "../core/plane.js";
import { drive, endsOf, labels } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { entropy } from "../math/linear.js";
import { lookUp, nearest, temperatures } from "./model.js";
import { points } from "./points.js";
import { shelf } from "./shelf.js";

function render({ model, el }) {
  const { names, unit, axes } = readJson(model, "_text");
  const { min: coldest, max: hottest } = endsOf(model, "temperature");
  const flat = readFloats(model, "_keys");
  const values = Array.from(readFloats(model, "_values"));
  const keys = names.map((_, i) => [flat[2 * i], flat[2 * i + 1]]);
  const start = { query: model.get("query"), temperature: model.get("temperature") };
  const reach = 1.25 * Math.max(1, ...keys.flat().map(Math.abs), ...start.query.map(Math.abs));

  const fig = figure(el, {
    name: "Soft dictionary",
    hint: "Try: turn the blue query: drag its tip, or move it with the arrow keys. Then lower the temperature.",
  });
  const stops = temperatures(coldest, hottest);
  const heat = slider({
    label: "temperature τ",
    min: 0,
    max: stops.length - 1,
    step: 1,
    value: nearest(stops, start.temperature),
    format: () => precise(model.get("temperature")), // one that Python has set may lie between two
    onInput: (at) => send(model, "temperature", stops[at]),
  });
  fig.controls.append(
    heat.element,
    button({
      label: "start again",
      title: "Query and temperature as they were",
      onClick: () => {
        model.set("query", start.query);
        send(model, "temperature", start.temperature);
      },
    }).element,
  );

  const map = points({
    names,
    keys,
    query: start.query,
    reach,
    axes,
    onMove: (at) => send(model, "query", at),
  });
  const list = shelf(names, values, unit, (i) => {
    map.light(i);
    list.light(i);
    say(now());
  });
  map.hears(list.pointing);
  fig.add(map, { basis: 300 });
  fig.add(list, { basis: 300 });

  const now = () => lookUp(keys, values, model.get("query"), model.get("temperature"));

  function update() {
    const found = now();
    heat.set(nearest(stops, model.get("temperature")));
    map.paint(model.get("query"), found.weights);
    list.paint(found);
    say(found);
  }

  /** The key that is pointed at: its score as a length, and its share of the answer. */
  function sayKey(i, { scores, weights, answer }) {
    const length = Math.hypot(...model.get("query"));
    const how = length
      ? [
          ": it reaches ",
          { text: fixed(scores[i] / length) },
          " along the query, which is ",
          { text: fixed(length) },
          " long",
        ]
      : [];
    fig.say(
      { text: names[i], role: "key" },
      " scores ",
      { text: fixed(scores[i]) },
      ...how,
      ". Its weight is ",
      { text: percent(weights[i]) },
      ", so it brings ",
      { text: fixed(weights[i] * values[i], 1), role: "value" },
      " of the ",
      { text: `${fixed(answer, 1)} ${unit}`.trim(), role: "output" },
      ".",
    );
  }

  function say(found) {
    if (list.pointing.now !== null) {
      sayKey(list.pointing.now, found);
      return;
    }
    const { weights, answer } = found;
    const first = leaders(weights);
    const best = first[0];
    const amount = `${fixed(answer, 1)} ${unit}`.trim();
    const share = percent(weights[best], 0);
    if (weights[best] > 0.995)
      fig.say(
        "A hard dictionary: ",
        { text: names[best], role: "key" },
        " answers alone, ",
        { text: amount, role: "output" },
        ".",
      );
    else if (weights[best] < 1.15 / names.length)
      fig.say(
        "Nearly a plain average: every key has about the same say. The answer is ",
        { text: amount, role: "output" },
        ".",
      );
    else if (first.length > 1)
      fig.say(
        "The query agrees most, and equally, with ",
        ...listed(
          first.map((i) => names[i]),
          "key",
        ),
        ": ",
        { text: share },
        " of the weight each. The answer is ",
        { text: amount, role: "output" },
        ".",
      );
    else
      fig.say(
        "The query agrees most with ",
        { text: names[best], role: "key" },
        ", which gets ",
        { text: share },
        " of the weight. The answer is ",
        { text: amount, role: "output" },
        ".",
      );
  }

  fig.exports({
    name: "soft-dictionary",
    csv: () => {
      const { scores, weights, answer } = now();
      const rows = names.map((name, i) => [name, ...keys[i], scores[i], weights[i], values[i]]);
      return [
        ["name", "key x", "key y", "score", "weight", "value"],
        ...rows,
        ["answer", "", "", "", "", answer],
      ];
    },
  });
  fig.listen(model, "change:query", update);
  fig.listen(model, "change:temperature", update);
  update();
  drive(fig, model, { facts: () => factsOf(labels(names), now(), model) });
  return fig.end;
}

/** The numbers that a goal may ask for, by name (widget.py, Facts). */
function factsOf(names, { scores, weights, answer }, model) {
  const [x, y] = model.get("query");
  const facts = {
    answer,
    entropy: entropy(weights),
    "largest weight": Math.max(...weights),
    "query x": x,
    "query y": y,
  };
  names.forEach((name, i) => {
    facts[`score ${name}`] = scores[i];
    facts[`weight ${name}`] = weights[i];
  });
  return facts;
}

export default { render };
