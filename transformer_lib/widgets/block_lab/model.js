// The block lab's numbers: a model out of its bytes, and how many stories it gets right.

import { readBlock } from "../math/block.js";
import { dot } from "../math/linear.js";

export const PARTS = ["norm_1", "attention", "residual_1", "norm_2", "feed_forward", "residual_2"];

/** Arrays by name out of one row of numbers; shapes = [[name, rows, columns or 0 for a vector]]. */
export function unpack(numbers, shapes, heads, eps) {
  const model = { heads, eps };
  let at = 0;
  for (const [name, rows, columns] of shapes) {
    const take = (count) => {
      at += count;
      return Array.from(numbers.slice(at - count, at));
    };
    model[name] = columns ? Array.from({ length: rows }, () => take(columns)) : take(rows);
  }
  return model;
}

/** The index of the largest number. */
export const best = (values) => values.indexOf(Math.max(...values));

/** All stories: which are answered right; `groups` [n] names the case that each belongs to. */
export function askAll(model, ids, answers, groups, on) {
  const right = ids.map((story, i) => best(readBlock(model, story, on).scores) === answers[i]);
  const cases = [...new Set(groups)].map((name) => {
    const mine = right.filter((_, i) => groups[i] === name);
    return { name, right: mine.filter(Boolean).length, count: mine.length };
  });
  return { right: right.filter(Boolean).length, count: right.length, cases };
}

/** How much a vector adds to the last class's score, compared with the first one's. */
export const leaning = (model, x) => dot(model.head.at(-1), x) - dot(model.head[0], x);

/** The story that is chosen by one option of each choice; the last choice turns fastest. */
export const storyOf = (sizes, at) => at.reduce((sum, option, i) => sum * sizes[i] + option, 0);

/** The options that choose a story. */
export function choiceOf(sizes, story) {
  const at = [];
  let rest = story;
  for (const size of [...sizes].reverse()) {
    at.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return at;
}
