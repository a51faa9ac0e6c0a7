// A search through what Python has recorded, and the tree of what it tried. No page is needed.
//
//   const tree = makeTree(readJson(model, "_text"), readDoubles(model, "_logs"));
//   const { finished, steps } = tree.search(3, 0.6);      as in math/beam.js, each search made once
//   tree.columns(3, 0.6)   of each step, the nodes { key, ids, parent, token, log, score, kind, greedy }
//                          kind: "kept", "ended" or "cut"; parent: the key of what it goes on from
//   tree.ranked(3, 0.6, step)   what is finished after a step: { ids, log, score, plain, greedy }

import { beamSearch } from "../math/beam.js";

export const ROOT = "";
export const keyOf = (ids) => ids.join(" ");

/** What is cut is shown if it was within reach: one chance in a thousand after its beginning. */
const WITHIN_REACH = Math.log(0.001);
/** And so many after each beginning: fewer where there are more of them. */
const shownCut = (width) => Math.max(1, 4 - width);

export function makeTree({ rows, next, end, limit }, logs) {
  const across = rows[0].length;
  const read = (row) => rows[row].map((token, i) => [token, logs[row * across + i]]);
  const grow = (row, token) => next[row][rows[row].indexOf(token)];
  const known = new Map();

  function search(width, lengthPenalty) {
    const name = `${width} ${lengthPenalty}`;
    if (!known.has(name)) {
      known.set(name, beamSearch({ first: 0, read, grow, width, limit, end, lengthPenalty }));
    }
    return known.get(name);
  }

  const greedy = search(1, 0).finished[0];
  const greedyKeys = new Set(greedy.ids.map((_, i) => keyOf(greedy.ids.slice(0, i + 1))));
  greedyKeys.add(keyOf([...greedy.ids, end]));

  function node(candidate, kind) {
    const ids = [...candidate.beam.ids, candidate.token];
    const key = keyOf(ids);
    const { token, log, score } = candidate;
    const parent = keyOf(candidate.beam.ids);
    return { key, ids, parent, token, log, score, kind, greedy: greedyKeys.has(key) };
  }

  function columns(width, lengthPenalty) {
    let before = [ROOT];
    return search(width, lengthPenalty).steps.map(({ candidates, ended, going }) => {
      const on = new Set([...ended, ...going]);
      const cut = new Map();
      const nodes = candidates.flatMap((candidate) => {
        if (on.has(candidate))
          return [node(candidate, going.includes(candidate) ? "kept" : "ended")];
        const left = node(candidate, "cut");
        const count = (cut.get(left.parent) ?? 0) + 1;
        cut.set(left.parent, count);
        const near = count <= shownCut(width) && left.log > WITHIN_REACH;
        return near || left.greedy ? [left] : [];
      });
      const rank = new Map(before.map((key, place) => [key, place]));
      nodes.sort((a, b) => rank.get(a.parent) - rank.get(b.parent)); // so no two lines cross
      before = nodes.map(({ key }) => key);
      return nodes;
    });
  }

  /** The best first; `plain`: the rank by probability alone, among the same texts. */
  function ranked(width, lengthPenalty, step) {
    const finished = search(width, lengthPenalty).steps[step - 1]?.finished ?? [];
    const plainly = [...finished].sort((one, other) => other.log - one.log);
    return finished.map((one) => ({
      ...one,
      plain: plainly.indexOf(one) + 1,
      greedy: keyOf(one.ids) === keyOf(greedy.ids),
    }));
  }

  return { search, columns, ranked, greedy };
}

/** The keys on the way from the root to a node, the node's included. */
export function wayTo(key) {
  const ids = key === ROOT ? [] : key.split(" ");
  return ids.map((_, i) => ids.slice(0, i + 1).join(" "));
}
