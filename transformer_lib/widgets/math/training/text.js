// A model that learns to write like a text, character by character, step by step.
//
//   const run = textTrainer({ training, heldOut, vocabulary: 61, tokens: 64, batch: 16, layers: 2,
//     heads: 4, width: 64, hidden: 256, optimizer: "muon", rate: 0.02, seed: 1, machine });
//   run.learn() -> the loss of this step's pieces, before they are learned from
//   run.unseen() -> the loss of the held-out text, read in windows of `tokens`
//   run.look(ids) -> { maps: [layer][head] } of a text of at most `tokens`     run.model
//
// `training` and `heldOut` are ids. A step reads `batch` pieces of the training text, each from a place
// that is drawn. The rate rises for WARM steps and falls as 1 / √step after LEVEL of them, so that a
// run needs no end: at any moment it has settled about as far as it can.

import { uniform } from "../../core/random.js";
import { PLAIN } from "./machine.js";
import { transformer } from "./model.js";
import { adam, muon } from "./optimizers.js";

const WARM = 20;

function rateAt(step, level) {
  return Math.min(1, step / WARM, Math.sqrt(level / step));
}

export function textTrainer({
  training,
  heldOut,
  vocabulary,
  tokens,
  batch,
  optimizer,
  rate,
  seed,
  decay = 0,
  level = 200,
  tables = 0.5,
  machine = PLAIN,
  ...sizes
}) {
  const model = transformer({ vocabulary, tokens, batch, seed, machine, ...sizes });
  const { ids, targets } = model;
  const draw = uniform(1000 + seed);
  const make = optimizer === "muon" ? muon : adam;
  const update = make(model.parameters, { machine, decay });
  const places = training.length - tokens; // where a piece and the character after it fit
  let steps = 0;

  /** Read the text of `from` from this place on as row `row`; what is behind `end` is not asked. */
  function fill(row, from, first, end) {
    const at = row * tokens;
    for (let t = 0; t < tokens; t += 1) {
      ids[at + t] = first + t < end ? from[first + t] : 0;
      targets[at + t] = first + t + 1 < end ? from[first + t + 1] : -1;
    }
  }

  return {
    model,
    get steps() {
      return steps;
    },
    learn() {
      for (let row = 0; row < batch; row += 1) {
        fill(row, training, Math.floor(places * draw()), training.length);
      }
      const loss = model.forward();
      model.backward();
      steps += 1;
      const now = rate * rateAt(steps, level);
      update(now, tables * now);
      return loss;
    },
    unseen() {
      let [sum, asked] = [0, 0];
      const windows = Math.ceil((heldOut.length - 1) / tokens);
      for (let first = 0; first < windows; first += batch) {
        for (let row = 0; row < batch; row += 1) {
          fill(row, heldOut, (first + row) * tokens, heldOut.length);
        }
        const count = targets.reduce((total, target) => total + (target >= 0 ? 1 : 0), 0);
        sum += count * model.forward();
        asked += count;
      }
      return sum / asked;
    },
  };
}
