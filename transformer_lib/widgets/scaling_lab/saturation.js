// A softmax of two scores: the weight of the larger one, and the slope there, by their difference.
//
//   const curve = saturation();    curve.paint(d_k)      marks the usual difference, raw and scaled

import { axisLine, axisText, linearScale } from "../core/axes.js";
import { linePath } from "../core/curves.js";
import { setSize, svgElement } from "../core/dom.js";
import { reading } from "../core/numbers.js";

const RANGE = 8;
const GAPS = Array.from({ length: 81 }, (_, i) => (i * RANGE) / 80);

const weight = (gap) => 1 / (1 + Math.exp(-gap));
const slope = (gap) => weight(gap) * (1 - weight(gap));

export function saturation() {
  const svg = svgElement("svg", { class: "afm-saturation", role: "img" });
  let [size, d_k] = [null, 1];

  function layout(width) {
    const [w, h] = [Math.min(width, 420), 230];
    size = { w, h, left: 34, right: w - 12, top: 30, bottom: h - 46 };
    setSize(svg, w, h);
    paint();
  }

  function paint(now = d_k) {
    d_k = now;
    if (!size) return;
    const { w, h, left, right, top, bottom } = size;
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
      svgElement(
        "text",
        { class: "afm-scaling-title", x: 0, y: 14 },
        "Only two keys: weight of the larger score",
      ),
      axisLine(left, bottom, right, bottom),
      curve("weight", weight),
      curve("slope", slope),
      axisText("1", left - 6, y.of(1) + 4, "end"),
      axisText("0", left - 6, y.of(0) + 4, "end"),
      axisText("difference of the two scores, 0 to 8", w / 2, h - 4, "middle"),
      axisText("weight p", x.of(4.4), y.of(0.86)),
      axisText("slope p(1 − p)", x.of(4.4), y.of(0.07)),
    );
    const [raw, scaled] = [Math.sqrt(2 * d_k), Math.SQRT2];
    const crowded = Math.abs(raw - scaled) < 2.5;
    mark("raw", raw, x, bottom + 15);
    mark("scaled", scaled, x, bottom + (crowded ? 29 : 15));
    svg.setAttribute(
      "aria-label",
      `Two scores: the standard deviation of their difference is ${reading(raw)} raw, where the slope is ${reading(slope(raw))}, and ${reading(scaled)} scaled, where it is ${reading(slope(scaled))}`,
    );
  }

  /** A line at a difference of scores, with its name; beyond the axis it is at the end. */
  function mark(name, gap, x, y) {
    const at = x.of(Math.min(gap, RANGE));
    const anchor = gap > RANGE / 2 ? "end" : "start";
    svg.append(
      svgElement("line", {
        class: `afm-gap afm-gap-${name}`,
        x1: at,
        x2: at,
        y1: size.top,
        y2: size.bottom,
      }),
      axisText(
        `${name}: ${reading(gap)}${gap > RANGE ? " →" : ""}`,
        at + (anchor === "end" ? 4 : -4),
        y,
        anchor,
        `gap-name afm-gap-${name}`,
      ),
    );
  }

  return { element: svg, layout, paint };
}
