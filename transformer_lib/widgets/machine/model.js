// The machine's figure, computed beside the model itself: names of parts, words to choose from,
// the question, and what is drawn.

import { clip } from "../core/dom.js";
import { uniform } from "../core/random.js";
import { draw, filterLogits } from "../math/sampling.js";
import { POSITIONS } from "../math/transformer.js";

export const MOST = 10; // words to choose from
export const FEW = 4; // beside the drawing

/** "block-2-head-3" -> { kind: "head", layer: 1, head: 2, name: "block 2, head 3" } */
export function partOf(place) {
  const found = /^block-(\d+)(?:-(norm|head)-(\d+)|-(attention|feed-forward))?$/.exec(place);
  if (!found) return { kind: place.replaceAll("-", "_"), name: place.replaceAll("-", " ") };
  const [, block, part, number, whole] = found;
  const name = place.replace(/^block-(\d+)-?/, "block $1, ").replaceAll("-", " ");
  return {
    kind: part ?? whole?.replaceAll("-", "_") ?? "block",
    layer: Number(block) - 1,
    head: part === "head" ? Number(number) - 1 : null,
    number: Number(number ?? 0),
    name: name.replace(/, $/, "").replace("feed forward", "feed-forward"),
  };
}

/** Whether positions are added to the vector; if not, heads use them when they look back. */
export const addsPositions = ({ positions }) => POSITIONS[positions] === "added";

export const isSwitch = (place) => /-(attention|feed-forward|head-\d+)$/.test(place);

/** The parts that are off, as math/transformer.js names them. */
export function silent(places) {
  return places.map((place) => {
    const { kind, layer, head } = partOf(place);
    return kind === "head" ? `${layer}.attention.${head}` : `${layer}.${kind}`;
  });
}

/** The words that may come next: those that the grammar allows, and what else is probable; in the order
 * of the untouched machine, so that they stay in their places when a part is switched off. Of too many
 * those are kept that are most probable, now or before. */
export function candidates({ now, whole, allowed, vocabulary, most = MOST }) {
  const rows = vocabulary.map((word, id) => ({
    id,
    word,
    now: now[id],
    whole: whole[id],
    exact: allowed.get(word) ?? 0,
  }));
  const order = (a, b) => b.whole - a.whole || a.id - b.id;
  const either = ({ now: a, whole: b, exact: c }) => Math.max(a, b, c);
  const wanted = rows.filter(({ exact }) => exact > 0);
  const others = rows.filter(({ exact }) => exact === 0).sort((a, b) => b.now - a.now);
  const room = Math.max(0, MOST - wanted.length);
  const also = others.filter(({ now: p }, i) => i < room && (p >= 0.01 || allowed.size === 0));
  const all = [...wanted, ...also];
  if (most < MOST) all.sort((a, b) => either(b) - either(a) || a.id - b.id).splice(most);
  return all.sort(order);
}

/** The words of the story with a question about a gift at its end, in place of a sentence that is not
 * finished. */
export function asking(words, gift, start) {
  return [...words.slice(0, start), "who", "has", gift, "?"];
}

/** The gift that an open question asks for; null if the text does not end in one. */
export function asked(words, start, gifts) {
  const sentence = words.slice(start);
  if (sentence.at(-1) !== "?" || !sentence.includes("who")) return null;
  return sentence.find((word) => gifts.includes(word)) ?? null;
}

/** A word, drawn: the same for the same number of draws before. */
export function drawn(chances, { temperature, topP, draws }) {
  const logits = Array.from(chances, (p) => Math.log(p));
  const left = filterLogits(logits, { temperature, topP });
  return draw(left.probabilities, left.order, uniform(7919 * (draws + 1))());
}

/** Words of a text, however they are written; or the first that is not known, as { unknown }. */
export function readWords(text, vocabulary) {
  const spaced = text.toLowerCase().replace(/([.?])/g, " $1 ");
  const words = spaced.split(/\s+/).filter(Boolean);
  const unknown = words.find((word) => !vocabulary.includes(word));
  return unknown === undefined ? { words } : { unknown };
}

/** The typical size of a vector's numbers: the root of their mean square. */
export function size(x) {
  return Math.sqrt(x.reduce((sum, v) => sum + v * v, 0) / x.length);
}

/** Places of the largest entries, largest first. */
export function largest(values, count) {
  return Array.from(values, (_, i) => i)
    .sort((a, b) => values[b] - values[a] || a - b)
    .slice(0, count);
}

/** Row `r` of a square that is kept row after row. */
export function rowOf(square, r) {
  const side = Math.sqrt(square.length);
  return square.subarray(r * side, (r + 1) * side);
}

/** The numbers that a goal may ask for, by name (widget.py, Facts); `found`: null while it thinks. */
export function factsOf({ now, read, gift, answer, found, vocabulary, off, patches }) {
  const chances = found?.chances.at(-1);
  const last = found && found.word === found.ids.length - 1;
  const facts = {
    words: now.length,
    known: read.problem ? 0 : 1,
    asked: gift === null ? 0 : 1,
    moves: read.moves.get(gift) ?? 0,
    off: off.length,
    "off heads": off.filter((place) => partOf(place).kind === "head").length,
    patched: patches.length,
    // While it thinks nothing is known, so that no goal holds by what is not there yet.
    right: answer ? (chances?.[vocabulary.indexOf(answer)] ?? null) : 0,
  };
  vocabulary.forEach((word, id) => {
    facts[`probability ${word}`] = chances?.[id] ?? null;
    facts[`whole ${word}`] = found ? (last ? found.whole[id] : 0) : null;
  });
  return facts;
}

/** What to call each story in a list: its beginning, or its end if another one begins alike. */
export function titles(stories, most = 44) {
  const starts = stories.map((one) => clip(one.replace("<story> ", ""), most));
  const ends = stories.map((one) => {
    const end = Array.from(one)
      .slice(2 - most)
      .join("");
    return `… ${end.slice(end.indexOf(" ") + 1).replace(/^\. /, "")}`;
  });
  return starts.map((start, at) =>
    starts.indexOf(start) === starts.lastIndexOf(start) ? start : ends[at],
  );
}
