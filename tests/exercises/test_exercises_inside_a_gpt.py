"""Chapter 14's checks: right answers pass, and each wrong one gets its diagnosis.

The answers are written here as a reader would, independently of the tables of the checks.
"""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from diagnoses import exercises, judge_by

from transformer_lib.data.markov import read
from transformer_lib.exercises import inside_a_gpt
from transformer_lib.exercises.inside_a_gpt import (
    check_attribution,
    check_bigram,
    check_induction,
    check_two_back,
    check_what_follows,
)
from transformer_lib.interpret.scores import induction_score

RIGHT, WRONG = {}, {}

# --- what follows from a measurement --------------------------------------------------------------

RIGHT[check_what_follows] = ["ac", {"c", "a"}, "A, C"]
WRONG[check_what_follows] = [
    ("abc", "Not needed is not unused"),
    ("acd", "the straight way to the output only"),
    ("ace", "one text was measured"),
    ("c", "where the head looks"),
    ("a", "the ablation, in words"),
]

# --- the induction score --------------------------------------------------------------------------


def by_loops(weights, ids, *, shift=1, seen_only=True, latest=False, mean=True):
    scores = []
    for t, token in enumerate(ids.tolist()):
        earlier = [s for s in range(t) if ids[s] == token]
        if seen_only and not earlier:
            continue
        earlier = earlier[-1:] if latest else earlier
        places = [s + shift for s in earlier if s + shift >= 0]
        scores.append(sum(weights[t, place] for place in places) + torch.tensor(0.0))
    total = sum(scores)
    return total / len(scores) if mean else total


RIGHT[check_induction] = [
    by_loops,
    lambda weights, ids: induction_score(weights[None, None], ids[None])[0],
    lambda weights, ids: by_loops(weights, ids).item(),
]


def over_the_keys(weights, ids):
    found = [weights[t, s + 1] for t in range(len(ids)) for s in range(t) if ids[s] == ids[t]]
    return torch.stack(found).mean()


def followers(ids, t):
    """The places right after the likes of token t that came before it."""
    return [s + 1 for s in range(t) if ids[s] == ids[t]]


def of_each(weights, ids, score):
    """The mean of score(row, places) over the tokens that have come before."""
    asked = [t for t in range(len(ids)) if followers(ids, t)]
    return torch.stack([score(weights[t], followers(ids, t), t) for t in asked]).mean()


def middle(weights, ids, of=torch.median):
    found = [weights[t, followers(ids, t)].sum() for t in range(len(ids)) if followers(ids, t)]
    return of(torch.stack(found))


def of_found(weights, ids):
    found = [weights[t, followers(ids, t)].sum().item() for t in range(len(ids))]
    return sum(found) / sum(x > 0 for x in found)


def of_those_to_come(weights, ids):
    again = [t for t, token in enumerate(ids.tolist()) if token in ids[t + 1 :]]
    return torch.stack([weights[t, followers(ids, t)].sum() for t in again]).mean()


def nearest(weights, ids):
    found = []
    for t in range(len(ids)):
        if at := followers(ids, t):
            found.append(weights[t, at[-1]])
    return torch.stack(found).mean()


WRONG[check_induction] = [
    (nearest, "here, at `getitem`, your values depart"),
    (lambda w, i: by_loops(w, i, shift=0, seen_only=False), "still does what the broken"),
    (lambda w, i: by_loops(w, i, shift=0), 'with `shift=1` in place of `shift=0`'),
    (lambda w, i: by_loops(w, i, seen_only=False), 'without `seen_only=False` it is right'),
    (over_the_keys, "the mean over the keys as well"),
    (lambda w, i: of_each(w, i, lambda row, at, t: row[at[0]]), "Only the first earlier token"),
    (lambda w, i: of_each(w, i, lambda row, at, t: row[at].max()), 'a sum is missing: `(row[at]).'),
    (lambda w, i: of_each(w, i, lambda row, at, t: torch.tensor(float(row.argmax() in at))),
     "how often the largest weight"),
    (lambda w, i: sum(w[t, followers(i, t)].sum() for t in range(len(i))) / (len(i) - 1),
     "number of all tokens but one"),
    (of_found, "You leave out the queries"),
    (of_those_to_come, "along axis 0 finds those"),
    (middle, 'a mean is missing: `(torch.stack(found)).mean(-1)` in place of `torch.'),
    (lambda w, i: middle(w, i, torch.max), "the right computation does `mean` there"),
    (lambda w, i: of_each(w.softmax(1), i, lambda row, at, t: row[at].sum()), '`.softmax(1)` is o'),
    (
        lambda w, i: of_each(w, i, lambda row, at, t: row[[x for x in at if x != 3]].sum()),
        'is written down where `w.shape[-1]` belongs',
    ),
]  # fmt: skip

# --- the best reader ------------------------------------------------------------------------------


def counted(ids, n_states, start=1):
    ids = ids.tolist()
    after = Counter(b for a, b in pairwise(ids) if a == ids[-1])
    return torch.tensor([after[state] + start for state in range(n_states)], dtype=torch.float32)


