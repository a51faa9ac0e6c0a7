"""Wrong answers to chapters 1 to 5 by somebody who had not seen the checks: where do they point?

Each was written from the text of its exercise alone; `# here` marks the line of the mistake. Every
one must be refused, and nine of ten refusals must point at that line or give a sentence that the
exercise has for this cause.
"""

import inspect
import math
import re

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, searching

from transformer_lib.attention import split_heads
from transformer_lib.exercises import (
    masking,
    multi_head,
    queries_keys_values,
    scaling,
    self_attention,
)

pytestmark = pytest.mark.slow
CHECKS = {
    case.id: case.values[0]
    for chapter in (masking, multi_head, queries_keys_values, scaling, self_attention)
    for case in exercises(chapter)
}
SHARE = {}


def one_output__scores_of_all(x, i):
    scores = x @ x.T
    weights = torch.softmax(scores, dim=0)  # here
    return weights[i] @ x


def one_output__divide_by_sum(x, i):
    scores = x @ x[i]
    weights = scores / scores.sum()  # here
    return weights @ x


def one_output__mean(x, i):
    scores = x @ x[i]
    weights = torch.softmax(scores, dim=0)
    return (weights[:, None] * x).mean(dim=0)  # here


def mended__transposed_sum(x):
    weights = torch.softmax(x @ x.T, dim=-1)
    y = torch.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            y[i] += weights[j, i] * x[j]  # here
    return y


def mended__skip_self(x):
    weights = torch.softmax(x @ x.T, dim=1)
    y = torch.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            if i != j:  # here
                y[i] += weights[i, j] * x[j]
    return y


def mended__only_range(x):
    weights = torch.softmax(x @ x.T, dim=1)
    y = torch.zeros_like(x)
    for i in range(len(x)):
        for j in range(i):  # here
            y[i] += weights[i, j] * x[j]
    return y


def equivariance__one_side(f, x, order):
    return torch.allclose(f(x[order]), f(x))  # here


def equivariance__sums(f, x, order):
    return torch.allclose(f(x).sum(0), f(x[order]).sum(0))  # here


def equivariance__norms(f, x, order):
    return torch.allclose(f(x).norm(dim=-1)[order], f(x[order]).norm(dim=-1), atol=1e-5)  # here


def batched_attention__heads_mixed(x):
    scores = torch.einsum("bid,bjd->bij", x, x)
    weights = scores.softmax(dim=1)  # here
    return torch.einsum("bij,bjd->bid", weights, x)


def batched_attention__sum_over_batch(x):
    weights = torch.einsum("bid,cjd->bij", x, x).softmax(-1)  # here
    return torch.einsum("bij,bjd->bid", weights, x)


def batched_attention__batch_softmax(x):
    scores = torch.einsum("bid,bjd->bij", x, x)
    weights = torch.softmax(scores, 0)  # here
    return torch.einsum("bij,bjd->bid", weights, x)


def soft_lookup__times(q, keys, values, temperature):
    scores = keys @ q
    return torch.softmax(scores * temperature, dim=0) @ values  # here


def soft_lookup__values_compared(q, keys, values, temperature):
    d = q.shape[0]
    scores = (keys @ q) / d**0.5 / temperature  # here
    return scores.softmax(-1) @ values


def soft_lookup__added(q, keys, values, temperature):
    scores = keys @ q + temperature  # here
    return torch.softmax(scores, dim=0) @ values


