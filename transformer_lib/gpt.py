"""GPT: a stack of causal blocks that predicts each next token."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lib import model_checks, module_checks
from transformer_lib.blocks import NORMS, Block, make_norm
from transformer_lib.cache import ModelCache
from transformer_lib.layers import ACTIVATIONS, Smear
from transformer_lib.positions import (
    AlibiPositions,
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
)

POSITIONS = ("learned", "sinusoidal", "rotary", "alibi")
PROJECTIONS = ("normal", "depth", "zero")


@dataclass(frozen=True, kw_only=True)
class GPTConfig:
    """Everything that determines a GPT but its weights. The defaults wire it as GPT-2.

    Attributes:
        vocabulary: number of token ids.
        context: how many tokens the model reads at most.
        n_layers, n_heads, d_model: number of blocks, heads of each, width of the residual stream.
        d_ff: width of the feed-forward layers, 4 · d_model if None.
        norm: ``"pre"`` or ``"post"``, see :class:`~transformer_lib.blocks.Block`.
        rms_norm: RMSNorm in place of LayerNorm.
        activation: ``"relu"``, ``"gelu"``, ``"gelu_tanh"`` or ``"relu_squared"``.
        positions: ``"learned"``, ``"sinusoidal"``, ``"rotary"`` or ``"alibi"``.
        bias: whether the products within the blocks and LayerNorm have one.
        tied: whether the embedding's table is the output's matrix as well.
        projections: how the matrices that write into the residual stream start: ``"normal"`` as all
            others, ``"depth"``: smaller by √(2 · n_layers), as there are so many of them, or
            ``"zero"``: each block begins as the identity.
        embedding_std: spread of the embedding's numbers at the start (all other matrices: 0.02).
        dropout: of embeddings, attention weights and sub-layers, while training.
        qk_norm: normalized queries and keys.
        smear: how many embeddings before each token's it gets a learned share of; 0 for none.
        smear_start: these shares at the start, see :class:`~transformer_lib.layers.Smear`.

    Raises:
        ValueError, TypeError: a field that makes no model; the message says which, why, and what to
            choose.

    >>> GPTConfig.gpt2(n_layers=2).n_layers
    2
    """

    vocabulary: int
    context: int
    n_layers: int
    n_heads: int
    d_model: int
    d_ff: int | None = None
    norm: str = "pre"
    rms_norm: bool = False
    activation: str = "gelu_tanh"
    positions: str = "learned"
    bias: bool = True
    tied: bool = True
    projections: str = "depth"
    embedding_std: float = 0.02
    dropout: float = 0.0
    qk_norm: bool = False
    smear: int = 0
    smear_start: float = 0.0

    def __post_init__(self):
        choices = {"norm": NORMS, "activation": ACTIVATIONS}
        choices |= {"positions": POSITIONS, "projections": PROJECTIONS}
        model_checks.require_config(self, choices)

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
        self.config = config
        d_model = config.d_model
        self.embedding = nn.Embedding(config.vocabulary, d_model)
        self.smear = None
        if config.smear > 0:
            self.smear = Smear(d_model, config.smear, config.smear_start)
        self.positions = embedding_positions(config)
        self.dropout = nn.Dropout(config.dropout)
        fields = ("d_ff", "norm", "activation", "rms_norm", "bias", "dropout", "qk_norm")
        options = {name: getattr(config, name) for name in fields}
        self.blocks = nn.ModuleList(
            Block(d_model, config.n_heads, positions=attention_positions(config), **options)
            for _ in range(config.n_layers)
        )
        self.final_norm = nn.Identity()  # post-norm: the last block has normalized already
        if config.norm == "pre":
            self.final_norm = make_norm(d_model, rms=config.rms_norm, bias=config.bias)
        # No layer shares the tied table: two names for one tensor are trouble for checkpoints.
        self.head = None if config.tied else nn.Linear(d_model, config.vocabulary, bias=False)
        self.initialize()

    @torch.no_grad()
    def initialize(self) -> None:
        """Draw the matrices anew: normal with a spread of 0.02, biases 0 (Radford et al. 2018)."""
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                table = module is self.embedding
                nn.init.normal_(module.weight, std=self.config.embedding_std if table else 0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        depth = (2 * self.config.n_layers) ** -0.5  # 2 · n_layers results add up in the stream
        factor = {"normal": 1.0, "depth": depth, "zero": 0.0}[self.config.projections]
        for block in self.blocks:
            block.attention.output.weight.mul_(factor)
            block.feed_forward.contract.weight.mul_(factor)

    def forward(
        self, ids: Int[Tensor, "batch tokens"], cache: ModelCache | None = None
    ) -> Float[Tensor, "batch tokens vocabulary"]:
        """Logits: row t scores the token after token t, and depends on tokens 0 … t only.

        With a cache (:meth:`new_cache`), ``ids`` are the tokens after those in the cache, which is
        extended by them. Ids are compared with the vocabulary on the CPU only; a GPU would wait.

        Raises:
            ValueError: not ``[batch, tokens]``, an id beyond the vocabulary, more tokens than the
                context or the cache has room for, another device; nothing is written then.
            TypeError: ids that are no integers.
        """
        model_checks.require_decoder(self, ids, cache)
        start = 0 if cache is None else cache.length
        embedded = x = self.embedding(ids)
        if self.smear is not None:
            x = self.smear(x, None if cache is None else cache.last)
        if self.positions is not None:
            x = self.positions(x, start)
        x = self.dropout(x)
        for layer, block in enumerate(self.blocks):
            x = block(x, causal=True, cache=None if cache is None else cache.layers[layer])
        if cache is not None and self.smear is not None:
            cache.remember(embedded, self.smear.reach)
        return self.logits(self.final_norm(x))

    def logits(
        self, x: Float[Tensor, "batch tokens d_model"]
    ) -> Float[Tensor, "batch tokens vocabulary"]:
        """Each vector's dot product with each token's: the embedding's own rows, if tied."""
        table = self.embedding if self.head is None else self.head
        return F.linear(x, table.weight)

    def new_cache(self, batch: int, capacity: int | None = None) -> ModelCache:
        """An empty cache for ``batch`` sequences of up to ``capacity`` tokens (None: the context).

        In the dtype that attention computes in: the weights', or autocast's where that is on.
        """
        weight = self.embedding.weight
        device = weight.device.type
        autocast = module_checks.autocasts(device)
        return ModelCache(
            self.config.n_layers,
            batch,
            self.config.n_heads,
            self.config.context if capacity is None else capacity,
            self.config.d_model // self.config.n_heads,
            dtype=torch.get_autocast_dtype(device) if autocast else weight.dtype,
            device=weight.device,
        )

    @property
    def n_parameters(self) -> int:
        """How many numbers are learned; a tied table counts once."""
        return sum(parameter.numel() for parameter in self.parameters())


def embedding_positions(config: GPTConfig) -> nn.Module | None:
    """Positions that are added to the embeddings, if the configuration's are of that kind."""
    if config.positions == "learned":
        return LearnedPositions(config.context, config.d_model)
    return SinusoidalPositions(config.d_model) if config.positions == "sinusoidal" else None


def attention_positions(config: GPTConfig) -> RotaryPositions | AlibiPositions | None:
    """Positions that act within attention, if the configuration's are of that kind."""
    if config.positions == "rotary":
        return RotaryPositions(config.d_model // config.n_heads)
    return AlibiPositions(config.n_heads) if config.positions == "alibi" else None
