"""The Transformer of the paper: an encoder reads the source, a decoder writes the target."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.attention import KeysAndValues
from transformer_lib.blocks import require_stream
from transformer_lib.cache import ModelCache, require_extended, require_layers, require_room
from transformer_lib.fast import ragged
from transformer_lib.fast.steps import TokenStep, model_step, stepper_of
from transformer_lib.layers import Embedding, evaluating
from transformer_lib.wiring import Wiring

PADDING, BEGIN, END = 0, 1, 2  # the ids of tokenizers.SPECIALS


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(Wiring):
    """Everything that determines an encoder-decoder but its weights, wired as in the paper.

    Attributes:
        source_vocabulary, target_vocabulary: number of token ids of each side. The first three of
            each are :data:`~transformer_lib.tokenizers.SPECIALS`.
        shared: whether both sides have one table of embeddings (and so one vocabulary).
        tied: whether the target's table is the output's matrix as well.

    The other fields are those of :class:`~transformer_lib.wiring.Wiring`: ``n_layers`` are those of
    the encoder and as many of the decoder, and ``context`` the longest sequence of either side.

    Raises:
        ValueError, TypeError: a field that does not make a model; the message says which, why, and
            what to choose.

    >>> EncoderDecoderConfig.paper(n_layers=2).n_layers
    2
    """

    source_vocabulary: int
    target_vocabulary: int
    shared: bool = False
    tied: bool = True
    norm: str = "post"
    activation: str = "relu"
    positions: str = "sinusoidal"
    projections: str = "normal"

    def __post_init__(self):
        super().__post_init__()
        require_vocabularies(self)

    @classmethod
    def paper(cls, **changes) -> "EncoderDecoderConfig":
        """The base model of Vaswani et al. 2017, table 3; ``changes`` of its fields."""
        sizes = {"context": 1024, "n_layers": 6, "n_heads": 8, "d_model": 512, "d_ff": 2048}
        tables = {"source_vocabulary": 37_000, "target_vocabulary": 37_000, "shared": True}
        return cls(**sizes | tables | {"dropout": 0.1} | changes)

    @classmethod
    def fast(cls, **sizes) -> "EncoderDecoderConfig":
        """The wiring that learns fastest in this book's runs; give the sizes, change what you like.

        Pre-norm, rotary positions, ReLU², no biases, projections that start at zero.
        """
        wiring = {"norm": "pre", "positions": "rotary", "activation": "relu_squared"}
        return cls(**wiring | {"bias": False, "projections": "zero"} | sizes)

    def make_embedding(self, vocabulary: int) -> Embedding:
        """The first part of a side: from ids to vectors."""
        options = {"positions": self.make_positions(), "scale": self.d_model**0.5}
        return Embedding(vocabulary, self.d_model, dropout=self.dropout, **options)


class EncoderDecoder(nn.Module):
    """An encoder that reads the whole source, and a decoder that writes the target token by token.

    Both are stacks of blocks. Each block of the decoder also reads the memory, the vectors that the
    encoder made of the source. Sequences of a batch are padded on the right with id 0: the source's
    padding is hidden from everybody, and the target's comes after all that could look back at it.

    Source: Vaswani et al. 2017, section 3.

    >>> config = EncoderDecoderConfig(source_vocabulary=11, target_vocabulary=13, context=9,
    ...                               n_layers=2, n_heads=2, d_model=12)
    >>> model = EncoderDecoder(config)
    >>> model(torch.tensor([[3, 4, 5, 0]]), torch.tensor([[1, 7, 8]])).shape
    torch.Size([1, 3, 13])
    >>> with torch.device("meta"):  # shapes only: no memory, no numbers
    ...     EncoderDecoder(EncoderDecoderConfig.paper()).n_parameters
    63082496
    """

    def __init__(self, config: EncoderDecoderConfig):
        super().__init__()
        checks.require_kind(config, "config", EncoderDecoderConfig)
        self.config, layers = config, range(config.n_layers)
        self.source_embedding = config.make_embedding(config.source_vocabulary)
        # A table that both sides share, or that is the output's, too, has one name only.
        self.target_embedding = (
            None if config.shared else config.make_embedding(config.target_vocabulary)
        )
        self.encoder = nn.ModuleList(config.make_block() for _ in layers)
        self.decoder = nn.ModuleList(config.make_cross_block() for _ in layers)
        # With post-norm, the last block has normalized already.
        pre = config.norm == "pre"
        self.encoder_norm, self.decoder_norm = (
            config.make_norm() if pre else nn.Identity() for _ in range(2)
        )
        self.head = (
            None if config.tied else nn.Linear(config.d_model, config.target_vocabulary, bias=False)
        )
        self.initialize()

    @torch.no_grad()
    def initialize(self) -> None:
        """Draw the matrices anew: uniform as by Glorot and Bengio 2010, biases 0; tables normal
        with a spread of 1/√d_model, so that the scaled vectors have components of about 1.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.config.d_model**-0.5)
        writing = [(b.attention.output, b.feed_forward.contract) for b in self.encoder]
        self.config.start_projections([layer for layers in writing for layer in layers])
        writing = [
            (b.attention.output, b.cross_attention.output, b.feed_forward.contract)
            for b in self.decoder
        ]
        self.config.start_projections([layer for layers in writing for layer in layers])

    @checks.require_once
    def forward(
        self, source: Int[Tensor, "batch keys"], target: Int[Tensor, "batch tokens"]
    ) -> Float[Tensor, "batch tokens vocabulary"]:
        """Logits: row t scores the target's token after token t, given the source and tokens 0 … t.

        Raises:
            ValueError: not ``[batch, tokens]``, as many sources as targets, ids beyond a
                vocabulary, padding before a sequence, a source of nothing but padding, more tokens
                than the context.
            TypeError: ids that are not integers.
        """
        require_input(self, source, target)
        return self.decode(target, self.encode(source), self.readable(source))

    def readable(self, source: Int[Tensor, "batch keys"]) -> Bool[Tensor, "batch 1 keys"]:
        """The mask that hides the source's padding, as keys, from every query."""
        return (source != PADDING).unsqueeze(1)

    def encode(self, source: Int[Tensor, "batch keys"]) -> Float[Tensor, "batch keys d_model"]:
        """The memory: a vector for each token of the source, made in view of all of them."""
        x, mask = self.source_embedding(source), self.readable(source)
        for block in self.encoder:
            x = block(x, mask)
        return self.encoder_norm(x)

    def decode(
        self,
        target: Int[Tensor, "batch tokens"],
        memory: Float[Tensor, "batch keys d_model"] | Sequence[KeysAndValues | Tensor],
        readable: Bool[Tensor, "batch 1 keys"],
        cache: ModelCache | None = None,
    ) -> Float[Tensor, "batch tokens vocabulary"]:
        """Logits of the tokens after each of ``target``'s. The memory is one for all blocks, or for
        each what its attention reads of it (see :meth:`given`).
        """
        require_readable(readable)
        x = self.of_target(target, cache)
        memories = [memory] * len(self.decoder) if isinstance(memory, Tensor) else memory
        caches = [None] * len(self.decoder) if cache is None else cache.layers
        for block, read, layer in zip(self.decoder, memories, caches, strict=True):
            x = block(x, read, memory_mask=readable, causal=True, cache=layer)
        require_stream(x, target)
        x = self.decoder_norm(x)
        return self.of_target.logits(x) if self.head is None else self.head(x)

    def stepper(
        self,
        cache: ModelCache,
        memory: Sequence[KeysAndValues | Tensor],
        readable: Bool[Tensor, "batch 1 keys"],
    ) -> TokenStep | None:
        """ids ``[batch]`` -> logits ``[batch, vocabulary]``, as :meth:`decode` gives them: see
        :mod:`fast.decoding`.
        """
        steppers = [stepper_of(part) for part in (self.of_target, *self.decoder)]
        if None in steppers:
            return None
        embed = steppers[0](cache)
        layers = zip(steppers[1:], cache.layers, memory, strict=True)
        blocks = [stepper(layer, read, readable) for stepper, layer, read in layers]
        if embed is None or None in blocks:
            return None
        return model_step(embed, blocks, self.decoder_norm, self.head, self.of_target)

    def counted_logits(
        self,
        source: Int[Tensor, "batch keys"],
        target: Int[Tensor, "batch tokens"],
        counted: Bool[Tensor, "batch tokens"],
    ) -> Float[Tensor, "counted vocabulary"] | None:
        """``forward(source, target)[counted]``, computed without the padding, for training; None
        where calling ``forward`` is as good: see :mod:`fast.ragged`.
        """
        require_input(self, source, target)
        require_counted(counted, target)
        return ragged.counted_logits(self, source, target, counted)

    @property
    def of_target(self) -> Embedding:
        """The target's embedding."""
        return self.source_embedding if self.target_embedding is None else self.target_embedding

    @torch.no_grad()
    def given(self, source: Int[Tensor, "batch keys"]) -> "Conditioned":
        """A language model of the target, given these sources: what they say is read once, without
        dropout. (That of the decoder is off in evaluation mode, as always: ``eval()``.)
        """
        with evaluating(self):
            return Conditioned(self, source)

    @property
    def n_parameters(self) -> int:
        """How many numbers are learned; a table that is shared or tied counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


class Conditioned(nn.Module):
    """The decoder of ``model``, given sources: a language model like GPT, with ``config``,
    ``new_cache`` and ``(ids, cache) -> logits``, so that all that generates takes it.

    If ``ids`` have n times as many rows as there are sources, n rows after one another belong to
    each source (as in beam search). Made by :meth:`EncoderDecoder.given`, for evaluation.

    >>> config = EncoderDecoderConfig(source_vocabulary=11, target_vocabulary=13, context=9,
    ...                               n_layers=2, n_heads=2, d_model=12)
    >>> model = EncoderDecoder(config).eval().given(torch.tensor([[3, 4, 5]]))
    >>> with torch.no_grad():
    ...     model(torch.tensor([[1, 7, 8]])).shape
    torch.Size([1, 3, 13])
    """

    def __init__(self, model: EncoderDecoder, source: Int[Tensor, "batch keys"]):
        super().__init__()
        require_source(model, source)
        warn_of_unused(model)
        self.model, self.config, self.sources = model, TargetSizes(model.config), len(source)
        memory = ragged.memory(model, source)
        read = [block.to_read(memory) for block in model.decoder]
        self._read = {1: (read, model.readable(source))}  # by rows of ids for each source

    @checks.require_once
    def forward(
        self, ids: Int[Tensor, "batch tokens"], cache: ModelCache | None = None
    ) -> Float[Tensor, "batch tokens vocabulary"]:
        """Logits; with a cache, ``ids`` are the tokens after those in the cache.

        Raises:
            ValueError, TypeError: as ``EncoderDecoder.forward``; rows that cannot be shared out
                among the sources; more tokens than the context or the cache has room for.
        """
        require_layers(cache, self.model.decoder, len(ids))
        require_target(self.model, ids, 0 if cache is None else cache.length)
        if cache is not None:
            require_room(cache.length, ids.shape[1], cache.capacity)
        read, readable = self._read_by(require_shared_out(len(ids), self.sources))
        logits = self.model.decode(ids, read, readable, cache)
        require_extended(cache, ids.shape[1])
        return logits

    def stepper(self, cache: ModelCache) -> TokenStep | None:
        """ids ``[batch]`` -> logits ``[batch, vocabulary]``: see :mod:`fast.decoding`."""
        stepper = stepper_of(self.model)
        return None if stepper is None else stepper(cache, *self._read[1])

    def _apply(self, fn: Callable, *args: Any, **kwargs: Any) -> "Conditioned":
        """``to``, ``double`` and so on: what was read of the sources goes with the weights."""
        super()._apply(fn, *args, **kwargs)
        read, readable = self._read[1]
        moved = [
            fn(one) if isinstance(one, Tensor) else KeysAndValues(*map(fn, one)) for one in read
        ]
        self._read = {1: (moved, fn(readable))}
        return self

    def _read_by(self, rows: int) -> tuple[list[KeysAndValues | Tensor], Tensor]:
        """What is read of the sources, each repeated for its rows."""
        if rows not in self._read:
            read, readable = self._read[1]
            repeated = [
                one.repeat_interleave(rows, 0)
                if isinstance(one, Tensor)
                else KeysAndValues(*(x.repeat_interleave(rows, 0) for x in one))
                for one in read
            ]
            self._read = {1: (read, readable)}
            self._read[rows] = repeated, readable.repeat_interleave(rows, 0)
        return self._read[rows]

    def new_cache(self, batch: int, capacity: int | None = None) -> ModelCache:
        """An empty cache for ``batch`` targets of up to ``capacity`` tokens (None: the context)."""
        capacity = self.config.context if capacity is None else capacity
        return ModelCache.of(self.model.decoder, batch, capacity)


@dataclass(frozen=True)
class TargetSizes:
    """The sizes of the target's side, as generation needs them."""

    of: EncoderDecoderConfig

    @property
    def vocabulary(self) -> int:
        """Number of the target's token ids."""
        return self.of.target_vocabulary

    @property
    def context(self) -> int:
        """How many tokens at most."""
        return self.of.context


