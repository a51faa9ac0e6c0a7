// The lines of the depth view that are shown, and what their ends say.

import { short } from "../core/numbers.js";

/** The shown lines, in the order of the arrangements: [{ key, name, values }]. */
export function shownLines(lines, arrangements, { depth, start, quantity, on }) {
  return Object.entries(arrangements)
    .filter(([key]) => on[key])
    .map(([key, name]) => {
      const line = lines.find((l) => l.key === key && l.depth === depth && l.start === start);
      return line ? { key, name, values: line[quantity] } : null;
    })
    .filter(Boolean);
}

/** The first block's number, divided by the last one's. */
export const ratio = (values) => values[0] / values.at(-1);

/** A ratio in words: "46 to 1", "1 to 2,100". */
export const asRatio = (value) =>
  value >= 1 ? `${short(value)} to 1` : `1 to ${short(1 / value)}`;

/** Heights for labels that should be at `wanted`, at least `gap` apart, within [top, bottom]. */
export function spread(wanted, gap, top, bottom) {
  const order = wanted.map((_, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const placed = [...wanted];
  let least = top;
  for (const i of order) {
    placed[i] = Math.max(placed[i], least);
    least = placed[i] + gap;
  }
  let most = bottom;
  for (const i of order.reverse()) {
    placed[i] = Math.min(placed[i], most);
    most = placed[i] - gap;
  }
  return placed;
}
