// Numbers as a picture of one pixel each, which an SVG shows enlarged.
//
//   pixels(values, columns, table(sequentialScale(colors)))   -> an address for <image href>

import { parseColor } from "../core/color.js";
import { element } from "../core/dom.js";

const STEPS = 256;

/** The colors of a scale, once: [low, high, RGB of each step]. */
export function table(scale) {
  const colors = Array.from({ length: STEPS }, (_, step) =>
    parseColor(scale.fill(scale.low + ((scale.high - scale.low) * step) / (STEPS - 1))),
  );
  return { low: scale.low, high: scale.high, colors };
}

export function pixels(values, columns, { low, high, colors }) {
  const rows = Math.ceil(values.length / columns);
  const canvas = element("canvas", { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  const picture = pen.createImageData(columns, rows);
  for (let i = 0; i < values.length; i += 1) {
    const step = Math.round(((values[i] - low) / (high - low || 1)) * (STEPS - 1));
    const [red, green, blue] = colors[Math.min(STEPS - 1, Math.max(0, step || 0))];
    picture.data.set([red, green, blue, 255], 4 * i);
  }
  pen.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}
