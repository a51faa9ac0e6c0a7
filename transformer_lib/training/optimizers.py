"""AdamW with its groups of parameters; and Muon, which treats a matrix as a matrix.

Both refuse to step on gradients that are NaN or infinite, before any parameter changes.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.training import training_checks
from transformer_lib.training.parameters import (
    check_gradients,
    decay_groups,
    hidden_matrices,
    trainable,
)

# a, b, c of the iteration X <- aX + (bA + cA²)X, A = XXᵀ, which takes small singular values up as
# fast as possible (Jordan 2024); they end at about 0.7 to 1.2, which is near enough to 1.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def adamw(
    model: nn.Module,
    lr: float,
    *,
    betas: tuple[float, float] = (0.9, 0.95),
    eps: float = 1e-8,
    weight_decay: float = 0.1,
) -> torch.optim.AdamW:
    """PyTorch's AdamW for all parameters of ``model``: matrices decay, vectors do not.

    A matrix (embeddings included) can do with smaller numbers; a gain of a norm or a bias that is
    pulled to zero loses its purpose. Parameters that need no gradient are left out.

    Raises:
        ValueError: a rate, beta or decay out of its range; no parameter to train.
        FloatingPointError: in its ``step``, on gradients not finite; nothing changes then.

    Source: Loshchilov and Hutter 2019; the groups: Brown et al. 2020 and nanoGPT.

    >>> optimizer = adamw(nn.Linear(3, 2), lr=1e-3)
    >>> [(group["param_names"], group["weight_decay"]) for group in optimizer.param_groups]
    [(['weight'], 0.1), (['bias'], 0.0)]
    """
    training_checks.require_betas(betas)
    named = trainable(model)
    groups = decay_groups(named, weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps)
    return _prepared(optimizer)


class Muon(torch.optim.Optimizer):
    """Muon for the matrices between layers, AdamW for all other parameters, as one optimizer.

    A step of Muon takes the momentum of the gradient, makes all its singular values about equal
    (:func:`orthogonalize`), and goes ``lr`` · √max(1, rows / columns) in that direction. So rare
    directions count as much as frequent ones. That makes sense for matrices that turn vectors into
    vectors, the weights of ``nn.Linear``; not for tables (embeddings) and scores of tokens.

    Args:
        model: what is trained. Parameters that need no gradient are left out.
        lr: rate of the matrices.
        adamw_lr, betas, eps: AdamW's, for the others.
        weight_decay: of matrices and embeddings; vectors do not decay.
        momentum: how much of the gradients before is kept (Nesterov's form).
        n_iterations: of Newton and Schulz. 3 are quicker, 5 more precise.
        dtype: that the iterations are computed in, the parameter's if None. bfloat16 is the faster
            one where the machine has units for it.
        outside: attributes of ``model`` (they may be None) whose matrices AdamW trains all the
            same, as they score tokens.

    Raises:
        ValueError: a rate, beta or decay out of its range; ``outside`` names nothing; no matrix.
        TypeError: ``dtype`` is no floating point type.
        FloatingPointError: in :meth:`step`, on gradients not finite; nothing changes then.

    Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks",
    https://kellerjordan.github.io/posts/muon/.

    >>> model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 4))
    >>> optimizer = Muon(model, outside=())
    >>> [(group["method"], group["param_names"]) for group in optimizer.param_groups]
    [('muon', ['1.weight']), ('adamw', ['0.weight']), ('adamw', ['1.bias'])]
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 0.02,
        *,
        adamw_lr: float = 3e-3,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        n_iterations: int = 5,
        dtype: torch.dtype | None = None,
        outside: Iterable[str] = ("head",),
    ):
        checks.require_count(n_iterations, "n_iterations")
        checks.require_float_dtype(dtype)
        training_checks.require_betas(betas)
        training_checks.require_shares({"momentum": momentum, "betas": betas})
        training_checks.require_positive({"lr": lr, "adamw_lr": adamw_lr, "eps": eps})
        named = trainable(model)
        hidden = hidden_matrices(model, outside)
        training_checks.require_any_hidden(hidden)
        others = {name: p for name, p in named.items() if name not in hidden}
        muon = {"params": list(hidden.items()), "method": "muon", "lr": lr, "momentum": momentum}
        muon |= {"n_iterations": n_iterations, "dtype": dtype, "weight_decay": weight_decay}
        adam = {"method": "adamw", "lr": adamw_lr, "betas": betas, "eps": eps}
        groups = [muon, *(adam | group for group in decay_groups(others, weight_decay))]
        super().__init__(groups, {})
        _prepared(self)

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters that have a gradient."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if group["method"] == "adamw":
                for p in parameters:
                    self._step_adamw(p, group)
                continue
            alike = defaultdict(list)  # matrices of one shape are multiplied together
            for p in parameters:
                alike[p.shape, p.dtype, p.device].append(p)
            for matrices in alike.values():
                self._step_muon(matrices, group)

    def _step_muon(self, matrices: list[Tensor], group: dict) -> None:
        rows, columns = matrices[0].shape
        updates = torch.stack([self._with_momentum(p, group["momentum"]) for p in matrices])
        updates = orthogonalize(updates, group["n_iterations"], dtype=group["dtype"])
        step = group["lr"] * max(1, rows / columns) ** 0.5
        for p, update in zip(matrices, updates, strict=True):
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.add_(update, alpha=-step)

    def _with_momentum(self, p: Tensor, momentum: float) -> Tensor:
        state = self.state[p]
        if not state:
            state["momentum"] = torch.zeros_like(p)
        mean = state["momentum"].lerp_(p.grad, 1 - momentum)
        return p.grad.lerp(mean, momentum)

    def _step_adamw(self, p: Tensor, group: dict) -> None:
        state, (beta_1, beta_2) = self.state[p], group["betas"]
        if not state:
            state |= {"step": 0, "mean": torch.zeros_like(p), "square": torch.zeros_like(p)}
        state["step"] += 1
        mean = state["mean"].lerp_(p.grad, 1 - beta_1)
        square = state["square"].mul_(beta_2).addcmul_(p.grad, p.grad, value=1 - beta_2)
        spread = (square / (1 - beta_2 ** state["step"])).sqrt_().add_(group["eps"])
        p.mul_(1 - group["lr"] * group["weight_decay"])
        p.addcdiv_(mean, spread, value=-group["lr"] / (1 - beta_1 ** state["step"]))


