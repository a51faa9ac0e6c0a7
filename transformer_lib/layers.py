"""The parts of a model beside attention: embedding, smear, norms, feed-forward layers.

Shapes: ``x [..., tokens, d_model]``, of the smear ``[batch, tokens, d_model]``. The embedding makes
them of token ids ``[batch, tokens]``; each other layer returns the shape that it was given.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer_lib import checks
from transformer_lib.cache import ModelCache
from transformer_lib.fast.steps import TokenStep, is_idle, linear_step, stepper_of
from transformer_lib.positions import AddedPositions


@contextmanager
def shapes_only() -> Iterator[None]:
    """What is made within is on the device meta: shapes and dtypes, but no memory and no numbers.

    ``torch.device("meta")`` alone has normal numbers "drawn" there all the same, for which PyTorch
    imports its compiler: a second of each program that only loads a model.

    >>> with shapes_only():
    ...     layer = nn.Embedding(7, 4)
    >>> layer.weight.device.type, layer.weight.shape
    ('meta', torch.Size([7, 4]))
    """
    with torch.device("meta"), _Undrawn():
        yield


class _Undrawn(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is nn.init.normal_:
            return kwargs["tensor"]
        return function(*args, **kwargs)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """A context in evaluation mode; afterwards each module is in the mode in which it was.

    Of several such contexts that overlap, the last to end puts it back.
    """
    training = [module for module in model.modules() if module.training or module in _held]
    for module in training:
        _held[module] = _held.get(module, 0) + 1
    try:
        if training:
            model.eval()
        yield
    finally:
        for module in training:
            _held[module] -= 1
            if _held[module] == 0:
                del _held[module]
                module.training = True


_held: dict[nn.Module, int] = {}  # modules to be put back, and how many contexts they are held by


def gelu_tanh(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """GELU with tanh in place of the normal distribution, off by less than 0.0005: GPT's choice.

    Source: Hendrycks & Gimpel 2016, section 2.

    >>> gelu_tanh(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1588,  0.0000,  0.8412])
    """
    return F.gelu(x, approximate="tanh")


def relu_squared(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """max(x, 0)².

    Source: So et al. 2021 (Primer).

    >>> relu_squared(torch.tensor([-2.0, 3.0]))
    tensor([0., 9.])
    """
    x = x.relu()
    return x * x  # not .square(): CUDA's autocast computes and keeps that in float32


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "relu_squared": relu_squared,
}


class FeedForward(nn.Module):
    """contract(activation(expand(x))): each token on its own, the same for all.

    Args:
        d_model: width of the input and of the output.
        d_ff: width in between, 4 · d_model if None.
        activation: ``"relu"`` (the paper), ``"gelu"``, ``"gelu_tanh"`` (GPT), ``"relu_squared"``.
        bias: whether the two products add a bias.

    Raises:
        ValueError: a size below 1, an unknown activation; in ``forward``, another width.

    Source: Vaswani et al. 2017, section 3.3.

    >>> FeedForward(d_model=8, d_ff=32)(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self, d_model: int, d_ff: int | None = None, activation: str = "relu", *, bias: bool = True
    ):
        super().__init__()
        d_ff = 4 * d_model if d_ff is None else d_ff
        checks.require_count(d_model, "d_model")
        checks.require_count(d_ff, "d_ff")
        checks.require_choice(activation, "activation", ACTIVATIONS)
        checks.require_flag(bias, "bias")
        self.d_model, self.activation = d_model, activation
        self.expand = nn.Linear(d_model, d_ff, bias=bias)
        self.contract = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """The same function of each token's vector."""
        require_width(x, self.d_model)
        return self.contract(ACTIVATIONS[self.activation](self.expand(x)))

    def stepper(self) -> TokenStep:
        """x -> x for one token: see :mod:`fast.steps`."""
        expand, contract = linear_step(self.expand), linear_step(self.contract)
        activation = ACTIVATIONS[self.activation]
        return lambda x: contract(activation(expand(x)))

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


