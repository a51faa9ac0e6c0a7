// Prints what the engine of widgets/math/training computes, for tests/widgets/test_training_engine.py.
//
//   node learn.js gradients '{"vocabulary": 7, …}'      loss, probabilities, weights, gradients
//   node learn.js run '{"task": "pairs", …}' 40         the weights before, every batch, every loss

import { normal, uniform } from "../../../transformer_lib/widgets/core/random.js";
import { transformer } from "../../../transformer_lib/widgets/math/training/model.js";
import { trainer } from "../../../transformer_lib/widgets/math/training/trainer.js";

const [what, options, count] = process.argv.slice(2);
const numbers =
  (part) =>
  ({ parameters }) =>
    Object.fromEntries(
      [...parameters].map(([name, one]) => [
        name,
        { shape: [one.rows, one.columns], data: Array.from(one[part]) },
      ]),
    );

function gradients(sizes) {
  const model = transformer(sizes);
  const draw = normal(7);
  for (const { data } of model.parameters.values()) {
    for (let i = 0; i < data.length; i += 1) data[i] = 0.25 * draw();
  }
  const next = uniform(8);
  for (let i = 0; i < model.ids.length; i += 1) {
    model.ids[i] = Math.floor(sizes.vocabulary * next());
    model.targets[i] = next() < 0.3 ? -1 : Math.floor(sizes.vocabulary * next());
  }
  const loss = model.forward();
  model.backward();
  model.forward(); // a second time must change nothing
  model.backward();
  return {
    ids: Array.from(model.ids),
    targets: Array.from(model.targets),
    loss,
    probabilities: Array.from(model.probabilities),
    maps: model.attention.map((weights) => Array.from(weights)),
    weights: numbers("data")(model),
    gradients: numbers("grad")(model),
  };
}

function run(settings, steps) {
  const training = trainer(settings);
  const weights = numbers("data")(training.model);
  const batches = [];
  for (let s = 0; s < steps; s += 1) {
    const { loss, right } = training.read();
    const { ids, targets } = training.model;
    batches.push({ ids: Array.from(ids), targets: Array.from(targets), loss, right });
    training.learn();
  }
  return { weights, batches, after: numbers("data")(training.model) };
}

const result = { gradients, run }[what](JSON.parse(options), Number(count));
process.stdout.write(JSON.stringify(result));
