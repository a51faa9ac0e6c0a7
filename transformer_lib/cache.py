"""The caches of generation: what was computed for earlier tokens, kept for the next one.

A part makes its own: ``attention.new_cache(batch, capacity)`` returns a :class:`LayerCache`, a
block asks its attention, and a model its blocks. What a cache holds, only its part knows.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks

# Asked once: within a model that torch.compile traces, PyTorch 2.10 cannot be asked.
_AUTOCASTED = {
    device for device in ("cpu", "cuda", "mps", "xpu") if torch.amp.is_autocast_available(device)
}


def autocasts(device_type: str) -> bool:
    """Whether autocast chooses the dtypes there, so that those of the weights need not fit."""
    return device_type in _AUTOCASTED and torch.is_autocast_enabled(device_type)


def results_of(layer: nn.Module) -> dict[str, torch.dtype | torch.device]:
    """The dtype and device of what ``layer`` computes: those of its weights, or autocast's dtype.

    A layer without weights that are tensors (a quantized one) computes in PyTorch's default.

    >>> results_of(nn.Linear(2, 2, dtype=torch.float64))
    {'dtype': torch.float64, 'device': device(type='cpu')}
    """
    weights = (weight for weight in layer.parameters() if weight.is_floating_point())
    like = next(weights, torch.empty(0))
    device = like.device.type
    dtype = torch.get_autocast_dtype(device) if autocasts(device) else like.dtype
    return {"dtype": dtype, "device": like.device}


class LayerCache:
    """Room for what a part keeps of ``capacity`` tokens, allocated once.

    The base of the caches of attentions: memory for ``n_pieces`` vectors of each head and token. A
    subclass says in ``extend`` what goes in and what comes out. All that a model asks of a cache is
    ``batch``, ``length``, ``capacity``, ``rewind``, ``reset`` and ``select``.

    It is for generation: it refuses tensors that carry a gradient, since a backward pass through
    memory that is written again and again would be wrong. Use ``torch.no_grad()``.

    Raises:
        ValueError: a size is smaller than 1.
        TypeError: a size is not an int, ``dtype`` is not a floating point type.
    """

    def __init__(
        self,
        n_pieces: int,
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
        shape = (n_pieces, *sizes.values())
        with torch.inference_mode(False):  # it may be written to outside
            self._memory = torch.zeros(shape, dtype=dtype, device=device)
        self._length = 0

    @property
    def batch(self) -> int:
        """How many sequences are stored."""
        return self._memory.shape[1]

    @property
    def length(self) -> int:
        """How many tokens have been read."""
        return self._length

    @property
    def capacity(self) -> int:
        """How many tokens there is room for."""
        return self._memory.shape[3]

    def rewind(self, tokens: int) -> None:
        """Forget the newest ``tokens``."""
        self.require_rewind(tokens)
        self._length -= tokens

    def require_rewind(self, tokens: int) -> None:
        """The newest ``tokens`` can be forgotten.

        Raises:
            ValueError, TypeError: they cannot.
        """
        require_rewind(self._length, tokens)

    def reset(self) -> None:
        """Forget everything and keep the memory."""
        self._length = 0

    def select(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Sequence b goes on from what was sequence ``rows[b]``; rows may repeat (beam search)."""
        require_rows(rows)
        try:
            with torch.inference_mode(False):
                self._memory = self._memory[:, rows]
        except IndexError as error:  # on a CPU; a GPU would have to be waited for
            raise IndexError(
                f"rows are {rows.tolist()!s:.60}, and the cache holds {self.batch} sequences, 0 to "
                f"{self.batch - 1}."
            ) from error

    def __repr__(self) -> str:
        _, batch, n_heads, _, d_head = self._memory.shape
        return (
            f"{type(self).__name__}(batch={batch}, n_heads={n_heads}, length={self._length}, "
            f"capacity={self.capacity}, d_head={d_head})"
        )


