// Prints what the engine of widgets/math/training computes, for tests/widgets/test_training_engine.py.
//
//   node learn.js gradients '{"vocabulary": 7, …}'      loss, probabilities, weights, gradients
//   node learn.js run '{"task": "pairs", …}' 40         the weights before, every batch, every loss
//   node learn.js text '{"tokens": 8, …}' 40            the same of textTrainer, on characters drawn at random
//
// With "fast": true in the options, numbers are multiplied four at a time (simd.js).

import { normal, uniform } from "../../../transformer_lib/widgets/core/random.js";
import { transformer } from "../../../transformer_lib/widgets/math/training/model.js";
import { simd } from "../../../transformer_lib/widgets/math/training/simd.js";
import { textTrainer } from "../../../transformer_lib/widgets/math/training/text.js";
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

const withMachine = ({ fast, ...sizes }) => (fast ? { ...sizes, machine: simd(8) } : sizes);

function gradients(sizes) {
  const model = transformer(withMachine(sizes));
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

/** The text: each character is that before it, or the next of the alphabet, or any. */
function text(settings, steps) {
  const { vocabulary } = settings;
  const next = uniform(9);
  const all = new Int32Array(900);
  for (let i = 1; i < all.length; i += 1) {
    const chance = next();
    const any = Math.floor(vocabulary * next());
    all[i] = chance < 0.4 ? all[i - 1] : chance < 0.8 ? (all[i - 1] + 1) % vocabulary : any;
  }
  const [training, heldOut] = [all.subarray(0, 800), all.subarray(800)];
  const learned = textTrainer({ ...withMachine(settings), training, heldOut });
  const { model } = learned;
  const weights = numbers("data")(model);
  const batches = [];
  for (let s = 0; s < steps; s += 1) {
    const loss = learned.learn();
    batches.push({ ids: Array.from(model.ids), targets: Array.from(model.targets), loss });
  }
  const after = numbers("data")(model);
  return { weights, batches, after, heldOut: Array.from(heldOut), unseen: learned.unseen() };
}

const result = { gradients, run, text }[what](JSON.parse(options), Number(count));
process.stdout.write(JSON.stringify(result));
