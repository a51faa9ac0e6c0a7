// Linear algebra in float64, equal to transformer_lib/attention.py (tested to 1e-6).
// A matrix is an array of rows; a mask is an array of rows of booleans, true = may attend.
//
//   const { scores, weights, output } = attention(q, k, v, { mask, causal, scale, bias });
//   softmax([1, 2, 3], temperature)   maskedSoftmax(row, maskRow)   matmul(a, b)   transpose(a)

export function dot(x, y) {
  let sum = 0;
  for (let i = 0; i < x.length; i += 1) sum += x[i] * y[i];
  return sum;
}

export function norm(x) {
  return Math.hypot(...x);
}

export function transpose(a) {
  return a.length ? a[0].map((_, j) => a.map((row) => row[j])) : [];
}

export function matmul(a, b) {
  const columns = transpose(b);
  return a.map((row) => columns.map((column) => dot(row, column)));
}

/** Softmax of one row of scores; a lower temperature makes it harder. */
export function softmax(scores, temperature = 1) {
  return maskedSoftmax(scores, null, temperature);
}

/** Softmax over the allowed entries; the others get 0, and a row with none allowed is all zeros. */
export function maskedSoftmax(scores, allowed, temperature = 1) {
  let top = -Infinity;
  for (let j = 0; j < scores.length; j += 1) {
    if (!allowed || allowed[j]) top = Math.max(top, scores[j]);
  }
  if (top === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score, j) =>
    !allowed || allowed[j] ? Math.exp((score - top) / temperature) : 0,
  );
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/** The causal mask, aligned to the bottom right: the last query sees every key. */
export function causalMask(queries, keys = queries) {
  return Array.from({ length: queries }, (_, i) =>
    Array.from({ length: keys }, (_, j) => j <= i + keys - queries),
  );
}

/** Scores q·k times the scale (1/sqrt(d_k) if null), plus a bias such as ALiBi's. */
export function attentionScores(q, k, { scale = null, bias = null } = {}) {
  const factor = scale ?? 1 / Math.sqrt(q[0].length);
  return q.map((row, i) => k.map((key, j) => dot(row, key) * factor + (bias ? bias[i][j] : 0)));
}

/** Attention, step by step: scores before the softmax, weights after it, and the output. */
export function attention(
  q,
  k,
  v,
  { mask = null, causal = false, scale = null, bias = null } = {},
) {
  const scores = attentionScores(q, k, { scale, bias });
  const past = causal ? causalMask(q.length, k.length) : null;
  const weights = scores.map((row, i) => {
    const allowed = row.map((_, j) => (!mask || mask[i][j]) && (!past || past[i][j]));
    return maskedSoftmax(row, allowed);
  });
  return { scores, weights, output: matmul(weights, v) };
}

/** Entropy of a distribution in nats: 0 if it is certain, ln n if it is uniform. */
export function entropy(weights) {
  return weights.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
}
