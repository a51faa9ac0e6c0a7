"""Chapter 02's checks: right answers pass, each typical mistake gets its own sentence."""

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.exercises import queries_keys_values as checks

# --- the soft dictionary


def by_loop(q, keys, values, temperature):
    powers = [torch.exp(key @ q / temperature) for key in keys]
    return sum(power * value for power, value in zip(powers, values, strict=True)) / sum(powers)


def by_sdpa(q, keys, values, temperature):
    return F.scaled_dot_product_attention(q[None], keys, values, scale=1 / temperature)[0]


@pytest.mark.parametrize("answer", [by_loop, by_sdpa])
def test_soft_lookup_accepts(answer):
    assert checks.check_soft_lookup(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda q, k, v, t: by_loop(q, k, k, t),
            "You return an average of the keys; compare with the keys, return from the values.",
        ),
        (
            lambda q, k, v, t: v[int(torch.argmax(k @ q))],
            "This is the value of the best key alone, a hard dictionary; every value takes part.",
        ),
        (
            lambda q, k, v, t: by_loop(q, k, v, 1 / t),
            "You multiply by the temperature: a low one makes the dictionary harder, so divide.",
        ),
        (lambda q, k, v, t: by_loop(q, k, v, 1.0), "The temperature is not used."),
        (
            lambda q, k, v, t: by_loop(q, k, v, 1.0) / t,
            "The temperature divides the weights, after the softmax; it belongs to the scores.",
        ),
        (
            lambda q, k, v, t: (k * q).sum(1) @ v / t,
            "The scores are used as they are: the softmax is missing.",
        ),
        (
            lambda q, k, v, t: F.softmax(k @ q / t, dim=-1),
            "These are the weights; the average of the values is still to be taken.",
        ),
        (
            lambda q, k, v, t: torch.einsum("nd->d", v),
            "The values are summed, not averaged: the weights do not reach them.",
        ),
    ],
)
def test_soft_lookup_diagnoses(answer, diagnosis):
    assert checks.check_soft_lookup(answer).diagnosis == diagnosis


# --- different numbers, different sizes


def step_by_step(x, memory, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, memory @ W_K, memory @ W_V
    rows = [F.softmax(k @ row, dim=0) for row in q]
    return torch.stack([(row[:, None] * v).sum(0) for row in rows])


def by_pytorch(x, memory, W_Q, W_K, W_V):
    q, k, v = (m[None] for m in (x @ W_Q, memory @ W_K, memory @ W_V))
    return F.scaled_dot_product_attention(q, k, v, scale=1.0)[0]


@pytest.mark.parametrize("answer", [step_by_step, by_pytorch])
def test_cross_attention_accepts(answer):
    assert checks.check_cross_attention(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda x, m, Q, K, V: F.softmax(m @ K @ (x @ Q).T, dim=1).T @ m @ V,
            "The softmax runs over the queries, not the keys: use the last axis of the scores.",
        ),
        (
            lambda x, m, Q, K, V: F.softmax(x @ Q @ (m @ K).T, dim=1) @ x @ V,
            "The values come from x; they belong to the keys, so they come from memory.",
        ),
        (
            lambda x, m, Q, K, V: step_by_step(x, x, Q, K, V),
            "Everything comes from x: that is self-attention, and memory is never read.",
        ),
        (
            lambda x, m, Q, K, V: step_by_step(m, x, Q, K, V),
            "The roles are swapped: x asks, so the queries come from x and the keys from memory.",
        ),
        (
            lambda x, m, Q, K, V: step_by_step(x, m, Q.T, K.T, V.T),
            "The weight matrices are transposed: with words as rows it is x @ W, not x @ W.T.",
        ),
        (
            lambda x, m, Q, K, V: F.softmax(x @ Q @ (m @ K).T, dim=1) @ m,
            "The values are not projected: W_V is missing.",
        ),
        (
            lambda x, m, Q, K, V: by_pytorch(x, m, Q / K.shape[1] ** 0.5, K, V),
            "The scores are divided by the square root of d_k; here they stay raw.",
        ),
    ],
)
def test_cross_attention_diagnoses(answer, diagnosis):
    assert checks.check_cross_attention(answer).diagnosis == diagnosis


def test_cross_attention_finds_what_works_for_squares_only():
    def no_transpose(x, memory, W_Q, W_K, W_V):
        return F.softmax(x @ W_Q @ (memory @ W_K).T, dim=-1).reshape(len(memory), -1) @ memory @ W_V

    verdict = checks.check_cross_attention(no_transpose)
    assert verdict.passed is False
    assert verdict.diagnosis.startswith("Right on squares only (5 queries, 5 keys, all widths 5)")


# --- a directed relation

ZERO = [0.0, 0.0]