def cross_attention__roles(x, memory, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
    w = torch.softmax(q @ k.T, dim=0)  # here
    return w @ v


def cross_attention__scaled(x, memory, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
    return F.scaled_dot_product_attention(q, k, v)  # here


def cross_attention__reshape(x, memory, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
    scores = q @ k.reshape(k.shape[1], k.shape[0])  # here
    return scores.softmax(dim=-1) @ v


def stable_softmax__max_of_all(scores):
    powers = torch.exp(scores - scores.max())  # here
    return powers / powers.sum(dim=-1, keepdim=True)


def stable_softmax__dim0(scores):
    top = scores.max(dim=0, keepdim=True).values  # here
    powers = torch.exp(scores - top)
    return powers / powers.sum(dim=0, keepdim=True)  # here


def stable_softmax__torch(scores):
    return torch.softmax(scores, dim=-1)  # here


def score_rank__product(s, d, d_k):
    return min(s, d)  # here


def score_rank__dk(s, d, d_k):
    return min(d, d_k)  # here


def score_rank__max(s, d, d_k):
    return min(s, max(d, d_k))  # here


def score_variance__same(d_k):
    q = torch.randn(20000, d_k)
    k = q  # here
    return (q * k).sum(-1).var()


def score_variance__uniform(d_k):
    q, k = torch.rand(20000, d_k), torch.rand(20000, d_k)  # here
    return (q * k).sum(-1).var()


def score_variance__mean_of_products(d_k):
    q, k = torch.randn(20000, d_k), torch.randn(20000, d_k)
    return (q * k).mean(-1).var()  # here


def scaled_weights__dk_of_batch(q, k):
    scores = q @ k.mT
    return torch.softmax(scores / q.shape[0] ** 0.5, dim=-1)  # here


def scaled_weights__after(q, k):
    scores = q @ k.mT
    return torch.softmax(scores, dim=-1) / q.shape[-1] ** 0.5  # here


def scaled_weights__std(q, k):
    scores = q @ k.mT
    return torch.softmax(scores / scores.std(), dim=-1)  # here


def softmax_jacobian__no_chain(s, scale):
    p = torch.softmax(scale * s, dim=0)
    return torch.diag(p) - torch.outer(p, p)  # here


def softmax_jacobian__sign(s, scale):
    p = torch.softmax(scale * s, dim=0)
    return scale * (torch.diag(p) + torch.outer(p, p))  # here


def softmax_jacobian__square(s, scale):
    p = torch.softmax(scale * s, dim=0)
    return scale**2 * (p.diag() - p[:, None] * p[None, :])  # here


def temperature_for_entropy__bits(s, entropy):
    low, high = 1e-4, 1e4
    for _ in range(100):
        middle = (low * high) ** 0.5
        p = torch.softmax(s / middle, 0)
        h = -(p * p.clamp_min(1e-30).log2()).sum()  # here
        if h < entropy:
            low = middle
        else:
            high = middle
    return middle


def temperature_for_entropy__wrong_half(s, entropy):
    low, high = 1e-4, 1e4
    for _ in range(100):
        middle = (low * high) ** 0.5
        p = torch.softmax(s / middle, 0)
        h = -(p * p.clamp_min(1e-30).log()).sum()
        if h > entropy:  # here
            low = middle
        else:
            high = middle
    return middle


def temperature_for_entropy__inverse(s, entropy):
    low, high = 1e-4, 1e4
    for _ in range(100):
        middle = (low * high) ** 0.5
        p = torch.softmax(s * middle, 0)  # here
        h = -(p * p.clamp_min(1e-30).log()).sum()
        if h > entropy:
            low = middle
        else:
            high = middle
    return middle


def pytorch_width__three(d_k):
    return 3 * d_k  # here


def pytorch_width__third(d_k):
    return d_k / 9  # here


def pytorch_width__root(d_k):
    return (d_k * 9) ** 0.5  # here


def times_scaled__threshold(score, d_k):
    q, k = torch.randn(200, d_k), torch.randn(200, d_k)
    spread = score(q, k).std()
    if spread > 4:  # here
        return 0
    return 1 if spread > 0.25 else 2  # here


def times_scaled__var(score, d_k):
    q, k = torch.randn(500, d_k), torch.randn(500, d_k)
    spread = score(q, k).var()  # here
    return round(1 - math.log(spread) / math.log(d_k) * 2)


def times_scaled__reversed(score, d_k):
    q, k = torch.randn(500, d_k), torch.randn(500, d_k)
    spread = score(q, k).std()
    guesses = torch.tensor([d_k**-0.5, 1.0, d_k**0.5])  # here
    return int((guesses.log() - spread.log()).abs().argmin())


def causal_mask__tril(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).tril()  # here


def causal_mask__float(queries, keys):
    return torch.ones(queries, keys).tril(keys - queries)  # here


def causal_mask__buffer(queries, keys):
    full = torch.ones(16, 16, dtype=torch.bool).tril()  # here
    return full[keys - queries : keys, :keys]


def combined_mask__or(causal, padding):
    return causal | padding[:, None, :]  # here


def combined_mask__both(causal, padding):
    real = padding[:, None, :] & padding[:, :, None]  # here
    return causal & real


def combined_mask__inverted(causal, padding):
    return causal & ~padding[:, None, :]  # here


def padded_attention__unsqueeze2(q, k, v, real):
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    scores = scores.masked_fill(~real.unsqueeze(2), float("-inf"))  # here
    return scores.softmax(-1) @ v


def padded_attention__zero(q, k, v, real):
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    scores = scores * real.unsqueeze(1)  # here
    return scores.softmax(dim=-1) @ v


def padded_attention__filler_rows(q, k, v, real):
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    allowed = real.unsqueeze(1) & real.unsqueeze(2)  # here
    scores = scores.masked_fill(~allowed, -1e9)
    return scores.softmax(dim=-1) @ v


def sliding_window__one_more(tokens, window):
    i = torch.arange(tokens)[:, None]
    j = torch.arange(tokens)[None, :]
    return (j <= i) & (i - j <= window)  # here


def sliding_window__triu(tokens, window):
    ones = torch.ones(tokens, tokens, dtype=torch.bool)
    return ones.tril() & ones.triu(-window)  # here


def sliding_window__only_window(tokens, window):
    ones = torch.ones(tokens, tokens, dtype=torch.bool)
    return ones.triu(1 - window)  # here


def empty_rows__1e4(scores, mask):
    weights = scores.masked_fill(~mask, -1e4).softmax(-1)  # here
    return weights * mask


def empty_rows__exp(scores, mask):
    e = scores.exp() * mask  # here
    return e / e.sum(-1, keepdim=True).clamp_min(1e-9)


def empty_rows__in_place(scores, mask):
    scores[~mask] = torch.finfo(scores.dtype).min  # here
    return scores.softmax(-1) * mask


def reach__once(mask, source, layers):
    return mask[:, source]  # here


def reach__keeps(mask, source, layers):
    held = torch.zeros(len(mask), dtype=torch.bool)
    held[source] = True
    for _ in range(layers):
        held = held | (mask & held).any(dim=-1)  # here
    return held


def reach__all(mask, source, layers):
    held = torch.zeros(len(mask), dtype=torch.bool)
    held[source] = True
    for _ in range(layers):
        held = (mask & held).all(dim=-1)  # here
    return held


def is_causal__last_only(f, x):
    y = f(x)
    other = x.clone()
    other[-1] = torch.randn_like(other[-1])  # here
    return torch.equal(f(other)[:-1], y[:-1])


def is_causal__in_place(f, x):
    y = f(x)
    for start in range(1, len(x)):
        x[start:] = torch.randn_like(x[start:])  # here
        if not torch.equal(f(x)[:start], y[:start]):
            return False
    return True


def is_causal__doubles(f, x):
    y = f(x)
    for start in range(1, len(x)):
        other = x.clone()
        other[start:] *= 2  # here
        if not torch.equal(f(other)[:start], y[:start]):
            return False
    return True


def split_fused__no_transpose(qkv, n_heads):
    b, s, w = qkv.shape
    parts = qkv.chunk(3, dim=-1)
    return tuple(p.reshape(b, n_heads, s, w // 3 // n_heads) for p in parts)  # here


def split_fused__order(qkv, n_heads):
    q, v, k = qkv.chunk(3, dim=-1)  # here
    return split_heads(q, n_heads), split_heads(k, n_heads), split_heads(v, n_heads)


def split_fused__per_head_first(qkv, n_heads):
    return split_heads(qkv, n_heads).chunk(3, dim=-1)  # here


def multi_head__scale(x, W_Q, W_K, W_V, W_O, n_heads):
    batch, tokens, d = x.shape
    q, k, v = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    weights = (q @ k.mT / d**0.5).softmax(dim=-1)  # here
    z = (weights @ v).transpose(1, 2).reshape(batch, tokens, d)
    return z @ W_O


def multi_head__per_head_output(x, W_Q, W_K, W_V, W_O, n_heads):
    batch, tokens, d = x.shape
    q, k, v = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    z = (weights @ v).mT.reshape(batch, tokens, d)  # here
    return z @ W_O


def multi_head__no_output(x, W_Q, W_K, W_V, W_O, n_heads):
    batch, tokens, d = x.shape
    q, k, v = (split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).reshape(batch, tokens, d)  # here


def count__no_heads(d_model, n_heads, d_head, bias):
    weights = 4 * d_model * d_head  # here
    return weights + (4 * d_model if bias else 0)  # here


def count__three(d_model, n_heads, d_head, bias):
    width = n_heads * d_head
    return 3 * d_model * width + (3 * width if bias else 0)  # here


def count__always_bias(d_model, n_heads, d_head, bias):
    width = n_heads * d_head
    return 4 * d_model * width + 3 * width + d_model  # here


def without_head__queries(attention, x, head):
    q, k, v = attention.project(x)
    q = q.clone()
    q[:, head] = 0  # here
    b, h, s, d = q.shape
    w = (q @ k.mT / d**0.5).softmax(-1)
    return attention.output((w @ v).transpose(1, 2).reshape(b, s, h * d))


def without_head__forgets_output(attention, x, head):
    q, k, v = attention.project(x)
    v = v.clone()
    v[:, head] = 0
    b, h, s, d = q.shape
    w = (q @ k.mT / d**0.5).softmax(-1)
    return (w @ v).transpose(1, 2).reshape(b, s, h * d)  # here


def without_head__weights_changed(attention, x, head):
    width = attention.output.in_features // attention.n_heads
    with torch.no_grad():
        attention.output.weight[:, head * width : (head + 1) * width] = 0  # here
    return attention(x)


ANSWERS = [f for name, f in list(globals().items()) if "__" in name and inspect.isfunction(f)]


@pytest.fixture(autouse=True)
def a_busy_machine_hides_no_line():
    with searching(lines=True):
        yield


def pointed(answer):
    """Does the refusal of this answer point at a marked line, or name its cause?"""
    lines, first = inspect.getsourcelines(answer)
    marked = [first + n for n, line in enumerate(lines) if "# here" in line]
    check = CHECKS["check_" + answer.__name__.partition("__")[0]]
    verdict = check(answer)
    assert verdict.passed is False, verdict
    at_the_line = any(re.search(rf"\b[Ll]ine {n}\b", verdict.diagnosis) for n in marked)
    named = any(said(sentence, verdict.diagnosis) for sentence in check.sentences)
    SHARE[answer] = at_the_line or named
    return SHARE[answer]


def said(sentence, diagnosis):
    parts = (re.escape(part.rstrip(".")) for part in re.split(r"\{[^}]*\}", sentence))
    return re.search(".+".join(parts), diagnosis, re.IGNORECASE)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda f: f.__name__)
def test_a_wrong_answer_is_refused(answer):
    pointed(answer)


def test_nine_of_ten_refusals_point_at_the_line_or_name_the_cause():
    for answer in ANSWERS:  # those that another process has judged
        if answer not in SHARE:
            pointed(answer)
    assert sum(SHARE.values()) >= 0.9 * len(SHARE), [f.__name__ for f, p in SHARE.items() if not p]