def warn_of_unused(model: EncoderDecoder) -> None:
    """What is done to the model's ``forward`` alone has no effect on what it generates."""
    unused = {
        "a forward of its own": type(model).forward is not EncoderDecoder.forward
        or "forward" in vars(model),
        "hooks": model._forward_hooks or model._forward_pre_hooks,
    }
    if found := [what for what, there in unused.items() if there]:
        warnings.warn(
            f"this {type(model).__name__} has {' and '.join(found)}, without effect here: what is "
            f"generated comes from decode. Change decode, or put it on a part (model.head).",
            stacklevel=5,
        )


def require_vocabularies(config: EncoderDecoderConfig) -> None:
    """Both vocabularies hold the special tokens, and are one if they share a table."""
    for name in ("source_vocabulary", "target_vocabulary"):
        checks.require_count(getattr(config, name), name)
        if getattr(config, name) <= END:
            raise ValueError(
                f"{name} is {getattr(config, name)}; ids 0 to {END} are padding, begin and end, so "
                f"it must be at least {END + 1}."
            )
    if config.shared and config.source_vocabulary != config.target_vocabulary:
        raise ValueError(
            f"the table is shared, but source_vocabulary is {config.source_vocabulary} and "
            f"target_vocabulary {config.target_vocabulary}. Make one vocabulary of both languages, "
            f"or choose shared=False."
        )


