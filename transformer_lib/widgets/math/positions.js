// Positional encodings in float64, equal to transformer_lib/positions.py (tested to 1e-6).
//
//   sinusoidal(nPositions, dModel, { base, start })   -> [position][dimension]
//   rotaryAngles(nPositions, dHead, { base, start })  -> [position][pair]
//   applyRotary(x, angles)                            pairs (2i, 2i+1) of each row turned
//   alibiSlopes(nHeads) -> [head]   alibiBias(slope, queries, keys) -> [query][key]

/** Frequency of the pair 2i, 2i+1: base^(-2i/d). */
function frequency(pair, width, base) {
  return Math.exp((-2 * pair * Math.log(base)) / width);
}

/** PE(p, 2i) = sin(p / base^(2i/d)), PE(p, 2i+1) = cos of the same angle. */
export function sinusoidal(nPositions, dModel, { base = 10000, start = 0 } = {}) {
  return Array.from({ length: nPositions }, (_, p) =>
    Array.from({ length: dModel }, (_, d) => {
      const angle = (start + p) * frequency(Math.floor(d / 2), dModel, base);
      return d % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );
}

export function rotaryAngles(nPositions, dHead, { base = 10000, start = 0 } = {}) {
  return Array.from({ length: nPositions }, (_, p) =>
    Array.from({ length: dHead / 2 }, (_, pair) => (start + p) * frequency(pair, dHead, base)),
  );
}

/** Turn each pair (2i, 2i+1) of row p by angles[p][i]. */
export function applyRotary(x, angles) {
  return x.map((row, p) =>
    row.map((value, d) => {
      const angle = angles[p][Math.floor(d / 2)];
      return d % 2
        ? row[d - 1] * Math.sin(angle) + value * Math.cos(angle)
        : value * Math.cos(angle) - row[d + 1] * Math.sin(angle);
    }),
  );
}

/** ALiBi's slopes: powers of 2^(-8/n), and for other n those of the next power of two between. */
export function alibiSlopes(nHeads) {
  const whole = 2 ** Math.floor(Math.log2(nHeads));
  const powers = (n) => Array.from({ length: n }, (_, h) => 2 ** ((-8 * (h + 1)) / n));
  const between = powers(2 * whole).filter((_, h) => h % 2 === 0);
  return [...powers(whole), ...between.slice(0, nHeads - whole)];
}

/** -slope times the distance to the key; the last query is at the last key. */
export function alibiBias(slope, queries, keys) {
  return Array.from({ length: queries }, (_, i) =>
    Array.from({ length: keys }, (_, j) => -slope * Math.abs(i + keys - queries - j)),
  );
}
