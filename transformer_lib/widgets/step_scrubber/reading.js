// The sentences of the step scrubber: what the selected number means, and whether two orders of the
// words can be told apart.

import { fixed, percent } from "../core/numbers.js";
import { contributions } from "./model.js";

const number = (value, digits) => ({ text: fixed(value, digits) });

/** One sentence about the selected number, as parts for figure.say. */
export function readingOf({ step, run, head, row, column, words, columns }) {
  const asking = { text: words[row], role: "query" };
  const asked = { text: words[column] ?? "", role: "key" };
  const inHead = run.heads > 1 ? ` in head ${head + 1}` : "";
  const value = [
    run.q[head],
    run.k[head],
    run.v[head],
    run.raw[head],
    run.scaled[head],
    run.masked[head],
    run.weights[head],
    run.z[head],
    run.concat,
    run.output,
  ][step][row][column];
  switch (step) {
    case 0:
      return [asking, ` asks${inHead}: component ${column} of its query is `, number(value), "."];
    case 1:
      return [
        { text: words[row], role: "key" },
        ` can be found${inHead} by component ${column} of its key, `,
        number(value),
        ".",
      ];
    case 2:
      return [
        { text: words[row], role: "value" },
        ` offers${inHead}: component ${column} of its value is `,
        number(value),
        ".",
      ];
    case 3:
      return [
        "The score of ",
        asking,
        " for ",
        asked,
        inHead,
        " is ",
        number(value),
        rank(run.raw[head][row], column, run.q[head][row]),
      ];
    case 4:
      return [
        "Divided by √",
        number(run.q[0][0].length, 0),
        ", the score of ",
        asking,
        " for ",
        asked,
        " is ",
        number(value),
        ".",
      ];
    case 5:
      return run.mask[row][column]
        ? [asking, " may see ", asked, ": the score stays."]
        : [asking, " may not see ", asked, ", which comes later: the score becomes −∞."];
    case 6:
      return run.mask[row][column]
        ? [
            asking,
            " puts ",
            {
              text: percent(value, value > 0 && value < 0.1 ? 2 : 1),
            },
            " of its attention",
            inHead,
            " on ",
            asked,
            ".",
          ]
        : [asking, " puts nothing on ", asked, ": the mask hides it."];
    case 7:
      return [
        asking,
        " receives ",
        number(value),
        ` in component ${column}${inHead}`,
        ...mainSource(run, head, row, column, words),
      ];
    case 8:
      return [
        asking,
        ` keeps what the heads found side by side: component ${column} comes from head `,
        { text: String(Math.floor(column / run.q[0][0].length) + 1) },
        ".",
      ];
    default:
      return [
        asking,
        " takes home ",
        number(value),
        " in ",
        { text: columns[column], role: "output" },
        ...shares(run, row, column),
      ];
  }
}

function rank(scores, column, query) {
  const top = Math.max(...scores);
  if (scores.length > 1 && scores.every((score) => Math.abs(score - top) < 1e-9))
    return `, the same as for every other word${query.some(Boolean) ? "." : ": this query asks nothing."}`;
  if (scores[column] < top - 1e-9) return ` (the largest in its row is ${fixed(top)}).`;
  return scores.filter((score) => score > top - 1e-9).length > 1
    ? ", the largest in its row, and not the only one."
    : ", the largest in its row.";
}

function mainSource(run, head, row, column, words) {
  const parts = run.weights[head][row].map((weight, j) => weight * run.v[head][j][column]);
  const top = parts.reduce(
    (best, part, j) => (Math.abs(part) > Math.abs(parts[best]) ? j : best),
    0,
  );
  if (Math.abs(parts[top]) < 0.005) return ["."];
  return [
    ", the largest part from ",
    { text: words[top], role: "value" },
    ": ",
    number(parts[top]),
    ".",
  ];
}

function shares(run, row, column) {
  if (run.heads === 1) return ["."];
  const added = contributions(run, row, column);
  const bias = run.layers[3].bias[column];
  if (added.length > 4)
    return [`, the sum of what ${added.length} heads${bias ? " and the bias" : ""} add.`];
  return [
    ": ",
    ...added.flatMap((value, h) => [h ? ", " : "", `head ${h + 1} adds `, number(value)]),
    ...(bias ? [", the bias adds ", number(bias)] : []),
    ".",
  ];
}

/** Are two outputs of the same word different? Rounding errors do not count. */
export function verdictOf(one, other) {
  const gap = Math.max(...one.map((value, c) => Math.abs(value - other[c])));
  const size = Math.max(...one.map(Math.abs), 1e-9);
  return gap > 1e-6 * size
    ? "two different vectors. The orders can be told apart."
    : "the same vector. The orders cannot be told apart.";
}
