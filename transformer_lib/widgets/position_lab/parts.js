// Parts of the position lab's pictures: a titled SVG, text, lines, small heatmaps.

import { divergingScale, parseColor, sequentialScale } from "../core/color.js";
import {
  element,
  hatchPattern,
  setAttributes,
  setSize,
  svgElement,
  uniqueId,
} from "../core/dom.js";

export const LEFT = 60;
/** As wide as a phone: what is in a picture is drawn less high. */
export const isNarrow = (width) => width < 380;
const TREMBLE = 8; // pixels that a finger moves without meaning to

/** A text in which W_Q is a W with a Q below the line. */
export function lowered(text) {
  const parts = text.split(/(?<=[A-Z])_([A-Z])/);
  return parts.map((part, i) => (i % 2 ? element("sub", {}, part) : part));
}

/** A titled SVG that is drawn again when its width, its colors or its data change. */
export function panel(draw, onPoint = null) {
  const title = element("p", { class: "afm-part-title" });
  const svg = svgElement("svg", { role: "img", class: onPoint ? "afm-pl-point" : null });
  const state = { width: 0, colors: null, view: null, at: () => null };
  const redraw = () => {
    if (!state.width || !state.colors || !state.view) return;
    svg.replaceChildren();
    const drawn = draw({ svg, title, ...state });
    state.at = drawn.at ?? (() => null);
    setAttributes(setSize(svg, state.width, drawn.height), { "aria-label": drawn.says });
  };
  const point = (event) => {
    const box = svg.getBoundingClientRect();
    const hit = state.at(event.clientX - box.left, event.clientY - box.top);
    if (hit) onPoint(hit);
  };
  if (onPoint) {
    // A finger may be about to scroll: it chooses by a tap, or by moving sideways (touch-action).
    const isTouch = (event) => event.pointerType === "touch";
    let came = null; // where the finger came down
    svg.addEventListener("pointerdown", (event) => {
      came = isTouch(event) ? event : null;
      if (!came) point(event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!event.buttons) return;
      if (came && Math.abs(event.clientX - came.clientX) <= TREMBLE) return;
      came = null;
      point(event);
    });
    svg.addEventListener("pointerup", (event) => {
      if (came) point(event);
      came = null;
    });
    svg.addEventListener("pointercancel", () => {
      came = null;
    });
  }
  const update = (change) => {
    Object.assign(state, change);
    redraw();
  };
  return {
    element: element("div", { class: "afm-pl-panel" }, title, svg),
    layout: (width) => update({ width }),
    theme: (colors) => update({ colors }),
    paint: (view) => update({ view }),
  };
}

export const text = (x, y, content, extra = {}) =>
  svgElement("text", { x, y, class: "afm-small-text", ...extra }, content);
export const line = (x1, y1, x2, y2, stroke, extra = {}) =>
  svgElement("line", { x1, y1, x2, y2, stroke, "stroke-width": 1, ...extra });
export const outline = (x, y, width, height, stroke) =>
  svgElement("rect", { x, y, width, height, stroke, fill: "none", "stroke-width": 2, rx: 1 });
export const marker = (x, y, fill) => svgElement("circle", { cx: x, cy: y, r: 3.5, fill });
export const polyline = (points, stroke, extra = {}) =>
  svgElement("polyline", {
    points: points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join(" "),
    fill: "none",
    stroke,
    "stroke-width": 1.5,
    "stroke-linejoin": "round",
    ...extra,
  });

const tables = new Map();

/** The 256 colors of the diverging or the sequential scale, as numbers, made once for a theme. */
function colorTable(colors, diverging) {
  const key = [diverging, colors.surface, colors.weight, colors.negative].join();
  if (!tables.has(key)) {
    const scale = diverging ? divergingScale(colors, 1) : sequentialScale(colors, -1, 1);
    const steps = Array.from({ length: 256 }, (_, step) => scale.fill((2 * step) / 255 - 1));
    tables.set(key, steps.map(parseColor));
  }
  return tables.get(key);
}

const painted = new WeakMap();

/**
 * Rows of numbers as one small picture, a pixel each; what is null or absent stays clear. With
 * `low` below 0 the scale diverges around 0. The picture of the same rows is painted once.
 */
export function heat(rows, columns, count, { colors, low, high }, box) {
  const table = colorTable(colors, low < 0);
  const known = painted.get(rows);
  const key = [columns, count, low, high, table[255], table[0], table[128]].join();
  let href = known?.key === key ? known.href : null;
  if (!href) {
    href = paintedPixels(rows, columns, count, (value) => {
      const place = Math.round(((value - low) / (high - low)) * 255);
      return table[Math.min(255, Math.max(0, place))];
    });
    painted.set(rows, { key, href });
  }
  return svgElement("image", {
    ...box,
    href,
    preserveAspectRatio: "none",
    "image-rendering": "pixelated",
  });
}

let brush = null; // one canvas for all: a new one for each small picture is slow

function paintedPixels(rows, columns, count, colorOf) {
  brush ??= element("canvas").getContext("2d", { willReadFrequently: true });
  const { canvas } = brush;
  [canvas.width, canvas.height] = [columns, count]; // clears it, too
  const pixels = brush.createImageData(columns, count);
  rows.forEach((row, y) =>
    row.forEach((value, x) => {
      if (value === null) return;
      const at = 4 * (y * columns + x);
      [pixels.data[at], pixels.data[at + 1], pixels.data[at + 2]] = colorOf(value);
      pixels.data[at + 3] = 255;
    }),
  );
  brush.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

/** The scale of numbers around 0, symmetric. */
export const around = (colors, limit) => ({ colors, low: -limit, high: limit });

export function hatched(box) {
  const id = uniqueId("none");
  return [hatchPattern(id), svgElement("rect", { ...box, fill: `url(#${id})` })];
}

export function axes(svg, { top, w, h, last, across, down }) {
  svg.append(
    text(LEFT, 13, across[0]),
    text(LEFT + w, 13, across[1], { "text-anchor": "end" }),
    text(LEFT - 6, top + 10, "0", { "text-anchor": "end" }),
    text(LEFT - 6, top + h, String(last), { "text-anchor": "end" }),
    text(0, 0, down, {
      "text-anchor": "middle",
      transform: `translate(12 ${top + h / 2}) rotate(-90)`,
    }),
  );
}

/** The largest size of a number in rows. */
export const largest = (rows) => rows.reduce((top, row) => Math.max(top, ...row.map(Math.abs)), 0);

/** The two marked positions in their colors. */
export const marksOf = ({ position, offset }, colors) => [
  [position, colors.queryText],
  [position + offset, colors.keyText],
];
