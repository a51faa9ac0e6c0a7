"""A sliding window with sinks: each token sees those just before it, and the first of the text."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lib import checks
from transformer_lib.attention import MultiHeadAttention, split_heads
from transformer_lib.cache import LayerCache, require_cache_entry, results_of
from transformer_lib.fast.steps import TokenStep, linear_step, speaker
from transformer_lib.masks import combine_masks, sliding_window_mask


class WindowCache(LayerCache):
    """Room for the keys and values of the first ``sinks`` tokens and the newest ``window``.

    It can read ``capacity`` tokens, and its memory does not grow with them: a new token takes the
    place of the one that leaves the window. The newest token can be rewound, and no more once the
    window has moved.

    >>> cache = WindowCache(1, 1, capacity=100, d_head=2, window=3, sinks=1)
    >>> keys, values = cache.extend(*torch.ones(2, 1, 1, 10, 2))
    >>> keys, values = cache.extend(*torch.ones(2, 1, 1, 1, 2))
    >>> cache.length, keys.shape[2]  # the sink, the window before the new token, and the token
    (11, 5)
    """

    def __init__(
        self,
        batch: int,
        n_heads: int,
        capacity: int,
        d_head: int,
        *,
        window: int,
        sinks: int,
        **like,
    ):
        checks.require_count(capacity, "capacity")
        checks.require_count(window, "window")
        checks.require_count(sinks, "sinks", least=0)
        room = min(capacity, sinks + window)
        super().__init__(2, batch, n_heads, room, d_head, **like)
        self._capacity, self.window, self.sinks = capacity, window, sinks
        self._written = 0  # how many tokens have been stored, those that were rewound included

    @property
    def capacity(self) -> int:
        """How many tokens it can read."""
        return self._capacity

    def extend(
        self,
        k: Float[Tensor, "batch n_heads tokens d_head"],
        v: Float[Tensor, "batch n_heads tokens d_head"],
    ) -> tuple[
        Float[Tensor, "batch n_heads kept d_head"], Float[Tensor, "batch n_heads kept d_head"]
    ]:
        """Append ``k`` and ``v``; return the keys and values of the sinks, of the window before the
        first new token, and of the new ones, in the order of the text.
        """
        require_cache_entry(self, self._memory[0], k=k, v=v)
        start, end = self._length, self._length + k.shape[2]
        before = self._memory[:, :, :, self.slots(self.kept(start))]
        new = torch.stack((k, v))
        places = self.kept(end, start)
        self._memory[:, :, :, self.slots(places)] = new[:, :, :, places - start]
        self._length, self._written = end, max(end, self._written)
        return torch.cat((before, new), dim=3).unbind()

    def append(
        self, kv: Float[Tensor, "2 batch n_heads d_head"]
    ) -> tuple[
        Float[Tensor, "batch*n_heads kept d_head"], Float[Tensor, "batch*n_heads kept d_head"]
    ]:
        """:meth:`extend` by one token, without checks, for steps: the sinks first, then the window
        in any order.
        """
        place = self._length
        slot = place if place < self.sinks else self.sinks + (place - self.sinks) % self.window
        self._memory.select(3, slot).copy_(kv)
        self._length, self._written = place + 1, max(place + 1, self._written)
        kept = min(self._length, self._memory.shape[3])
        return self._memory.flatten(1, 2).narrow(2, 0, kept).unbind()

    def kept(self, length: int, start: int = 0) -> Int[Tensor, " kept"]:
        """Which of the first ``length`` tokens are in the memory then, from ``start`` on."""
        first = max(self.sinks, length - self.window, start)
        places = [*range(start, min(self.sinks, length)), *range(first, length)]
        return torch.tensor(places, dtype=torch.int64, device=self._memory.device)

    def slots(self, places: Int[Tensor, " kept"]) -> Int[Tensor, " kept"]:
        """Where in the memory these tokens are."""
        around = self.sinks + (places - self.sinks) % self.window
        return torch.where(places < self.sinks, places, around)

    def require_rewind(self, tokens: int) -> None:
        """The newest ``tokens`` can be forgotten: nothing that is gone is missed then."""
        super().require_rewind(tokens)
        require_in_window(self, tokens)

    def reset(self) -> None:
        """Forget everything and keep the memory."""
        super().reset()
        self._written = 0


class WindowAttention(MultiHeadAttention):
    """Each token attends to ``window`` tokens, itself and those before it, and to the first
    ``sinks`` of the text, on which heads put the weight that they do not need.

    It always looks back only, ``causal`` or not. Its cache holds ``sinks + window`` tokens, however
    long the text. Positions, which must be such as turn queries and keys, are those in the cache:
    to the newest token, a sink is never farther away than ``sinks + window - 1``, so no distance
    is new to the model however far it writes.

    Args:
        window: how many tokens, itself included, each token sees.
        sinks: how many tokens at the beginning of the text every token sees.
        d_model, n_heads, options: as for :class:`~transformer_lib.attention.MultiHeadAttention`.

    Raises:
        ValueError: as :class:`~transformer_lib.attention.MultiHeadAttention`; a window below 1,
            sinks below 0, positions that add a bias; in ``forward``, a memory.

    Source: Xiao et al. 2023 (StreamingLLM), section 3.2.

    >>> attend = WindowAttention(d_model=8, n_heads=2, window=3, sinks=1)
    >>> attend(torch.zeros(1, 5, 8), causal=True).shape
    torch.Size([1, 5, 8])
    """

    def __init__(self, d_model: int, n_heads: int, *, window: int, sinks: int = 4, **options):
        super().__init__(d_model, n_heads, **options)
        require_window(window, sinks, self.positions)
        self.window, self.sinks = window, sinks

    def project(self, x, memory=None, cache=None):
        """Queries, keys and values, as for all attentions. With positions, and more tokens than the
        cache keeps, queries and keys are twice as wide: a key fills one half, a sink the other,
        which in the query is turned by its place in the cache. (The queries are longer by √2 for
        it, since a scale follows.)
        """
        require_no_memory(memory)
        start, tokens = (0 if cache is None else cache.length), x.shape[1]
        q = split_heads(self.query(x), self.n_heads)
        k, v = self.keys_and_values(x, start)
        k, v = (k, v) if cache is None else cache.extend(k, v)
        k, v = self.for_each_head(k, v)
        turned = self.placed(q, start)
        last = self.sinks + self.window - 1  # the newest token's place in a full cache
        early = min(max(last + 1 - start, 0), tokens)
        if self.positions is None or self.sinks == 0 or early == tokens:
            return turned, k, v
        late = self.placed(q[:, :, early:].flatten(1, 2).unsqueeze(2), last)  # all at one place
        late = late.unflatten(1, (self.n_heads, tokens - early)).squeeze(3)
        to_sinks = torch.cat((turned[:, :, :early], late), dim=2)
        sink = (torch.arange(k.shape[2], device=k.device) < self.sinks).unsqueeze(1)
        k = torch.cat((k.masked_fill(sink, 0.0), k.masked_fill(~sink, 0.0)), dim=-1)
        return torch.cat((turned, to_sinks), dim=-1) * 2**0.5, k, v

    def mask_and_bias(self, q, k, mask):
        """The window and the sinks; of a ``mask`` over all keys, those that the cache has kept."""
        queries, keys = q.shape[-2], k.shape[-2]
        mask, bias = super().mask_and_bias(q, k, mask)
        if mask is not None and mask.shape[-1] > keys:
            newest = mask[..., mask.shape[-1] - (keys - self.sinks) :]
            mask = torch.cat((mask[..., : self.sinks], newest), dim=-1)
        seen = sliding_window_mask(queries, self.window, keys, device=q.device)
        place = torch.arange(keys - queries, keys, device=q.device).unsqueeze(1)
        key = torch.arange(keys, device=q.device)
        return combine_masks(mask, seen | (key < self.sinks) & (key <= place)), bias

    def new_cache(self, batch: int, capacity: int) -> WindowCache:
        """An empty cache for ``batch`` texts of up to ``capacity`` tokens."""
        options = {"window": self.window, "sinks": self.sinks} | results_of(self.key)
        return WindowCache(batch, self.n_kv_heads, capacity, self.d_head, **options)

    def stepper(self, cache: LayerCache) -> TokenStep | None:
        """x -> x for one token, causal, which extends the cache: see :mod:`fast.steps`."""
        if not isinstance(cache, WindowCache) or speaker(cache, "append") is None:
            return None
        query, output = linear_step(self.query), linear_step(self.output)
        both = linear_step(self.key, self.value)
        shape, groups = (-1, self.n_kv_heads, self.d_head), self.n_heads // self.n_kv_heads
        scale, last = self.d_head**-0.5, self.sinks + self.window - 1

        def placed(x: Tensor, place: int) -> Tensor:
            return self.placed(x.unsqueeze(2), place).squeeze(2)

        def step(x: Tensor) -> Tensor:
            place = cache.length
            q = query(x).view(-1, self.n_heads, self.d_head)
            k, v = both(x).view(-1, 2, *shape[1:]).unbind(1)
            keys, values = cache.append(torch.stack((placed(k, place), v)))
            scores = placed(q, place).reshape(-1, groups, self.d_head) @ keys.mT
            if place > last and self.positions is not None:
                to_sinks = placed(q, last).reshape(-1, groups, self.d_head)
                scores[..., : self.sinks] = to_sinks @ keys[:, : self.sinks].mT
            result = (scores * scale).softmax(dim=-1) @ values
            return output(result.reshape(*x.shape[:-1], -1))

        return step

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, window={self.window}, sinks={self.sinks}"


def require_window(window: int, sinks: int, positions) -> None:
    """A window and sinks, and positions (or None) that can be those in a cache."""
    checks.require_count(window, "window")
    checks.require_count(sinks, "sinks", 0)
    bias = None if positions is None else positions.bias(1, 1, torch.device("cpu"), torch.float32)
    if bias is not None:
        raise ValueError(
            f"{positions} adds a bias by distances in the text; a window with sinks counts those "
            f"in its cache. Choose rotary positions, or some that are added to the embeddings."
        )


def require_no_memory(memory) -> None:
    """There is no memory: a window is one of the same sequence."""
    if memory is not None:
        raise ValueError(
            "a memory is given; a window is around the place of a token in its own sequence. Use "
            "MultiHeadAttention to read a memory."
        )


def require_in_window(cache: WindowCache, tokens: int) -> None:
    """Before what is left, there is a whole window in the memory, or all."""
    left = cache.length - tokens
    if left < cache._written - 1 and cache._written > cache.sinks + cache.window:
        raise ValueError(
            f"{tokens} tokens cannot be rewound: the cache keeps a window of {cache.window}, and "
            f"what came before it is gone. Rewind 1 token at most, or reset() and read again."
        )