def pair(queries, keys):
    return torch.tensor(queries), torch.tensor(keys)


@pytest.mark.parametrize(
    "answer",
    [
        pair([[1.0, 0.0], [0.0, 1.0], ZERO], [ZERO, [1.0, 0.0], [0.0, 1.0]]),
        pair([[0.0, 3.0], [-1.0, 0.0], ZERO], [[0.5, -1.0], [0.5, 1.0], [-2.0, 0.0]]),
        pair([[1, 0], [0, 1], [0, 0]], [[0, 0], [1, 0], [0, 1]]),
        (torch.eye(3, 2).double(), torch.eye(3, 2).double().roll(1, 0)),
        ([[1, 0], [0, 1], [0, 0]], [[0, 0], [1, 0], [0, 1]]),
        lambda: pair([[1e-4, 0.0], [0.0, 1e-4], ZERO], [ZERO, [1e-4, 0.0], [0.0, 1e-4]]),
    ],
)
def test_directed_relation_accepts(answer):
    assert checks.check_directed_relation(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            pair([[1.0, 0.0], [0.0, 1.0], ZERO], [[1.0, 0.0], [0.0, 1.0], ZERO]),
            "W_Q and W_K are equal, so the scores are symmetric: nothing is directed.",
        ),
        (
            pair([[2.0, 0.0], [0.0, 2.0], ZERO], [[1.0, 0.0], [0.0, 1.0], ZERO]),
            "W_Q W_Kᵀ is symmetric: whoever is looked for looks back just as hard.",
        ),
        (
            pair([ZERO, [2.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 2.0], ZERO]),
            "The direction is reversed, A is transposed: rows ask and columns answer.",
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
        (torch.ones(3, 2), "Your result is a tensor of shape (3, 2); a tuple of 2 is asked for."),
    ],
)
def test_directed_relation_diagnoses(answer, diagnosis):
    assert checks.check_directed_relation(answer).diagnosis == diagnosis


# --- the rank of the scores


def measured_rank(s, d, d_k):
    torch.manual_seed(0)
    x = torch.randn(s, d, dtype=torch.float64)
    q, k = (x @ torch.randn(d, d_k, dtype=torch.float64) for _ in range(2))
    return int(torch.linalg.matrix_rank(q @ k.T))


@pytest.mark.parametrize("answer", [measured_rank, lambda s, d, d_k: sorted([s, d, d_k])[0]])
def test_score_rank_accepts(answer):
    assert checks.check_score_rank(answer).passed is True


def rank_after_softmax(s, d, d_k):
    torch.manual_seed(0)
    x = torch.randn(s, d, dtype=torch.float64)
    q, k = (x @ torch.randn(d, d_k, dtype=torch.float64) for _ in range(2))
    return int(torch.linalg.matrix_rank(torch.softmax(0.3 * q @ k.T, dim=-1), rtol=1e-14))


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda s, d, d_k: d,
            "This is d, the width of the words; the projections may be narrower.",
        ),
        (
            lambda s, d, d_k: s,
            "This is s: full rank is typical of the weights after the softmax, not of the scores.",
        ),
        (
            rank_after_softmax,
            "This is s: full rank is typical of the weights after the softmax, not of the scores.",
        ),
        (
            lambda s, d, d_k: d_k,
            "This is d_k alone; a matrix of s rows has at most rank s, and X at most rank d.",
        ),
        (
            lambda s, d, d_k: d_k if d_k < s else s,
            "You forget X: W_Q can make many columns, but their rank is not above d.",
        ),
        (
            lambda s, d, d_k: min((d, d_k)),
            "You forget the number of words: a matrix of s rows has at most rank s.",
        ),
        (
            lambda s, d, d_k: min((d, s)),
            "You forget the narrow projections: they have only d_k columns.",
        ),
        (
            lambda s, d, d_k: sorted([s, d, d_k])[-1],
            "Ranks are bounded by the smallest factor; you take the largest.",
        ),
    ],
)
def test_score_rank_diagnoses(answer, diagnosis):
    assert checks.check_score_rank(answer).diagnosis == diagnosis


# --- what all of them do


@pytest.mark.parametrize(
    "check",
    [
        checks.check_soft_lookup,
        checks.check_cross_attention,
        checks.check_directed_relation,
        checks.check_score_rank,
    ],
)
def test_a_stub_is_not_attempted(check):
    assert check(None).passed is None
    assert check(...).passed is None


@pytest.mark.parametrize(
    "check", [checks.check_soft_lookup, checks.check_cross_attention, checks.check_score_rank]
)
def test_an_answer_that_raises_gets_a_verdict(check):
    verdict = check(lambda *inputs: 1 / 0)
    assert verdict.passed is False
    assert "ZeroDivisionError" in verdict.diagnosis