class SwiGLU(nn.Module):
    """contract(silu(gate(x)) ⊙ expand(x)): a feed-forward layer whose gate decides what passes.

    Args:
        d_model: width of the input and of the output.
        d_ff: width in between, 8/3 · d_model if None (rounded up): with three matrices, as many
            parameters as a :class:`FeedForward` four times as wide as the model.
        bias: whether the three products add a bias.

    Raises:
        ValueError: a size below 1; in ``forward``, another width.

    Source: Shazeer 2020, equation 6; in Llama: Touvron et al. 2023, section 2.2.

    >>> SwiGLU(d_model=6)
    SwiGLU(
      (gate): Linear(in_features=6, out_features=16, bias=False)
      (expand): Linear(in_features=6, out_features=16, bias=False)
      (contract): Linear(in_features=16, out_features=6, bias=False)
    )
    """

    def __init__(self, d_model: int, d_ff: int | None = None, *, bias: bool = False):
        super().__init__()
        checks.require_count(d_model, "d_model")
        d_ff = math.ceil(8 * d_model / 3) if d_ff is None else d_ff
        checks.require_count(d_ff, "d_ff")
        checks.require_flag(bias, "bias")
        self.d_model = d_model
        self.gate = nn.Linear(d_model, d_ff, bias=bias)
        self.expand = nn.Linear(d_model, d_ff, bias=bias)
        self.contract = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """The same function of each token's vector."""
        require_width(x, self.d_model)
        return self.contract(F.silu(self.gate(x)) * self.expand(x))

    def stepper(self) -> TokenStep:
        """x -> x for one token: see :mod:`fast.steps`."""
        both, contract = linear_step(self.gate, self.expand), linear_step(self.contract)

        def step(x: Tensor) -> Tensor:
            gate, expanded = both(x).chunk(2, dim=-1)
            return contract(F.silu(gate) * expanded)

        return step


