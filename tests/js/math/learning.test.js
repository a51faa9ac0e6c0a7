// The figure's tasks are learned in so many steps, or not, with the settings that it offers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FLOOR, TASKS } from "../../../transformer_lib/widgets/math/training/tasks.js";
import { trainer } from "../../../transformer_lib/widgets/math/training/trainer.js";
import { close } from "../support.js";

/** The first step after which the mean loss of 20 is near the floor; null within `most`. */
function stepsToFloor(settings, most) {
  const run = trainer({ width: 32, ...settings });
  const losses = [];
  for (let step = 0; step < most; step += 1) {
    losses.push(run.read().loss);
    if (step === 0) close(losses[0], TASKS[settings.task].chance, 1e-7); // it knows nothing
    run.learn();
    const mean = losses.slice(-20).reduce((x, y) => x + y, 0) / 20;
    if (step > 20 && mean < FLOOR + 0.05) return step;
  }
  return null;
}

const MUON = { optimizer: "muon", rate: 0.02, seed: 1 };

// (Of owner, the longest, and of all seeds, in Chromium: the soak test in tests/browser/test_train_here.py.)
for (const [what, settings, most] of [
  ["repeats, two layers", { task: "repeats", layers: 2, ...MUON }, 150],
  ["repeats, one layer and the smear", { task: "repeats", layers: 1, reach: 1, ...MUON }, 150],
  ["sort, one layer", { task: "sort", layers: 1, ...MUON }, 120],
]) {
  test(`it reaches the floor: ${what}`, () => {
    assert.notEqual(stepsToFloor(settings, most), null);
  });
}

test("one layer does not learn repeats without a smear, nor owner with one", () => {
  assert.equal(stepsToFloor({ task: "repeats", layers: 1, ...MUON }, 150), null);
  assert.equal(stepsToFloor({ task: "owner", layers: 1, reach: 1, ...MUON }, 250), null);
});
