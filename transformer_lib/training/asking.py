"""Asking a machine that has read stories of gifts who has what, and counting the right answers."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from transformer_lib.data.gifts import Grammar, Question
from transformer_lib.sampling import evaluating
from transformer_lib.tokenizers import WordTokenizer

SEED = 2026  # of stories that nobody was trained on
EVERY = 4  # only prompts of so many words, or a multiple: many of one length can be read at once


@runtime_checkable
class Machine(Protocol):
    """What can be asked, such as :class:`~transformer_lib.training.trained.Trained`."""

    model: nn.Module
    tokenizer: WordTokenizer
    grammar: Grammar


def questions(machine: Machine, n: int = 200, seed: int = SEED) -> list[Question]:
    """``n`` questions from new stories of the machine's grammar.

    >>> from types import SimpleNamespace
    >>> from transformer_lib.data.gifts import Grammar
    >>> machine = SimpleNamespace(model=None, tokenizer=None, grammar=Grammar())
    >>> asked = questions(machine, n=3)
    >>> [question.prompt.split()[-1] for question in asked]
    ['?', '?', '?']
    """
    found, number = [], 0
    while len(found) < n:
        for story in machine.grammar.stories(n, seed=seed + number):
            found += [q for q in machine.grammar.questions(story) if q.position % EVERY == 0]
        number += 1
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