class LayerNorm(nn.LayerNorm):
    """(x - mean) / √(variance + eps) · weight + bias, of each vector: PyTorch's, with a step.

    Args:
        d_model: width of the vectors, the last axis.
        eps: keeps the root away from 0; inside of it.
        bias: whether a bias is added.

    Source: Ba et al. 2016.

    >>> LayerNorm(2)(torch.tensor([[1.0, 3.0]]))
    tensor([[-1.0000,  1.0000]], grad_fn=...)
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, bias: bool = True):
        checks.require_count(d_model, "d_model")
        checks.require_flag(bias, "bias")
        require_eps(eps)
        super().__init__(d_model, eps, bias=bias)

    def stepper(self) -> TokenStep:
        """x -> x for one token: see :mod:`fast.steps`."""
        shape, weight, bias, eps = self.normalized_shape, self.weight, self.bias, self.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


class RMSNorm(nn.Module):
    """x / √(mean(x²) + eps) · weight: LayerNorm without the mean and without a bias.

    Args:
        d_model: width of the vectors that are normalized, the last axis.
        eps: keeps the root away from 0; inside of it.

    Raises:
        ValueError: ``d_model`` below 1, ``eps`` below 0; in ``forward``, another width.

    Source: Zhang & Sennrich 2019.

    >>> RMSNorm(2)(torch.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]], grad_fn=...)
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        checks.require_count(d_model, "d_model")
        require_eps(eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Each vector of the last axis, with a root mean square of 1, times the weight."""
        require_width(x, self.weight.shape[0])
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)

    def stepper(self) -> TokenStep:
        """x -> x for one token: see :mod:`fast.steps`."""
        shape, weight, eps = self.weight.shape, self.weight, self.eps
        return lambda x: F.rms_norm(x, shape, weight, eps)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


class Smear(nn.Module):
    """x_t + w_1 ⊙ x_{t-1} + … + w_reach ⊙ x_{t-reach}: a learned share of each vector before.

    An attention head would have to learn first to look at the tokens just before; this gives it
    from the beginning, for ``reach`` · ``d_model`` parameters: ``weights[k - 1]`` is w_k. Before
    the text begins there is nothing, and nothing is added.

    Args:
        d_model: width of the vectors.
        reach: how many tokens before each one are mixed in.
        start: the value of all weights at first; with 0 nothing is mixed in.

    Raises:
        ValueError: ``d_model`` or ``reach`` below 1, a ``start`` that is not finite; in
            ``forward``, another width or number of axes, or too many vectors from before.

    Source: the "token shift" of Peng et al. 2023 (RWKV), on the embeddings only.

    >>> smear = Smear(d_model=1, reach=2, start=0.5)
    >>> smear(torch.tensor([[[2.0], [4.0], [0.0]]])).flatten().tolist()
    [2.0, 5.0, 3.0]
    """

    def __init__(self, d_model: int, reach: int = 1, start: float = 0.0):
        super().__init__()
        checks.require_count(d_model, "d_model")
        checks.require_count(reach, "reach")
        require_smear_start(start, "start")
        # Vectors, not rows of one matrix: an optimizer lets matrices decay.
        self.weights = nn.ParameterList(torch.full((d_model,), float(start)) for _ in range(reach))

    @property
    def reach(self) -> int:
        """How many tokens before each one are mixed in."""
        return len(self.weights)

    def forward(
        self,
        x: Float[Tensor, "batch tokens d_model"],
        last: Float[Tensor, "batch before d_model"] | None = None,
    ) -> Float[Tensor, "batch tokens d_model"]:
        """``last`` are the vectors just before the first of ``x``, ``reach`` of them or, near the
        beginning of the text, all that there are; None where it begins.
        """
        require_smear_input(x, len(self.weights[0]))
        last = x[:, :0] if last is None else last
        require_smear_last(last, x, self.reach)
        nothing = x.new_zeros(x.shape[0], self.reach - last.shape[1], x.shape[2])
        earlier = torch.cat((nothing, last, x[:, :-1]), dim=1)
        result, tokens = x, x.shape[1]
        for back, weight in enumerate(self.weights, start=1):
            first = self.reach - back
            result = result + weight * earlier[:, first : first + tokens]
        return result

    def stepper(self) -> Callable[[Tensor, Sequence[Tensor]], Tensor]:
        """x, the vectors before it (the nearest last) -> x: see :mod:`fast.steps`."""
        weights = [*self.weights]

        def step(x: Tensor, last: Sequence[Tensor]) -> Tensor:
            for weight, vector in zip(weights, reversed(last), strict=False):
                x = x + weight * vector
            return x

        return step

    def extra_repr(self) -> str:
        return f"{len(self.weights[0])}, reach={self.reach}"


class Embedding(nn.Embedding):
    """Token ids as vectors: each one's row of a table; a share of the rows before it, if there is a
    smear; and its position, if positions are added.

    Args:
        vocabulary: number of token ids, the rows of the table.
        d_model: width of the vectors.
        positions: :class:`~transformer_lib.positions.AddedPositions`, or None.
        smear: a :class:`Smear`, or None.
        scale: factor of the table's rows: √d_model in "Attention is all you need", section 3.4.
        dropout: of the vectors, while training.

    >>> embedding = Embedding(vocabulary=7, d_model=4, smear=Smear(4))
    >>> embedding(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        vocabulary: int,
        d_model: int,
        *,
        positions: AddedPositions | None = None,
        smear: Smear | None = None,
        scale: float = 1.0,
        dropout: float = 0.0,
    ):
        checks.require_count(vocabulary, "vocabulary")
        checks.require_count(d_model, "d_model")
        checks.require_dropout(dropout)
        require_scale(scale)
        require_added(positions, smear, d_model)
        super().__init__(vocabulary, d_model)
        self.smear, self.positions, self.scale = smear, positions, scale
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, ids: Int[Tensor, "batch tokens"], cache: ModelCache | None = None
    ) -> Float[Tensor, "batch tokens d_model"]:
        """With a cache, ``ids`` are the tokens after those in the cache."""
        require_rows(self, ids)
        x = self.rows(ids)
        x = x if self.scale == 1 else self.scale * x
        if self.smear is not None:
            x = self.smear(x, None if cache is None else cache.before(x, self.smear.reach))
        if self.positions is not None:
            x = self.positions(x, 0 if cache is None else cache.length)
        return self.dropout(x)

    def rows(self, ids: Int[Tensor, "batch tokens"]) -> Float[Tensor, "batch tokens d_model"]:
        """Each id's row of the table."""
        return super().forward(ids)

    def logits(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocabulary"]:
        """Each vector's dot product with each row of the table, which the output then shares.

        Source: Press and Wolf 2017.
        """
        return F.linear(x, self.weight)

    def stepper(self, cache: ModelCache) -> TokenStep | None:
        """ids ``[batch]`` -> x ``[batch, d_model]``: see :mod:`fast.steps`."""
        parts = [part for part in (self.smear, self.positions) if part is not None]
        if not is_idle(self.dropout) or any(stepper_of(part) is None for part in parts):
            return None
        if self.max_norm is not None:  # looking up a row may shorten it
            return None
        table, scale = self.weight, self.scale
        mix = None if self.smear is None else self.smear.stepper()
        reach = 0 if self.smear is None else self.smear.reach
        add = None if self.positions is None else self.positions.stepper(cache.capacity, table)

        def step(ids: Tensor) -> Tensor:
            x = F.embedding(ids, table)
            x = x if scale == 1 else scale * x
            if mix is not None:
                x = mix(x, cache.before(x.unsqueeze(1), reach).unbind(1))
            return x if add is None else add(x, cache.length)

        return step


@checks.at_the_door
def require_width(x, d_model: int) -> None:
    """``x`` is ``[..., d_model]``."""
    checks.require_float_tensor(x, "x")
    if x.ndim == 0 or x.shape[-1] != d_model:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; its last axis must be d_model = {d_model} wide."
        )


