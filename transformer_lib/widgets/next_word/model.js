// Surprises, losses, and the words to list: what NextWord computes from probabilities.

/** −ln of the probability that each word had, in nats, and their mean: the loss. */
export function surprises(rows, targets) {
  const each = rows.map((row, t) => Math.max(0, -Math.log(row[targets[t]])));
  return { each, loss: each.reduce((sum, value) => sum + value, 0) / each.length };
}

/** The most probable entries, the one that came among them in any case, most probable first. */
export function shortlist(row, came, most) {
  const order = row.map((_, i) => i).sort((a, b) => row[b] - row[a] || a - b);
  const best = order.slice(0, most);
  if (!best.includes(came)) best[best.length - 1] = came;
  return best;
}

/** A flat array as [predictors][positions][vocabulary]. */
export function unflatten(flat, predictors, positions, size) {
  const row = (p, t) =>
    Array.from(flat.subarray((p * positions + t) * size, (p * positions + t + 1) * size));
  return Array.from({ length: predictors }, (_, p) =>
    Array.from({ length: positions }, (_, t) => row(p, t)),
  );
}
