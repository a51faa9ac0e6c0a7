// The model at one moment, read on one chain.

import { softmax } from "../math/linear.js";
import { gpt } from "../math/transformer.js";

/** moments(config, weights)(step) -> the model with the weights of that step, made once. */
export function moments(config, weights) {
  const made = new Map();
  return (step) => {
    if (!made.has(step)) {
      const prefix = `${step}/`;
      const own = [...weights]
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, value]) => [name.slice(prefix.length), value]);
      made.set(step, gpt(config, new Map(own)));
    }
    return made.get(step);
  };
}

/** What the model expects after each state, and each layer's map. */
export function look(model, ids) {
  const { logits, maps } = model.start().read(ids);
  return {
    expected: logits.map((row) => softmax(Array.from(row))),
    maps: maps.map(([head]) => head.map((row) => Array.from(row))),
  };
}

/** The step of the list that is nearest. */
export function nearest(steps, step) {
  return steps.reduce((best, one) => (Math.abs(one - step) < Math.abs(best - step) ? one : best));
}

/** The column's value at a step, on a straight line between those that were logged. */
export function valueAt(curve, name, step) {
  const { step: steps, [name]: values } = curve;
  const after = steps.findIndex((one) => one >= step);
  if (after < 0) return values.at(-1);
  if (after === 0) return values[0];
  const [from, to] = [steps[after - 1], steps[after]];
  return values[after - 1] + ((step - from) / (to - from)) * (values[after] - values[after - 1]);
}
