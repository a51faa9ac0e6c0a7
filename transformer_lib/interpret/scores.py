"""Scores of a head: how much it looks at the token before, or at what followed this one earlier."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lib import checks


def previous_token_score(
    weights: Float[Tensor, "batch heads queries queries"],
) -> Float[Tensor, " heads"]:
    """The mean weight of each head on the token just before, over all tokens but the first.

    Raises:
        ValueError: fewer than two tokens; weights that are not finite.

    >>> weights = torch.tensor([[[[1.0, 0.0], [0.75, 0.25]]]])
    >>> previous_token_score(weights)
    tensor([0.7500])
    """
    require_maps(weights)
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=(0, -1))


def induction_score(
    weights: Float[Tensor, "batch heads queries queries"], ids: Int[Tensor, "batch queries"]
) -> Float[Tensor, " heads"]:
    """The mean weight of each head on tokens that came right after this token earlier in the text.

    Over all tokens that have come before; a head that completes ``… a b … a`` by looking at ``b``
    scores 1. (A token right behind its like is looked at, too: in ``a a`` the second follows the
    first.)

    Raises:
        ValueError: ids and weights of different texts; no token comes twice; weights not finite.

    Source: the prefix-matching score of Olsson et al. 2022, "In-context Learning and Induction
    Heads".

    >>> weights = torch.eye(4)[[0, 0, 1, 1]].expand(1, 1, 4, 4)
    >>> induction_score(weights, torch.tensor([[5, 6, 5, 6]]))  # token 2 looks at token 1
    tensor([0.5000])
    """
    require_maps(weights)
    require_ids_of(weights, ids)
    alike = (ids[:, :, None] == ids[:, None, :]).tril(-1)  # [text, query, key]: the same, earlier
    after = alike.roll(1, dims=-1)  # and the key after it; the last column holds nothing to roll
    queries = alike.any(-1)
    if not queries.any():
        raise ValueError(
            "no token of these texts comes twice, so there is nothing that came after it. Give a "
            "text that repeats something, such as torch.cat((ids, ids), dim=1)."
        )
    found = (weights * after[:, None]).sum(-1)
    return torch.stack([head[queries].mean() for head in found.unbind(1)])


@checks.at_the_door
def require_maps(weights) -> None:
    """Finite weights of at least two tokens to one another."""
    checks.require_float_tensor(weights, "weights")
    if weights.ndim != 4 or weights.shape[-1] != weights.shape[-2] or weights.shape[-1] < 2:
        raise ValueError(
            f"weights have the shape {tuple(weights.shape)}; these scores read the self-attention "
            f"of at least two tokens, [batch, heads, tokens, tokens], as attention_maps gives it."
        )
    checks.require_finite(weights, "weights")
    if weights.min() < 0:
        raise ValueError(
            f"weights hold {weights.min():.4g}, but are never negative; these may be scores: take "
            f"their softmax over the keys first."
        )


@checks.at_the_door
def require_ids_of(weights, ids) -> None:
    """The ids of the text that the weights are of."""
    checks.require_tensor(ids, "ids")
    if tuple(ids.shape) != (weights.shape[0], weights.shape[-1]):
        raise ValueError(
            f"ids have the shape {tuple(ids.shape)}, but the weights are of {weights.shape[0]} "
            f"texts of {weights.shape[-1]} tokens."
        )
