"""Parts of a model that compute by a reader's functions: what :mod:`your_part` puts in."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.attention import (
    MultiHeadAttention,
    attention_weights,
    for_heads,
    merge_heads,
    split_heads,
)
from transformer_lib.layers import Embedding
from transformer_lib.masks import causal_mask
from transformer_lib.positions import RotaryPositions, rotary_angles


@dataclass(frozen=True)
class Own:
    """A reader's function, and the head that it is for (from 0); None: all.

    Raises, when it is called:
        TypeError: it returned no tensor, or one of another kind.
        ValueError: it returned another shape, or NaN; it has changed what it was given.
    """

    name: str
    function: Callable[..., Any]
    head: int | None = None

    def __call__(self, shape: Sequence[int], *given: Any, axes: int = 0) -> Tensor:
        """What it says, a tensor of ``shape``: called once for each index of the first ``axes``."""
        if not axes:
            return self._checked(self.function, shape, given)
        each = (self(shape[1:], *one, axes=axes - 1) for one in zip(*given, strict=True))
        return torch.stack(list(each))

    def at_once(self, shape: Sequence[int], *given: Tensor) -> Tensor:
        """The same for all indices of the first two axes at once, which is many times as fast.

        Raises:
            ValueError: the function asks for single numbers, which have no one value then.
        """
        of_a_text = torch.func.vmap(self.function, randomness="different")
        of_all = torch.func.vmap(of_a_text, randomness="different")
        try:
            return self._checked(of_all, shape, given, 2)
        except Exception as error:
            self(shape[2:], *(tensor[0, 0] for tensor in given))  # raises its own error, if any
            if "vmap" not in str(error):
                raise
            raise ValueError(asks_for_single_numbers(self.name)) from error

    def _checked(self, function: Callable, shape: Sequence[int], given: Sequence, axes=0) -> Tensor:
        tensors = [value for value in given if isinstance(value, Tensor)]
        # It gets copies: what it writes into them is not written into the model's numbers.
        copies = [value.clone() if isinstance(value, Tensor) else value for value in given]
        result = function(*copies)
        after = [value for value in copies if isinstance(value, Tensor)]
        if not all(map(unchanged, tensors, after)):
            raise ValueError(has_changed_the_given(self.name))
        require_result(self.name, result, shape, [tuple(t.shape) for t in tensors], axes)
        like = next((t for t in tensors if t.is_floating_point()), result)
        return result.to(like.dtype)


class OpenAttention(MultiHeadAttention):
    """A :class:`MultiHeadAttention` with a reader's functions in it; it shares all its numbers."""

    own: Mapping[str, Own]

    def project(self, x, memory=None, cache=None):
        """Queries, keys and values, split and turned by the reader's functions where there are."""
        start = 0 if cache is None else cache.length
        q, k, v = (self._split(layer(x)) for layer in (self.query, self.key, self.value))
        q, k = self._turned(q, start), self._turned(k, start)
        return (q, k, v) if cache is None else (q, *cache.extend(k, v))

    def weights(self, q, k, mask=None, *, causal=False):
        """The reader's weights, or the library's with the reader's mask."""
        shape = (*q.shape[:2], q.shape[-2], k.shape[-2])
        may = self._mask(shape, q.device) if causal else q.new_ones(shape, dtype=torch.bool)
        may = may if mask is None else may & for_heads(mask)

        def mine(own: Own, q: Tensor, k: Tensor, may: Tensor) -> Tensor:
            if takes_mask(own.function):
                return own(may.shape, q, k, may, axes=2)
            rows = []
            for word in range(q.shape[-2]):
                so_far = k.shape[-2] - q.shape[-2] + word + 1
                given = q[..., word : word + 1, :], k[..., :so_far, :]
                row = own.at_once((*may.shape[:2], 1, so_far), *given)
                rows.append(F.pad(row, (0, k.shape[-2] - so_far)))
            return torch.cat(rows, dim=-2)

        return self._put("attention_weights", attention_weights, mine, q, k, may)

    def forward(self, x, memory=None, mask=None, *, causal=False, cache=None):
        """As :meth:`MultiHeadAttention.forward`, by its explicit path."""
        q, k, v = self.project(x, memory, cache)
        z = F.dropout(self.weights(q, k, mask, causal=causal), self.dropout, self.training) @ v
        own = self.own.get("merge_heads")
        return self.output(merge_heads(z) if own is None else own(x.shape, z))

    def _split(self, x: Tensor) -> Tensor:
        own = self.own.get("split_heads")
        if own is None:
            return split_heads(x, self.n_heads)
        # As many heads as it likes, of a width that leaves all numbers in.
        return own((x.shape[0], -1, x.shape[1], -1), x, self.n_heads)

    def _turned(self, x: Tensor, start: int) -> Tensor:
        if not isinstance(self.positions, RotaryPositions):
            return x
        d_head, base = x.shape[-1], self.positions.base
        angles = rotary_angles(x.shape[-2], d_head, base=base, start=start, device=x.device)

        def mine(own: Own, x: Tensor) -> Tensor:
            return own(x.shape, x, angles.expand(*x.shape[:2], -1, -1), axes=2)

        rotate = RotaryPositions(d_head, base).rotate
        return self._put("apply_rotary", lambda x: rotate(x, start), mine, x)

    def _mask(self, shape: Sequence[int], device: torch.device) -> Tensor:
        sizes = shape[-2:]

        def mine(own: Own, start: Tensor) -> Tensor:
            return own(sizes, *sizes).to(device).expand_as(start)

        triangle = causal_mask(*sizes, device=device).expand(shape)
        return self._put("causal_mask", lambda triangle: triangle, mine, triangle)

    def _put(self, name: str, library: Callable, mine: Callable, *given: Tensor) -> Tensor:
        """The library's result, or the reader's, or the reader's in one head."""
        own = self.own.get(name)
        if own is None:
            return library(*given)
        if own.head is None:
            return mine(own, *given)
        here = slice(own.head, own.head + 1)
        result = library(*given).clone()
        result[:, here] = mine(own, *(tensor[:, here] for tensor in given))
        return result


