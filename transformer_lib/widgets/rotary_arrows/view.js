import { linearScale } from "../core/axes.js";
import {
  button,
  choices,
  element,
  setAttributes,
  setSize,
  slider,
  svgElement,
} from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed } from "../core/numbers.js";
import { arrow, plane } from "../core/plane.js";
import { drive, endsOf } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { compute } from "./model.js";

const NAMES = ["query", "key"];
const SHOWN = 1.5; // how far the plane reaches beyond the arrows that are given
const ARC = 0.6; // radius of the angle's arc
const degrees = (angle) => (angle * 180) / Math.PI;

function render({ model, el }) {
  const { reach } = readJson(model, "_limits");
  const farthest = endsOf(model, "before").max;
  const start = model.get("_start");
  const fig = figure(el, {
    name: "A query and a key, turned by their positions",
    hint: "Try: put words before the text. Both arrows turn, and the angle between them stays. Then let the position be added, and do the same.",
  });
  const state = { width: 0, colors: null, now: null };
  const settings = () =>
    Object.fromEntries(
      ["arrows", "query_position", "key_position", "before", "speed", "add"].map((name) => [
        name,
        model.get(name),
      ]),
    );
  const plain = (label, name, more = {}) =>
    slider({
      label,
      ...endsOf(model, name),
      step: 1,
      value: model.get(name),
      onInput: (value) => send(model, name, value),
      ...more,
    });
  const controls = {
    add: choices({
      label: "position",
      options: ["turns", "is added"],
      value: 0,
      onChange: (at) => send(model, "add", at === 1),
    }),
    query_position: plain("query's position", "query_position"),
    key_position: plain("key's position", "key_position"),
    before: plain("words before the text", "before"),
    speed: plain("speed", "speed", {
      step: 0.05,
      format: (value) => `${fixed(value)} a position`,
    }),
  };
  controls.query_position.element.classList.add("afm-ra-query");
  controls.key_position.element.classList.add("afm-ra-key");
  const reset = button({
    label: "start again",
    title: "Put both arrows back",
    onClick: () => send(model, "arrows", start),
  });
  fig.controls.append(...Object.values(controls).map((one) => one.element), reset.element);

  const ground = plane({
    label: "The arrows in the plane",
    reach: SHOWN * reach,
    largest: 380,
    onLayout: draw,
  });
  ground.svg.classList.add("afm-ra");
  const [pale, full] = ["pale", "full"].map((kind) =>
    NAMES.map((name) => arrow(`afm-ra-${name} afm-ra-${kind}`)),
  );
  const arc = svgElement("path", { class: "afm-ra-arc", "aria-hidden": "true" });
  const names = NAMES.map((name) =>
    svgElement("text", { class: `afm-arrow-name afm-ra-${name}`, "aria-hidden": "true" }, name),
  );
  const handles = NAMES.map(handle);
  ground.svg.append(arc, ...[...pale, ...full].map((one) => one.node), ...names, ...handles);
  fig.add(ground, { basis: 280 });
  const curve = svgElement("svg", { role: "img" });
  const title = element("p", { class: "afm-part-title" }, "The score, by words before the text");
  fig.add(
    {
      element: element("div", {}, title, curve),
      layout: (width) => redraw({ width }),
      theme: (colors) => redraw({ colors }),
    },
    { basis: 280 },
  );

  function handle(name, at) {
    const node = svgElement("g", {
      class: `afm-handle afm-ra-${name}`,
      tabindex: "0",
      role: "slider",
      "aria-label": `${name}, before its position`,
      "aria-valuemin": "0",
      "aria-valuemax": (reach * Math.SQRT2).toFixed(2),
      "aria-roledescription": "arrow, moved with the arrow keys",
    });
    node.append(
      svgElement("circle", { r: 16, class: "afm-handle-room" }),
      svgElement("circle", { r: 6, class: "afm-handle-tip" }),
    );
    const within = (value) => Math.min(reach, Math.max(-reach, value));
    ground.movable(node, {
      at: () => model.get("arrows")[at],
      onMove: (point) =>
        send(
          model,
          "arrows",
          model.get("arrows").map((old, one) => (one === at ? point.map(within) : old)),
        ),
      shift: 5,
    });
    return node;
  }

  function draw() {
    const { now } = state;
    if (!now || !ground.size) return;
    const origin = ground.toPixels([0, 0]);
    const given = model.get("arrows");
    const stand = [now.query, now.key];
    NAMES.forEach((_, at) => {
      const [from, to] = [given[at], stand[at]].map(ground.toPixels);
      pale[at].place(origin, from, 1.5);
      full[at].place(origin, to, 3.5);
      const [x, y] = to;
      const side = stand[at][0] < 0 ? "end" : "start";
      setAttributes(names[at], {
        x: x + (side === "end" ? -8 : 8),
        y: y + (stand[at][1] < 0 ? 16 : -8),
        "text-anchor": side,
      });
      setAttributes(handles[at], {
        transform: `translate(${from[0]} ${from[1]})`,
        "aria-valuenow": Math.hypot(...given[at]).toFixed(2),
        "aria-valuetext": `x ${fixed(given[at][0])}, y ${fixed(given[at][1])}`,
      });
    });
    drawArc(stand, now.angle);
  }

  /** The smaller of the two angles, from the query to the key. */
  function drawArc([query, key], angle) {
    const [from, to] = [query, key].map(([x, y]) => {
      const length = Math.hypot(x, y) || 1;
      return ground.toPixels([(ARC * x) / length, (ARC * y) / length]);
    });
    const radius = Math.abs(ground.toPixels([ARC, 0])[0] - ground.toPixels([0, 0])[0]);
    const against = query[0] * key[1] - query[1] * key[0] > 0; // counterclockwise: up in the picture
    arc.setAttribute("d", angle ? `M${from}A${radius} ${radius} 0 0 ${against ? 0 : 1} ${to}` : "");
  }

  /** The score for each number of words before the text: a level line if only the offset counts. */
  function redraw(change) {
    Object.assign(state, change);
    const { width, colors, now } = state;
    if (!width || !colors || !now) return;
    const [left, right, top, tall] = [44, width - 8, 8, 170];
    const x = linearScale([0, farthest], [left, right]).of;
    const lengths = [now.query, now.key].map((at) => Math.hypot(...at)); // the largest score there is
    const most = Math.max(1, lengths[0] * lengths[1], ...now.scores.map(Math.abs));
    const y = linearScale([-most, most], [top + tall, top]).of;
    const text = (px, py, content, anchor) =>
      svgElement("text", { x: px, y: py, class: "afm-small-text", "text-anchor": anchor }, content);
    const line = (x1, y1, x2, y2, stroke, more = {}) =>
      svgElement("line", { x1, y1, x2, y2, stroke, ...more });
    const points = now.scores.map(
      (score, words) => `${x(words).toFixed(2)},${y(score).toFixed(2)}`,
    );
    const before = model.get("before");
    curve.replaceChildren(
      line(left, y(0), right, y(0), colors.line),
      line(x(before), top, x(before), top + tall, colors.soft, { "stroke-dasharray": "3 3" }),
      svgElement("polyline", {
        points: points.join(" "),
        fill: "none",
        stroke: colors.ink,
        "stroke-width": 2,
      }),
      svgElement("circle", { cx: x(before), cy: y(now.score), r: 4.5, fill: colors.ink }),
      text(left - 6, y(0) + 4, "0", "end"),
      text(left - 6, top + 8, fixed(most, 1), "end"),
      text(left - 6, top + tall, fixed(-most, 1), "end"),
      text(left, top + tall + 18, "0 words", "start"),
      text(right, top + tall + 18, String(farthest), "end"),
    );
    const level = Math.max(...now.scores) - Math.min(...now.scores) < 1e-9;
    setAttributes(setSize(curve, width, top + tall + 26), {
      "aria-label": `The score with ${before} words before the text is ${fixed(now.score)}; ${level ? "it is the same for every number of words" : "it changes with the number of words"}`,
    });
  }

  function paint() {
    const wanted = settings();
    const now = compute(wanted, farthest);
    for (const [name, control] of Object.entries(controls)) {
      control.set(name === "add" ? Number(wanted.add) : wanted[name]);
    }
    redraw({ now });
    draw();
    say(wanted, now);
  }

  function say({ query_position, key_position, before, add }, { angle, score, scores }) {
    const level = Math.max(...scores) - Math.min(...scores) < 1e-9;
    fig.say(
      "Query at position ",
      { text: String(query_position + before), role: "query" },
      ", key at position ",
      { text: String(key_position + before), role: "key" },
      `: ${fixed(degrees(angle), 0)}° between them, score `,
      { text: fixed(score) },
      level
        ? ". Words before the text do not change it."
        : add
          ? ". It changes with the words before the text: what was added depends on where the text stands."
          : ".",
    );
  }

  fig.exports({
    name: "turned-arrows",
    csv: () => [["words before", "score"], ...state.now.scores.map((score, at) => [at, score])],
  });
  for (const name of Object.keys(settings())) fig.listen(model, `change:${name}`, paint);
  paint();
  drive(fig, model, {
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const { offset, angle, score } = state.now;
      const moved = model
        .get("arrows")
        .flat()
        .some((value, at) => value !== start.flat()[at]);
      return { offset, angle: degrees(angle), score, moved: Number(moved) };
    },
  });
  return fig.end;
}

export default { render };
