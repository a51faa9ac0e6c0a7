"""Chapter 02's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge_by

from transformer_lib.exercises import queries_keys_values
from transformer_lib.exercises.queries_keys_values import (
    check_cross_attention,
    check_directed_relation,
    check_score_rank,
    check_shared_matrix,
    check_soft_lookup,
    check_stable_softmax,
)

RIGHT, WRONG = {}, {}

# --- the soft dictionary


def by_loop(q, keys, values, temperature):
    scores = [key @ q / temperature for key in keys]
    powers = [torch.exp(score - max(scores)) for score in scores]
    return sum(power * value for power, value in zip(powers, values, strict=True)) / sum(powers)


def by_sdpa(q, keys, values, temperature):
    return F.scaled_dot_product_attention(q[None], keys, values, scale=1 / temperature)[0]


RIGHT[check_soft_lookup] = [by_loop, by_sdpa]


WRONG[check_soft_lookup] = [
    (lambda q, k, v, t: by_loop(q, k, k, t), "`k` stands where `v` belongs"),
    (lambda q, k, v, t: v[int(torch.argmax(k @ q))], "This is the value of the"),
    (lambda q, k, v, t: by_loop(q, k, v, 1 / t), "`1 /` is too much"),
    (lambda q, k, v, t: by_loop(q, k, v, 1.0), "The temperature is not used."),
    (lambda q, k, v, t: by_loop(q, k, v, 1.0) / t, "The temperature divides the"),
    (lambda q, k, v, t: (k * q).sum(1) @ v / t, "the right computation does `div` there"),
    (lambda q, k, v, t: F.softmax(k @ q / t, dim=-1), "These are the weights; the"),
    (lambda q, k, v, t: torch.einsum("nd->d", v), "The values are summed, not"),
    (
        lambda q, k, v, t: (k @ q / t).exp() @ v / (k @ q / t).exp().sum(),
        "holds nan (first at [0]), where a finite number is expected",
    ),
]


# --- different numbers, different sizes


def step_by_step(x, memory, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
    rows = [F.softmax(k @ row, dim=0) for row in q]
    return torch.stack([(row[:, None] * v).sum(0) for row in rows])


def by_pytorch(x, memory, W_Q, W_K, W_V):
    q, k, v = (m[None] for m in (x @ W_Q, memory @ W_K, memory @ W_V))
    return F.scaled_dot_product_attention(q, k, v, scale=1.0)[0]


RIGHT[check_cross_attention] = [step_by_step, by_pytorch]


WRONG[check_cross_attention] = [
    (
        lambda x, m, Q, K, V: F.softmax(m @ K @ (x @ Q).T, dim=1).T @ m @ V,
        "`dim=1` is not the right axis: with `dim=0` in place of `dim=1`",
    ),
    (
        lambda x, m, Q, K, V: F.softmax(x @ Q @ (m @ K).T, dim=1) @ x @ V,
        "`x` stands where `m` belongs",
    ),
    (
        lambda x, m, Q, K, V: step_by_step(m, x, Q, K, V),
        "`x` and `m` are taken for each other, everywhere",
    ),
    (
        lambda x, m, Q, K, V: step_by_step(x, m, Q.T, K.T, V.T),
        "The weight matrices are transposed:",
    ),
    (
        lambda x, m, Q, K, V: F.softmax(x @ Q @ (m @ K).T, dim=1) @ m,
        "The values are not projected:",
    ),
]


def squares_only(x, memory, W_Q, W_K, W_V):
    return F.softmax(x @ W_Q @ (memory @ W_K).T, dim=-1).reshape(len(memory), -1) @ memory @ W_V


WRONG[check_cross_attention] += [
    (squares_only, "Right on squares only (5 queries, 5 keys, all widths 5)"),
]


# --- a directed relation

ZERO = [0.0, 0.0]


def pair(queries, keys):
    return torch.tensor(queries), torch.tensor(keys)


RIGHT[check_directed_relation] = [
    pair([[1.0, 0.0], [0.0, 1.0], ZERO], [ZERO, [1.0, 0.0], [0.0, 1.0]]),
    pair([[0.0, 3.0], [-1.0, 0.0], ZERO], [[0.5, -1.0], [0.5, 1.0], [-2.0, 0.0]]),
    pair([[1, 0], [0, 1], [0, 0]], [[0, 0], [1, 0], [0, 1]]),
    (torch.eye(3, 2).double(), torch.eye(3, 2).double().roll(1, 0)),
    ([[1, 0], [0, 1], [0, 0]], [[0, 0], [1, 0], [0, 1]]),
    lambda: pair([[1e-4, 0.0], [0.0, 1e-4], ZERO], [ZERO, [1e-4, 0.0], [0.0, 1e-4]]),
]


WRONG[check_directed_relation] = [
    (
        pair([[1.0, 0.0], [0.0, 1.0], ZERO], [[1.0, 0.0], [0.0, 1.0], ZERO]),
        "W_Q and W_K are equal, so",
    ),
    (
        pair([[2.0, 0.0], [0.0, 2.0], ZERO], [[1.0, 0.0], [0.0, 1.0], ZERO]),
        "W_Q W_Kᵀ is symmetric: whoever",
    ),
    (
        pair([ZERO, [2.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 2.0], ZERO]),
        "The direction is reversed,",
    ),
    (
        pair([[2.0, 0.0], [0.0, 2.0], ZERO], [[3.0, 0.0], [2.0, 0.0], [0.0, 2.0]]),
        "The adjective looks for itself, not for the noun.",
    ),
    (
        pair([[2.0, 0.0], [2.0, 0.0], ZERO], [ZERO, [1.0, 0.0], [2.0, 0.0]]),
        "The adjective looks for the verb, not for the noun.",
    ),
    (
        pair([ZERO, [0.0, 2.0], ZERO], [ZERO, [2.0, 0.0], [0.0, 2.0]]),
        "The adjective has the same score with everything: it looks for nothing.",
    ),
    (
        pair([[2.0, 0.0], [0.0, 2.0], [0.0, 4.0]], [ZERO, [2.0, 1.5], [0.0, 2.0]]),
        "The verb looks back at the noun at least as hard as it is looked for.",
    ),
    (
        pair([[1.0, 0.0], [0.0, 1.0], ZERO], [ZERO, [1.0, 0.0], [1.0, 1.0]]),
        "The adjective scores the verb as high as the noun, which must be ahead.",
    ),
    (
        pair([[1, 0], [0, 1], [0, 0]], [[0, 0], [1, 1], [0, 1]]),
        "The noun scores itself as high as the verb, which must be ahead.",
    ),
    (torch.ones(3, 2), "Your result is a tensor of shape (3, 2); a tuple of 2 is expected."),
]


# --- the rank of the scores


def measured_rank(s, d, d_k):
    torch.manual_seed(0)
    x = torch.randn(s, d, dtype=torch.float64)
    q, k = (x @ torch.randn(d, d_k, dtype=torch.float64) for _ in range(2))
    return int(torch.linalg.matrix_rank(q @ k.T))


RIGHT[check_score_rank] = [measured_rank, lambda s, d, d_k: sorted([s, d, d_k])[0]]


def rank_after_softmax(s, d, d_k):
    torch.manual_seed(0)
    x = torch.randn(s, d, dtype=torch.float64)
    q, k = (x @ torch.randn(d, d_k, dtype=torch.float64) for _ in range(2))
    return int(torch.linalg.matrix_rank(torch.softmax(0.3 * q @ k.T, dim=-1), rtol=1e-14))


WRONG[check_score_rank] = [
    (lambda s, d, d_k: d, "This is d, the width of the"),
    (lambda s, d, d_k: s, "This is s: full rank is typical"),
    (rank_after_softmax, "This is s: full rank is typical"),
    (lambda s, d, d_k: d_k, "This is d_k alone; a matrix"),
    (lambda s, d, d_k: d_k if d_k < s else s, "You forget X: W_Q can make"),
    (lambda s, d, d_k: min((d, d_k)), "You forget the number of"),
    (lambda s, d, d_k: min((d, s)), "You forget the narrow projections:"),
    (lambda s, d, d_k: sorted([s, d, d_k])[-1], "with `0` in place of `-1`"),
]


# --- repair a softmax


def powers_of(scores):
    return scores.exp()


def row_by_row(scores):
    out = torch.empty_like(scores)
    for i, row in enumerate(scores):
        e = (row - row.max()).exp()
        out[i] = e / e.sum()
    return out


def by_logsumexp(scores):
    return torch.exp(scores - scores.logsumexp(1)[:, None])


def columns_maximum(scores):
    e = torch.exp(scores - scores.max(dim=0).values)
    return e / e.sum(1)[:, None]


def averaged(scores):
    e = torch.exp(scores - scores.mean(1).unsqueeze(1))
    return e / e.sum(1).unsqueeze(1)


RIGHT[check_stable_softmax] = [row_by_row, by_logsumexp]


WRONG[check_stable_softmax] = [
    (
        lambda s: F.softmax(s, 1),
        "The result is right. But the exercise asks for it without `softmax`",
    ),
    (lambda s: powers_of(s) / powers_of(s).sum(1), "This still does what the broken function"),
    (lambda s: powers_of(s) / powers_of(s).sum(1)[:, None], "The rows are right now, but for"),
    (
        lambda s: powers_of(s - s.max(1)[0][:, None]) / powers_of(s - s.max(1)[0][:, None]).sum(1),
        "keep the axis that disappears, by `keepdim=True`",
    ),
    (
        lambda s: powers_of(s - s.max()) / powers_of(s - s.max()).sum(1)[:, None],
        "You take the largest score of the whole matrix off",
    ),
    (columns_maximum, "You take the maximum of each column off"),
    (averaged, "You take the mean of each row off"),
    (
        lambda s: powers_of(s.clip(max=80)) / powers_of(s.clip(max=80)).sum(1)[:, None],
        "You cut large scores off.",
    ),
    (lambda s: F.softmax(s / s.max(1)[0][:, None], 1), "`/ s.max(1)[0][:, None]` is too much"),
    (
        lambda s: torch.nan_to_num(powers_of(s) / powers_of(s).sum(1)[:, None], nan=0.0),
        "Where it was nan, it is 0 now",
    ),
    (
        lambda s: F.softmax(s.T, dim=1).T,
        "`dim=1` is not the right axis: with `dim=0` in place of `dim=1`",
    ),
]


# --- one matrix in two roles

RIGHT[check_shared_matrix] = ["c", "(C)"]


WRONG[check_shared_matrix] = [
    ("a", "Word 1 scores word 2 with 1"),
    ("b", "Words 1 and 2 score 1 with themselves"),
    ("d", "It is symmetric, which"),
]


# --- what all of them do


@pytest.mark.parametrize("exercise", exercises(queries_keys_values))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
