// Axes: numbers to pixels, ticks that read well, lines and texts.
//
//   const x = linearScale([0, 31], [left, right]);   x.of(4) -> pixels   x.back(120) -> number
//   const x = logScale([1, 1000], [left, right]);    below the first number: the first pixel
//   linearTicks(0, 3.1, 5) -> [0, 1, 2, 3]     logTicks(0.02, 3, 2.2)     logLimits([0.3, 2])
//   axisText("step", x, y, "end")   axisLine(x1, y1, x2, y2)   gridLine(x1, y1, x2, y2)

import { fitText, font, setAttributes, svgElement, textWidth } from "./dom.js";
import { short } from "./numbers.js";

/** Numbers in [low, high] to pixels in [from, to], and back. */
export function linearScale([low, high], [from, to]) {
  return {
    of: (value) => from + ((value - low) / (high - low || 1)) * (to - from),
    back: (pixel) => low + ((pixel - from) / (to - from)) * (high - low),
  };
}

/** The same on a logarithmic axis; `low` is positive. */
export function logScale([low, high], pixels) {
  const exponents = linearScale([Math.log(low), Math.log(high)], pixels);
  return {
    of: (value) => exponents.of(Math.log(Math.max(value, low))),
    back: (pixel) => Math.exp(exponents.back(pixel)),
  };
}

/** The step of 1, 2 or 5 times a power of ten that makes at most about `count` ticks. */
export function tickStep(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999);
}

export function linearTicks(low, high, count, least = 0) {
  const step = Math.max(least, tickStep(low, high, count));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1) {
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

/** Powers of ten; over at most so many of them, with 2 and 5 between. */
export function logTicks(low, high, decades = 2.2) {
  const digits = Math.log10(high / low) <= decades ? [1, 2, 5] : [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const digit of digits) {
      const tick = Number(`${digit}e${power}`);
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

/** Limits of a logarithmic axis that shows the positive values; at most four powers of ten. */
export function logLimits(values) {
  const positive = values.filter((value) => Number.isFinite(value) && value > 0);
  if (!positive.length) return [0.1, 1];
  const high = positive.reduce((a, b) => Math.max(a, b));
  const low = positive.reduce((a, b) => Math.min(a, b));
  return [Math.max(low / 1.25, high / 1e4), high * 1.25];
}

export function axisText(content, x, y, anchor = "start", kind = "soft-text") {
  return svgElement(
    "text",
    { class: `afm-axis afm-${kind}`, x, y, "text-anchor": anchor },
    content,
  );
}

export function axisLine(x1, y1, x2, y2) {
  return svgElement("line", { class: "afm-axis-line", x1, y1, x2, y2 });
}

export function gridLine(x1, y1, x2, y2) {
  return svgElement("line", { class: "afm-grid-line", x1, y1, x2, y2 });
}

// Lines through many points, thinned to the pixels that can be seen.
//
//   linePath(xs, ys) -> "M0.0,4.0L1.0,3.0..."     pixels; at most 4 points for each column of pixels
//
// A value that is not a number (null, NaN) is a gap: nothing was measured there.

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** A path through points in pixels: of many in one column of pixels first, lowest, highest, last. */
export function linePath(xs, ys) {
  const parts = [];
  let [column, joined] = [null, false];
  const flush = () => {
    if (column) for (const i of column.keep()) parts.push(point(i));
    column = null;
  };
  const point = (i) => {
    const text = `${joined ? "L" : "M"}${xs[i].toFixed(1)},${ys[i].toFixed(1)}`;
    joined = true;
    return text;
  };
  for (let i = 0; i < xs.length; i += 1) {
    if (!isNumber(ys[i]) || !isNumber(xs[i])) {
      flush();
      joined = false;
      continue;
    }
    const at = Math.round(xs[i]);
    if (!column || column.at !== at) {
      flush();
      column = makeColumn(at);
    }
    column.add(i, ys[i]);
  }
  flush();
  return parts.join("");
}

function makeColumn(at) {
  let [first, last, low, high] = [-1, -1, -1, -1];
  let [least, most] = [Infinity, -Infinity];
  return {
    at,
    add(i, y) {
      if (first < 0) first = i;
      last = i;
      if (y < least) [least, low] = [y, i];
      if (y > most) [most, high] = [y, i];
    },
    keep: () => [...new Set([first, low, high, last])].sort((a, b) => a - b),
  };
}

// The loss over the steps, drawn: what several figures share. Its style begins with .afm-losses.
//
//   svg.append(lossAxis(frame, ticks), stepAxis(frame, ticks))     frame: { left, right, bottom, x, y }
//   svg.append(levelLine(frame, { name: "chance", level: 2.3 }))   { floor: true }: its name is below it
//   const look = pointer();   svg.append(...look.nodes)   look.place(x, y, { top, bottom })

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
