"""Checks for chapter 14, inside a trained GPT."""

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import in_one_dtype
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn

# --- what follows from a measurement -------------------------------------------------------------

check_what_follows = Choice(
    asks="Which of the five sentences follow from the three measurements? All letters.",
    right={"a", "c"},
    wrong={
        "a": "the score says where the head looks in this text, and nothing else.",
        "b": "other parts may do the same work, and stand in for it. Not needed is not unused.",
        "c": "that is the ablation, in words: this answer, this head, all the others in place.",
        "d": "attribution counts the straight way to the output only. A later part may read what "
        "the head has written.",
        "e": "one text was measured. The head may be there for texts of another kind.",
    },
    praise="Right: each tool has answered its own question, about this text.",
)


# --- the induction score, to be mended -----------------------------------------------------------


def _earlier(ids: Tensor) -> Tensor:
    """[query, key]: the key is the same token, earlier."""
    return (ids[:, None] == ids).tril(-1)


def _after(earlier: Tensor) -> Tensor:
    """The keys right after those."""
    return torch.nn.functional.pad(earlier[:, :-1], (1, 0))


def _induction(weights, ids):
    earlier = _earlier(ids)
    return (weights * _after(earlier)).sum(1)[earlier.any(1)].mean()


def _first_only(weights, ids):
    earlier = _earlier(ids)
    first = earlier & (earlier.cumsum(1) == 1)
    return (weights * _after(first)).sum(1)[earlier.any(1)].mean()


def _hits(weights, ids):
    earlier = _earlier(ids)
    found = _after(earlier).gather(1, weights.argmax(1, keepdim=True))[:, 0]
    return found[earlier.any(1)].float().mean()


def _hits_only(weights, ids):
    found = (weights * _after(_earlier(ids))).sum(1)
    return found[found > 0].mean()


def _map(tokens: int, seed: int) -> Tensor:
    scores = 2 * randn(tokens, tokens, seed=seed)
    seen = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    return scores.masked_fill(~seen, -torch.inf).softmax(-1)


check_induction = Repair(
    asks="`answer(weights, ids)`: the induction score of one head; weights [queries, keys], "
    "causal, ids [tokens] -> a number.",
    broken=lambda weights, ids: (weights * _earlier(ids)).sum(1).mean(),
    unchanged="Which key does the second head of the circuit look at, and which tokens have one?",
    right=_induction,
    wrong={
        "You take the mean over the keys as well: for each query, the weights on all such keys are "
        "added up.": lambda weights, ids: weights[_after(_earlier(ids))].mean(),
        "Only the first earlier token counts here. If it came several times, what followed each "
        "of them belongs to the score.": _first_only,
        "You count how often the largest weight lies there. The score adds up the weights.": _hits,
        "You divide by the number of all tokens but one: take the mean over the tokens that have "
        "come before.": lambda weights, ids: (
            (weights * _after(_earlier(ids))).sum() / (len(ids) - 1)
        ),
        "You take the mean over the tokens that come again later: `any` along axis 0 finds those. "
        "The ones that have come before are found along axis 1.": lambda weights, ids: (
            (weights * _after(_earlier(ids))).sum(1)[_earlier(ids).any(0)].mean()
        ),
        "You leave out the queries that put no weight there. A token that has come before and "
        "looks elsewhere counts as a 0.": _hits_only,
        },

    cases=[
        Case("7 tokens, three of them new", _map(7, 0), torch.tensor([4, 1, 4, 2, 1, 4, 2])),
        Case("a head that looks evenly", torch.ones(5, 5).tril() / torch.arange(1, 6)[:, None],
             torch.tensor([3, 3, 0, 3, 0])),
        Case("a head that looks at one key", torch.eye(5)[[0, 0, 1, 2, 3]],
             torch.tensor([0, 1, 0, 0, 1])),
        Case("11 tokens", _map(11, 1), torch.tensor([0, 5, 2, 0, 0, 5, 3, 2, 5, 0, 2])),
    ],
    praise="Right: all that followed it before, and only tokens that have come before.",
)  # fmt: skip


# --- the best reader of a chain ------------------------------------------------------------------


