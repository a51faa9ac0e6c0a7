"""What stands beside attention in a block: the feed-forward layer, RMS normalization, the smear.

Shapes: ``x [..., tokens, d_model]``, of the smear ``[batch, tokens, d_model]``; each layer gives
back the shape that it got.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib import checks, module_checks


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
    return x.relu().square()


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
        self.activation = activation
        self.expand = nn.Linear(d_model, d_ff, bias=bias)
        self.contract = nn.Linear(d_ff, d_model, bias=bias)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """The same function of each token's vector."""
        module_checks.require_width(x, self.expand.in_features)
        return self.contract(ACTIVATIONS[self.activation](self.expand(x)))

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"


class RMSNorm(nn.Module):
    """x / √(mean(x²) + eps) · weight: LayerNorm without the mean and without a bias.

    Args:
        d_model: width of what is normalized, the last axis.
        eps: keeps the root away from 0; inside of it.

    Raises:
        ValueError: ``d_model`` below 1; in ``forward``, another width.

    Source: Zhang & Sennrich 2019.

    >>> RMSNorm(2)(torch.tensor([[1.0, 7.0]]))
    tensor([[0.2000, 1.4000]], grad_fn=...)
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        checks.require_count(d_model, "d_model")
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Each vector of the last axis, with a root mean square of 1, times the weight."""
        module_checks.require_width(x, self.weight.shape[0])
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, eps={self.eps}"


class Smear(nn.Module):
    """x_t + w_1 ⊙ x_{t-1} + … + w_reach ⊙ x_{t-reach}: a learned share of each vector before.

    What an attention head would have to learn first (to look at the tokens just before) is there
    from the beginning, for ``reach`` · ``d_model`` parameters: ``weights[k - 1]`` is w_k. Before
    the text begins there is nothing, and nothing is added.

    Args:
        d_model: width of the vectors.
        reach: how many tokens before each one are mixed in.
        start: what all weights are at first; 0 is no smear.

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
        module_checks.require_smear_start(start, "start")
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
        module_checks.require_smear_input(x, len(self.weights[0]))
        last = x[:, :0] if last is None else last
        module_checks.require_smear_last(last, x, self.reach)
        nothing = x.new_zeros(x.shape[0], self.reach - last.shape[1], x.shape[2])
        earlier = torch.cat((nothing, last, x[:, :-1]), dim=1)
        result, tokens = x, x.shape[1]
        for back, weight in enumerate(self.weights, start=1):
            first = self.reach - back
            result = result + weight * earlier[:, first : first + tokens]
        return result

    def extra_repr(self) -> str:
        return f"{len(self.weights[0])}, reach={self.reach}"
