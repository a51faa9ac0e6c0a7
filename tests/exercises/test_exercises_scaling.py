"""Chapter 03's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from diagnoses import exercises, judge

from transformer_lib.exercises import scaling
from transformer_lib.exercises.scaling import (
    check_scaled_weights,
    check_score_variance,
    check_softmax_jacobian,
    check_temperature_for_entropy,
)

RIGHT, WRONG = {}, {}

# --- the variance of a score


def by_sampling(d_k):
    q, k = torch.randn(20_000, d_k), torch.randn(20_000, d_k)
    return (q * k).sum(-1).var().item()


def by_one_matrix_of_signs(d_k):
    q = torch.randint(0, 2, (20_000, d_k)) * 2.0 - 1
    k = torch.randint(0, 2, (20_000, d_k)) * 2.0 - 1
    return ((q * k).sum(-1) ** 2).mean()


RIGHT[check_score_variance] = [by_sampling, by_one_matrix_of_signs]


def with_itself(d_k):
    q = torch.randn(20_000, d_k)
    return (q * q).sum(-1).var().item()


def not_centered(d_k):
    return (torch.rand(20_000, d_k) * torch.rand(20_000, d_k)).sum(-1).var().item()


def one_pair(d_k):
    return (torch.randn(1, d_k) * torch.randn(1, d_k)).sum(-1).var(correction=1).item()


WRONG[check_score_variance] = [
    (lambda d_k: by_sampling(d_k) ** 0.5, "This is the standard deviation;"),
    (with_itself, "This is 2 d_k. If you use q = k"),
    (not_centered, "Your data are not centered:"),
    (
        lambda d_k: (torch.randn(20_000, d_k) * torch.randn(20_000, d_k)).sum(-1).mean().item(),
        "This is near 0, as the mean",
    ),
    (lambda d_k: by_sampling(d_k) / d_k, "This is 1: you have not added"),
]


WRONG[check_score_variance] += [(one_pair, "One pair says nothing")]


# --- scaled weights


def by_pytorch(q, k):
    return F.scaled_dot_product_attention(q, k, torch.eye(k.shape[1]).expand(len(k), -1, -1))


def scaled_queries(q, k):
    return F.softmax(torch.einsum("hqd,hkd->hqk", q / math.sqrt(q.shape[2]), k), dim=2)


RIGHT[check_scaled_weights] = [by_pytorch, scaled_queries]


WRONG[check_scaled_weights] = [
    (lambda q, k: F.softmax(q @ k.mT, dim=2), "The scores are not scaled"),
    (lambda q, k: F.softmax(q @ k.mT / q.shape[2], dim=2), "You divide by d_k; the standard"),
    (
        lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[0] * q.shape[2]), dim=2),
        "You divide by √d_model; each",
    ),
    (
        lambda q, k: F.softmax(q @ k.mT * math.sqrt(q.shape[2]), dim=2),
        "You multiply by √d_k, which",
    ),
    (
        lambda q, k: F.softmax(q @ k.mT, dim=2) / math.sqrt(q.shape[2]),
        "You scale after the softmax:",
    ),
    (lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[1]), dim=2), "You divide by the square"),
    (lambda q, k: (q / math.sqrt(q.shape[2])) @ k.mT, "These are the scaled scores;"),
    (lambda q, k: F.softmax(q @ k.mT / math.sqrt(q.shape[2]), dim=1), "The softmax runs over the"),
]


# --- the Jacobian of the softmax


def by_autograd(s, scale):
    return torch.autograd.functional.jacobian(lambda x: F.softmax(scale * x, dim=0), s)


def entry_by_entry(s, scale):
    p = F.softmax(s * scale, dim=0)
    n = len(s)
    rows = [[scale * p[i] * (float(i == j) - p[j]) for j in range(n)] for i in range(n)]
    return torch.tensor(rows)


RIGHT[check_softmax_jacobian] = [by_autograd, entry_by_entry]


WRONG[check_softmax_jacobian] = [
    (lambda s, scale: by_autograd(s, scale).diag().diag(), "Only the diagonal: raising"),
    (
        lambda s, scale: 2 * scale * F.softmax(s * scale, dim=0).diag() - by_autograd(s, scale),
        "The sign of p pᵀ is wrong:",
    ),
    (lambda s, scale: by_autograd(s, 1.0) * scale, "p is the softmax of s, but"),
    (
        lambda s, scale: scale * (torch.diag(p := F.softmax(s / scale, 0)) - p[:, None] * p),
        "p is the softmax of s / scale",
    ),
    (lambda s, scale: by_autograd(s, scale) / scale, "The factor `scale` of the"),
    (lambda s, scale: by_autograd(s, 1.0), "The scale is ignored: p must"),
    (
        lambda s, scale: by_autograd(s, scale) - scale * F.softmax(s * scale, dim=0).diag(),
        "diag(p) is missing: only",
    ),
    (lambda s, scale: scale * F.softmax(s * scale, dim=0).diag(), "p pᵀ is missing: only diag(p)"),
    (lambda s, scale: by_autograd(s, scale) / scale**2, "This divides by the scale;"),
]


# --- a temperature for an entropy


def entropy_of(s, temperature, log=torch.log):
    p = F.softmax(s.double() / temperature, dim=0)
    return -(p * log(p.clamp_min(1e-300))).sum().item()


def by_halving(s, entropy, log=torch.log):
    low, high = 0.001, 1000.0
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if entropy_of(s, middle, log) < entropy else (low, middle)
    return low


def by_grid(s, entropy):
    grid = torch.logspace(-2, 2, 8001, dtype=torch.float64)
    found = torch.distributions.Categorical(logits=s.double() / grid[:, None]).entropy()
    return grid[(found - entropy).abs().argmin()]


RIGHT[check_temperature_for_entropy] = [by_halving, by_grid]


WRONG[check_temperature_for_entropy] = [
    (lambda s, entropy: 1 / by_halving(s, entropy), "This is 1/τ, a factor of"),
    (lambda s, entropy: by_halving(s, entropy, torch.log2), "Your entropy is in bits (log2);"),
    (lambda s, entropy: entropy_of(s, 1.0), "This is the entropy at temperature"),
    (lambda s, entropy: math.sqrt(by_halving(s, entropy)), "This is the square root of"),
    (lambda s, entropy: 1.0, "This is always 1, whatever"),
]


# --- what all of them do


@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")  # of one pair
@pytest.mark.parametrize("exercise", exercises(scaling))
def test_answers(exercise):
    judge(exercise, RIGHT[exercise], WRONG[exercise])
