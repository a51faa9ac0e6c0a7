"""Checks for chapter 08, the block: spotting, mending, designing, counting, taking apart."""

import torch
from torch import Tensor, nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.blocks import PreNorm
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import fitted, in_one_dtype, plain
from transformer_lib.exercises.engine.runner import Case, Exercise, Repair, randn
from transformer_lib.layers import FeedForward, LayerNorm

# --- which of these is layer normalization? -------------------------------------------------------

check_right_norms = Choice(
    asks="Which of the five lines are layer normalization, without gain and bias? All letters.",
    right={"c", "e"},
    wrong={
        "a": "`std` divides by d − 1 unless it is told otherwise; layer normalization divides by "
        "d.",
        "b": "the mean is taken over the tokens, so that words of one text change one another.",
        "d": "ε is outside the root: for a vector of equal numbers the root is 0, and its "
        "slope is infinite.",
        "c": "it is the definition: the mean of the squares, ε inside of the root.",
        "e": "it is PyTorch's own, over the last axis.",
    },
    praise="Right: over one token's numbers, divided by d, with ε inside of the root.",
)


# --- a block to be mended -------------------------------------------------------------------------


class _Mix(nn.Module):
    """Stands for attention: each token becomes an average of all."""

    def forward(self, x):
        return x.mean(1, keepdim=True) + 0.5 * x


class _Think(nn.Module):
    """Stands for the feed-forward layer."""

    def forward(self, x):
        return torch.tanh(2 * x) + 0.3


class _Norm(nn.Module):
    """A norm with a gain of its own, so that two of them can be told apart."""

    def __init__(self, gain: float):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        gains = self.gain * torch.linspace(0.6, 1.4, x.shape[-1])
        return gains.to(x) * nn.functional.layer_norm(x, x.shape[-1:])


def _block(x, norm_1, attention, norm_2, feed_forward):
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def _broken(x, norm_1, attention, norm_2, feed_forward):
    normed = norm_1(x)
    x = normed + attention(normed)
    return x + norm_2(feed_forward(x))


def _part(before, after, keep):
    """A line of a block: a norm before the part or after it, or none; the stream kept, or not."""

    def line(x, norm, part):
        given = part(norm(x) if before else x)
        return (x if keep else 0) + (norm(given) if after else given)

    return line


_RIGHT_LINE, _REPLACED = _part(True, False, True), _part(True, False, False)
_BOTH_SIDES = _part(True, True, True)


def _lines(first, second):
    def wrong(x, norm_1, attention, norm_2, feed_forward):
        return second(first(x, norm_1, attention), norm_2, feed_forward)

    return wrong


def _old_stream(x, norm_1, attention, norm_2, feed_forward):
    """The second line adds to the stream from before attention."""
    return x + feed_forward(norm_2(x + attention(norm_1(x))))


_PARTS = (_Norm(0.5), _Mix(), _Norm(2.0), _Think())
_NAMES = ("norm_1", "attention", "norm_2", "feed_forward")


class _Noted(nn.Module):
    """A part that notes what it reads and what it gives."""

    def __init__(self, part):
        super().__init__()
        self.part, self.calls = part, []

    def forward(self, x):
        given = self.part(x.clone())
        self.calls.append((x.clone(), given.clone()))
        return given


def _calls(answer) -> dict[str, list]:
    """What each part has read and given: {name: [(read, given), ...]}."""
    parts = [_Noted(part) for part in _PARTS]
    answer(_GIVEN.clone(), *parts)
    return {name: part.calls for name, part in zip(_NAMES, parts, strict=True)}


def _idle(answer) -> tuple | None:
    idle = [name for name, calls in _calls(answer).items() if not calls]
    return (idle[0],) if idle else None


