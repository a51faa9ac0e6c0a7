// A run as the training view shows it: the smoothed loss, what it has passed and when. No page here.
// A value that is not a number (null, NaN) is a gap: nothing was measured there.
//
//   const run = derive(readJson(model, "_curve"), { baselines, floor }, smoothing);
//   trailingMean(values, 10)                 mean of the last 10; early on, of fewer
//   crossing(values, 1.2, 40) -> index       first of the values 0 .. 40 that is below 1.2, or -1
//   nearest([10, 20, 30], 24) -> 1           index of the nearest of rising steps
//   textAt([[0, "xq"], [50, "the"]], 60)     the newest [step, text] up to this step, or null

import { isNumber } from "../core/axes.js";

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

export function textAt(texts, step) {
  return texts.findLast(([written]) => written <= step) ?? null;
}

/** Steps, the smoothed loss, the baselines that it has passed, and when. */
export function derive({ names, columns, loss }, { baselines, floor }, smoothing) {
  const column = (name) => columns[names.indexOf(name)];
  const raw = column(loss);
  const smooth = trailingMean(raw, smoothing);
  const passed = baselines
    .map(([name, level]) => ({ name, level, at: crossing(smooth, level) }))
    .sort((a, b) => a.level - b.level);
  const others = names.filter((name) => name !== "step" && name !== loss);
  const besides = others
    .filter((name) => name.includes("loss"))
    .map((name) => {
      const values = column(name);
      const dense = isDense(values);
      const means = dense ? trailingMean(values, smoothing) : values;
      return {
        name,
        dense,
        raw: values,
        smooth: means.map((mean, i) => (isNumber(values[i]) ? mean : null)),
      };
    });
  return { steps: column("step"), raw, smooth, passed, floor, loss, others, besides, column };
}

/** Whether most rows have a number, as far as it goes: a run's own loss, not one measured now and then. */
export function isDense(values) {
  const [first, last] = [values.findIndex(isNumber), values.findLastIndex(isNumber)];
  return first >= 0 && 2 * values.filter(isNumber).length > last - first + 1 && last > first;
}

/** The last number at or before a row: [row, value], or null. */
export function lastNumber(values, row) {
  for (let i = row; i >= 0; i -= 1) if (isNumber(values[i])) return [i, values[i]];
  return null;
}
