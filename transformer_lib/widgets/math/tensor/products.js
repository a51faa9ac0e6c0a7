// Products of matrices, and einsum.

import { add, mul, named, to } from "./elementwise.js";
import { record, reduceTo } from "./graph.js";
import { sum } from "./reductions.js";
import { diagonal, expand, mT, permute, reshape, squeeze, unsqueeze } from "./shapes.js";
import { broadcast, count, DTYPES, dense, fail, fresh, plain, promote, stretch } from "./tensor.js";

const by = (shape) => shape.join("x");

function requireSame(a, b) {
  if (a.dtype === b.dtype) return;
  fail(
    `expected m1 and m2 to have the same dtype, but got: ${DTYPES[a.dtype].scalar} != ${DTYPES[b.dtype].scalar}`,
  );
}

function requireNumbers(x, name) {
  if (x.dtype === "bool") fail(`"${name}" not implemented for 'Bool'`, "NotImplementedError");
}

/** Batches of matrices, whose sizes fit: [.., n, k] times [.., k, m]. */
function product(a, b) {
  const batch = broadcast(a.shape.slice(0, -2), b.shape.slice(0, -2));
  const [n, k] = a.shape.slice(-2);
  const m = b.shape.at(-1);
  const result = fresh([...batch, n, m], promote(a, b));
  const out = result.storage.data;
  const left = dense(stretch(a, [...batch, n, k]));
  const right = dense(mT(stretch(plain(b), [...batch, k, m])));
  const many = count(batch);
  for (let p = 0; p < many; p += 1) {
    for (let i = 0; i < n; i += 1) {
      const row = (p * n + i) * k;
      for (let j = 0; j < m; j += 1) {
        const column = (p * m + j) * k;
        let total = 0;
        for (let c = 0; c < k; c += 1) total += left[row + c] * right[column + c];
        out[(p * n + i) * m + j] = total;
      }
    }
  }
  return record(
    "BmmBackward0",
    result,
    [a, b],
    (g) => [reduceTo(product(g, mT(b)), a.shape), reduceTo(product(mT(a), g), b.shape)],
    [a.requiresGrad && b, b.requiresGrad && a],
  );
}

export function mm(a, b) {
  if (a.shape.length !== 2) fail("self must be a matrix");
  if (b.shape.length !== 2) fail("mat2 must be a matrix");
  if (a.shape[1] !== b.shape[0]) {
    fail(`mat1 and mat2 shapes cannot be multiplied (${by(a.shape)} and ${by(b.shape)})`);
  }
  requireSame(a, b);
  if (a.numel && b.numel) requireNumbers(a, "addmm_impl_cpu_");
  return named(product(a, b), a, "MmBackward0");
}

export function bmm(a, b) {
  if (a.shape.length !== 3) fail("batch1 must be a 3D tensor");
  if (b.shape.length !== 3) fail("batch2 must be a 3D tensor");
  if (a.shape[0] !== b.shape[0] || a.shape[2] !== b.shape[1]) {
    fail(
      `Expected size for first two dimensions of batch2 tensor to be: [${a.shape[0]}, ${a.shape[2]}] but got: [${b.shape[0]}, ${b.shape[1]}].`,
    );
  }
  requireNumbers(a, "bmm");
  if (a.dtype !== b.dtype) {
    fail(`expected scalar type ${DTYPES[a.dtype].title} but found ${DTYPES[b.dtype].title}`);
  }
  return product(a, b);
}

export function dot(a, b) {
  if (a.shape.length !== 1 || b.shape.length !== 1) {
    fail(`1D tensors expected, but got ${a.shape.length}D and ${b.shape.length}D tensors`);
  }
  if (a.dtype !== b.dtype) {
    fail(
      `dot : expected both vectors to have same dtype, but found ${DTYPES[a.dtype].title} and ${DTYPES[b.dtype].title}`,
    );
  }
  if (a.shape[0] !== b.shape[0]) {
    fail(
      `inconsistent tensor size, expected tensor [${a.shape[0]}] and src [${b.shape[0]}] to have the same number of elements, but got ${a.shape[0]} and ${b.shape[0]} elements respectively`,
    );
  }
  requireNumbers(a, "dot");
  return named(reshape(product(unsqueeze(a, 0), unsqueeze(b, 1)), []), a, "DotBackward0");
}

export function mv(a, b) {
  if (a.shape.length !== 2 || b.shape.length !== 1) {
    fail(
      `vector + matrix @ vector expected, got ${b.shape.length}, ${a.shape.length}, ${b.shape.length}`,
    );
  }
  if (a.shape[1] !== b.shape[0]) {
    fail(`size mismatch, got input (${a.shape[0]}), mat (${by(a.shape)}), vec (${b.shape[0]})`);
  }
  if (a.dtype !== b.dtype) {
    const [matrix, vector] = [DTYPES[a.dtype].title, DTYPES[b.dtype].title];
    fail(
      `addmv input tensors must have the same dtype, but got ${vector}, ${matrix}, and ${vector}`,
    );
  }
  requireNumbers(a, "addmv_impl_cpu");
  return named(squeeze(product(a, unsqueeze(b, 1)), 1), a, "MvBackward0");
}