def _misreads(answer) -> tuple | None:
    """The first part that reads something else than it should, and what that is."""
    (norm_1,), (attention,), (norm_2,), (think,) = (c[:1] for c in _calls(answer).values())
    middle = _GIVEN + attention[1]
    known = {
        "x as it came in": _GIVEN,
        "what norm_1 gives": norm_1[1],
        "what attention gives": attention[1],
        "x plus what attention gives": middle,
        "what norm_2 gives": norm_2[1],
        "what feed_forward gives": think[1],
    }
    wanted = list(known)[:2] + list(known)[3:5]
    for name, words, (read, _) in zip(
        _NAMES, wanted, (norm_1, attention, norm_2, think), strict=True
    ):
        if not _alike(read, known[words]):
            seen = (other for other, value in known.items() if _alike(read, value))
            return name, next(seen, "something else"), words
    return None


def _alike(one, other) -> bool:
    return one.shape == other.shape and torch.allclose(one, other, atol=1e-5)


_GIVEN = 3 * randn(2, 3, 5, seed=2) + 1
check_mended_block = Repair(
    asks="`answer(x, norm_1, attention, norm_2, feed_forward)`: the pre-norm block, mended.",
    broken=_broken,
    unchanged="Follow the stream itself, not what the parts read: what is added to what?",
    right=_block,
    wrong={
        "In the second line the stream itself is missing: what the feed-forward layer gives is "
        "added to it.": _lines(_RIGHT_LINE, _REPLACED),
        "In both lines the norm stands before the part and after it: once is enough, before.": (
            _lines(_BOTH_SIDES, _BOTH_SIDES)
        ),
        "The second line adds to the x from before attention, so what attention has found is not "
        "in the stream: add to the new x.": _old_stream,
    },
    cases=[
        Case("2 texts of 3 tokens", _GIVEN, *_PARTS),
        Case("1 text of 7 tokens", randn(1, 7, 3, seed=3), *_PARTS),
    ],
    about={
        "`{}` is never called: a block has two norms and two parts.": _idle,
        "`{}` reads {}; it should read {}.": _misreads,
    },
    axes="batch tokens d_model",
    praise="Right: parts read normalized copies, and the stream itself is only added to.",
)


# --- a conclusion, by hand ------------------------------------------------------------------------