def from_the_library(ids, n_states):
    return read(torch.cat((ids, ids[:1]))[None], n_states, "bigram")[0, -1]


def hardest(ids, n_states):
    sure = torch.zeros(n_states)
    sure[counted(ids, n_states).argmax()] = 1
    return sure


RIGHT[check_bigram] = [
    lambda ids, n: counted(ids, n) / counted(ids, n).sum(),
    from_the_library,
    lambda ids, n: (counted(ids, n, 0) + 1) / (counted(ids, n, 0).sum() + n),
]


def normalized(counts):
    return torch.as_tensor(counts).float() / torch.as_tensor(counts).sum()


def whole_table(ids, n_states):
    """[from, to], from 1."""
    table = torch.ones(n_states, n_states)
    for a, b in pairwise(ids.tolist()):
        table[a, b] += 1
    return table


def after_two(ids, n_states):
    ids = ids.tolist()
    triples = zip(ids, ids[1:], ids[2:], strict=False)
    after = Counter(c for a, b, c in triples if [a, b] == ids[-2:])
    return normalized([after[state] + 1 for state in range(n_states)])


def seen_only(ids, n_states):
    found = counted(ids, n_states, 0)
    found[found > 0] += 1
    return normalized(found)


def counted_once(ids, n_states, which):
    ids = ids.tolist()
    found = torch.ones(n_states)
    found[[b for a, b in pairwise(ids) if a == ids[-1]][which:][:1]] += 1
    return found


WRONG[check_bigram] = [
    (
        lambda ids, n: counted(ids, n, 0) / counted(ids, n, 0).sum(),
        "the right computation does `add` there",
    ),
    (lambda ids, n: ((ids[:, None] == torch.arange(n)).sum(0) + 1) / (len(ids) + n), "unigram"),
    (lambda ids, n: came_before(ids, n), "Count what came after"),
    (counted, "Those are the counts"),
    (lambda ids, n: torch.ones(n) / n, "the uniform reader"),
    (hardest, "The most frequent one gets all"),
    (lambda ids, n: normalized(counted(ids, n) + torch.eye(n)[ids[0]]), '`+ torch.eye(n)[ids[0]]`'),
    (lambda ids, n: normalized(counted(ids, n, 1 / n)), 'without `1 / n` it is right'),
    (lambda ids, n: normalized(torch.bincount(ids[1:][ids[:-1] == ids[-1]]) + 1), "`minlength`"),
    (lambda ids, n: counted(ids, n, 0).softmax(0), "the right computation does `add` there"),
    (
        lambda ids, n: whole_table(ids, n)[ids[-1]] / whole_table(ids, n).sum(),
        "still to be divided by their sum",
    ),
    (lambda ids, n: normalized(whole_table(ids, n)[ids[0]]), 'with `-1` in place of `0`'),
    (after_two, "the last two states together"),
    (lambda ids, n: normalized(whole_table(ids, n)[ids[-1]] + whole_table(ids, n)[:, ids[-1]] - 1),
     'an axis of size 1 is missing: `lambda ids, n: normalized('),
    (lambda ids, n: normalized(counted(ids, int(ids.max()) + 1)), "the largest state of the text"),
    (lambda ids, n: (normalized(counted(ids, n, 0)) + 1) / (n + 1), "add it to the counts"),
    (lambda ids, n: normalized(counted(ids, n)[sorted({*ids.tolist()})]), '`[sorted({*ids.tolist('),
    (lambda ids, n: (whole_table(ids, n) / whole_table(ids, n).sum(0))[ids[-1]], "of the columns"),
    (
        lambda ids, n: counted(ids, n) / (counted(ids, n, 0).sum() + 1),
        "still to be divided by their sum",
    ),
    (lambda ids, n: counted(ids, n) / len(ids), "still to be divided by their sum"),
    (lambda ids, n: normalized(counted_once(ids, n, -1)), "Only the latest of"),
    (lambda ids, n: normalized(counted_once(ids, n, 0)), "Only the first of"),
]  # fmt: skip


def came_before(ids, n_states):
    ids = ids.tolist()
    before = Counter(a for a, b in pairwise(ids) if b == ids[-1])
    counts = torch.tensor([before[state] + 1.0 for state in range(n_states)])
    return counts / counts.sum()


# --- a head by hand -------------------------------------------------------------------------------


def two_back(context, back=2, scale=1e3):
    W_Q = torch.zeros(context, context)
    for t in range(back, context):
        W_Q[t, t - back] = scale  # the query of t is the place t - 2
    return W_Q, torch.eye(context)


def by_keys(context, scale=1e3):
    W_K = torch.zeros(context, context)
    for s in range(context - 2):
        W_K[s, s + 2] = scale
    return torch.eye(context), W_K


RIGHT[check_two_back] = [
    two_back,
    by_keys,
    lambda context: [30 * w for w in two_back(context)],
    lambda context: tuple(w.double() for w in by_keys(context)),
]