def orthogonalize(
    matrices: Float[Tensor, "*batch rows columns"],
    n_iterations: int = 5,
    *,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*batch rows columns"]:
    """UVᵀ of the decomposition USVᵀ of each matrix, roughly: its singular values become about 1.

    By the iteration of Newton and Schulz: products only, so it suits a GPU and 16 bits. A matrix of
    zeros stays one. The result is of ``dtype``, that of ``matrices`` if None.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/.

    >>> orthogonalize(torch.diag(torch.tensor([5.0, 0.5]))).diag() > 0.65
    tensor([True, True])
    """
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices  # the smaller of the two products
    norm = x.norm(dim=(-2, -1), keepdim=True)  # bounds the largest singular value
    x = (x / norm.clamp(min=1e-7)).to(dtype, memory_format=torch.contiguous_format)
    shape, x = x.shape, x.reshape(-1, *x.shape[-2:])
    for _ in range(n_iterations):
        products = x @ x.mT
        x = x.baddbmm(products.baddbmm(products, products, beta=b, alpha=c), x, beta=a)
    x = x.reshape(shape)
    return x.mT if tall else x


def set_rates(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Every group's rate becomes ``factor`` times that with which the optimizer was made.

    >>> optimizer = adamw(nn.Linear(3, 2), lr=0.5)
    >>> set_rates(optimizer, 0.1)
    >>> optimizer.param_groups[0]["lr"]
    0.05
    """
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] * factor


def _prepared(optimizer):
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]  # the name that PyTorch's own schedulers use
    optimizer.register_step_pre_hook(_before_step)
    return optimizer


def _before_step(optimizer, args, kwargs) -> None:
    check_gradients(optimizer)  # not returned: PyTorch would take it for other arguments
