"""A GPT with weights written by hand, so that the right answer of every tool is known."""

import torch
from torch import nn

from transformer_lib import checks
from transformer_lib.gpt import GPT, GPTConfig

SHARP = 40.0  # the score of the one right key, all others 0: its weight differs from 1 by 1e-16
SURE = 20.0  # the logit of what follows


def slots(vocabulary: int, context: int) -> dict[str, slice]:
    """Where each fact stands in the stream of :func:`induction_gpt`.

    >>> slots(5, 12)["before"]
    slice(5, 10, None)
    """
    names = ("token", "before", "says")
    found = {name: slice(at * vocabulary, (at + 1) * vocabulary) for at, name in enumerate(names)}
    return found | {"position": slice(3 * vocabulary, 3 * vocabulary + context)}


@torch.no_grad()
def induction_gpt(vocabulary: int = 10, context: int = 24) -> GPT:
    """Two blocks that complete ``… a b … a`` by ``b``, and know nothing else: an induction circuit.

    The stream has a place for each fact: *token* (which one this is), *before* (which one came
    before), *says* (what follows), *position*. Head 0 of the first block looks one token back, by
    position, and copies *token* into *before*. Head 0 of the second looks for a key whose *before*
    is the query's *token*, and copies its *token* into *says*, which alone the output reads. Head 1
    of each block and the feed-forward layers write nothing; there are no norms. Where a token has
    not come before, the second head looks at all but the first token alike.

    The circuit is for texts in which a token is always followed by the same one, as in *repeats*.

    Raises:
        ValueError: ``vocabulary`` or ``context`` below 2.

    Source: the two heads of Elhage et al. 2021 and Olsson et al. 2022.

    >>> model = induction_gpt()
    >>> model(torch.tensor([[2, 7, 1, 2, 7]]))[0, -1].argmax()  # 7 was followed by 1
    tensor(1)
    """
    checks.require_count(vocabulary, "vocabulary")
    checks.require_count(context, "context")
    if min(vocabulary, context) < 2:
        raise ValueError(
            f"vocabulary is {vocabulary} and context {context}; to complete a pair of tokens takes "
            f"at least 2 of each."
        )
    d_head = max(context, vocabulary + 1)
    d_model = 2 * max(d_head, (3 * vocabulary + context + 1) // 2)
    config = GPTConfig(
        vocabulary=vocabulary, context=context, n_layers=2, n_heads=2, d_model=d_model, d_ff=1,
        tied=False, bias=False,
    )  # fmt: skip
    model = GPT(config)
    for parameter in model.parameters():
        parameter.zero_()
    model.final_norm = nn.Identity()
    for block in model.blocks:
        block.norm_1, block.norm_2 = nn.Identity(), nn.Identity()
    token, before, says, position = slots(vocabulary, context).values()
    words, places = torch.eye(vocabulary), torch.eye(context)
    model.embedding.weight[:, token] = words
    model.embedding.positions.table.weight[:, position] = places
    model.head.weight[:, says] = SURE * words

    score = SHARP * config.d_head**0.5  # what attention divides by
    first, second = (block.attention for block in model.blocks)
    first.query.weight[:context, position] = score * places
    first.key.weight[1:context, position] = places[:-1]  # the key at s fits the query at s + 1
    first.value.weight[:vocabulary, token] = words
    first.output.weight[before, :vocabulary] = words

    second.query.weight[:vocabulary, token] = score * words
    second.key.weight[:vocabulary, before] = words
    # Nothing came before the first token, whose first head could look at nobody else: not a key.
    second.query.weight[vocabulary, position] = score
    second.key.weight[vocabulary, position.start] = -3.0
    second.value.weight[:vocabulary, token] = words
    second.output.weight[says, :vocabulary] = words
    return model
