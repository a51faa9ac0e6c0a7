// Curves over steps, as pure functions: smoothing, crossings, axes, and lines thinned to the pixels.
// A value that is not a number (null, NaN) is a gap: nothing was measured there.
//
//   trailingMean(values, 10)                 mean of the last 10; early on, of fewer
//   crossing(values, 1.2, 40) -> index       first of the values 0 .. 40 that is below 1.2, or -1
//   nearest([10, 20, 30], 24) -> 1           index of the nearest of rising steps
//   linePath(xs, ys) -> "M0,4L1,3..."        pixels; at most 4 points for each column of pixels
//   linearTicks(0, 3.1, 5)   logTicks(0.02, 3, 2.2)   logLimits([0.3, 2]) -> numbers that read well

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Over how many rows the mean is taken at a row: at most a quarter of those so far, so that a fast
 * fall at the beginning is not drawn too late. */
export function windowAt(row, window) {
  return Math.max(1, Math.min(window, Math.floor((row + 1) / 4)));
}

/** The mean of the last rows; gaps count for nothing. */
export function trailingMean(values, window) {
  if (window <= 1) return Array.from(values);
  return values.map((_, i) => {
    let [sum, count] = [0, 0];
    for (let j = i - windowAt(i, window) + 1; j <= i; j += 1) {
      if (!isNumber(values[j])) continue;
      sum += values[j];
      count += 1;
    }
    return count ? sum / count : null;
  });
}

export function crossing(values, level, end = values.length - 1) {
  for (let i = 0; i <= end; i += 1) if (isNumber(values[i]) && values[i] < level) return i;
  return -1;
}

export function nearest(steps, step) {
  let [low, high] = [0, steps.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (steps[middle] <= step) low = middle;
    else high = middle;
  }
  return high >= 0 && Math.abs(steps[high] - step) < Math.abs(steps[low] - step) ? high : low;
}

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

export function linearTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i += 1)
    ticks.push(Number((i * step).toPrecision(12)));
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
  const positive = values.filter((value) => isNumber(value) && value > 0);
  if (!positive.length) return [0.1, 1];
  const high = positive.reduce((a, b) => Math.max(a, b));
  const low = positive.reduce((a, b) => Math.min(a, b));
  return [Math.max(low / 1.25, high / 1e4), high * 1.25];
}
