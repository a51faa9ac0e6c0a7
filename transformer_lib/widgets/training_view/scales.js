// The axes of the training view's picture: which numbers they show, and where.
//
//   const x = stepAxis(run, how, { left, right });              run: derive() of model.js
//   const y = lossAxis(run, how, { top, bottom }, shift);       how: what plot.draw() was given
//   const [low, high] = limitsOf(run.column("rate"));           of the strip below

import { isNumber, linearScale, linearTicks, logLimits, logScale, logTicks } from "../core/axes.js";

const numbersOf = (values) => values.filter(isNumber);
const extreme = (values, pick) =>
  values.reduce((a, b) => pick(a, b), pick === Math.min ? Infinity : -Infinity);

/** The smallest and largest number of a column; [0, 1] if there is none. */
export function limitsOf(values) {
  const numbers = numbersOf(values);
  return numbers.length ? [extreme(numbers, Math.min), extreme(numbers, Math.max)] : [0, 1];
}

/** Where a step is, and the step at a pixel: { of, back, ticks }. */
export function stepAxis(run, how, { left, right }) {
  const steps = run.steps;
  const last = Math.max(how.nSteps ?? 0, steps.at(-1) ?? 0, 1);
  const first = how.logSteps
    ? Math.max(1, Math.min(steps.find((step) => step > 0) ?? 1, last / 10))
    : Math.min(steps[0] ?? 0, 1);
  const ends = [
    [first, last],
    [left, right],
  ];
  return how.logSteps
    ? { ...logScale(...ends), ticks: logTicks(first, last, 3.5) }
    : {
        ...linearScale(...ends),
        ticks: linearTicks(first, last, Math.max(3, (right - left) / 110)),
      };
}

/** Where a loss is, and ticks, which are of the loss above `shift`: { of, ticks }. */
export function lossAxis(run, how, { top, bottom }, shift) {
  const others = run.besides.flatMap(({ raw, smooth }) =>
    numbersOf([...smooth, ...(how.smoothed ? [] : raw)]),
  );
  const losses = [...numbersOf(run.smooth), ...numbersOf(how.smoothed ? [] : run.raw), ...others];
  const lines = run.passed.map(({ level }) => level);
  if (how.aboveFloor) {
    const limits = logLimits([...losses, ...lines].map((loss) => loss - shift));
    const above = logScale(limits, [bottom, top]);
    const of = (loss) => (loss > shift ? above.of(loss - shift) : NaN);
    return { of, ticks: logTicks(...limits) };
  }
  const all = [...losses, ...lines, ...(run.floor === null ? [] : [run.floor])];
  const [least, most] = limitsOf(all);
  const room = (most - least || 1) / (bottom - top);
  const low = least - 24 * room; // room for the floor's name
  const start = least >= 0 && run.floor === null ? Math.max(0, low) : low;
  const high = most + 20 * room;
  return {
    ...linearScale([start, high], [bottom, top]),
    ticks: linearTicks(start, high, 5),
  };
}
