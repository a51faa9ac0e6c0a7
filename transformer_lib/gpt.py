"""GPT: a stack of causal blocks that predicts each next token."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.blocks import require_stream
from transformer_lib.cache import (
    ModelCache,
    require_extended,
    require_layers,
    require_no_gradient,
    require_room,
)
from transformer_lib.fast.steps import TokenStep, model_step, step_of, stepper_of
from transformer_lib.layers import Embedding, Smear, require_smear_start
from transformer_lib.wiring import Wiring

MOST_SMEARED = 1000


@dataclass(frozen=True, kw_only=True)
class GPTConfig(Wiring):
    """Everything that determines a GPT but its weights. The defaults wire it as GPT-2.

    Attributes:
        vocabulary: number of token ids.
        tied: whether the embedding's table is the output's matrix as well.
        embedding_std: spread of the embedding's numbers at the start (all other matrices: 0.02).
        smear: how many embeddings before each token's it gets a learned share of; 0 for none.
        smear_start: these shares at the start, see :class:`~transformer_lib.layers.Smear`.

    The other fields are those of :class:`~transformer_lib.wiring.Wiring`.

    Raises:
        ValueError, TypeError: a field that does not make a model; the message says which, why, and
            what to choose.

    >>> GPTConfig.gpt2(n_layers=2).n_layers
    2
    """

    vocabulary: int
    tied: bool = True
    embedding_std: float = 0.02
    smear: int = 0
    smear_start: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        require_config(self)

    @classmethod
    def gpt1(cls, **changes) -> "GPTConfig":
        """GPT-1 (Radford et al. 2018): post-norm, learned positions; ``changes`` of its fields."""
        sizes = {"vocabulary": 40_478, "context": 512, "n_layers": 12, "n_heads": 12}
        wiring = {"d_model": 768, "norm": "post", "projections": "normal", "dropout": 0.1}
        return cls(**sizes | wiring | changes)

    @classmethod
    def gpt2(cls, **changes) -> "GPTConfig":
        """GPT-2 small (Radford et al. 2019): pre-norm; ``changes`` of its fields."""
        sizes = {"vocabulary": 50_257, "context": 1024, "n_layers": 12, "n_heads": 12}
        return cls(**sizes | {"d_model": 768, "dropout": 0.1} | changes)

    @classmethod
    def fast(cls, **sizes) -> "GPTConfig":
        """The wiring that learns fastest in this book's runs; give the sizes, change what you like.

        Rotary positions, an untied output, projections that start at zero, larger embeddings,
        ReLU², no biases, and the smear. (LayerNorm, since the backward pass of PyTorch's RMSNorm is
        four times slower on the CPU.)
        """
        wiring = {"positions": "rotary", "tied": False, "bias": False, "smear": 1}
        start = {"projections": "zero", "embedding_std": 0.3}
        return cls(**wiring | start | {"activation": "relu_squared"} | sizes)

    def make_embedding(self) -> Embedding:
        """The first part: from ids to vectors."""
        smear = Smear(self.d_model, self.smear, self.smear_start) if self.smear else None
        options = {"positions": self.make_positions(), "smear": smear, "dropout": self.dropout}
        return Embedding(self.vocabulary, self.d_model, **options)


class GPT(nn.Module):
    """A decoder on its own: embedding, blocks, and a score for each possible next token.

    Source: Radford et al. 2018 and 2019; ``GPTConfig.fast`` as in modded-nanogpt (Jordan 2024).

    >>> model = GPT(GPTConfig(vocabulary=11, context=8, n_layers=2, n_heads=2, d_model=12))
    >>> model(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 11])
    >>> with torch.device("meta"):  # shapes only: no memory, no numbers
    ...     GPT(GPTConfig.gpt2()).n_parameters
    124439808
    """

    def __init__(self, config: GPTConfig):
        super().__init__()
        checks.require_kind(config, "config", GPTConfig)
        self.config = config
        self.embedding = config.make_embedding()
        self.blocks = nn.ModuleList(config.make_block() for _ in range(config.n_layers))
        # With post-norm, the last block has normalized already.
        self.final_norm = config.make_norm() if config.norm == "pre" else nn.Identity()
        # A tied table has one name only: two for one tensor would confuse checkpoints.
        self.head = (
            None if config.tied else nn.Linear(config.d_model, config.vocabulary, bias=False)
        )
        self.initialize()

    @torch.no_grad()
    def initialize(self) -> None:
        """Draw the matrices anew: normal with a spread of 0.02, biases 0 (Radford et al. 2018).

        Norms and the smear keep their numbers, which after ``to_empty`` are whatever lies there.
        """
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                table = module is self.embedding
                nn.init.normal_(module.weight, std=self.config.embedding_std if table else 0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        writing = [(block.attention.output, block.feed_forward.contract) for block in self.blocks]
        self.config.start_projections([layer for layers in writing for layer in layers])

    @checks.require_once
    def forward(
        self, ids: Int[Tensor, "batch tokens"], cache: ModelCache | None = None
    ) -> Float[Tensor, "batch tokens vocabulary"]:
        """Logits: row t scores the token after token t, and depends on tokens 0 … t only.

        With a cache (:meth:`new_cache`), ``ids`` are the tokens after those in the cache, which is
        extended by them. Ids are compared with the vocabulary on the CPU only; a GPU would wait.

        Raises:
            ValueError: not ``[batch, tokens]``, an id beyond the vocabulary, more tokens than the
                context or the cache has room for, another device, a cache while gradients are
                computed; nothing is written then.
            TypeError: ids that are not integers.
        """
        require_input(self, ids, cache)
        x = self.embedding(ids, cache)
        caches = [None] * len(self.blocks) if cache is None else cache.layers
        for block, layer in zip(self.blocks, caches, strict=True):
            x = block(x, causal=True, cache=layer)
        require_stream(x, ids)
        require_extended(cache, ids.shape[1])
        return self.logits(self.final_norm(x))

    def logits(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens vocabulary"]:
        """Each vector's score for each token: its dot product with the embedding's row, if tied."""
        return self.embedding.logits(x) if self.head is None else self.head(x)

    def stepper(self, cache: ModelCache) -> TokenStep:
        """ids ``[batch]`` -> logits ``[batch, vocabulary]``: see :mod:`fast.decoding`."""
        stepper = stepper_of(self.embedding)
        embed = None if stepper is None else stepper(cache)
        if embed is None:  # with a hook, or of a reader's own

            def embed(ids: Tensor) -> Tensor:
                return self.embedding(ids.unsqueeze(1), cache).squeeze(1)

        pairs = zip(self.blocks, cache.layers, strict=True)
        blocks = [step_of(block, layer) for block, layer in pairs]
        return model_step(embed, blocks, self.final_norm, self.head, self.embedding)

    def new_cache(self, batch: int, capacity: int | None = None) -> ModelCache:
        """An empty cache for ``batch`` texts of up to ``capacity`` tokens (None: the context)."""
        capacity = self.config.context if capacity is None else capacity
        return ModelCache.of(self.blocks, batch, capacity)

    @property
    def n_parameters(self) -> int:
        """How many numbers are learned; a tied table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


