// The layers of a Transformer that learns: each knows how to compute its result, and how to pass
// the derivatives of the loss on to what it was computed from.
//
//   const tape = makeTape(machine);             // machine.js; what the numbers are kept in
//   const x = embed(tape, ids, table);          // a tensor: { rows, columns, data, grad }
//   const y = linear(tape, norm(tape, x), weight, x);
//   for (const step of tape.steps) step.forward();
//   for (const step of tape.steps.toReversed()) step.backward();
//
// A tensor is rows × columns numbers, row by row, and the derivatives of the loss by them. All
// memory is taken when a layer is made; a step takes none. `backward` adds to `grad`, since several
// layers may have read the same tensor.

import { PLAIN } from "./machine.js";

/** Where layers put themselves, with the machine that keeps and multiplies their numbers. */
export function makeTape(machine = PLAIN) {
  const { numbers, multiply } = machine;
  return {
    steps: [],
    numbers,
    multiply,
    tensor: (rows, columns) => {
      const size = rows * columns;
      return { rows, columns, data: numbers(size), grad: numbers(size) };
    },
  };
}

function addTo(sum, x) {
  for (let i = 0; i < sum.length; i += 1) sum[i] += x[i];
}

/** Put a layer on the tape; returns its result, for the next layer. */
function put(tape, result, forward, backward) {
  tape.steps.push({ result, forward, backward });
  return result;
}

/** Row r of the result is row ids[r] of the table: what is called an embedding. */
export function embed(tape, ids, table) {
  const d = table.columns;
  const y = tape.tensor(ids.length, d);
  return put(
    tape,
    y,
    () => {
      for (let r = 0; r < ids.length; r += 1) {
        for (let i = 0; i < d; i += 1) y.data[r * d + i] = table.data[ids[r] * d + i];
      }
    },
    () => {
      for (let r = 0; r < ids.length; r += 1) {
        for (let i = 0; i < d; i += 1) table.grad[ids[r] * d + i] += y.grad[r * d + i];
      }
    },
  );
}

/** Learned positions: row t of the table is added to token t of each text. */
export function place(tape, x, table, tokens) {
  const y = tape.tensor(x.rows, x.columns);
  const size = tokens * x.columns;
  return put(
    tape,
    y,
    () => {
      for (let i = 0; i < y.data.length; i += 1) y.data[i] = x.data[i] + table.data[i % size];
    },
    () => {
      addTo(x.grad, y.grad);
      for (let i = 0; i < y.grad.length; i += 1) table.grad[i % size] += y.grad[i];
    },
  );
}

/** Each vector plus learned shares of those before it: x_t + w_1 ⊙ x_{t-1} + w_2 ⊙ x_{t-2} + … */
export function smear(tape, x, shares, tokens) {
  const d = x.columns;
  const y = tape.tensor(x.rows, d);
  function each(visit) {
    for (let r = 0; r < x.rows; r += 1) {
      const reach = Math.min(shares.rows, r % tokens);
      for (let back = 1; back <= reach; back += 1) visit(r * d, (r - back) * d, (back - 1) * d);
    }
  }
  return put(
    tape,
    y,
    () => {
      y.data.set(x.data);
      each((to, from, share) => {
        for (let i = 0; i < d; i += 1) y.data[to + i] += shares.data[share + i] * x.data[from + i];
      });
    },
    () => {
      addTo(x.grad, y.grad);
      each((to, from, share) => {
        for (let i = 0; i < d; i += 1) {
          x.grad[from + i] += shares.data[share + i] * y.grad[to + i];
          shares.grad[share + i] += x.data[from + i] * y.grad[to + i];
        }
      });
    },
  );
}

/** RMSNorm, its gain left at 1: each row divided by the root of the mean of its squares. */
export function norm(tape, x) {
  const d = x.columns;
  const y = tape.tensor(x.rows, d);
  const scales = new Float64Array(x.rows);
  return put(
    tape,
    y,
    () => {
      for (let r = 0; r < x.rows; r += 1) {
        let sum = 0;
        for (let i = r * d; i < r * d + d; i += 1) sum += x.data[i] * x.data[i];
        const scale = 1 / Math.sqrt(sum / d + 1e-5);
        scales[r] = scale;
        for (let i = r * d; i < r * d + d; i += 1) y.data[i] = x.data[i] * scale;
      }
    },
    () => {
      for (let r = 0; r < x.rows; r += 1) {
        let sum = 0;
        for (let i = r * d; i < r * d + d; i += 1) sum += y.grad[i] * y.data[i];
        const mean = sum / d;
        const scale = scales[r];
        for (let i = r * d; i < r * d + d; i += 1) {
          x.grad[i] += scale * (y.grad[i] - mean * y.data[i]);
        }
      }
    },
  );
}

/** x Wᵀ, W stored as [out, in] as in PyTorch; added to the residual stream if one is given. */
export function linear(tape, x, w, stream = null) {
  const n = x.rows;
  const k = w.columns;
  const m = w.rows;
  const { multiply } = tape;
  const y = tape.tensor(n, m);
  return put(
    tape,
    y,
    () => {
      if (stream) y.data.set(stream.data);
      multiply(y.data, m, x.data, k, 1, w.data, 1, k, n, m, k, stream !== null);
    },
    () => {
      multiply(w.grad, k, y.grad, 1, m, x.data, k, 1, m, k, n, true); // dyᵀ x
      multiply(x.grad, k, y.grad, m, 1, w.data, k, 1, n, k, m, true); // dy W
      if (stream) addTo(stream.grad, y.grad);
    },
  );
}

/** max(x, 0)², between the two products of a feed-forward layer.
 *
 * (x + |x|) / 2 is max(x, 0) without a question: half of the signs would be guessed wrong, which takes
 * a processor longer than all else here. */
export function reluSquared(tape, x) {
  const y = tape.tensor(x.rows, x.columns);
  return put(
    tape,
    y,
    () => {
      for (let i = 0; i < x.data.length; i += 1) {
        const twice = x.data[i] + Math.abs(x.data[i]);
        y.data[i] = 0.25 * twice * twice;
      }
    },
    () => {
      for (let i = 0; i < x.data.length; i += 1) {
        x.grad[i] += (x.data[i] + Math.abs(x.data[i])) * y.grad[i];
      }
    },
  );
}

/** The mean of −ln P(target) over the rows that have one (−1: none).
 *
 * It makes probabilities of the scores, in place, and writes the derivatives by the scores. */
export function crossEntropy({ rows, columns, data, grad }, targets) {
  let asked = 0;
  for (let r = 0; r < rows; r += 1) if (targets[r] >= 0) asked += 1;
  let loss = 0;
  for (let r = 0; r < rows; r += 1) {
    const first = r * columns;
    const end = first + columns;
    const share = targets[r] >= 0 ? 1 / asked : 0;
    let top = Number.NEGATIVE_INFINITY;
    for (let i = first; i < end; i += 1) if (data[i] > top) top = data[i];
    const score = targets[r] >= 0 ? data[first + targets[r]] : top;
    let sum = 0;
    for (let i = first; i < end; i += 1) {
      const power = Math.exp(data[i] - top);
      data[i] = power;
      sum += power;
    }
    for (let i = first; i < end; i += 1) {
      data[i] /= sum;
      grad[i] = share * data[i];
    }
    if (targets[r] < 0) continue;
    loss += share * (top + Math.log(sum) - score);
    grad[first + targets[r]] -= share;
  }
  return loss;
}