def require_source(model: EncoderDecoder, source) -> None:
    """Sources of this model, each with at least one token that is not padding."""
    config = model.config
    checks.require_ids(source, config.source_vocabulary, "source")
    checks.require_same_device("the model", model.source_embedding.weight, "source", source)
    checks.require_context(source.shape[1], config.context)
    if checks.can_be_read(source):
        empty = (source == PADDING).all(dim=1)
        if empty.any():
            raise ValueError(
                f"source {int(empty.nonzero()[0])} is nothing but padding (id {PADDING}): there is "
                f"nothing to translate. Leave it out of the batch."
            )
    require_padded_behind(source, "source")


def require_target(model: EncoderDecoder, target, start: int = 0) -> None:
    """Targets of this model, which go on after ``start`` tokens."""
    config = model.config
    checks.require_ids(target, config.target_vocabulary, "target")
    checks.require_same_device("the model", model.source_embedding.weight, "target", target)
    checks.require_context(start + target.shape[1], config.context)


def require_padded_behind(ids: Tensor, name: str) -> None:
    """No sequence begins with padding, if the ids can be read: its tokens would be elsewhere."""
    if checks.can_be_read(ids) and (wrong := ids[:, 0] == PADDING).any():
        raise ValueError(
            f"{name} {int(wrong.nonzero()[0])} begins with padding (id {PADDING}), so its tokens "
            f"would be at other positions. Put the padding behind them: "
            f"nn.utils.rnn.pad_sequence(sequences, batch_first=True)."
        )


def require_readable(readable) -> None:
    """It is said which keys of the memory may be read."""
    if readable is None:
        raise TypeError(
            "readable is None, so padding of the source would be read, too; give "
            "model.readable(source)."
        )


def require_input(model: EncoderDecoder, source, target) -> None:
    """All arguments of ``EncoderDecoder.forward``."""
    require_source(model, source)
    require_target(model, target)
    require_padded_behind(target, "target")
    if len(source) != len(target):
        raise ValueError(
            f"there are {len(source)} sources and {len(target)} targets; row b of one belongs to "
            f"row b of the other. Give the same number of both."
        )


def require_counted(counted: Tensor, target: Tensor) -> None:
    """``counted`` says of each token of ``target`` whether it counts."""
    if counted.dtype != torch.bool or counted.shape != target.shape:
        raise ValueError(
            f"counted is {counted.dtype} of shape {tuple(counted.shape)}; it must be torch.bool of "
            f"the target's shape, {tuple(target.shape)}: True where a token counts."
        )


def require_shared_out(rows: int, sources: int) -> int:
    """How many rows each source has."""
    if rows % sources:
        raise ValueError(
            f"ids have {rows} rows for {sources} sources; give one row for each source, or the "
            f"same number of rows for each."
        )
    return rows // sources
