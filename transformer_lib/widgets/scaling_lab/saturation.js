// A softmax of two scores: the weight of the larger one, and the slope there, by their difference.
//
//   const curve = saturation();    curve.paint(d_k)      marks the typical difference, raw and scaled
//   curve.place({ raw: 4.1, scaled: 0.5 })               two differences on it; null for none
//
// Below the axis each mark has a line with its numbers: the difference, the weight, the slope.

import { axisLine, axisText, gridLine, linearScale, linePath } from "../core/axes.js";
import { setSize, svgElement } from "../core/dom.js";
import { fixed, reading } from "../core/numbers.js";
import { slopeAt, typicalGaps, weightAt } from "./model.js";

const RANGE = 12;
const GAPS = Array.from({ length: 121 }, (_, i) => (i * RANGE) / 120);
const TICKS = [0, 2, 4, 6, 8, 10, 12];
const WIDE = 460; // from here, the numbers of a mark fit beside its name

export function saturation() {
  const svg = svgElement("svg", { class: "afm-saturation", role: "img" });
  let [size, d_k, placed] = [null, 1, null];

  function layout(width) {
    const w = Math.min(width, 560);
    const bottom = 200;
    const lines = w < WIDE ? 4 : 2;
    size = { left: 30, right: w - 16, top: 32, bottom, wide: w >= WIDE };
    setSize(svg, w, bottom + 50 + 20 * lines);
    paint();
  }

  function paint(now = d_k) {
    d_k = now;
    if (!size) return;
    const { left, right, top, bottom } = size;
    const x = linearScale([0, RANGE], [left, right]);
    const y = linearScale([0, 1], [bottom, top]);
    const curve = (kind, f) =>
      svgElement("path", {
        class: `afm-curve afm-curve-${kind}`,
        d: linePath(
          GAPS.map(x.of),
          GAPS.map((gap) => y.of(f(gap))),
        ),
      });
    svg.replaceChildren(
      svgElement("text", { class: "afm-scaling-title", x: 0, y: 14 }, "Two keys only"),
      ...[0.5, 1].map((value) => gridLine(left, y.of(value), right, y.of(value))),
      axisLine(left, bottom, right, bottom),
      ...[0, 0.5, 1].map((value) => axisText(String(value), left - 6, y.of(value) + 4, "end")),
      ...TICKS.map((gap) => axisText(String(gap), x.of(gap), bottom + 17, "middle")),
      axisText("difference of the two scores", (left + right) / 2, bottom + 36, "middle"),
    );
    const marks = typicalGaps(d_k);
    const said = [
      mark("raw", marks.raw, `√(2 · ${d_k})`, 0, x),
      mark("scaled", marks.scaled, "√2", 1, x),
    ];
    svg.append(
      curve("weight", weightAt),
      curve("slope", slopeAt),
      axisText("weight p of the larger score", x.of(3), y.of(0.83), "start", "curve-name-weight"),
      axisText("slope p(1 − p)", x.of(4.2), y.of(0.08), "start", "curve-name-slope"),
    );
    if (placed)
      for (const name of ["raw", "scaled"]) svg.append(...dotsOf(name, placed[name], x, y));
    svg.setAttribute("aria-label", `Two keys only. ${said.join(". ")}`);
  }

  /** A difference on the weight's curve and on the slope's. */
  function dotsOf(name, gap, x, y) {
    const cx = x.of(Math.min(gap, RANGE));
    return [weightAt, slopeAt].map((f) =>
      svgElement("circle", { class: `afm-place afm-place-${name}`, cx, cy: y.of(f(gap)), r: 6 }),
    );
  }

  /** A line at a typical difference, and its numbers below; beyond the axis it is drawn at the end. */
  function mark(name, gap, formula, place, x) {
    const { left, top, bottom, wide } = size;
    const at = x.of(Math.min(gap, RANGE));
    const beyond = gap > RANGE ? " (beyond the axis)" : "";
    const title = `typical ${name} difference: ${formula} = ${reading(gap)}`;
    const p = weightAt(gap);
    const numbers = `p ${p > 0.99 ? "> 0.99" : fixed(p)}, slope ${reading(slopeAt(gap))}`;
    const first = bottom + 58 + 20 * place * (wide ? 1 : 2);
    const kind = { class: `afm-gap afm-gap-${name}` };
    svg.append(
      svgElement("line", { ...kind, x1: at, x2: at, y1: top, y2: bottom }),
      svgElement("line", { ...kind, x1: left, x2: left + 16, y1: first - 4, y2: first - 4 }),
      svgElement("text", { class: "afm-scaling-number", x: left + 24, y: first }, title),
      svgElement(
        "text",
        wide
          ? { class: "afm-scaling-number", x: left + 320, y: first }
          : { class: "afm-scaling-number", x: left + 24, y: first + 19 },
        numbers,
      ),
    );
    if (gap > RANGE) {
      svg.append(axisText("→", at + 2, top - 4, "middle", `gap-name-${name}`));
    }
    return `${title}${beyond}, ${numbers}`;
  }

  return {
    element: svg,
    layout,
    paint,
    place(now) {
      placed = now;
      paint();
    },
  };
}