class KeyValueCache(LayerCache):
    """Room for the keys and values of ``capacity`` tokens.

    A new token's query looks at all keys so far; keys and values of earlier tokens do not change,
    so they are stored instead of being computed again. One cache belongs to one attention module.

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
        super().__init__(2, batch, n_heads, capacity, d_head, dtype=dtype, device=device)

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
        require_cache_entry(self, keys, k=k, v=v)
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


class ModelCache:
    """All that a decoder keeps of the tokens so far: the cache of each of its layers, and what
    :meth:`before` was given, such as the embeddings that a ``Smear`` mixes into later ones.

    Made by the model, which asks its blocks: ``model.new_cache(batch)``.

    >>> cache = ModelCache([KeyValueCache(batch=1, n_heads=2, capacity=5, d_head=3)])
    >>> cache.length, cache
    (0, ModelCache(layers=1, batch=1, length=0, capacity=5))
    """

    def __init__(self, layers: Iterable[LayerCache]):
        self.layers = list(layers)
        require_layer_caches(self.layers)
        self._vectors: Float[Tensor, "batch capacity d_model"] | None = None

    @classmethod
    def of(cls, blocks: Iterable[nn.Module], batch: int, capacity: int) -> "ModelCache":
        """A cache for as many tokens of a stack of blocks, each of which makes its own."""
        blocks = list(blocks)
        for block in blocks:
            require_new_cache(block)
        return cls(block.new_cache(batch, capacity) for block in blocks)

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

        >>> cache = ModelCache([KeyValueCache(batch=1, n_heads=1, capacity=5, d_head=2)])
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
        """Forget the newest ``tokens`` of each sequence: all layers do, or, with an error, none."""
        for layer in self.layers:
            require_rewind(layer.length, tokens)
            if hasattr(layer, "require_rewind"):
                layer.require_rewind(tokens)
        for layer in self.layers:
            layer.rewind(tokens)

    def reset(self) -> None:
        """Forget everything and keep the memory."""
        for layer in self.layers:
            layer.reset()

    def select(self, rows: Int[Tensor, " new_batch"]) -> None:
        """Sequence b goes on from what was sequence ``rows[b]``, in every layer."""
        require_rows(rows)
        for layer in self.layers:
            layer.select(rows)
        if self._vectors is not None:
            with torch.inference_mode(False):
                self._vectors = self._vectors[rows]

    def __repr__(self) -> str:
        return (
            f"ModelCache(layers={len(self.layers)}, batch={self.batch}, length={self.length}, "
            f"capacity={self.capacity})"
        )


def require_cache_entry(cache: LayerCache, stored: Tensor, **pieces) -> None:
    """``pieces`` fit after the tokens that the cache holds, in memory like ``stored``."""
    batch, n_heads, _, d_head = stored.shape
    shapes = []
    for name, x in pieces.items():
        checks.require_float_tensor(x, name)
        if x.device != stored.device or x.dtype != stored.dtype:
            wrong = ValueError if x.device != stored.device else TypeError
            raise wrong(
                f"the cache is {stored.dtype} on {stored.device} and {name} is {x.dtype} on "
                f"{x.device}. Make the cache by the part that uses it, as it computes now: "
                f"new_cache(batch, capacity)."
            )
        if x.ndim != 4 or (*x.shape[:2], x.shape[3]) != (batch, n_heads, d_head):
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}; this cache takes [{batch}, {n_heads}, tokens, "
                f"{d_head}] (batch, heads, tokens, d_head). Make the cache by the part that uses "
                f"it: new_cache(batch, capacity)."
            )
        require_no_gradient(name, x)
        shapes.append(x.shape)
    if shapes[-1] != shapes[0]:
        raise ValueError(
            f"k has shape {tuple(shapes[0])} and v {tuple(shapes[-1])}: each key needs its value."
        )
    require_room(cache.length, shapes[0][2], cache.capacity)


def require_new_cache(part) -> None:
    """``part`` makes its own cache."""
    if not callable(getattr(part, "new_cache", None)):
        raise TypeError(
            f"{type(part).__name__} makes no cache, since it has no new_cache(batch, capacity). "
            f"Write one, such as `return KeyValueCache(batch, n_heads, capacity, d_head)`, and let "
            f"forward extend it; or generate without: cache=False."
        )


def require_layer_cache(cache, *more: str) -> None:
    """``cache`` answers all that a model asks of one, and ``more``."""
    names = ("batch", "length", "capacity", "rewind", "reset", "select", *more)
    if missing := [name for name in names if not hasattr(cache, name)]:
        raise TypeError(
            f"cache is of type {type(cache).__name__}, which has no {missing[0]}; make it by "
            f"new_cache(batch, capacity) of the part that uses it, and let one of your own be a "
            f"LayerCache."
        )


def require_layer_caches(layers: list) -> None:
    """A cache for each layer, of its own."""
    for layer in layers:
        require_layer_cache(layer)
    if not 0 < len(layers) == len({id(layer) for layer in layers}):
        raise ValueError(
            f"layers are {layers!r:.60}; there must be one at least, and each with a cache of its "
            f"own. Make it by model.new_cache(batch)."
        )


def require_own_cache(cache, part) -> None:
    """``cache``, or None, forgets no other tokens than ``part``, an attention, does."""
    if cache is None or not checks.is_known(type(cache)):
        return
    for name in ("window", "sinks"):
        if hasattr(cache, name) and getattr(cache, name) != getattr(part, name, None):
            raise ValueError(
                f"the cache keeps {name}={getattr(cache, name)}, and {name} of this "
                f"{type(part).__name__} is {getattr(part, name, None)}. Make the cache by the part "
                f"that uses it: new_cache(batch, capacity)."
            )


def require_layers(cache, blocks: nn.ModuleList, batch: int) -> None:
    """A cache of as many layers and sequences, or None; all layers are of one length."""
    if cache is None:
        return
    if not isinstance(cache, ModelCache):
        raise TypeError(
            f"cache is of type {type(cache).__name__}; make it by model.new_cache({batch}), or "
            f"leave it out: in training, a model is called with all tensors of a batch but the "
            f"last, its targets."
        )
    if (cache.batch, len(cache.layers)) != (batch, len(blocks)):
        raise ValueError(
            f"the cache is made for {cache.batch} sequences and {len(cache.layers)} layers; "
            f"ids hold {batch} sequences and the model has {len(blocks)} layers. "
            f"Make the cache by model.new_cache({batch})."
        )
    require_extended(cache, 0)


def require_extended(cache: ModelCache | None, tokens: int) -> None:
    """Every layer has stored as much, the newest ``tokens`` at least, if there is a cache."""
    lengths = [] if cache is None else [layer.length for layer in cache.layers]
    for at, length in enumerate(lengths):
        if length < max(tokens, *lengths):
            raise ValueError(
                f"the cache of block {at} holds {length} tokens, and {max(tokens, *lengths)} have "
                f"been read. An attention must add each token to the cache that it is given (if "
                f"it keeps nothing, generate with cache=False). After a call that failed: reset()."
            )


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


def require_rows(rows: Tensor) -> None:
    """``rows`` number sequences. (Whether there are as many is for the indexing to say.)"""
    if not isinstance(rows, Tensor) or rows.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"rows are {rows!r:.60}; give the numbers of sequences, a tensor of int64.")
    if rows.ndim != 1 or not len(rows):
        raise ValueError(
            f"rows have shape {tuple(rows.shape)}; give the number of a sequence for each new one, "
            f"a tensor with one axis."
        )


def require_rewind(length: int, tokens: int) -> None:
    """``tokens`` of the ``length`` that are stored can be forgotten."""
    checks.require_whole(tokens, "tokens")
    if not 0 <= tokens <= length:
        raise ValueError(
            f"{tokens} tokens cannot be rewound: the cache holds {length}. Choose 0 to {length}."
        )
