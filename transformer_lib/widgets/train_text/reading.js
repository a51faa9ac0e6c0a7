// The words about a text, a run, and what a model has written, as parts for fig.say.

import { reading, short } from "../core/numbers.js";
import { isPast } from "./run.js";

const number = (value, digits = 6) => ({ text: short(value, digits) });

/** What was read. */
export function textTold({ characters, different, rare }) {
  const parts = [": ", number(characters), " characters, ", number(different), " different; "];
  if (rare) parts.push("the rarest, ", number(rare), " in all, count as one single character; ");
  return [...parts, "the last tenth is held out"];
}

/** Where the run is at a moment. */
export function sentenceOf({ log, told }, { step, unseen }) {
  const { parameters, isFast, levels } = told;
  const nats = (value) => ({
    text: Number.isFinite(value) ? `${reading(value)} nats` : "not a number",
  });
  if (step === 0) {
    return [
      "Before its first step every character has the same chance: a loss of ",
      nats(levels.chance),
      ". The model has ",
      number(parameters),
      " numbers to learn.",
      ...(isFast ? [] : [" (This page forbids the fast way to compute, so it takes its time.)"]),
    ];
  }
  const best = log.best(step);
  const parts = ["After ", number(step), " steps"];
  if (step === log.last) parts.push(" (", number(log.seconds, 2), " s)");
  parts.push(": ", nats(log.loss(step)), " on what it learns from, ", nats(unseen));
  parts.push(" on held-out text");
  if (isPast(log) && step > best.step) {
    return [
      ...parts,
      "; this loss was lower at step ",
      number(best.step),
      ": the model learns by heart.",
    ];
  }
  return [...parts, "."];
}

/** The words over a text that a model has written. */
export function shareOf({ step, temperature }, { words, known, copied }) {
  const parts = [
    "After step ",
    number(step),
    " it writes, at temperature ",
    number(temperature, 2),
  ];
  parts.push(". ");
  if (words)
    parts.push(number(known), " of ", number(words), " words occur in the text it was given. ");
  parts.push("Longest piece that it copies: ", number(copied), " characters.");
  return parts.map((part) => (typeof part === "string" ? part : part.text));
}