def current_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A GPT's ``state_dict``, also one saved before the embedding held its smear and positions.

    >>> current_names({"smear.weights.0": torch.ones(1)})
    {'embedding.smear.weights.0': tensor([1.])}
    """
    moved = ("smear.", "positions.")
    named = {f"embedding.{k}" if k.startswith(moved) else k: w for k, w in weights.items()}
    if len(named) < len(weights):
        twice = next(f"embedding.{k}" for k in weights if f"embedding.{k}" in weights)
        raise ValueError(f"{twice} is there twice, once by its old name. Delete one of the two.")
    return named


def require_config(config: GPTConfig) -> None:
    """The fields that a GPT has beside those of a wiring."""
    checks.require_count(config.vocabulary, "vocabulary")
    require_smear(config.smear)
    require_smear_start(config.smear_start, "smear_start")
    if not 0 < config.embedding_std < float("inf"):
        raise ValueError(
            f"embedding_std is {config.embedding_std}; it is a spread: choose a finite number "
            f"above 0 (GPT-2: 0.02)."
        )


def require_smear(smear: int) -> None:
    """``smear`` is from 0 to a number that can be made and trained."""
    if not 0 <= smear <= MOST_SMEARED:
        raise ValueError(
            f"smear is {smear!r:.40}; it is how many tokens before each one are mixed in: choose 0 "
            f"for none, 1 for the one before, 3 for the three before; at most {MOST_SMEARED}."
        )


def require_input(model: GPT, ids, cache) -> None:
    """All arguments of ``GPT.forward``, before anything is written to the cache."""
    if type(model.embedding) is nn.Embedding:
        raise TypeError(
            "the model's embedding is PyTorch's nn.Embedding, which has no positions and takes no "
            "cache. Put one of transformer_lib.layers.Embedding there, or copy the table's numbers "
            "into model.embedding.weight."
        )
    config, weight = model.config, model.embedding.weight
    checks.require_ids(ids, config.vocabulary)
    checks.require_same_device("the model", weight, "ids", ids)
    require_layers(cache, model.blocks, ids.shape[0])
    start = 0 if cache is None else cache.length
    checks.require_context(start + ids.shape[1], config.context)
    if cache is None:
        return
    require_room(start, ids.shape[1], cache.capacity)
    if torch.is_grad_enabled():
        for name, parameter in model.named_parameters():
            require_no_gradient(name, parameter)
