"""The caches of generation: what was computed for earlier tokens, kept for the next one."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer_lib import checks

# Asked once: within a model that torch.compile traces, PyTorch 2.10 cannot be asked.
_AUTOCASTED = {
    device for device in ("cpu", "cuda", "mps", "xpu") if torch.amp.is_autocast_available(device)
}


def autocasts(device_type: str) -> bool:
    """Whether autocast chooses the dtypes there, so that those of the weights need not fit."""
    return device_type in _AUTOCASTED and torch.is_autocast_enabled(device_type)


def compute_dtype(weight: Tensor) -> torch.dtype:
    """The dtype in which products with ``weight`` are computed: its own, or autocast's."""
    device = weight.device.type
    return torch.get_autocast_dtype(device) if autocasts(device) else weight.dtype


class KeyValueCache:
    """Room for the keys and values of ``capacity`` tokens, allocated once.

    A new token's query looks at all keys so far; keys and values of earlier tokens do not change,
    so they are stored instead of being computed again. One cache belongs to one attention module.

    It is for generation: it refuses tensors that carry a gradient, since a backward pass through
    memory that is written again and again would be wrong. Use ``torch.no_grad()``.

    Shapes: keys and values are ``[batch, n_heads, tokens, d_head]``.

    Raises:
        ValueError: a size is smaller than 1; in :meth:`extend`, a shape or device that does not
            fit, more tokens than there is room for, or a tensor that carries a gradient. Then
            nothing has been written.
        TypeError: ``dtype`` is not a floating point type; in :meth:`extend`, the dtype differs.

    >>> cache = KeyValueCache(batch=1, n_heads=2, capacity=5, d_head=3)
    >>> keys, values = cache.extend(torch.ones(1, 2, 4, 3), torch.zeros(1, 2, 4, 3))
    >>> keys.shape, cache
    (torch.Size([1, 2, 4, 3]), KeyValueCache(batch=1, n_heads=2, length=4, capacity=5, d_head=3))
    """

    def __init__(
        self,
        batch: int,
        n_heads: int,
        capacity: int,
        d_head: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        sizes = {"batch": batch, "n_heads": n_heads, "capacity": capacity, "d_head": d_head}
        for name, size in sizes.items():
            checks.require_count(size, name)
        checks.require_float_dtype(dtype)
        shape = (2, batch, n_heads, capacity, d_head)  # 2: keys and values
        self._memory = torch.zeros(shape, dtype=dtype, device=device)
        self._length = 0

    @property
    def batch(self) -> int:
        """How many sequences are stored."""
        return self._memory.shape[1]

    @property
    def n_heads(self) -> int:
        """How many heads the keys and values have."""
        return self._memory.shape[2]

    @property
    def d_head(self) -> int:
        """Width of each key and value."""
        return self._memory.shape[4]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the keys and values."""
        return self._memory.dtype

    @property
    def device(self) -> torch.device:
        """The device of the keys and values."""
        return self._memory.device

    @property
    def length(self) -> int:
        """How many tokens are stored."""
        return self._length

    @property
    def capacity(self) -> int:
        """How many tokens there is room for."""
        return self._memory.shape[3]

    def extend(
        self,
        k: Float[Tensor, "batch n_heads tokens d_head"],
        v: Float[Tensor, "batch n_heads tokens d_head"],
    ) -> tuple[
        Float[Tensor, "batch n_heads length d_head"], Float[Tensor, "batch n_heads length d_head"]
    ]:
        """Append ``k`` and ``v``; return all keys and values so far.

        What is returned are views of the cache's own memory, good until :meth:`reset`.
        """
        keys, values = self._memory
        require_cache_entry(keys, self._length, k, v)
        end = self._length + k.shape[2]
        keys[:, :, self._length : end] = k
        values[:, :, self._length : end] = v
        self._length = end
        return keys[:, :, :end], values[:, :, :end]

    def append(
        self, kv: Float[Tensor, "2 batch n_heads d_head"]
    ) -> tuple[
        Float[Tensor, "batch*n_heads length d_head"], Float[Tensor, "batch*n_heads length d_head"]
    ]:
        """:meth:`extend` by the key and value of one token, without checks, as ``torch.bmm`` takes
        them: for the steps of :mod:`transformer_lib.fast.steps`.

        >>> cache = KeyValueCache(batch=1, n_heads=2, capacity=5, d_head=3)
        >>> keys, values = cache.append(torch.ones(2, 1, 2, 3))
        >>> keys.shape
        torch.Size([2, 1, 3])
        """
        self._memory.select(3, self._length).copy_(kv)
        self._length += 1
        return self._memory.flatten(1, 2).narrow(2, 0, self._length).unbind()

    def rewind(self, tokens: int) -> None:
        """Forget the newest ``tokens``."""
        require_rewind(self._length, tokens)
        self._length -= tokens

    def reset(self) -> None:
        """Forget everything and keep the memory."""
        self._length = 0

    def select(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Sequence b goes on from what was sequence ``rows[b]``; rows may repeat (beam search)."""
        self._memory = self._memory[:, rows]

    def __repr__(self) -> str:
        _, batch, n_heads, capacity, d_head = self._memory.shape
        return (
            f"KeyValueCache(batch={batch}, n_heads={n_heads}, length={self._length}, "
            f"capacity={capacity}, d_head={d_head})"
        )


class ModelCache:
    """All that a decoder keeps of the tokens so far: a :class:`KeyValueCache` for each layer, and
    what :meth:`before` was given, such as the embeddings that a ``Smear`` mixes into later ones.

    Made by the model, which knows the sizes: ``model.new_cache(batch)``.

    Raises:
        ValueError: ``n_layers`` or a size of :class:`KeyValueCache` is smaller than 1.

    >>> cache = ModelCache(2, batch=1, n_heads=2, capacity=5, d_head=3)
    >>> cache.length, cache
    (0, ModelCache(layers=2, batch=1, length=0, capacity=5))
    """

    def __init__(
        self,
        n_layers: int,
        batch: int,
        n_heads: int,
        capacity: int,
        d_head: int,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        checks.require_count(n_layers, "n_layers")
        sizes = (batch, n_heads, capacity, d_head)
        options = {"dtype": dtype, "device": device}
        self.layers = [KeyValueCache(*sizes, **options) for _ in range(n_layers)]
        self._vectors: Float[Tensor, "batch capacity d_model"] | None = None

    @property
    def batch(self) -> int:
        """How many sequences are stored."""
        return self.layers[0].batch

    @property
    def length(self) -> int:
        """How many tokens of each sequence are stored."""
        return self.layers[0].length

    @property
    def capacity(self) -> int:
        """How many tokens there is room for."""
        return self.layers[0].capacity

    def before(
        self, x: Float[Tensor, "batch tokens d_model"], reach: int
    ) -> Float[Tensor, "batch last d_model"]:
        """Store ``x``, the vectors of the tokens that come now; return those of the ``reach``
        tokens before them, or of all there are.

        Call it before the layers extend their caches. What it stores for tokens that are rewound,
        or that no layer stores in the end, is written over.

        >>> cache = ModelCache(1, batch=1, n_heads=1, capacity=5, d_head=2)
        >>> cache.before(torch.ones(1, 1, 2), reach=3).shape
        torch.Size([1, 0, 2])
        """
        start, tokens = self.length, x.shape[1]
        if self._vectors is None:
            shape = (self.batch, self.capacity, x.shape[2])
            with torch.inference_mode(False):  # a step may come first, and a whole pass later
                self._vectors = torch.zeros(shape, dtype=x.dtype, device=x.device)
        self._vectors[:, start : start + tokens] = x.detach()
        return self._vectors[:, max(0, start - reach) : start]

    def rewind(self, tokens: int) -> None:
        """Forget the newest ``tokens`` of each sequence."""
        for layer in self.layers:
            layer.rewind(tokens)

    def reset(self) -> None:
        """Forget everything and keep the memory."""
        for layer in self.layers:
            layer.reset()

    def select(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Sequence b goes on from what was sequence ``rows[b]``, in every layer."""
        self._vectors = None if self._vectors is None else self._vectors[rows]
        for layer in self.layers:
            layer.select(rows)

    def __repr__(self) -> str:
        return (
            f"ModelCache(layers={len(self.layers)}, batch={self.batch}, length={self.length}, "
            f"capacity={self.capacity})"
        )


@checks.at_the_door
def require_cache_entry(stored: Tensor, length: int, k, v) -> None:
    """``k`` and ``v`` fit after the ``length`` tokens that ``stored`` already holds."""
    batch, n_heads, capacity, d_head = stored.shape
    for name, x in (("k", k), ("v", v)):
        checks.require_float_tensor(x, name)
        checks.require_same("the cache", stored, name, x)
        if x.ndim != 4 or (*x.shape[:2], x.shape[3]) != (batch, n_heads, d_head):
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}; this cache takes [{batch}, {n_heads}, tokens, "
                f"{d_head}] (batch, heads, tokens, d_head). Make the cache for these sizes."
            )
        require_no_gradient(name, x)
    if k.shape != v.shape:
        raise ValueError(
            f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}: each key needs its value."
        )
    require_room(length, k.shape[2], capacity)


def require_no_gradient(name: str, x: Tensor) -> None:
    """Nothing that is computed from ``x`` would carry a gradient into a cache."""
    if x.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"{name} carries a gradient; a cache is for generation, its memory is written "
            f"again and again. Call the model under torch.no_grad()."
        )


def require_room(length: int, tokens: int, capacity: int) -> None:
    """A cache has room for ``tokens`` more."""
    if length + tokens > capacity:
        raise ValueError(
            f"the cache holds {length} of at most {capacity} tokens and cannot take {tokens} more. "
            f"Make it with capacity={length + tokens} or larger, or call reset()."
        )


def require_rewind(length: int, tokens: int) -> None:
    """``tokens`` of the ``length`` that are stored can be forgotten."""
    if not 0 <= tokens <= length:
        raise ValueError(
            f"{tokens} tokens cannot be rewound: the cache holds {length}. Choose 0 to {length}."
        )