export function matmul(a, b) {
  const [m, n] = [a.shape.length, b.shape.length];
  if (!m || !n) {
    fail(`both arguments to matmul need to be at least 1D, but they are ${m}D and ${n}D`);
  }
  if (m === 1 && n === 1) return dot(a, b);
  if (m === 2 && n === 1) return mv(a, b);
  if (m === 1 && n === 2) return named(squeeze(mm(unsqueeze(a, 0), b), 0), a, "SqueezeBackward4");
  if (m === 2 && n === 2) return mm(a, b);
  if (isFolded(a, b)) return m >= n ? folded(a, b) : folded(mT(b), a);
  if (m === 1) return named(squeeze(matmul(unsqueeze(a, 0), b), -2), a, "SqueezeBackward1");
  if (n === 1) return named(squeeze(matmul(a, unsqueeze(b, 1)), -1), a, "SqueezeBackward1");
  const batch = broadcast(a.shape.slice(0, -2), b.shape.slice(0, -2));
  const many = count(batch);
  const [rows, inner] = a.shape.slice(-2);
  const [height, columns] = b.shape.slice(-2);
  if (inner !== height) {
    fail(
      `Expected size for first two dimensions of batch2 tensor to be: [${many}, ${inner}] but got: [${many}, ${height}].`,
    );
  }
  if (a.dtype === "bool") requireNumbers(a, "bmm");
  if (a.dtype !== b.dtype && rows * columns * many) {
    fail(`expected scalar type ${DTYPES[a.dtype].title} but found ${DTYPES[b.dtype].title}`);
  }
  const isPlain = m === 3 && n === 3 && rows >= 0 && columns >= 0;
  const result = product(a, b);
  return named(
    result.numel ? result : to(result, b.dtype),
    a,
    isPlain ? "BmmBackward0" : "UnsafeViewBackward0",
  );
}

/** Whether PyTorch makes one matrix of a batch before it multiplies: its messages differ then. */
function isFolded(a, b) {
  const isLarger = a.shape.length >= b.shape.length;
  const [large, small] = isLarger ? [a, b] : [mT(b), a];
  if (large.shape.length < 3 || small.shape.length > 2) return false;
  if (small.requiresGrad) return a.shape.length !== 2;
  if (a.shape.length === 2) return false;
  return (
    large.numel === 0 ||
    large.shape
      .slice(0, -2)
      .every((_, d) => large.strides[d] === large.strides[d + 1] * large.shape[d + 1])
  );
}

/** Many rows times one matrix or vector. */
function folded(a, b) {
  const rows = reshape(
    a,
    [-1, a.shape.at(-1)].map((size, i) => (i === 0 ? count(a.shape.slice(0, -1)) : size)),
  );
  const result = b.shape.length === 1 ? mv(rows, b) : mm(rows, b);
  const shape = [...a.shape.slice(0, -1), ...b.shape.slice(1)];
  return named(
    reshape(result, shape),
    a,
    b.shape.length === 1 ? "ViewBackward0" : "UnsafeViewBackward0",
  );
}

export function outer(a, b) {
  for (const x of [a, b]) {
    if (x.shape.length !== 1) {
      fail(
        `outer: Expected 1-D argument ${x === a ? "self" : "vec2"}, but got ${x.shape.length}-D`,
      );
    }
  }
  return mul(unsqueeze(a, 1), b);
}

/** input @ weight.T + bias */
export function linear(x, weight, bias) {
  const result = matmul(x, weight.shape.length === 1 ? weight : mT(weight));
  const name = x.shape.length === 2 && bias ? "AddmmBackward0" : null;
  const shifted = bias ? add(result, bias) : result;
  return name ? named(shifted, x, name) : shifted;
}