def up_to_12(context):
    W_Q, W_K = two_back(context)
    W_Q[12:] = 0
    return W_Q, W_K


WRONG[check_two_back] = [
    (lambda context: two_back(context)[0], "a tuple of 2 is expected"),
    (lambda context: [w[:-1] for w in two_back(context)], "shape"),
    (lambda context: two_back(7), "item 0 of your result has the shape"),
    (lambda context: [1e20 * w for w in two_back(context, scale=1e10)], "single precision"),
    (lambda context: two_back(context, scale=-1e3), "the wrong sign"),
    (
        lambda context: (two_back(context)[0] + two_back(context, back=1)[0], torch.eye(context)),
        "2 looks at the places 0 and 1 alike, 0.50 each",
    ),
    (lambda context: two_back(context, back=5), "Print W_Q @ W_K.mT"),
    (lambda context: (two_back(context)[0], by_keys(context)[1]), "It looks four back"),
    (lambda context: by_keys(context, scale=100.0), "gets only 0.14. √d_head, which divides"),
    (lambda context: by_keys(context, scale=200.0), "is 6.8 times as large there"),
    (lambda context: two_back(context, scale=10 * context**0.5), "others share the rest"),
    (
        up_to_12,
        "for 512 the token at place 12 looks most at place 0, with the weight 0.08, and not",
    ),
    (lambda context: [w[:12, :12] for w in two_back(context)], "on 512 positions: item 0 of your"),
    (lambda context: two_back(context, back=1), "just before"),
    (lambda context: (1e3 * torch.eye(context), torch.eye(context)), "looks at itself"),
    (lambda context: two_back(context, back=3), "looks three back"),
    (lambda context: (two_back(context)[0].mT, torch.eye(context)), "the same weight"),
    (lambda context: (1e3 * torch.eye(context).roll(-2, 0), torch.eye(context)), "shift the other"),
    (lambda context: (torch.zeros(context, context), torch.eye(context)), "the same weight"),
    (lambda context: two_back(context, scale=3.0), "less than 0.99 of a row"),
    (
        lambda context: (torch.ones(context, 1) @ torch.eye(context)[:1] * 1e3, torch.eye(context)),
        "the first token only",
    ),
]

# --- attribution through a norm -------------------------------------------------------------------


def shares(parts, gain, right, wrong, *, size=None, use_gain=True):
    stream = parts.sum(dim=0)
    size = size or math.sqrt((stream**2).mean())
    normed = parts / size * (gain if use_gain else 1)
    return torch.stack([part @ right - part @ wrong for part in normed])


def by_own_size(parts, gain, right, wrong):
    return torch.cat([shares(part[None], gain, right, wrong) for part in parts])


RIGHT[check_attribution] = [
    shares,
    lambda parts, gain, right, wrong: torch.einsum(
        "pd,d->p", parts, gain * (right - wrong)
    ) / parts.sum(0).square().mean().sqrt(),
]  # fmt: skip
WRONG[check_attribution] = [
    (by_own_size, "divided by its own size"),
    (lambda p, g, r, w: shares(p, g, r, w, size=1.0, use_gain=False), "The last norm is missing"),
    (lambda p, g, r, w: shares(p, g, r, w, size=1.0), 'without `size=1.0` it is right'),
    (lambda p, g, r, w: shares(p, g, r, 0 * w), '`0 *` is too much'),
    (lambda p, g, r, w: centered(p) / centered(p).sum(0).square().mean().sqrt() @ (g * (r - w)),
     "as LayerNorm does"),
    (lambda p, g, r, w: torch.stack([one_logit(p, g, r, w, ()) - one_logit(p, g, r, w, (n,))
                                     for n in range(len(p))]), "that is ablation"),
    (lambda p, g, r, w: shares(p, g, r, w, size=(p**2).mean().sqrt().item()), 'without `size=(p**'),
    (lambda p, g, r, w: shares(p, g, r, w, size=p.sum(0).norm().item()), 'without `size=p.sum(0).'),
    (lambda p, g, r, w: shares(p, g, r, w, size=p.sum(0).std().item()), 'without `size=p.sum(0).s'),
    (lambda p, g, r, w: shares(p, g, r, 0 * w) - shares(p, 0 * g + 1, w, 0 * w), '`* g` is missin'),
    (lambda p, g, r, w: shares(p, g, r, 0 * w) / shares(p, g, w, 0 * r), "by the other's"),
    (lambda p, g, r, w: shares(p, g, r, w).sum() / p.norm(dim=1).sum() * p.norm(dim=1),
     'here, at `sum`, your values depart'),
]  # fmt: skip


def centered(parts):
    return parts - parts.mean(dim=1)[:, None]


def one_logit(parts, gain, right, wrong, out):
    """Right less wrong, without some of the parts."""
    stream = sum(part for n, part in enumerate(parts) if n not in out)
    return (stream / stream.square().mean().sqrt() * gain) @ (right - wrong)


@pytest.mark.parametrize("exercise", exercises(inside_a_gpt))
def test_answers(exercise):
    judge_by(exercise, RIGHT, WRONG)
