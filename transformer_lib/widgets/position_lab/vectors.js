// Vectors of the position lab that are not the library's: the bug, the shift, random projections.

import { normal } from "../core/random.js";
import { dot } from "../math/linear.js";
import { rotaryAngles } from "../math/positions.js";

/** One frequency for each pair of components: base^(-2i/d). */
function pairFrequencies(width, base) {
  return rotaryAngles(1, width, { base, start: 1 })[0];
}

/** How many positions each pair needs for one turn. */
export function wavelengths(width, base) {
  return pairFrequencies(width, base).map((frequency) => (2 * Math.PI) / frequency);
}

/** The bug of the lab's switch: the cosine gets an angle of its own, base^(-(2i+1)/d). */
export function ownAngleEncoding(nPositions, width, { base, start = 0 }) {
  return Array.from({ length: nPositions }, (_, row) =>
    Array.from({ length: width }, (_, at) => {
      const angle = (start + row) * Math.exp((-at * Math.log(base)) / width);
      return at % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );
}

/** R(k) as a function of a row: each (sine, cosine) pair shifted by k times its frequency. */
export function shifter(width, offset, base) {
  const angles = pairFrequencies(width, base).map((frequency) => offset * frequency);
  const [cosine, sine] = [angles.map(Math.cos), angles.map(Math.sin)];
  return (row) =>
    row.map((value, at) => {
      const pair = at >> 1;
      return at % 2
        ? value * cosine[pair] - row[at - 1] * sine[pair]
        : value * cosine[pair] + row[at + 1] * sine[pair];
    });
}

const drawn = new Map();

/** Two random projections [d][d], W_Q and W_K, that keep lengths about as they are. */
export function randomProjections(width) {
  if (!drawn.has(width)) {
    const draw = normal(width);
    const matrix = () =>
      Array.from({ length: width }, () =>
        Array.from({ length: width }, () => draw() / Math.sqrt(width)),
      );
    drawn.set(width, [matrix(), matrix()]);
  }
  return drawn.get(width);
}

export const project = (matrix, vector) => matrix.map((weights) => dot(weights, vector));
