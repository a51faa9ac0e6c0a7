// Numbers as a picture of one pixel each, which an SVG shows enlarged. The picture is a bitmap of 256
// colors, written here byte by byte: a canvas would take ten times as long to write a PNG of it.
//
//   const { weights, numbers } = shades(colors);     once for a theme
//   pixels(values, columns, weights)                 0 .. 1  -> an address for <image href>
//   pixels(values, columns, numbers, reach)          -reach .. reach

import { divergingScale, parseColor, sequentialScale } from "../core/color.js";

const STEPS = 256;
const HEAD = 54;

export function shades(colors) {
  return {
    weights: { low: 0, palette: palette(sequentialScale(colors, 0, 1), 0) },
    numbers: { low: -1, palette: palette(divergingScale(colors, 1), -1) },
  };
}

/** The colors of a scale from `low` to 1: blue, green, red, 0. */
function palette(scale, low) {
  const bytes = new Uint8Array(4 * STEPS);
  for (let step = 0; step < STEPS; step += 1) {
    const [red, green, blue] = parseColor(scale.fill(low + ((1 - low) * step) / (STEPS - 1)));
    bytes.set([blue, green, red, 0], 4 * step);
  }
  return bytes;
}

/** The largest size of a number, to color a vector by a scale of its own; numbers near 0 stay pale. */
export function reachOf(...vectors) {
  let most = 0.02;
  for (const values of vectors) for (const v of values) most = Math.max(most, Math.abs(v));
  return most;
}

export function pixels(values, columns, { low, palette: colors }, reach = 1) {
  const rows = Math.ceil(values.length / columns);
  const line = columns + ((4 - (columns % 4)) % 4); // a bitmap's lines are multiples of 4 bytes
  const start = HEAD + colors.length;
  const bytes = new Uint8Array(start + line * rows);
  const view = new DataView(bytes.buffer);
  bytes.set([0x42, 0x4d]); // BM
  view.setUint32(2, bytes.length, true);
  view.setUint32(10, start, true);
  view.setUint32(14, 40, true);
  view.setInt32(18, columns, true);
  view.setInt32(22, -rows, true); // from the top down
  view.setUint16(26, 1, true);
  view.setUint16(28, 8, true); // bits a pixel
  bytes.set(colors, HEAD);
  const scale = (STEPS - 1) / (1 - low);
  for (let i = 0; i < values.length; i += 1) {
    const step = Math.round((values[i] / reach - low) * scale);
    const at = start + Math.floor(i / columns) * line + (i % columns);
    bytes[at] = Math.min(STEPS - 1, Math.max(0, step || 0));
  }
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) {
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  }
  return `data:image/bmp;base64,${btoa(text)}`;
}