@checks.at_the_door
def require_rows(embedding: Embedding, ids) -> None:
    """``ids`` are ``[batch, tokens]``, rows of the embedding's table, on its device."""
    checks.require_ids(ids, len(embedding.weight))
    checks.require_same_device("the embedding", embedding.weight, "ids", ids)


def require_added(positions, smear, d_model: int) -> None:
    """Parts that an embedding can call, or None."""
    for name, part in {"positions": positions, "smear": smear}.items():
        checks.require_object(part, name)
        if part is not None and not callable(part):
            raise TypeError(
                f"{name} is {part!r}; an embedding takes positions that are added, such as "
                f"LearnedPositions, and a Smear, or None. (Rotary positions and ALiBi are for the "
                f"attention.)"
            )
    if isinstance(smear, Smear) and len(smear.weights[0]) != d_model:
        raise ValueError(
            f"smear is made for vectors {len(smear.weights[0])} wide; those of this embedding are "
            f"{d_model} wide. Make it by Smear({d_model})."
        )


def require_eps(eps) -> None:
    """``eps``, of a norm, is a finite number that leaves no root of a negative one."""
    checks.require_number(eps, "eps")
    if not 0 <= eps < float("inf"):
        raise ValueError(f"eps is {eps}; it keeps a root away from 0: choose about 1e-5.")


def require_scale(scale) -> None:
    """``scale`` is a finite number other than 0."""
    checks.require_number(scale, "scale")
    if not 0 < abs(scale) < float("inf"):
        raise ValueError(
            f"scale is {scale}; it multiplies the embedding's rows: choose a finite number other "
            f"than 0 (1: as they are; d_model ** 0.5: as the paper does)."
        )


def require_smear_start(start, name: str) -> None:
    """``start`` is a finite number."""
    checks.require_number(start, name)
    if not float("-inf") < start < float("inf"):
        raise ValueError(
            f"{name} is {start}; it is a share of the vector before: choose a finite number (0: "
            f"none)."
        )


@checks.at_the_door
def require_smear_input(x, d_model: int) -> None:
    """``x`` is ``[batch, tokens, d_model]``."""
    require_width(x, d_model)
    if x.ndim != 3:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; the smear looks back along the tokens and needs "
            f"[batch, tokens, d_model]. One sequence gets its first axis by x.unsqueeze(0)."
        )


@checks.at_the_door
def require_smear_last(last, x, reach: int) -> None:
    """``last`` are at most ``reach`` vectors of the sequences of ``x``."""
    checks.require_float_tensor(last, "last")
    checks.require_same_dtype("x", x, "last", last)
    batch, _, d_model = x.shape
    if last.ndim != 3 or last.shape[::2] != (batch, d_model) or last.shape[1] > reach:
        raise ValueError(
            f"last has shape {tuple(last.shape)}; it must be [{batch}, 0 to {reach}, {d_model}]: "
            f"the last {reach} vectors before x, or fewer where the text begins."
        )
