// The sampling lab's numbers for one row of logits, and its draws. Nothing here touches the page.

import { characters, showToken } from "../core/dom.js";
import { uniform } from "../core/random.js";
import { entropy, softmax } from "../math/linear.js";
import { draw, filterLogits, ranked } from "../math/sampling.js";

const ROWS = [8, 16]; // lines of the picture, at least and at most
const SLIGHT = 0.002; // a token of smaller probability needs no line of its own

/** The values of top-k's slider: each up to 20, then wider and wider steps; the last one keeps all. */
export function kSteps(vocabulary) {
  const steps = [];
  for (let k = 1; k < vocabulary; k += k < 20 ? 1 : 10 ** Math.floor(Math.log10(k / 2)))
    steps.push(k);
  return [...steps, vocabulary];
}

/** How many lines the picture needs: the same in all contexts, so that nothing jumps. */
export function linesFor(rows) {
  const counts = rows.map(
    (logits) => softmax(Array.from(logits)).filter((share) => share >= SLIGHT).length,
  );
  return Math.min(ROWS[1], Math.max(ROWS[0], 1 + Math.max(...counts)));
}

/** Everything that the figure shows of one row of logits. */
export function look(logits, { temperature, topK, topP, minP }) {
  const order = ranked(logits);
  const own = softmax(Array.from(logits));
  const left = filterLogits(Array.from(logits), { temperature, topK, topP, minP, order });
  const remain = left.cut.filter((reason) => reason === null).length;
  return { ...left, own, remain, entropy: entropy(left.probabilities) };
}

/** `count` tokens; each click on "draw" has random numbers of its own. */
export function drawMany(left, count, seed, click) {
  const next = uniform(seed * 65537 + click);
  return Array.from({ length: count }, () => draw(left.probabilities, left.order, next()));
}

/** The end of a text, which is what the next token follows. */
export function tail(text, length) {
  const shown = showToken(text.slice(-8 * length));
  const parts = characters(shown);
  if (parts.length <= length && text.length <= 8 * length) return shown;
  const end = parts.slice(1 - length).join("");
  const word = end.search(/\s[\p{L}\p{N}<]/u); // from the beginning of a word, if one is near
  return `…${word >= 0 && word < length / 2 ? end.slice(word + 1) : end}`;
}
