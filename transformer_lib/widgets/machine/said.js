// The sentences of the figure: about the text, and about the machine's answer.
//
//   verdictOf(grammar.read(words), { room, context }) -> "The story is complete: ..."
//   fig.say(...sayingOf({ chances, vocabulary, off, patched, right }), ...lookOf(place, row, words, at))

import { percent, percentAmong } from "../core/numbers.js";
import { largest, partOf } from "./model.js";

/** Of the text; `room`: words that it may still get, of the `context` that the machine reads. */
export function verdictOf({ problem, allowed }, { room, context }) {
  if (problem) {
    const wanted = problem.wanted.slice(0, 8).join(", ");
    return `Outside of its language: ${problem.word} cannot come there (possible: ${wanted}). The machine has never read such a text, and goes on all the same.`;
  }
  if (allowed.has("<story>")) return "The story is complete: the next word begins another one.";
  if (room === 0) return `The machine reads at most ${context} words: take some away.`;
  return "";
}

/** Of the answer, as parts of a sentence; `off`: places that are switched off; `right`: a word or null. */
export function sayingOf({ chances, vocabulary, off, patched, right }) {
  const [best] = largest(chances, 1);
  const names = off.map((place) => partOf(place).name);
  const without = `without ${names.slice(0, 3).join("; ")}${names.length > 3 ? "; …" : ""}, `;
  const inside = patched ? "with vectors of the other story, " : "";
  const said = `${inside}${names.length ? without : ""}it says `;
  return [
    said[0].toUpperCase() + said.slice(1),
    { text: vocabulary[best], role: "output" },
    ", ",
    { text: percentAmong(chances[best], vocabulary.length) },
    right ? (vocabulary[best] === right ? ": right." : `: wrong, it is ${right}.`) : ".",
  ];
}

/** Where a head looks from the word at `at`, after the answer. */
export function lookOf(place, row, words, at) {
  const [best] = largest(row, 1);
  const { name } = partOf(place);
  return [
    ` In ${name}, `,
    { text: words[at], role: "query" },
    " looks most at ",
    { text: words[best], role: "key" },
    ", ",
    { text: percent(row[best], 0) },
    ".",
  ];
}