def _followed(ids: Tensor, n_states: int) -> Tensor:
    """How often each state came right after the last one's likes: [n_states]."""
    after = ids[1:][ids[:-1] == ids[-1]]
    return torch.bincount(after, minlength=n_states).float()


def _normalized(counts: Tensor) -> Tensor:
    return counts / counts.sum()


def _preceded(ids, n_states):
    before = ids[:-1][ids[1:] == ids[-1]]
    return _normalized(torch.bincount(before, minlength=n_states).float() + 1)


def _table(ids, n_states) -> Tensor:
    """The counts of all steps, from 1: [from, to]."""
    counts = torch.ones(n_states, n_states)
    return counts.index_put_((ids[:-1], ids[1:]), torch.tensor(1.0), accumulate=True)


def _short(ids, n_states):
    return _normalized(torch.bincount(ids[1:][ids[:-1] == ids[-1]]).float() + 1)


def _of_states_seen(ids, n_states):
    return _normalized(_followed(ids, n_states)[: int(ids.max()) + 1] + 1)


def _after_the_last_two(ids, n_states):
    same = (ids[:-2] == ids[-2]) & (ids[1:-1] == ids[-1])
    return _normalized(torch.bincount(ids[2:][same], minlength=n_states).float() + 1)


def _after_one(ids, n_states, which):
    after = ids[1:][ids[:-1] == ids[-1]][which]
    return _normalized(torch.eye(n_states)[after] + 1)


check_bigram = Exercise(
    asks="`answer(ids, n_states)`: what the bigram reader expects after the last state; ids "
    "[tokens] -> [n_states].",
    right=lambda ids, n_states: _normalized(_followed(ids, n_states) + 1),
    wrong={
        "That is the unigram reader: it counts all states, whatever came before them.": (
            lambda ids, n_states: _normalized(
                torch.bincount(ids, minlength=n_states).float() + 1
            )
        ),
        "You count what came before the last state. Count what came after.": _preceded,
        "Those are the counts: divide by their sum.": lambda ids, n_states: (
            _followed(ids, n_states) + 1
        ),
        "All alike: that is the uniform reader.": lambda ids, n_states: (
            torch.full((n_states,), 1 / n_states)
        ),
        "The most frequent one gets all. A reader that is sure and wrong once has an infinite "
        "loss: return chances.": lambda ids, n_states: torch.nn.functional.one_hot(
            (_followed(ids, n_states) + 1).argmax(), n_states
        ).float(),
        "`bincount` ends at the largest state that it meets: give it `minlength`.": _short,
        "You divide by the sums of the columns, all that comes before a state. Divide by the sum "
        "of the last state's row.": lambda ids, n_states: (
            _table(ids, n_states) / _table(ids, n_states).sum(0)
        )[ids[-1]],
        "That counts what followed the last two states together. Look at the last one only.": (
            _after_the_last_two
        ),
        "Only the latest of the earlier occurrences counts here: count what came after each of "
        "them.": lambda ids, n_states: _after_one(ids, n_states, -1),
        "Only the first of the earlier occurrences counts here: count what came after each of "
        "them.": lambda ids, n_states: _after_one(ids, n_states, 0),
        "Your result ends at the largest state of the text. A state that has not come yet may come "
        "next: `n_states` says how many there are.": _of_states_seen,
        "You add 1 to the chances: add it to the counts, before you divide by their sum.": (
            lambda ids, n_states: _normalized(_normalized(_followed(ids, n_states)) + 1)
        ),
    },
    cases=[
        Case("3 states", torch.tensor([0, 1, 0, 2, 0, 1, 0]), 3),
        Case("5 states", torch.tensor([1, 3, 1, 3, 3, 0, 2, 3, 1, 4, 3]), 5),
        Case("7 states, of which 4 have come", torch.tensor([1, 4, 1, 0, 4, 1, 2, 1]), 7),
        Case("a last state that is new", torch.tensor([1, 1, 2, 0]), 3, edge=True),
    ],
    axes="states",

    praise="Right: what followed it so far, and one more of each for what may still come.",
)  # fmt: skip


# --- a head by hand ------------------------------------------------------------------------------

