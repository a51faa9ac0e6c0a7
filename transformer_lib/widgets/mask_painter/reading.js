// The sentences of the mask painter, as parts for figure.say: strings and { text, role }.
//
//   flowReading(words, levels, source)           where the source can be found after the layers
//   maskWarning(words, mask, sums, rule)         empty rows, row sums below 1; null if all is well
//   cellReading(words, mask, weights, i, j)      one cell

import { fixed } from "../core/numbers.js";
import { emptyRows, LARGE_NEGATIVE, ZERO_AFTER } from "../math/masks.js";

const MOST_WORDS = 5;

/** Words as a list in a sentence: "a, b and c", shortened after the fifth. */
export function listing(words, positions, role) {
  const shown = positions.length > MOST_WORDS ? positions.slice(0, MOST_WORDS - 1) : positions;
  const parts = [];
  shown.forEach((at, index) => {
    const last = index === positions.length - 1;
    if (index) parts.push(last ? " and " : ", ");
    parts.push({ text: words[at], role });
  });
  if (shown.length < positions.length) parts.push(` and ${positions.length - shown.length} more`);
  return parts;
}

const positionsOf = (level) => level.flatMap((held, i) => (held ? [i] : []));
const layersText = (count) => (count === 1 ? "1 layer" : `${count} layers`);

/** Who can hold something of the source after one layer and after all, and whether it went backward. */
export function flowReading(words, levels, source) {
  const layers = levels.length - 1;
  const [first, last] = [positionsOf(levels[1]), positionsOf(levels[layers])];
  const name = { text: words[source], role: "value" };
  if (!first.length) return ["Nobody looks at ", name, ": after 1 layer nothing of it is left."];
  const parts = [
    "Something of ",
    name,
    " can be in ",
    ...listing(words, first, "output"),
    " after 1 layer",
  ];
  if (layers > 1 && String(first) === String(last))
    parts.push(`, and in no other word after ${layers}`);
  else if (layers > 1 && !last.length) parts.push(`, and nowhere after ${layers}`);
  else if (layers > 1)
    parts.push(", and in ", ...listing(words, last, "output"), ` after ${layersText(layers)}`);
  const before = last.filter((i) => i < source);
  if (!before.length) return [...parts, "."];
  const verb = before.length > 1 ? " come" : " comes";
  return [
    ...parts,
    ". ",
    ...listing(words, before, "output"),
    `${verb} before it: in a model that writes word by word, that is a leak.`,
  ];
}

export function maskWarning(words, mask, sums, rule) {
  const empty = emptyRows(mask);
  const verb = empty.length > 1 ? " look at nothing" : " looks at nothing";
  if (empty.length && rule === LARGE_NEGATIVE) {
    return [
      ...listing(words, empty, "query"),
      verb,
      ", and −1e9 covers it up: the same large number everywhere gives even weights to all, the hidden ones too.",
    ];
  }
  if (empty.length) {
    return [
      ...listing(words, empty, "query"),
      verb,
      empty.length > 1
        ? ": all of their weights are set to 0, and so their outputs are zero."
        : ": all of its weights are set to 0, and so its output is zero.",
    ];
  }
  const short = sums.flatMap((sum, i) => (sum < 0.9995 ? [i] : []));
  if (rule === ZERO_AFTER && short.length) {
    return [
      short.length === 1 ? "The row of " : "The rows of ",
      ...listing(words, short, "query"),
      short.length === 1 ? " sums" : " sum",
      " to less than 1: hidden words are still in the denominator, and leak through it.",
    ];
  }
  return null;
}

export function cellReading(words, mask, weights, i, j) {
  const [query, key] = [
    { text: words[i], role: "query" },
    { text: words[j], role: "key" },
  ];
  const weight = { text: fixed(weights[i][j]) };
  if (mask[i][j]) return [query, " looks at ", key, ": ", weight, "."];
  const leak = weights[i][j] > 0 ? [", but does so anyway: ", weight] : []; // by −1e9
  return [query, " may not look at ", key, ...leak, "."];
}
