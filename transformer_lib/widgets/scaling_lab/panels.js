// Scores and weights of all keys, raw and scaled, side by side.
//
//   const rows = panels(n);        rows.paint({ raw, scaled })      look() of model.js

import { axisText } from "../core/axes.js";
import { setSize, svgElement } from "../core/dom.js";
import { fixed, reading } from "../core/numbers.js";

const LINE = 24;
const TOP = 42;

const written = (score) => fixed(score, Math.abs(score) < 10 ? 2 : 1);

export function panels(n) {
  const svg = svgElement("svg", {
    class: "afm-scaling",
    role: "list",
    "aria-label": "Scores and weights of each key, raw and scaled",
  });
  let [sides, data] = [[], null];

  function layout(width) {
    const height = TOP + LINE * n + 62;
    setSize(svg, width, height);
    svg.replaceChildren();
    const half = width / 2;
    sides = [
      { name: "raw", title: "scores q·k", left: 0 },
      { name: "scaled", title: "scores q·k / √d_k", left: half + 8 },
    ].map((side) => makeSide(side, half - 8));
    paint();
  }

  function makeSide({ name, title, left }, width) {
    const scoreEnd = left + 52;
    const bar = scoreEnd + 8;
    const longest = Math.max(20, width - 60 - 46);
    const item = svgElement("g", { role: "listitem" });
    const shown = svgElement("g", { "aria-hidden": "true" });
    shown.append(
      svgElement("text", { class: "afm-scaling-title", x: left, y: 14 }, title),
      axisText("weight", bar, 34),
      axisText("score", scoreEnd, 34, "end"),
    );
    const lines = Array.from({ length: n }, (_, j) => {
      const y = TOP + LINE * j + 12;
      const score = svgElement("text", {
        class: "afm-scaling-number",
        x: scoreEnd,
        y: y + 4,
        "text-anchor": "end",
      });
      const rect = svgElement("rect", {
        class: "afm-weight-bar",
        x: bar,
        y: y - 8,
        height: 16,
        rx: 3,
      });
      const weight = svgElement("text", { class: "afm-scaling-number", y: y + 4 });
      shown.append(score, rect, weight);
      return { score, rect, weight };
    });
    const foot = [0, 1].map((line) =>
      svgElement("text", {
        class: "afm-scaling-foot",
        x: left,
        y: TOP + LINE * n + 24 + 20 * line,
      }),
    );
    shown.append(...foot);
    item.append(shown);
    svg.append(item);
    return { name, item, lines, foot, bar, longest };
  }

  function paint(now = data) {
    data = now;
    if (!data) return;
    for (const { name, item, lines, foot, bar, longest } of sides) {
      const { scores, weights, entropy, gradient } = data[name];
      lines.forEach(({ score, rect, weight }, j) => {
        score.textContent = written(scores[j]);
        rect.setAttribute("width", Math.max(1, longest * weights[j]));
        weight.setAttribute("x", bar + longest * weights[j] + 5);
        weight.textContent = fixed(weights[j]);
      });
      foot[0].textContent = `entropy ${reading(entropy)}`;
      foot[1].textContent = `gradient ${reading(gradient)}`;
      const said = scores.map(
        (score, j) => `key ${j + 1}: score ${written(score)}, weight ${fixed(weights[j])}`,
      );
      item.setAttribute(
        "aria-label",
        `${name}: ${said.join("; ")}; entropy ${reading(entropy)}, norm of the Jacobian ${reading(gradient)}`,
      );
    }
  }

  return { element: svg, layout, paint };
}
