// The two pictures of the scaling lab: scores and weights side by side, and a softmax of two.
//
//   const rows = panels(n);        rows.paint({ raw, scaled })
//   const curve = saturation();    curve.paint(d_k)

import { setAttributes, svgElement } from "../core/dom.js";

const LINE = 24;
const TOP = 42;
const RANGE = 8;

/** Short enough to read: 0.31, 22.6, 3.1e-9. */
export function brief(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 0.001) return value.toExponential(0).replace("e-", "e−");
  return size < 10 ? value.toFixed(size < 0.1 ? 3 : 2) : value.toFixed(size < 100 ? 1 : 0);
}

const signed = (value) =>
  `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(Math.abs(value) < 10 ? 2 : 1)}`;

export function panels(n) {
  const svg = svgElement("svg", {
    class: "afm-scaling",
    role: "list",
    "aria-label": "Scores and weights of each key, raw and scaled",
  });
  let [sides, data] = [[], null];

  function layout(width) {
    const height = TOP + LINE * n + 62;
    setAttributes(svg, { width, height, viewBox: `0 0 ${width} ${height}` });
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
      svgElement("text", { class: "afm-axis afm-soft-text", x: bar, y: 34 }, "weight"),
      svgElement(
        "text",
        { class: "afm-axis afm-soft-text", x: scoreEnd, y: 34, "text-anchor": "end" },
        "score",
      ),
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
        score.textContent = signed(scores[j]);
        rect.setAttribute("width", Math.max(1, longest * weights[j]));
        weight.setAttribute("x", bar + longest * weights[j] + 5);
        weight.textContent = weights[j].toFixed(2);
      });
      foot[0].textContent = `entropy ${brief(entropy)}`;
      foot[1].textContent = `gradient ${brief(gradient)}`;
      const said = scores.map(
        (score, j) => `key ${j + 1}: score ${signed(score)}, weight ${weights[j].toFixed(2)}`,
      );
      item.setAttribute(
        "aria-label",
        `${name}: ${said.join("; ")}; entropy ${brief(entropy)}, norm of the Jacobian ${brief(gradient)}`,
      );
    }
  }

  return { element: svg, layout, paint };
}

/** The weight of the larger of two scores, and the slope there, by their difference. */
export function saturation() {
  const svg = svgElement("svg", { class: "afm-saturation", role: "img" });
  let [size, d_k] = [null, 1];
  const weight = (gap) => 1 / (1 + Math.exp(-gap));
  const slope = (gap) => weight(gap) * (1 - weight(gap));

  function layout(width) {
    const [w, h] = [Math.min(width, 420), 230];
    size = { w, h, left: 34, right: w - 12, top: 30, bottom: h - 46 };
    setAttributes(svg, { width: w, height: h, viewBox: `0 0 ${w} ${h}` });
    paint();
  }

  function paint(now = d_k) {
    d_k = now;
    if (!size) return;
    const { w, left, right, top, bottom } = size;
    const x = (gap) => left + (Math.min(gap, RANGE) / RANGE) * (right - left);
    const y = (share) => bottom - share * (bottom - top);
    const path = (f, times) =>
      Array.from(
        { length: 81 },
        (_, i) =>
          `${i ? "L" : "M"}${x((i * RANGE) / 80).toFixed(1)},${y(times * f((i * RANGE) / 80)).toFixed(1)}`,
      ).join("");
    svg.replaceChildren(
      svgElement(
        "text",
        { class: "afm-scaling-title", x: 0, y: 14 },
        "Only two keys: weight of the larger score",
      ),
      svgElement("line", { class: "afm-axis-line", x1: left, x2: right, y1: bottom, y2: bottom }),
      svgElement("path", { class: "afm-curve afm-curve-weight", d: path(weight, 1) }),
      svgElement("path", { class: "afm-curve afm-curve-slope", d: path(slope, 1) }),
      svgElement(
        "text",
        { class: "afm-axis afm-soft-text", x: left - 6, y: y(1) + 4, "text-anchor": "end" },
        "1",
      ),
      svgElement(
        "text",
        { class: "afm-axis afm-soft-text", x: left - 6, y: y(0) + 4, "text-anchor": "end" },
        "0",
      ),
      svgElement(
        "text",
        { class: "afm-axis afm-soft-text", x: w / 2, y: size.h - 4, "text-anchor": "middle" },
        "difference of the two scores, 0 to 8",
      ),
      svgElement("text", { class: "afm-axis afm-soft-text", x: x(4.4), y: y(0.86) }, "weight p"),
      svgElement(
        "text",
        { class: "afm-axis afm-soft-text", x: x(4.4), y: y(0.07) },
        "slope p(1 − p)",
      ),
    );
    const marks = [
      ["raw", Math.sqrt(2 * d_k)],
      ["scaled", Math.SQRT2],
    ];
    marks.forEach(([name, gap], i) => {
      const beyond = gap > RANGE ? " →" : "";
      const place = {
        class: `afm-gap afm-gap-${name}`,
        x1: x(gap),
        x2: x(gap),
        y1: top,
        y2: bottom,
      };
      const anchor = gap > RANGE / 2 ? "end" : "start";
      svg.append(
        svgElement("line", place),
        svgElement(
          "text",
          {
            class: `afm-axis afm-gap-name afm-gap-${name}`,
            x: x(gap) + (anchor === "end" ? 4 : -4),
            y:
              bottom +
              15 +
              (i === 1 && gap > 0 && Math.abs(Math.sqrt(2 * d_k) - gap) < 2.5 ? 14 : 0),
            "text-anchor": anchor,
          },
          `${name}: ${brief(gap)}${beyond}`,
        ),
      );
    });
    svg.setAttribute(
      "aria-label",
      `Two scores: the standard deviation of their difference is ${brief(marks[0][1])} raw, where the slope is ${brief(slope(marks[0][1]))}, and ${brief(Math.SQRT2)} scaled, where it is ${brief(slope(Math.SQRT2))}`,
    );
  }

  return { element: svg, layout, paint };
}
