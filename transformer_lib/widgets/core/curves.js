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
