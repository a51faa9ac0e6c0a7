// AdamW and Muon, as transformer_lib/training/optimizers.py has them.
//
//   const step = adam(model.parameters);     model.backward(); step(0.005);
//   const step = muon(model.parameters);     model.backward(); step(0.02, 0.01);

import { PLAIN } from "./machine.js";

// Of the iteration X <- aX + (bA + cA²)X, A = XXᵀ (Jordan 2024).
const A = 3.4445;
const B = -4.775;
const C = 2.0315;

/** Adam (Kingma and Ba 2015) for all of these parameters; returns `step(rate)`. */
export function adam(parameters, { beta1 = 0.9, beta2 = 0.95, eps = 1e-8, decay = 0 } = {}) {
  const states = [...parameters.values()].map(({ data, grad }) => ({
    data,
    grad,
    means: new Float32Array(data.length),
    squares: new Float32Array(data.length),
  }));
  let count = 0;
  return (rate) => {
    count += 1;
    const early1 = 1 - beta1 ** count;
    const early2 = 1 - beta2 ** count;
    const kept = 1 - rate * decay;
    for (const { data, grad, means, squares } of states) {
      for (let i = 0; i < data.length; i += 1) {
        const g = grad[i];
        const mean = means[i] + (1 - beta1) * (g - means[i]);
        const square = beta2 * squares[i] + (1 - beta2) * g * g;
        means[i] = mean;
        squares[i] = square;
        data[i] = kept * data[i] - ((rate / early1) * mean) / (Math.sqrt(square / early2) + eps);
      }
    }
  };
}

/** Muon for the matrices within the layers, Adam for tables; returns `step(rate, rateOfTables)`. */
export function muon(
  parameters,
  { momentum = 0.95, iterations = 3, decay = 0, machine = PLAIN } = {},
) {
  const entries = [...parameters];
  const tables = adam(new Map(entries.filter(([, { table }]) => table)), { decay });
  const matrices = entries
    .filter(([, { table }]) => !table)
    .map(([, one]) => ({
      ...one,
      means: new Float32Array(one.data.length),
      direction: orthogonalizer(one.rows, one.columns, iterations, machine),
    }));
  return (rate, rateOfTables) => {
    for (const { data, grad, rows, columns, means, direction } of matrices) {
      for (let i = 0; i < means.length; i += 1) means[i] += (1 - momentum) * (grad[i] - means[i]);
      const toward = direction((x) => {
        for (let i = 0; i < x.length; i += 1) x[i] = grad[i] + momentum * (means[i] - grad[i]);
      });
      const length = rate * Math.sqrt(Math.max(1, rows / columns));
      const kept = 1 - rate * decay;
      for (let i = 0; i < data.length; i += 1) data[i] = kept * data[i] - length * toward[i];
    }
    tables(rateOfTables);
  };
}

/** Returns `direction(fill)`: of the rows × columns numbers that `fill(x)` writes, the matrix with
 * singular values that are all about 1, by the iteration of Newton and Schulz. */
function orthogonalizer(rows, columns, iterations, { numbers, multiply } = PLAIN) {
  const small = Math.min(rows, columns);
  const long = Math.max(rows, columns);
  const wide = rows <= columns;
  const down = wide ? columns : 1; // strides along the short side and along the long side
  const across = wide ? 1 : columns;
  const x = numbers(rows * columns);
  const y = numbers(rows * columns);
  const square = numbers(small * small);
  const fourth = numbers(small * small);
  return (fill) => {
    fill(x);
    let sum = 0;
    for (let i = 0; i < x.length; i += 1) sum += x[i] * x[i];
    const size = Math.max(Math.sqrt(sum), 1e-7);
    for (let i = 0; i < x.length; i += 1) x[i] /= size;
    for (let round = 0; round < iterations; round += 1) {
      multiply(square, small, x, down, across, x, across, down, small, small, long, false);
      multiply(fourth, small, square, small, 1, square, small, 1, small, small, small, false);
      for (let i = 0; i < square.length; i += 1) square[i] = B * square[i] + C * fourth[i];
      for (let i = 0; i < small; i += 1) square[i * small + i] += A;
      if (wide) multiply(y, columns, square, small, 1, x, columns, 1, rows, columns, rows, false);
      else multiply(y, columns, x, columns, 1, square, small, 1, rows, columns, columns, false);
      x.set(y);
    }
    return x;
  };
}