class OpenEmbedding(Embedding):
    """An :class:`Embedding` whose rows a reader's function looks up."""

    own: Mapping[str, Own]

    def rows(self, ids: Tensor) -> Tensor:
        """What the reader's function makes of the ids and the table."""
        table = self.weight.expand(len(ids), -1, -1)
        return self.own["embedding"]((*ids.shape, table.shape[-1]), ids, table, axes=1)


def unchanged(before: Tensor, after: Tensor) -> bool:
    """Whether both hold the same numbers, NaN, which equals nothing, in the same places."""
    alike = before.shape == after.shape
    return alike and torch.allclose(before, after, rtol=0, atol=0, equal_nan=True)


def takes_mask(function: Callable[..., Any]) -> bool:
    """Whether weights are computed by ``function(q, k, mask)``, not by ``function(q, k)``.

    >>> takes_mask(attention_weights), takes_mask(lambda q, k: q @ k.mT)
    (True, False)
    """
    try:
        known = inspect.signature(function).parameters.values()
    except ValueError:  # of a builtin
        return False
    needed = [one for one in known if one.default is one.empty and one.kind <= 1]
    return len(needed) > 2 or any(one.name == "mask" for one in known)


def asks_for_single_numbers(name: str) -> str:
    """What is said of a function that cannot be called for all heads at once."""
    return (
        f"your {name} asks for single numbers (item(), float(), math.exp, if) or sets some, and it "
        f"is called for all heads at once. Write it with torch's functions of whole tensors, such "
        f"as torch.exp and torch.where."
    )


def has_changed_the_given(name: str) -> str:
    """What is said of a function that writes into its arguments."""
    return (
        f"your {name} has changed what it was given, in place (as x += 1 and x[0] = 1 do), and the "
        f"machine needs it unchanged. Begin with a copy: x = x.clone()."
    )


def require_result(
    name: str, result: Any, shape: Sequence[int], given: Sequence[Sequence[int]], axes: int
) -> None:
    """What a reader's function returned can take the place of the library's result."""
    if not isinstance(result, Tensor):
        raise TypeError(
            f"your {name} returned {type(result).__name__}; it must return a tensor. (Does it end "
            f"in a return?)"
        )
    free = -1 in shape  # heads and their width, of which the product is known
    alike = [wanted in (-1, found) for found, wanted in zip(result.shape, shape, strict=False)]
    numbers = result.numel() == math.prod(given[0]) if free else True
    if result.ndim != len(shape) or not all(alike) or not numbers:
        wanted = ", ".join("any" if size == -1 else str(size) for size in shape[axes:])
        of = " and ".join(str(tuple(one[axes:])) for one in given)
        raise ValueError(
            f"your {name} returned the shape {tuple(result.shape[axes:])}"
            f"{f' for {of}' if of else ''}; it must be ({wanted})"
            f"{', with as many numbers as it was given' if free else ''}."
        )
    if name == "causal_mask" and result.dtype != torch.bool:
        raise TypeError(
            f"your causal_mask returned {result.dtype}; it must be boolean, True = may be seen."
        )
    if not result.isfinite().all():
        raise ValueError(
            f"your {name} returned numbers that are NaN or infinite. (The exponential of a large "
            f"number is infinite, and infinity divided by infinity is NaN.)"
        )