SHARP = 40.0
LONG = 512  # positions: √d_head divides by 23, and a fixed factor of 200 is not enough


def _looks_back(distance: int, sharp: float = SHARP):
    """W_Q and W_K of a head that looks `distance` back, for one-hot positions."""

    def design(context):
        keys = torch.diag(torch.ones(context - distance), distance)  # key s fits query s + distance
        return sharp * context**0.5 * torch.eye(context), keys

    return design


def _rows(W_Q: Tensor, W_K: Tensor, context: int) -> Tensor:
    """The map of such a head from the third token on: [context - 2, context]."""
    scores = W_Q @ W_K.mT / context**0.5  # the positions are one-hot: x = 1
    seen = torch.ones(context, context, dtype=torch.bool).tril()
    return scores.masked_fill(~seen, -torch.inf).softmax(-1)[2:]


def _rows_of(design):
    return lambda context: _rows(*design(context), context)


def _designed(answer, context):
    return in_one_dtype(answer(context))


def _blunt(rows: Tensor, context: int) -> bool:
    there = torch.arange(context - 2)
    return bool((rows.argmax(1) == there).all() and rows[there, there].min() < 0.99)


def _two_fit(rows: Tensor, context: int) -> tuple | None:
    for n, row in enumerate(rows):
        best = (row > row.max() - 1e-4).nonzero().flatten().tolist()
        if n in best and len(best) == 2 and row[n] > 0.45:
            return n + 2, *best, float(row[n])
    return None


def _least(rows: Tensor, context: int) -> bool:
    there = torch.arange(context - 2)
    others = (rows[n, : n + 3].min() < rows[n, n] - 1e-6 for n in range(context - 2))
    return not any(others) and bool((rows[there, there] < 0.1).all())


def _looks_elsewhere(rows: Tensor, context: int) -> tuple | None:
    for n, row in enumerate(rows):
        if int(row.argmax()) != n:
            return n + 2, int(row.argmax()), float(row.max()), n
    return None


_FORM = Exercise(
    right=_looks_back(2),
    call=_designed,
    unique=False,
    also={
        "Your scores are too large for single precision and become infinite: a score of 40 above "
        "the others is plenty.": lambda result, context: (
            not bool((result[0] @ result[1].mT).isfinite().all())
        ),
    },
    cases=[Case("5 positions", 5), Case("11 positions", 11), Case(f"{LONG} positions", LONG)],
    axes=["d_model d_head", "d_model d_head"],
)


def _in_long(answer, context):
    """The map for many positions, and how many times larger its scores are than for 11."""
    designs = [_designed(answer, n) for n in (11, context)]
    short, long = (W_Q @ W_K.mT for W_Q, W_K in designs)
    growth = (long.max() - long.min()) / (short.max() - short.min())
    return _rows(*designs[1], context), float(growth)


def _too_weak(result, context):
    rows, _ = result
    return (context, float(rows.diagonal().min())) if _blunt(rows, context) else None


def _grows_too_slowly(result, context):
    root, growth = (context / 11) ** 0.5, result[1]
    weak = _too_weak(result, context)
    return (*weak, root) if weak and growth < 0.9 * root else None


def _only_short(result, context):
    found = _looks_elsewhere(result[0], context)
    return found and (context, *found)