FACTS = torch.tensor([[0.0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])  # mary first, swapped, free


def _designed():
    W_1 = torch.tensor([[1.0, 1, 0], [1, 1, 0]])
    return W_1, torch.tensor([0.0, -1]), torch.tensor([[0.0, 0], [0, 0], [1, -2]]), torch.zeros(3)


def _stream_after(answer, facts):
    """The stream behind the feed-forward layer, for all four cases: [4, 3]."""
    W_1, b_1, W_2, b_2 = in_one_dtype(answer)
    return facts + torch.relu(facts @ W_1.T + b_1) @ W_2.T + b_2


CASES_IN_WORDS = (
    "mary did not have them and they did not swap",
    "mary did not have them and they swapped",
    "mary had them and they did not swap",
    "mary had them and they swapped",
)


def _hidden(answer) -> Tensor:
    """What the two units say in each of the four cases: [4, 2]."""
    W_1, b_1, _, _ = in_one_dtype(answer)
    return torch.relu(FACTS @ W_1.T + b_1)


def _one_unit(answer) -> bool:
    one, other = _hidden(answer).T
    return bool((one * other.norm() - other * one.norm()).abs().max() < 1e-6)


def _silent_unit(answer) -> tuple | None:
    silent = (_hidden(answer) == 0).all(dim=0)
    if not silent.any():
        return None
    return (("first", "second")[int(silent.nonzero()[0])],)


def _first_wrong_case(answer) -> tuple | None:
    owner, right = _stream_after(answer, FACTS)[:, 2], torch.tensor([0.0, 1, 1, 0])
    case = int(((owner - right).abs() > 0.05).nonzero()[0])
    units = ", ".join(f"{x:.3g}" for x in _hidden(answer)[case])
    return CASES_IN_WORDS[case], units, f"{owner[case]:.3g}", f"{right[case]:.0f}"


def _other_order(result) -> bool:
    if not isinstance(result, list | tuple):
        return False
    shapes = [tuple(x.shape) if isinstance(x, Tensor) else None for x in result]
    return shapes == [(2, 3), (3, 2), (2,), (3,)]


def _with_owner(*owner):
    def result(facts):
        return torch.cat([facts[:, :2], torch.tensor(owner)[:, None]], dim=1)

    return result


_FORM = Exercise(
    right=_designed,
    call=in_one_dtype,
    unique=False,
    cases=[Case("")],
    axes=["hidden d_model", "hidden", "d_model hidden", "d_model"],
    any_form={
        "The order is W_1, b_1, W_2, b_2: each bias comes right after its matrix.": _other_order,
    },
)
check_conclusion = Exercise(
    design=True,
    asks="`answer()`: W_1 [2, 3], b_1 [2], W_2 [3, 2], b_2 [3], used as x + W_2 relu(W_1 x + b_1) "
    "+ b_2.",
    right=_with_owner(0.0, 1, 1, 0),
    before=_FORM,
    call=_stream_after,
    wrong={
        "That is *or*: where she had them and they swapped, she no longer has them. Let the second "
        "unit take that case away again.": _with_owner(0.0, 1, 1, 1),
        "That is *and*: only where she had them and they swapped.": _with_owner(0.0, 0, 0, 1),
        "This says *susan*: 1 where mary does not have them.": _with_owner(1.0, 0, 0, 1),
        "You write who had them at first.": _with_owner(0.0, 0, 1, 1),
        "You write whether they swapped.": _with_owner(0.0, 1, 0, 1),
        "You write 1 only where she had them and they did not swap. Where she did not have them "
        "and they swapped, she has them now, too.": _with_owner(0.0, 0, 1, 0),
        "You write 1 only where she did not have them and they swapped. Where she had them and "
        "they did not swap, she has them still.": _with_owner(0.0, 1, 0, 0),
        "That is the sum of both facts: where both hold it says 2. The second unit must fire "
        "there, and only there, and take 2 away.": _with_owner(0.0, 1, 1, 2),
    },
    cases=[Case("the four cases", FACTS)],
    also={
        "The facts themselves change: the first two rows of W_2 and of b_2 must be 0, or a later "
        "layer cannot read them any more.": lambda result, facts: (
            not torch.allclose(result[:, :2], facts[:, :2], atol=0.05)
        ),
    },
    about={
        "Nothing is concluded: both units are 0 in all four cases. Where a unit should speak, its "
        "row of W_1 and its bias must give more than 0.": lambda answer: (
            not bool(_hidden(answer).any())
        ),
        "The {} unit is 0 in all four cases, so it adds nothing: is its bias too low?": (
            _silent_unit
        ),
        "The second unit is the first one, or a multiple of it, in all four cases: two such are no "
        "more than one. Let one of them begin to fire later.": _one_unit,
        "Where {}, the units say {}. With W_2 and b_2 that makes {}; the free place must say "
        "{}.": _first_wrong_case,
    },
    axes="cases d_model",
    tolerance=(0.0, 0.05),
    praise="Right: one fact alone comes through, and where both hold, nothing is left.",
)


# --- how many products? ---------------------------------------------------------------------------


def _products(d_model, d_ff, tokens):
    return 4 * d_model**2 + 2 * d_model * d_ff + 2 * tokens * d_model


check_products = Exercise(
    asks="`answer(d_model, d_ff, tokens)`: the products of two numbers that a block takes for one "
    "token, which sees `tokens` of them.",
    right=_products,
    cases=[
        Case("a small block", 8, 32, 11),
        Case("another", 7, 10, 3),
        Case("a long text", 2, 3, 60),
    ],
    praise="Right: while a text is shorter than 6 · d_model, what depends on its length is the "
    "smaller part.",
)


# --- what each part adds to the answer ------------------------------------------------------------


def _shares(block, head, x):
    attended = block.attention(block.norm_1(x))
    middle = x + attended
    thought = block.feed_forward(block.norm_2(middle))
    return torch.stack([part[:, -1] @ head.weight.T for part in (x, attended, thought)])


def _running_totals(block, head, x):
    return _shares(block, head, x).cumsum(0)


def _with_bias(block, head, x):
    return _shares(block, head, x) + head.bias


def _middle_of_tokens(block, head, x):
    attended = block.attention(block.norm_1(x))
    thought = block.feed_forward(block.norm_2(x + attended))
    return torch.stack([part.mean(1) @ head.weight.T for part in (x, attended, thought)])


def _without_head(block, head, x):
    attended = block.attention(block.norm_1(x))
    thought = block.feed_forward(block.norm_2(x + attended))
    return torch.stack([part[:, -1] for part in (x, attended, thought)])


def _sum_of_tokens(block, head, x):
    return x.shape[1] * _middle_of_tokens(block, head, x)


_WORDS = (
    ("first", "x, as it came in,"),
    ("second", "what attention gives"),
    ("third", "what the feed-forward layer gives"),
)


def _the_wrong_share(answer) -> tuple | None:
    block, head, x = _small()
    got, right = fitted(plain(answer(block, head, x.clone())), x), _shares(block, head, x)
    wrong = [n for n in range(3) if not torch.allclose(got[n].to(right), right[n], atol=1e-4)]
    return _WORDS[wrong[0]] if len(wrong) == 1 else None


def _reads_another(answer) -> tuple | None:
    """A part that never reads what it should."""
    block, head, x = _small()
    normed = block.norm_1(x)
    middle = x + block.attention(normed)
    wanted = {
        "norm_1": ("x", x),
        "attention": ("what norm_1 gives", normed),
        "norm_2": ("x plus what attention gives", middle),
        "feed_forward": ("what norm_2 gives of x plus attention", block.norm_2(middle)),
    }
    read = {name: [] for name in _NAMES}
    for name in _NAMES:
        getattr(block, name).register_forward_hook(
            lambda _, given, out, at=read[name]: at.append(given[0])
        )
    answer(block, head, x.clone())
    for name, (words, value) in wanted.items():
        if not any(_alike(x, value) for x in read[name]):
            return name, words
    return None


def _a_block(d_model: int, n_heads: int, n_classes: int, seed: int):
    """A block and a head with random parameters, none of them 0 or 1."""
    source = torch.Generator(device="cpu").manual_seed(seed)
    parts = MultiHeadAttention(d_model, n_heads), FeedForward(d_model)
    block = PreNorm(*parts, LayerNorm(d_model), LayerNorm(d_model))
    head = nn.Linear(d_model, n_classes)
    for parameter in (*block.parameters(), *head.parameters()):
        parameter.data = 0.4 * torch.randn(parameter.shape, generator=source)
        parameter.requires_grad_(False)
    return block, head


def _small():
    """A block, a head and a text that no other answer has had."""
    return *_a_block(6, 2, 2, seed=0), randn(2, 3, 6, seed=1)


check_shares = Exercise(
    asks="""`answer(block, head, x)`: what start, attention and feed-forward add to the scores.

    x [batch, tokens, d_model] -> [3, batch, classes], at the last token, without the head's bias.
    """,
    right=_shares,
    wrong={
        "These are running totals: the scores after each part. You are asked for what each one "
        "adds.": (_running_totals),
        "The head's bias is in all three: it belongs to none of the parts.": _with_bias,
        "These are the parts themselves. Their shares of the scores are products with the head's "
        "matrix.": _without_head,
        "That is the sum over all tokens; the answer is read at the last one.": _sum_of_tokens,
        "That is the mean over all tokens; the answer is read at the last one.": _middle_of_tokens,
    },
    cases=[
        Case("2 texts of 3 tokens", *_a_block(6, 2, 2, seed=0), randn(2, 3, 6, seed=1)),
        Case("1 text of 5 tokens", *_a_block(4, 1, 3, seed=2), randn(1, 5, 4, seed=3)),
    ],
    about={
        "`{}` never reads {}.": _reads_another,
        "Only your {} share is wrong. It should be {} at the last token, times the head's "
        "matrix.": (_the_wrong_share),
    },
    axes="parts batch classes",
    praise="Right: three shares, and with the bias they add up to the scores.",
)
