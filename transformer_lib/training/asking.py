"""Asking a machine that has read stories of gifts who has what, and counting the right answers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib.data.gifts import Grammar, Question
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.layers import evaluating
from transformer_lib.tokenizers import WordTokenizer

SEED = 2026  # of stories that nobody was trained on
TRIED = 1000  # stories, before a grammar is said to have no questions
EVERY = 4  # prompts of so many words, or a multiple, if any: many of one length are read at once


@runtime_checkable
class Machine(Protocol):
    """What can be asked, such as :class:`~transformer_lib.training.trained.Trained`."""

    model: nn.Module
    tokenizer: WordTokenizer
    grammar: Grammar


def questions(machine: Machine, n: int = 200, seed: int = SEED) -> list[Question]:
    """``n`` questions from new stories of the machine's grammar.

    Raises:
        ValueError: in its first stories, at least 1,000, there is none.

    >>> from types import SimpleNamespace
    >>> from transformer_lib.data.gifts import Grammar
    >>> machine = SimpleNamespace(model=None, tokenizer=None, grammar=Grammar())
    >>> asked = questions(machine, n=3)
    >>> [question.prompt.split()[-1] for question in asked]
    ['?', '?', '?']
    """
    found, number, every = [], 0, EVERY
    while len(found) < n:
        for story in machine.grammar.stories(n, seed=seed + number):
            found += [q for q in machine.grammar.questions(story) if q.position % every == 0]
        number += 1
        if found or number * n < TRIED:
            continue
        if every == 1:
            raise ValueError(
                f"{number * n:,} stories hold no question: the machine's grammar has ask = "
                f"{machine.grammar.ask} and n_sentences = {machine.grammar.n_sentences}. Choose "
                f"more of them."
            )
        number, every = 0, 1
    return found[:n]


@torch.no_grad()
def accuracy(machine: Machine, questions: Sequence[Question]) -> float:
    """The share of ``questions`` to which the machine's most probable next word is the answer.

    Raises:
        ValueError: there are no questions.
    """
    if not questions:
        raise ValueError("there are no questions, so there are no answers to count.")
    model, encode = machine.model, machine.tokenizer.encode
    device = next(model.parameters()).device
    alike: dict[int, list[Question]] = {}  # prompts of one length are read at once
    for question in questions:
        alike.setdefault(question.position, []).append(question)
    right = 0
    with evaluating(model):
        for group in alike.values():
            ids = torch.tensor([encode(q.prompt) for q in group], device=device)
            said = model(ids)[:, -1].argmax(dim=-1).cpu()
            right += (said == torch.tensor([encode(q.answer)[0] for q in group])).sum().item()
    return right / len(questions)


@dataclass(frozen=True, eq=False)
class Examined:
    """A head at work on a story, and what the machine is worth: see :func:`examine`.

    Attributes:
        head: such as ``"block 3, head 1"``.
        words: of the story.
        weights: how much each word looks at each.
        said, probability: the most probable next word.
        right, asked: how many questions of how many are answered right.
        parts: the reader's functions in the machine: (what it takes the place of, its name).
    """

    head: str
    words: tuple[str, ...]
    weights: Float[Tensor, "words words"]
    said: str
    probability: float
    right: int
    asked: int
    parts: tuple[tuple[str, str], ...] = ()


@torch.no_grad()
def examine(
    machine: Machine, story: str, head: str, asked: Sequence[Question] | None = None
) -> Examined:
    """Look at one head while the machine reads ``story``, and ask it ``asked``: 200 questions if
    None. The figure ``YourPart`` shows two of these, one made within ``machine.using(...)``.

    Args:
        head: as the figure Machine names it, such as ``"block-3-head-1"``. (If a part of yours
            makes fewer heads, it is the last of them.)

    Raises:
        ValueError: there is no such head, or the machine does not know a word of the story.
    """
    found = re.fullmatch(r"block-(\d+)-head-(\d+)", head)
    layers, heads = len(machine.model.blocks), machine.model.config.n_heads
    layer, number = map(int, found.groups()) if found else (0, 0)
    if not (1 <= layer <= layers and 1 <= number <= heads):
        raise ValueError(
            f"head is {head!r}; this machine has block-1-head-1 to block-{layers}-head-{heads}."
        )
    asked = questions(machine) if asked is None else asked
    device = next(machine.model.parameters()).device
    ids = torch.tensor([machine.tokenizer.encode(story)], dtype=torch.int64, device=device)
    with evaluating(machine.model):
        chances = machine.model(ids)[0, -1].softmax(dim=-1)
        maps = list(attention_maps(machine.model, ids).values())[layer - 1][0]
    best = int(chances.argmax())
    return Examined(
        head=f"block {layer}, head {number}",
        words=tuple(story.split()),
        weights=maps[min(number, len(maps)) - 1].cpu(),
        said=machine.tokenizer.vocabulary[best],
        probability=chances[best].item(),
        right=round(accuracy(machine, asked) * len(asked)),
        asked=len(asked),
        parts=_parts(machine.model),
    )


def _parts(model: nn.Module) -> tuple[tuple[str, str], ...]:
    """What `machine.using` has put in, in the order of the places."""
    places = [model.embedding, *(block.attention for block in model.blocks)]
    own = [one for place in places for one in getattr(place, "own", {}).values()]
    names = [(one.name, getattr(one.function, "__name__", "")) for one in own]
    return tuple(dict.fromkeys(names))