_IN_LONG = Exercise(
    right=lambda context: _in_long(_looks_back(2), context),
    call=_in_long,
    unique=False,
    also={
        "Right for 11 positions, but for {} the token two back gets only {:.3g}. √d_head, which "
        "divides the scores, is {:.1f} times as large there, and your scores do not grow as much: "
        "multiply them by √d_head.": _grows_too_slowly,
        "Right for 11 positions, but for {} the token two back gets only {:.3g}, since so many "
        "others share the rest: make the scores larger.": _too_weak,
        "Right for 11 positions, but for {} the token at place {} looks most at place {}, with the "
        "weight {:.2f}, and not at place {}. Is a size written into your code?": _only_short,
    },
    cases=[Case("many positions", LONG)],
)
check_two_back = Exercise(
    design=True,
    asks="`answer(context)`: W_Q and W_K, each [context, context], for one-hot positions.",
    right=_rows_of(_looks_back(2)),
    before=_FORM,
    after=_IN_LONG,
    call=lambda answer, context: _rows(*_designed(answer, context), context),
    wrong={
        "It looks at the token just before: one step too few.": _rows_of(_looks_back(1)),
        "Each token looks at itself.": lambda context: torch.eye(context)[2:],
        "It looks three back.": _rows_of(_looks_back(3)),
        "It looks four back: where queries and keys are both shifted by two, the shifts add up. "
        "Shift one of them.": _rows_of(_looks_back(4)),
        "All tokens so far get the same weight. Either every score is the same, or the key that "
        "fits lies ahead, where the mask hides it: exchange the two sides of the shift.": (
            lambda context: (torch.ones(context, context).tril()
                             / torch.arange(1, context + 1)[:, None])[2:]
        ),
        "The key that fits lies ahead, where the mask hides it, or at the other end of the text, "
        "where a `roll` has put it: shift the other way.": lambda context: _rows(
            SHARP * context**0.5 * torch.eye(context).roll(2, 1), torch.eye(context), context
        ),
        "Each looks at the first token only.": lambda context: torch.eye(context)[
            torch.zeros(context - 2, dtype=torch.long)
        ],
    },
    also={
        "The token at place {} looks at the places {} and {} alike, {:.2f} each: two keys fit "
        "where one should.": _two_fit,
        "It looks at the right token, and at others as well: less than 0.99 of a row is there. "
        "Make the scores larger. They are divided by √d_head.": _blunt,
        "The token two back gets the least weight, and others more: does its score have the wrong "
        "sign?": _least,
        "The token at place {} looks most at place {}, with the weight {:.2f}, and not at place "
        "{}. Print W_Q @ W_K.mT: row t is to be large in column t - 2 only.": _looks_elsewhere,
    },
    cases=[Case("5 positions", 5), Case("11 positions", 11)],
    axes="queries keys",
    tolerance=(0.0, 0.01),
    praise="Right: query and key of two positions meet if, and only if, they are two apart.",
)  # fmt: skip


# --- attribution through a norm ------------------------------------------------------------------


def _size(x: Tensor) -> Tensor:
    return x.square().mean(-1, keepdim=True).sqrt()


def _lost_without(parts, gain, right, wrong):
    def difference(stream):
        return stream / _size(stream) * gain @ (right - wrong)

    return difference(parts.sum(0)) - difference(parts.sum(0) - parts)


check_attribution = Exercise(
    asks="`answer(parts, gain, right, wrong)`: each part's share of right's logit less wrong's; "
    "parts [parts, d_model], the others [d_model] -> [parts].",
    right=lambda parts, gain, right, wrong: (
        parts / _size(parts.sum(0)) * gain @ (right - wrong)
    ),
    wrong={
        "Each part is divided by its own size. The norm sees the stream, so there is one size for "
        "all, and the shares add up.": lambda parts, gain, right, wrong: (
            parts / _size(parts) * gain @ (right - wrong)
        ),
        "The last norm is missing: divide by the size of the stream, times the gain.": (
            lambda parts, gain, right, wrong: parts @ (right - wrong)
        ),
        "You take the mean of each vector off, as LayerNorm does. This norm only divides.": (
            lambda parts, gain, right, wrong: (
                (parts - parts.mean(-1, keepdim=True))
                / (parts.sum(0) - parts.sum(0).mean()).square().mean().sqrt() * gain
                @ (right - wrong)
            )
        ),
        "You take the part out and see what is lost: that is ablation, and the size of the stream "
        "changes with it. Attribution leaves the size as it is.": _lost_without,
        "You divide one word's logit by the other's. Logits are compared by their difference.": (
            lambda parts, gain, right, wrong: (parts * gain @ right) / (parts * gain @ wrong)
        ),
        },
    cases=[
        Case("3 parts of 7 numbers", randn(3, 7, seed=0), *randn(3, 7, seed=1)),
        Case("5 parts of 11 numbers", 3 * randn(5, 11, seed=2), *randn(3, 11, seed=3)),
    ],
    axes="parts",

    praise="Right: one size for all, and the shares add up to the difference of the logits.",
)  # fmt: skip
