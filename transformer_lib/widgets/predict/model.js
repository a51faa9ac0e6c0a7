// Judges a guess: the sentence for it, and what was right. A guess is a list, as Python has it:
// [option], [number] or [row, column].

import { short } from "../core/numbers.js";

/** The number that somebody has typed; null if it is none. "1,000", "0,5", "−3", "1/8", "40 %". */
export function parseNumber(text, unit = "") {
  let typed = text.trim().replace(/[−–]/g, "-");
  if (unit && typed.endsWith(unit)) typed = typed.slice(0, -unit.length).trim();
  if (/^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$/.test(typed)) typed = typed.replaceAll(",", "");
  else if (/^[^.,]*,\d*$/.test(typed)) typed = typed.replace(",", ".");
  const [above, below, ...more] = typed.split("/");
  if (more.length) return null;
  const parts = (below === undefined ? [above] : [above, below]).map((part) => part.trim());
  if (!parts.every((part) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part))) return null;
  const value = parts.map(Number).reduce((one, other) => one / other);
  return Number.isFinite(value) ? value : null;
}

/** Whether a guess is right. */
export function isRight(question, guess) {
  if (question.kind === "number") {
    // A guess at the very edge counts, whatever the last bit of the subtraction is.
    const slack = 1e-9 * Math.max(Math.abs(question.right), question.within);
    return Math.abs(guess[0] - question.right) <= question.within + slack;
  }
  const right = [question.right].flat();
  return guess.every((at, i) => at === right[i]);
}

/** The sentence for a guess; "" where a right one has none of its own. */
export function sentenceFor(question, guess) {
  if (question.kind === "options") return question.options[guess[0]].sentence;
  if (isRight(question, guess)) return "";
  if (question.kind === "number") {
    const [value] = guess;
    const found = question.ranges.find(
      ([low, high]) => (low === null || value >= low) && (high === null || value <= high),
    );
    return found ? found[2] : question.otherwise;
  }
  const found = question.wrong.find(([row, column]) => row === guess[0] && column === guess[1]);
  return found ? found[2] : question.otherwise;
}

/** A guess in words, with markup where the option has some. */
export function wordsOf(question, guess) {
  if (question.kind === "options") return question.options[guess[0]].text;
  if (question.kind === "number") return withUnit(guess[0], question.unit);
  return `${question.rows[guess[0]]}, ${question.columns[guess[1]]}`;
}

/** The right answer, as a guess. */
export function answerOf(question) {
  return [question.right].flat();
}

/** What is said next to the answer about guesses that count as right, or "". */
export function tolerance(question) {
  if (question.kind !== "number" || question.within === 0) return "";
  return `within ${withUnit(question.within, question.unit)} counts as right`;
}

function withUnit(value, unit) {
  return unit ? `${short(value, 4)} ${unit}` : short(value, 4);
}
