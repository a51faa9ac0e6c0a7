// One pre-norm block and what surrounds it, in float64, equal to transformer_lib/classifier.py (tested
// to 1e-6). A model is an object of arrays, matrices as arrays of rows, named as in PyTorch; only the
// last token's vector is followed, since the answer is read there.
//
//   layerNorm(x, gain, bias, eps)   geluTanh(x)   affine(x, W, b)
//   readBlock(model, ids, on) -> { start, normed_1, weights, attended, middle, normed_2, hidden, thought,
//                                  end, scores, chances }
//   on = { norm_1, attention, residual_1, norm_2, feed_forward, residual_2 }, all booleans

import { dot, softmax } from "./linear.js";

/** (x − mean) / √(variance + eps) · gain + bias. */
function layerNorm(x, gain, bias, eps) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
  return x.map((value, c) => ((value - mean) / Math.sqrt(variance + eps)) * gain[c] + bias[c]);
}

/** GELU with tanh in place of the normal distribution. */
export function geluTanh(x) {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

/** W x + b. */
const affine = (x, W, b) => W.map((row, i) => dot(row, x) + b[i]);

const plus = (x, y) => x.map((value, c) => value + y[c]);

/** The last token's way through the block; a part that is off gives nothing, or passes what it gets. */
export function readBlock(model, ids, on) {
  const stream = ids.map((id, place) => plus(model.embedding[id], model.positions[place]));
  const normed = stream.map((x) =>
    on.norm_1 ? layerNorm(x, model.gain_1, model.bias_1, model.eps) : x,
  );
  const start = stream.at(-1);
  const nothing = start.map(() => 0);
  const found = attend(model, normed);
  const attended = on.attention ? found.output : nothing;
  const middle = on.residual_1 ? plus(start, attended) : attended;
  const normed_2 = on.norm_2 ? layerNorm(middle, model.gain_2, model.bias_2, model.eps) : middle;
  const hidden = affine(normed_2, model.expand, model.expand_bias).map(geluTanh);
  const thought = on.feed_forward ? affine(hidden, model.contract, model.contract_bias) : nothing;
  const end = on.residual_2 ? plus(middle, thought) : thought;
  const scores = affine(end, model.head, model.head_bias);
  return {
    start,
    normed_1: normed.at(-1),
    weights: found.weights,
    attended,
    middle,
    normed_2,
    hidden,
    thought,
    end,
    scores,
    chances: softmax(scores),
  };
}

/** The last token's attention: weights [heads][tokens], and what it returns. */
function attend(model, normed) {
  const query = affine(normed.at(-1), model.query, model.query_bias);
  const keys = normed.map((x) => affine(x, model.key, model.key_bias));
  const values = normed.map((x) => affine(x, model.value, model.value_bias));
  const width = query.length / model.heads;
  const [weights, joined] = [[], []];
  for (let from = 0; from < query.length; from += width) {
    const own = (x) => x.slice(from, from + width);
    const row = softmax(keys.map((key) => dot(own(query), own(key)) / Math.sqrt(width)));
    weights.push(row);
    for (let c = from; c < from + width; c += 1)
      joined.push(
        dot(
          row,
          values.map((value) => value[c]),
        ),
      );
  }
  return { weights, output: affine(joined, model.output, model.output_bias) };
}
