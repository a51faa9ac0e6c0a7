"""Chapter 04's checks of windows, of what reaches where, and of a test of causality."""

import pytest
import torch

from transformer_lib.exercises import masking as checks
from transformer_lib.masks import sliding_window_mask

INVERTED = (
    "Your mask is inverted: True marks what is hidden, but here, as in "
    "`F.scaled_dot_product_attention`, True = may attend."
)


# --- sliding window


def window_by_loop(tokens, window):
    mask = torch.zeros(tokens, tokens, dtype=torch.bool)
    for i in range(tokens):
        mask[i, max(0, i - window + 1) : i + 1] = True
    return mask


@pytest.mark.parametrize("answer", [window_by_loop, sliding_window_mask])
def test_window_accepts(answer):
    assert checks.check_sliding_window(answer).passed is True


def band(tokens, low, high):
    return torch.ones(tokens, tokens).tril(high).triu(low).bool()


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (
            lambda n, w: band(n, -w, 0),
            "Each query sees one key too many: a window of w is the word itself and w - 1 before "
            "it.",
        ),
        (
            lambda n, w: band(n, 2 - w, 0),
            "Each query sees one key too few: the word itself is one of the w.",
        ),
        (
            lambda n, w: band(n, 1 - w, w - 1),
            "The window reaches into the future as well as the past.",
        ),
        (
            lambda n, w: band(n, 0, w - 1),
            "The window lies in the future: it begins at the word and goes forward.",
        ),
        (
            lambda n, w: torch.block_diag(*[torch.ones(w, w)] * n)[:n, :n].tril().bool(),
            "These are fixed blocks: the window must move along with the query.",
        ),
        (
            lambda n, w: torch.block_diag(*[torch.ones(w, w)] * n)[:n, :n].bool(),
            "These are fixed blocks, and each looks into its future, too.",
        ),
        (
            lambda n, w: band(n, -n, -w),
            "The past beyond the window is shown, and the window is hidden.",
        ),
        (lambda n, w: band(n, -n, 0), "This is the causal mask: the window is not used."),
        (lambda n, w: ~band(n, 1 - w, 0), INVERTED),
    ],
)
def test_window_diagnoses(answer, diagnosis):
    verdict = checks.check_sliding_window(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- what reaches where


def reach_by_powers(mask, source, layers):
    return torch.linalg.matrix_power(mask.double(), layers)[:, source] > 0


def reach_by_walking(mask, source, layers):
    held = {source}
    for _ in range(layers):
        held = {i for i in range(len(mask)) if any(mask[i, j] for j in held)}
    return torch.tensor([i in held for i in range(len(mask))])


@pytest.mark.parametrize("answer", [reach_by_powers, reach_by_walking])
def test_reach_accepts(answer):
    assert checks.check_reach(answer).passed is True


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda mask, s, n: mask[:, s], "You follow one layer only, whatever `layers` says."),
        (lambda mask, s, n: reach_by_powers(mask, s, n + 1), "You follow one layer too many."),
        (lambda mask, s, n: reach_by_powers(mask, s, n - 1), "You follow one layer too few."),
        (
            lambda mask, s, n: torch.linalg.matrix_power(mask.double(), n)[s] > 0,
            "You go backward, to what the source can look at: start from its column, not its row.",
        ),
        (
            lambda mask, s, n: reach_by_powers(mask | torch.eye(len(mask)).bool(), s, n),
            "You keep every position that was ever reached; a word that may not look at itself "
            "loses what it had.",
        ),
    ],
)
def test_reach_diagnoses(answer, diagnosis):
    verdict = checks.check_reach(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


# --- a test of causality


def tries_every_cut(f, x):
    before = f(x)
    for cut in range(1, len(x)):
        changed = torch.cat([x[:cut], torch.randn_like(x[cut:]).abs() * -x[cut:].sign()])
        if not torch.equal(f(changed)[:cut], before[:cut]):
            return False
    return True


def tries_every_word(f, x):
    for j in range(1, len(x)):
        changed = x.clone()
        changed[j] *= -3
        if (f(changed)[:j] != f(x)[:j]).any().item():
            return False
    return True


@pytest.mark.parametrize("answer", [tries_every_cut, tries_every_word])
def test_is_causal_accepts(answer):
    assert checks.check_is_causal(answer).passed is True


def tries_noise(f, x):
    cuts = [torch.cat([x[:cut], torch.randn_like(x[cut:])]) for cut in range(1, len(x))]
    return all(torch.equal(f(y)[:cut], f(x)[:cut]) for cut, y in enumerate(cuts, start=1))


@pytest.mark.parametrize("draws", range(20))
def test_is_causal_accepts_noise_however_it_falls(draws):
    def answer(f, x):
        torch.randn(draws)
        return tries_noise(f, x)

    assert checks.check_is_causal(answer).passed is True


def differs(f, x, futures, cut, same):
    changed = [torch.cat([x[:cut], future(x[cut:])]) for future in futures]
    return any(not same(f(y)[:cut], f(x)[:cut]) for y in changed)


def negative(future):
    return future.neg()


def with_cuts(cuts, *futures, same=torch.equal):
    """A test that tries some cuts only, or some changes only, or compares in its own way."""
    return lambda f, x: not any(differs(f, x, futures, cut, same) for cut in range(1, len(x))[cuts])


def nearly(a, b):
    return torch.allclose(a, b, atol=1e-4)


def by_gradient(f, x):
    for i in range(len(x) - 1):
        leaf = x.clone().requires_grad_()
        f(leaf)[i].sum().backward()
        if leaf.grad[i + 1 :].abs().sum() > 0:
            return False
    return True


EVERY, FIRST, LAST = slice(None), slice(1), slice(-1, None)
ALWAYS_FALSE = (
    "Your test answers False every time, for causal attention, too: compare only the outputs "
    "*before* the first changed word, and change to finite numbers, since 0 times NaN or infinity "
    "is NaN."
)
LAST_ONLY = "You change the last word only, so that a leak among the words before it goes unseen."
FIRST_ONLY = "You look at the first output only, so that a leak to a later word goes unseen."
ROUNDING = (
    "You allow for rounding, and a faint leak slips through: nothing that a past output is made of "
    "has changed, so ask for bitwise equality."
)
NOISE_TOO = " And try random numbers, too, not the negative alone."
STEPS = (
    "A leak in steps goes unseen. The gradient is zero on both sides of a step, and a change that "
    "keeps every sign does not cross this one: try negatives, and compare the outputs."
)


@pytest.mark.parametrize(
    ("answer", "diagnosis"),
    [
        (lambda f, x: torch.equal(f(torch.cat([x[:1], -x[1:]])), f(x)), ALWAYS_FALSE),
        (with_cuts(EVERY, lambda future: future * float("nan")), ALWAYS_FALSE),
        (with_cuts(EVERY, lambda future: future / 0), ALWAYS_FALSE),
        (
            lambda f, x: torch.equal(f(x)[:-1], f(x.clone())[:-1]),
            "Your test answers True every time, whatever f does: is it the future that you change?",
        ),
        (with_cuts(LAST, negative, torch.randn_like), LAST_ONLY),
        (with_cuts(FIRST, negative, torch.randn_like), FIRST_ONLY),
        (with_cuts(EVERY, negative, torch.randn_like, same=nearly), ROUNDING),
        (with_cuts(LAST, negative), LAST_ONLY + NOISE_TOO),
        (with_cuts(FIRST, negative), FIRST_ONLY + NOISE_TOO),
        (with_cuts(EVERY, negative, same=nearly), ROUNDING + NOISE_TOO),
        (
            with_cuts(EVERY, negative),
            "You change the future to its negative alone, so that a leak which is the same for "
            "both, such as a norm, goes unseen: try random numbers, too.",
        ),
        (by_gradient, STEPS),
        (with_cuts(EVERY, lambda future: 2 * future), STEPS),
        (
            lambda f, x: torch.tensor([True, False]),
            "On causal attention: your result is a tensor of shape (2,); a bool is asked for.",
        ),
    ],
)
def test_is_causal_diagnoses(answer, diagnosis):
    verdict = checks.check_is_causal(answer)
    assert (verdict.passed, verdict.diagnosis) == (False, diagnosis)


def test_is_causal_finds_a_test_that_writes_into_x():
    def answer(f, x):
        before = f(x)
        right = tries_every_cut(f, x)
        x[-1] = -before[-1]
        return right

    verdict = checks.check_is_causal(answer)
    assert "you write into the argument `x`" in verdict.diagnosis