export function einsum(equation, operands) {
  const text = equation.replaceAll(" ", "");
  const [inputs, output] = text.split("->");
  const terms = inputs.split(",");
  const trouble = (what) => fail(`einsum(): ${what}`);
  if (terms.length !== operands.length) {
    const few = terms.length < operands.length;
    trouble(
      few
        ? "more operands were provided than specified in the equation"
        : "fewer operands were provided than specified in the equation",
    );
  }
  const sizeOf = new Map();
  let dots = 0; // how many dimensions ... stands for
  terms.forEach((term, i) => {
    const [before, after] = term.split("...");
    const letters = [...before, ...(after ?? "")];
    const bad = letters.find((letter) => !/[a-zA-Z]/.test(letter));
    if (bad) {
      trouble(
        `invalid subscript given at index ${equation.indexOf(bad)} in the equation string, subscripts must be in [a-zA-Z]`,
      );
    }
    const rest = operands[i].shape.length - letters.length;
    if (after === undefined ? rest !== 0 : rest < 0) {
      trouble(
        `the number of subscripts in the equation (${letters.length}) ${after === undefined ? "does not match" : "is more than"} the number of dimensions (${operands[i].shape.length}) for operand ${i}${after === undefined ? " and no ellipsis was given" : ""}`,
      );
    }
    dots = Math.max(dots, rest);
  });
  const hidden = Array.from({ length: dots }, (_, i) => `#${i}`);
  const expandDots = (term, rank) => {
    const [before, after] = term.split("...");
    if (after === undefined) return [...before];
    const few = rank === null ? dots : rank - before.length - after.length;
    return [...before, ...hidden.slice(dots - few), ...after];
  };
  const labeled = terms.map((term, i) => {
    let labels = expandDots(term, operands[i].shape.length);
    let x = operands[i];
    labels.forEach((label, d) => {
      const size = x.shape[d];
      const known = sizeOf.get(label);
      if (known !== undefined && known !== size && known !== 1 && size !== 1) {
        trouble(
          `subscript ${label} has size ${size} for operand ${i} which does not broadcast with previously seen size ${known}`,
        );
      }
      sizeOf.set(label, known === undefined || known === 1 ? size : known);
    });
    for (let d = 0; d < labels.length; d += 1) {
      const again = labels.indexOf(labels[d], d + 1);
      if (again < 0) continue;
      x = diagonal(x, 0, d, again);
      labels = [...labels.filter((_, k) => k !== d && k !== again), labels[d]];
      d = -1;
    }
    return { x, labels };
  });
  const all = [...sizeOf.keys()];
  const counts = (label) => terms.join("").split(label).length - 1;
  const letters = all.filter((label) => !label.startsWith("#")).sort();
  const wanted =
    output === undefined
      ? [...hidden, ...letters.filter((label) => counts(label) === 1)]
      : expandDots(output, null);
  wanted.forEach((label, i) => {
    if (!sizeOf.has(label)) {
      trouble(`output subscript ${label} does not appear in the equation for any input operand`);
    }
    if (wanted.indexOf(label) !== i) {
      trouble(`output subscript ${label} appears more than once in the output`);
    }
  });
  const order = [...wanted, ...all.filter((label) => !wanted.includes(label))];
  const aligned = labeled.map(({ x, labels }) => {
    const present = order.filter((label) => labels.includes(label));
    const turned = permute(
      x,
      present.map((label) => labels.indexOf(label)),
    );
    const shape = order.map((label) =>
      labels.includes(label) ? turned.shape[present.indexOf(label)] : 1,
    );
    return reshape(turned, shape);
  });
  return contracted(aligned, order, wanted, sizeOf);
}

/** All operands have a dimension for each label; multiply, and sum over those that are not wanted. */
function contracted(operands, order, wanted, sizeOf) {
  const [first, ...rest] = operands;
  const shapeOf = (labels) => labels.map((label) => sizeOf.get(label));
  const drop = order.map((_, d) => d).slice(wanted.length);
  if (rest.length === 1) return pair(first, rest[0], order, wanted, sizeOf);
  const all = rest.reduce((x, y) => mul(x, y), first);
  const whole = expand(all, shapeOf(order));
  return drop.length ? sum(whole, drop) : whole;
}

/** Two operands: a product of matrices, once what both have is in front and what is summed meets. */
function pair(a, b, order, wanted, sizeOf) {
  const has = (x, d) => x.shape[d] !== 1;
  const dims = order.map((_, d) => d);
  const isKept = (d) => d < wanted.length;
  const batch = dims.filter((d) => isKept(d) && has(a, d) === has(b, d));
  const left = dims.filter((d) => isKept(d) && has(a, d) && !has(b, d));
  const right = dims.filter((d) => isKept(d) && !has(a, d) && has(b, d));
  const inner = dims.filter((d) => !isKept(d));
  const size = (some) => count(some.map((d) => sizeOf.get(order[d])));
  const full = (x) =>
    expand(
      x,
      dims.map((d) => (inner.includes(d) ? sizeOf.get(order[d]) : x.shape[d])),
    );
  const x = reshape(permute(full(a), [...batch, ...left, ...right, ...inner]), [
    size(batch),
    size(left),
    size(inner),
  ]);
  const y = reshape(permute(full(b), [...batch, ...left, ...right, ...inner]), [
    size(batch),
    size(right),
    size(inner),
  ]);
  const common = a.dtype;
  const result = product(x, mT(to(y, common)));
  const parts = [...batch, ...left, ...right];
  const shaped = reshape(
    result,
    parts.map((d) => sizeOf.get(order[d])),
  );
  return permute(
    shaped,
    wanted.map((_, d) => parts.indexOf(d)),
  );
}

/** Under PyTorch's names. */
export const PRODUCTS = { bmm, dot, einsum, linear, matmul, mm, mv, outer };
