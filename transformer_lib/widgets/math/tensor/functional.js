// torch.nn.functional, as far as the book's exercises ask for it, out of the other operations.

import { ones, tril } from "./creation.js";
import {
  add,
  clamp,
  div,
  eq,
  logical_not,
  masked_fill,
  mul,
  named,
  ne,
  neg,
  pow,
  sqrt,
  sub,
  to,
  where,
} from "./elementwise.js";
import { gather, getitem } from "./indexing.js";
import { matmul } from "./products.js";
import { all, log_softmax, mean, norm, softmax, sum } from "./reductions.js";
import { mT, squeeze, unsqueeze } from "./shapes.js";
import { dense, dimension, fail, numberOf, Real, same, sizes } from "./tensor.js";

export function scaled_dot_product_attention(q, k, v, mask, dropout, isCausal, scale) {
  if (numberOf(dropout ?? 0) > 0) fail("this page's tensors have no dropout: leave dropout_p at 0");
  if (isCausal && mask)
    fail("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  const factor = scale == null ? 1 / Math.sqrt(q.shape.at(-1)) : numberOf(scale);
  let scores = mul(matmul(q, mT(k)), new Real(factor));
  const allowed = isCausal ? tril(ones([q.shape.at(-2), k.shape.at(-2)], "bool")) : mask;
  if (allowed?.dtype === "bool") scores = masked_fill(scores, logical_not(allowed), -Infinity);
  else if (allowed) scores = add(scores, allowed);
  const weights = softmax(scores, -1);
  const empty = all(eq(scores, -Infinity), -1, true);
  return named(
    matmul(masked_fill(weights, empty, 0), v),
    q,
    "ScaledDotProductFlashAttentionForCpuBackward0",
  );
}

function reduced(x, how, weights = null) {
  if (how === "none") return x;
  if (how === "sum") return sum(x);
  if (how !== "mean") fail(`${how} is not a valid value for reduction`, "ValueError");
  return weights ? div(sum(x), sum(weights)) : mean(x);
}

export function nll_loss(logs, target, ignore = -100, reduction = "mean") {
  const classes = logs.shape.length > 1 ? logs.shape[1] : logs.shape[0];
  const left = ignore ?? -100;
  const bad = dense(target).find((value) => value !== left && (value < 0 || value >= classes));
  if (bad !== undefined) fail(`Target ${bad} is out of bounds.`, "IndexError");
  const d = logs.shape.length > 1 ? 1 : 0;
  const mask = ne(target, left);
  const safe = where(mask, target, 0);
  const found = neg(squeeze(gather(logs, d, unsqueeze(safe, d)), d));
  const shown = where(mask, found, 0);
  const how = reduction ?? "mean";
  return named(
    reduced(shown, how, how === "mean" ? to(mask, logs.dtype) : null),
    logs,
    "NllLossBackward0",
  );
}

export function cross_entropy(x, target, ignore = -100, reduction = "mean") {
  if (target.isFloat) {
    const logs = log_softmax(x, x.shape.length > 1 ? 1 : 0);
    const each = neg(sum(mul(logs, target), [x.shape.length > 1 ? 1 : 0]));
    return reduction === "none" ? each : reduction === "sum" ? sum(each) : mean(each);
  }
  const expected = x.shape.length === 1 ? [] : [x.shape[0], ...x.shape.slice(2)];
  if (!same(expected, target.shape)) {
    if (x.shape.length === 1 && target.shape.length > 1) {
      fail("0D or 1D target tensor expected, multi-target not supported");
    }
    if (x.shape[0] !== (target.shape[0] ?? 1)) {
      fail(
        `Expected input batch_size (${x.shape[0]}) to match target batch_size (${target.shape[0] ?? 1}).`,
        "ValueError",
      );
    }
    fail(`Expected target size ${sizes(expected)}, got ${sizes(target.shape)}`);
  }
  return nll_loss(log_softmax(x, x.shape.length > 1 ? 1 : 0), target, ignore ?? -100, reduction);
}

export function mse_loss(x, target, reduction = "mean") {
  return named(reduced(pow(sub(x, target), 2), reduction ?? "mean"), x, "MseLossBackward0");
}

export function layer_norm(x, shape, weight, bias, eps = 1e-5) {
  const dims = shape.map((_, i) => i - shape.length);
  if (!same(x.shape.slice(-shape.length), shape)) {
    fail(
      `Given normalized_shape=${sizes(shape)}, expected input with shape [*, ${shape.join(", ")}], but got input of size${sizes(x.shape)}`,
    );
  }
  const away = sub(x, mean(x, dims, true));
  const variance = mean(mul(away, away), dims, true);
  return named(
    scaled(div(away, sqrt(add(variance, numberOf(eps ?? 1e-5)))), weight, bias),
    x,
    "NativeLayerNormBackward0",
  );
}

export function rms_norm(x, shape, weight, eps) {
  const dims = shape.map((_, i) => i - shape.length);
  const tiny = x.dtype === "float64" ? Number.EPSILON : 2 ** -23;
  const root = sqrt(add(mean(mul(x, x), dims, true), numberOf(eps ?? tiny)));
  return scaled(div(x, root), weight, null);
}

function scaled(x, weight, bias) {
  const grown = weight ? mul(x, weight) : x;
  return bias ? add(grown, bias) : grown;
}

export function embedding(ids, table) {
  if (dense(ids).some((id) => id < 0 || id >= table.shape[0])) {
    fail("index out of range in self", "IndexError");
  }
  return named(getitem(table, [ids]), table, "EmbeddingBackward0");
}

export function normalize(x, p = 2, dim = 1, eps = 1e-12) {
  if (numberOf(p ?? 2) !== 2) fail("this page's tensors normalize with p=2 only");
  const d = dimension(dim ?? 1, x.shape.length);
  const length = norm(x, 2, [d], true);
  return div(x, clamp(length, numberOf(eps ?? 1e-12), null));
}

/** Under PyTorch's names. */
export const FUNCTIONAL = {
  cross_entropy,
  embedding,
  layer_norm,
  mse_loss,
  nll_loss,
  normalize,
  rms_norm,
  scaled_dot_product_attention,
};
