import { button, clip, fitText, showToken, slider, svgElement } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { plane } from "../core/plane.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { dot, softmax } from "../math/linear.js";

const COLDEST = 0.03;
const HOTTEST = 10;
const ROW = 30;
const FONT = "13px system-ui, sans-serif";

/** What the dictionary answers: the scores, the weights and the average of the values. */
export function lookUp(keys, values, query, temperature) {
  const scores = keys.map((key) => dot(key, query));
  const weights = softmax(scores, temperature);
  return { scores, weights, answer: dot(weights, values) };
}

/** The entries as lines: name, weight as a bar, value; and the answer below. */
function shelf(names, values, unit) {
  const svg = svgElement("svg", {
    class: "afm-shelf",
    role: "list",
    "aria-label": "Weights, values and the answer",
  });
  let [lines, total, answerLine, data] = [[], 0, null, null];

  function layout(width) {
    const named = Math.min(128, 0.34 * width);
    const valued = 62;
    total = Math.max(40, width - named - valued - 60);
    const bar = named + 10;
    const height = ROW * (names.length + 1) + 40;
    for (const [name, value] of Object.entries({
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
    }))
      svg.setAttribute(name, value);
    const heading = (x, text, anchor, role) =>
      svgElement(
        "text",
        { class: `afm-axis afm-${role}`, x, y: 12, "text-anchor": anchor, "aria-hidden": "true" },
        text,
      );
    svg.replaceChildren(
      heading(named, "key", "end", "key"),
      heading(bar, "weight", "start", "soft-text"),
      heading(width - 4, "value", "end", "value-role"),
    );
    lines = names.map((name, i) => {
      const y = 36 + ROW * i;
      const rect = svgElement("rect", {
        class: "afm-weight-bar",
        x: bar,
        y: y - 9,
        height: 18,
        rx: 3,
      });
      const number = svgElement("text", { class: "afm-shelf-text", y: y + 5 });
      const group = svgElement("g", { role: "listitem" });
      const shown = svgElement("g", { "aria-hidden": "true" });
      shown.append(
        svgElement(
          "text",
          { class: "afm-shelf-text", x: named, y: y + 5, "text-anchor": "end" },
          fitText(showToken(name), FONT, named),
        ),
        rect,
        number,
        svgElement(
          "text",
          { class: "afm-shelf-text afm-value-role", x: width - 4, y: y + 5, "text-anchor": "end" },
          String(Number(values[i].toPrecision(4))),
        ),
      );
      group.append(shown);
      svg.append(group);
      return { group, rect, number, bar };
    });
    const y = 36 + ROW * names.length + 12;
    const text = svgElement("text", {
      class: "afm-shelf-answer afm-output",
      x: width - 4,
      y: y + 5,
      "text-anchor": "end",
    });
    const group = svgElement("g", { role: "listitem" });
    group.append(
      svgElement("line", { class: "afm-axis-line", x1: 0, x2: width, y1: y - 16, y2: y - 16 }),
      text,
    );
    svg.append(group);
    answerLine = { group, text };
    paint();
  }

  function paint(now = data) {
    data = now;
    if (!data || !lines.length) return;
    lines.forEach(({ group, rect, number, bar }, i) => {
      const weight = data.weights[i];
      rect.setAttribute("width", Math.max(1, total * weight));
      number.setAttribute("x", bar + total * weight + 6);
      number.textContent = weight.toFixed(2);
      group.setAttribute(
        "aria-label",
        `${clip(showToken(names[i]))}: weight ${weight.toFixed(2)}, value ${values[i]}`,
      );
    });
    const answer = `${data.answer.toFixed(1)} ${unit}`.trim();
    answerLine.text.textContent = `answer: ${answer}`;
    answerLine.group.setAttribute("aria-label", `answer: ${answer}`);
  }

  return { element: svg, layout, paint };
}

function render({ model, el }) {
  const { names, unit, axes } = readJson(model, "_text");
  const flat = readFloats(model, "_keys");
  const values = Array.from(readFloats(model, "_values"));
  const keys = names.map((_, i) => [flat[2 * i], flat[2 * i + 1]]);
  const start = { query: model.get("query"), temperature: model.get("temperature") };
  const reach = 1.25 * Math.max(1, ...keys.flat().map(Math.abs), ...start.query.map(Math.abs));

  const fig = figure(el, {
    name: "Soft dictionary",
    hint: "Try: drag the blue query among the keys, or move it with the arrow keys. Then lower the temperature.",
  });
  const heat = slider({
    label: "temperature τ",
    min: Math.log10(COLDEST),
    max: Math.log10(HOTTEST),
    step: 0.001,
    value: Math.log10(start.temperature),
    format: (power) => (10 ** power).toPrecision(2),
    onInput: (power) =>
      send(model, "temperature", Math.min(HOTTEST, Math.max(COLDEST, 10 ** power))),
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

  const place = plane({
    label: "Keys in the plane, and the query",
    reach,
    axes,
    points: [
      ...names.map((name) => ({ name, role: "key" })),
      { name: "query", role: "query", kind: "ring", movable: true },
    ],
    onMove: (_, at) => send(model, "query", at),
  });
  keys.forEach((key, i) => place.place(i, key));
  place.style(names.length, { radius: 9 });
  const list = shelf(names, values, unit);
  fig.add(place, { basis: 300 });
  fig.add(list, { basis: 300 });

  const now = () => lookUp(keys, values, model.get("query"), model.get("temperature"));

  function update() {
    const found = now();
    heat.set(Math.log10(model.get("temperature")));
    place.place(names.length, model.get("query"));
    found.weights.forEach((weight, i) =>
      place.style(i, {
        radius: 4 + 14 * Math.sqrt(weight),
        opacity: 0.35 + 0.65 * weight,
        note: `weight ${weight.toFixed(2)}`,
      }),
    );
    list.paint(found);
    say(found);
  }

  function say({ weights, answer }) {
    const best = weights.indexOf(Math.max(...weights));
    const amount = `${answer.toFixed(1)} ${unit}`.trim();
    const share = `${Math.round(100 * weights[best])} %`;
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
  return fig.end;
}

export default { render };
