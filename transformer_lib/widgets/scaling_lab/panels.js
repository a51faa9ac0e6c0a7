// Scores and weights of all keys, raw and scaled, side by side.
//
//   const rows = panels(n, 2, (j) => ...);     rows.paint({ raw, scaled })      look() of model.js
//
// One key can be pointed at (null for none): rows.pointing, rows.light(j).
//
// Below each side is the largest weight; at level 1 its slope, too, and at level 2 two measures
// of the whole row.

import { axisText } from "../core/axes.js";
import { setSize, svgElement } from "../core/dom.js";
import { fixed, reading } from "../core/numbers.js";
import { pointList } from "../core/pointing.js";

const LINE = 24;
const TOP = 42;

const written = (score) => fixed(score, Math.abs(score) < 10 ? 2 : 1);

/** The text below each side: [name where there is little room, name in full, text]. */
function measures({ largest, slope, entropy, jacobian }, level) {
  const norm = reading(jacobian);
  return [
    ["largest p", "largest weight p", nearOne(largest)],
    ["slope p(1 − p)", "slope p(1 − p)", reading(slope)],
    ["entropy", "entropy", reading(entropy)],
    ["‖J‖", "norm of the Jacobian", norm],
  ].slice(0, [1, 2, 4][level]);
}

/** A weight; one that two decimals would round to 1 is said to be less. */
export function nearOne(weight) {
  if (weight > 0.99995) return "> 0.9999";
  return fixed(weight, weight > 0.995 ? 4 : 2);
}

export function panels(n, level, onPoint) {
  const feet = [1, 2, 4][level];
  const svg = svgElement("svg", {
    class: "afm-scaling",
    role: "list",
    "aria-label": "Scores and weights of each key, raw and scaled",
  });
  let [sides, data, lit] = [[], null, null];
  const pointing = pointList(svg, { count: n, onPoint });

  function layout(width) {
    const height = TOP + LINE * n + 22 + 20 * feet;
    setSize(svg, width, height);
    svg.replaceChildren();
    const half = width / 2;
    sides = [
      { name: "raw", title: "scores q·k", left: 0 },
      { name: "scaled", title: "scores q·k / √dₖ", left: half + 8 },
    ].map((side) => makeSide(side, half - 8));
    paint();
    light(lit);
  }

  function light(j) {
    lit = j;
    for (const { lines } of sides)
      lines.forEach(({ ground }, at) => ground.classList.toggle("afm-lit", at === j));
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
      const ground = svgElement("rect", {
        class: "afm-lit-line",
        x: left + 1,
        y: y - 11,
        width: width - 2,
        height: LINE - 2,
        rx: 4,
      });
      const line = svgElement("g", {}, ground, score, rect, weight);
      pointing.attach(line, j);
      shown.append(line);
      return { ground, score, rect, weight };
    });
    const foot = Array.from({ length: feet }, (_, line) =>
      svgElement("text", {
        class: "afm-scaling-foot",
        x: left,
        y: TOP + LINE * n + 24 + 20 * line,
      }),
    );
    shown.append(...foot);
    item.append(shown);
    svg.append(item);
    return { name, item, lines, foot, bar, longest, roomy: width > 190 };
  }

  function paint(now = data) {
    data = now;
    if (!data) return;
    for (const { name, item, lines, foot, bar, longest, roomy } of sides) {
      const { scores, weights } = data[name];
      lines.forEach(({ score, rect, weight }, j) => {
        score.textContent = written(scores[j]);
        rect.setAttribute("width", Math.max(1, longest * weights[j]));
        weight.setAttribute("x", bar + longest * weights[j] + 5);
        weight.textContent = fixed(weights[j]);
      });
      const below = measures(data[name], level);
      below.forEach(([short, full, text], line) => {
        const title = roomy ? full : short;
        foot[line].textContent = `${title}${text.startsWith(">") ? " " : " = "}${text}`;
      });
      const said = scores.map(
        (score, j) => `key ${j + 1}: score ${written(score)}, weight ${fixed(weights[j])}`,
      );
      const told = below.map(([, title, text]) => `${title} ${text}`);
      item.setAttribute("aria-label", `${name}: ${said.join("; ")}; ${told.join(", ")}`);
    }
  }

  return { element: svg, layout, paint, light, pointing };
}
