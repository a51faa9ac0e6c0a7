// One run of the figure TrainText's engine under node, for train_text.py.
//
//   node train_text.mjs '{"text": "...", "sizes": {...}, "seconds": [5, 10], "every": 25, "plain": false}'
//
// Seconds are those of the process's own work in training; what is judged or written does not count.

import { readFileSync } from "node:fs";
import { encode, levels, readText } from "../transformer_lib/widgets/train_text/corpus.js";
import { modelOf, write } from "../transformer_lib/widgets/train_text/writer.js";
import { PLAIN } from "../transformer_lib/widgets/math/training/machine.js";
import { simd } from "../transformer_lib/widgets/math/training/simd.js";
import { textTrainer } from "../transformer_lib/widgets/math/training/text.js";

const { text, limits, sizes, seconds, every, plain } = JSON.parse(readFileSync(0, "utf8"));
const corpus = readText(text, limits);
const { alphabet, training, heldOut } = corpus;
const machine = plain ? PLAIN : simd(256);
const run = textTrainer({ ...sizes, training, heldOut, vocabulary: alphabet.length, machine });

function spent(work) {
  const before = process.cpuUsage();
  const result = work();
  const { user, system } = process.cpuUsage(before);
  return [result, (user + system) / 1e6];
}

const curve = { step: [], seconds: [], loss: [], unseen: [] };
const samples = {};
const marks = [...seconds];
let total = 0;
let recent = [];
while (marks.length > 0) {
  const [loss, cost] = spent(() => run.learn());
  total += cost;
  recent.push(loss);
  const isMark = total >= marks[0];
  if (!isMark && run.steps % every !== 0) continue;
  curve.step.push(run.steps);
  curve.seconds.push(total);
  curve.loss.push(recent.reduce((sum, value) => sum + value, 0) / recent.length);
  curve.unseen.push(run.unseen());
  recent = [];
  if (!isMark) continue;
  const model = modelOf({ sizes, alphabet, weights: run.model.parameters });
  const options = { count: 400, temperature: 0.8, seed: 1 };
  const ids = write(model, encode("\n", alphabet).ids, options);
  samples[marks.shift()] = ids.map((id) => alphabet[id]).join("");
}
const parameters = [...run.model.parameters.values()].reduce((sum, { data }) => sum + data.length, 0);
process.stdout.write(JSON.stringify({ curve, samples, parameters, levels: levels(corpus) }));
