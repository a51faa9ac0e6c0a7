// The loss over the steps, drawn: what several figures share. Its style begins with .afm-losses.
//
//   svg.append(lossAxis(frame, ticks), stepAxis(frame, ticks))     frame: { left, right, bottom, x, y }
//   svg.append(levelLine(frame, { name: "chance", level: 2.3 }))   { floor: true }: its name is below it
//   const look = pointer();   svg.append(...look.nodes)   look.place(x, y, { top, bottom })

import { axisLine, axisText, gridLine } from "./axes.js";
import { fitText, font, setAttributes, svgElement, textWidth } from "./dom.js";
import { short } from "./numbers.js";

const SMALL = font(12);
const hidden = () => svgElement("g", { "aria-hidden": "true" });

/** Lines across the picture, with their numbers at the left. */
export function lossAxis({ left, right, y }, ticks, digits) {
  const group = hidden();
  for (const tick of ticks) {
    group.append(gridLine(left, y.of(tick), right, y.of(tick)));
    group.append(axisText(short(tick, digits), left - 6, y.of(tick) + 4, "end"));
  }
  return group;
}

/** The line at the bottom, with the numbers of steps below it. */
export function stepAxis({ left, right, bottom, x }, ticks) {
  const group = hidden();
  for (const tick of ticks) {
    group.append(gridLine(x.of(tick), bottom, x.of(tick), bottom + 4));
    group.append(axisText(short(tick, 5), x.of(tick), bottom + 17, "middle"));
  }
  group.append(axisLine(left, bottom, right, bottom));
  return group;
}

/** A loss that is known, as a line with its name at the right: above it, or below if it is the floor. */
export function levelLine({ left, right, y }, { name, level, floor = false }, digits = 3) {
  const at = y.of(level);
  const text = fitText(`${name}: ${short(level, digits)}`, right - left - 8, SMALL);
  const wide = textWidth(text, SMALL) + 6;
  const kind = floor ? "afm-floor" : "afm-baseline";
  const group = hidden();
  group.append(
    svgElement("line", { class: kind, x1: left, x2: right, y1: at, y2: at }),
    svgElement("rect", {
      class: "afm-level-ground",
      x: right - wide,
      y: floor ? at + 2 : at - 17,
      width: wide,
      height: 15,
    }),
    axisText(text, right - 3, floor ? at + 14 : at - 5, "end"),
  );
  return group;
}

/** The line at the step that is looked at, and the dot on the curve. */
export function pointer() {
  const line = svgElement("line", { class: "afm-cursor" });
  const dot = svgElement("circle", { class: "afm-cursor-dot", r: 5 });
  return {
    nodes: [line, dot],
    place(x, y, { top, bottom }) {
      setAttributes(line, { x1: x, x2: x, y1: top, y2: bottom });
      setAttributes(dot, { cx: x, cy: y });
    },
  };
}
