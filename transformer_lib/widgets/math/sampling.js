// From logits to the distribution that is drawn from, equal to transformer_lib/sampling.py (tested to
// 1e-6): temperature first, then top-k, top-p and min-p. Null switches one of these three off.
//
//   const left = filterLogits(logits, { temperature: 0.8, topK: 40, topP: 0.9, minP: null });
//   left.probabilities   what remains, sums to 1        left.cut      null where a token is kept, else
//   left.order           tokens, most probable first                  "greedy", "top-k", "top-p" or "min-p"
//   left.totals          running total in this order, of what temperature and top-k have left
//   draw(left.probabilities, left.order, uniform(7)())  -> a token

import { softmax } from "./linear.js";

/** Indices by falling logit; equal ones stay in their order. */
export function ranked(logits) {
  return Array.from(logits, (_, i) => i).sort((a, b) => logits[b] - logits[a] || a - b);
}

export function filterLogits(
  logits,
  { temperature = 1, topK = null, topP = null, minP = null, order = ranked(logits) } = {},
) {
  const cut = new Array(logits.length).fill(null);
  const greedy = temperature === 0;
  const count = greedy ? 1 : Math.min(topK ?? logits.length, logits.length);
  for (const i of order.slice(count)) cut[i] = greedy ? "greedy" : "top-k";
  const first = share(logits, cut, greedy ? 1 : temperature);
  const totals = new Array(logits.length).fill(1);
  let total = 0;
  order.slice(0, count).forEach((i, rank) => {
    total += first[i];
    totals[rank] = total;
    // The tokens before this one reach p already; nothing comes before the first.
    if (!greedy && topP !== null && topP < 1 && total - first[i] >= topP) cut[i] = "top-p";
  });
  if (!greedy && minP !== null) {
    const left = share(logits, cut, temperature);
    const least = minP * left[order[0]];
    for (const i of order) if (left[i] < least) cut[i] ??= "min-p";
  }
  return { probabilities: share(logits, cut, greedy ? 1 : temperature), cut, order, totals };
}

/** The softmax of the tokens that are not cut. */
function share(logits, cut, temperature) {
  const kept = logits.map((logit, i) => (cut[i] === null ? logit / temperature : -Infinity));
  return softmax(kept);
}

/** The token at which the running total of the probabilities passes `chance`, 0 <= chance < 1. */
export function draw(probabilities, order, chance) {
  let [total, last] = [0, order[0]];
  for (const i of order) {
    if (probabilities[i] === 0) continue;
    total += probabilities[i];
    last = i;
    if (chance < total) return i;
  }
  return last; // rounding: the total may end a little below 1
}

/** How often each token was drawn. */
export function countDraws(draws, size) {
  const counts = new Array(size).fill(0);
  for (const token of draws) counts[token] += 1;
  return counts;
}
