// The words about a run, as parts for fig.say.

import { percent, reading, short } from "../core/numbers.js";
import { WINDOW } from "./model.js";

export function verdictOf({ told, log, problem }, step) {
  if (problem) return [problem];
  const { parameters, words, chance } = told;
  if (step === 0)
    return [
      "Before its first step the model gives each of the ",
      { text: String(words.length) },
      " words the same chance: a loss of ",
      { text: `${reading(chance)} nats` },
      ". The model has ",
      { text: short(parameters, 5) },
      " numbers to learn.",
    ];
  const loss = log.loss(step);
  return [
    "After step ",
    { text: String(step) },
    " the loss is ",
    { text: Number.isFinite(loss) ? `${reading(loss)} nats` : "not a number" },
    ` (mean of ${Math.min(step + 1, WINDOW)} steps) and `,
    { text: percent(log.right(step)) },
    " of the answers are right. ",
    {
      learning: "",
      reached: `It reached the floor at step ${log.reachedAt}.`,
      lost: "That is worse than chance: this learning rate throws the model about. Try a smaller one.",
      stuck: "For 100 steps the loss has hardly improved.",
    }[log.verdict(step)],
  ];
}
