// Axes: numbers to pixels, ticks that read well, lines and texts.
//
//   const x = linearScale([0, 31], [left, right]);   x.of(4) -> pixels   x.back(120) -> number
//   const x = logScale([1, 1000], [left, right]);    below the first number: the first pixel
//   linearTicks(0, 3.1, 5) -> [0, 1, 2, 3]     logTicks(0.02, 3, 2.2)     logLimits([0.3, 2])
//   axisText("step", x, y, "end")   axisLine(x1, y1, x2, y2)   gridLine(x1, y1, x2, y2)

import { svgElement } from "./dom.js";

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
