// A run of training, step by step, the same everywhere for the same seed.
//
//   const run = trainer({ task: "repeats", layers: 2, width: 32, reach: 0, optimizer: "muon",
//     rate: 0.02, seed: 1 });
//   const { loss, right } = run.read();    // new texts, and what the model makes of them now
//   run.learn();                           // from these texts: one step
//   run.example                            // { ids, known, sources } of the text that is watched
//   run.watch()                            // { maps: [layer], chances } of it, as it was read last
//
// Each step draws its texts anew. The watched text is the first of every batch, without targets: the
// model reads it with the others and learns nothing from it.

import { uniform } from "../../core/random.js";
import { transformer } from "./model.js";
import { adam, muon } from "./optimizers.js";
import { TASKS } from "./tasks.js";

const WARM = 20; // steps in which the rate rises to its full size

export function trainer({ task, batch = 16, optimizer, rate, seed, ...sizes }) {
  const { words, tokens, positions, text, example: draft } = TASKS[task];
  const vocabulary = words.length;
  const model = transformer({ vocabulary, tokens, batch: batch + 1, positions, seed, ...sizes });
  const { ids, targets, probabilities } = model;
  const draw = uniform(1000 + seed);
  const example = draft(uniform(2000 + seed));
  ids.set(example.ids);
  const update = (optimizer === "muon" ? muon : adam)(model.parameters);
  let steps = 0;

  function renew() {
    for (let first = tokens; first < ids.length; first += tokens) {
      const one = text(draw);
      ids.set(one.ids, first);
      for (let t = 1; t < tokens; t += 1) targets[first + t - 1] = one.known[t] ? one.ids[t] : -1;
    }
  }

  /** The share of the targets that the model gives most to; a tie is not right. */
  function share() {
    let right = 0;
    let asked = 0;
    for (let r = 0; r < targets.length; r += 1) {
      if (targets[r] < 0) continue;
      asked += 1;
      if (isTop(probabilities, r * vocabulary, vocabulary, targets[r])) right += 1;
    }
    return right / asked;
  }

  return {
    model,
    example,
    read() {
      renew();
      const loss = model.forward();
      return { loss, right: share() };
    },
    learn() {
      model.backward();
      steps += 1;
      const now = rate * Math.min(1, steps / WARM);
      update(now, now / 2); // the second is of Muon's tables
    },
    watch() {
      return {
        maps: model.attention.map((weights) => weights.slice(0, model.heads * tokens * tokens)),
        chances: probabilities.slice(0, tokens * vocabulary),
      };
    },
  };
}

function isTop(numbers, first, count, chosen) {
  for (let i = 0; i < count; i += 1) {
    if (i !== chosen && numbers[first + i] >= numbers[first + chosen]) return false;
  }
  return true;
}
