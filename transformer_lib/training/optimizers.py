"""AdamW with its groups of parameters; and Muon, which treats a matrix as a matrix, and NorMuon.

Both refuse to step on gradients that are not finite, before any parameter changes.
"""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from transformer_lib import checks

# a, b, c of the iteration X <- aX + (bA + cA²)X, A = XXᵀ, which takes small singular values up as
# fast as possible (Jordan 2024); those that arrive end between 0.68 and 1.21, near enough to 1.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def adamw(
    model: nn.Module,
    lr: float,
    *,
    betas: tuple[float, float] = (0.9, 0.95),
    eps: float = 1e-8,
    weight_decay: float = 0.1,
    fused: bool | None = None,
) -> "AdamW":
    """PyTorch's AdamW for all parameters of ``model``: matrices decay, vectors do not.

    A matrix (embeddings included) can do with smaller numbers; a gain of a norm or a bias that is
    pulled to zero loses its purpose. Parameters that need no gradient are left out. ``fused`` is
    PyTorch's: the whole step as one kernel.

    Raises:
        ValueError: a rate, beta, eps or decay out of its range; no parameter to train.
        FloatingPointError: in its ``step``, on gradients that are not finite; nothing changes then.

    Source: Loshchilov and Hutter 2019; the groups: Brown et al. 2020 and nanoGPT.

    >>> optimizer = adamw(nn.Linear(3, 2), lr=1e-3)
    >>> [(group["param_names"], group["weight_decay"]) for group in optimizer.param_groups]
    [(['weight'], 0.1), (['bias'], 0.0)]
    """
    require_betas(betas)
    require_positive({"lr": lr, "eps": eps})
    named = trainable(model)
    groups = decay_groups(named, weight_decay)
    return AdamW(groups, lr=lr, betas=betas, eps=eps, fused=fused)


class Guarded(torch.optim.Optimizer):
    """The base of optimizers that look at the gradients before each step, copies of them, too."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        for group in self.param_groups:
            group["initial_lr"] = group["lr"]  # the name that PyTorch's own schedulers use
        self.register_step_pre_hook(_before_step)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if _before_step not in self._optimizer_step_pre_hooks.values():  # copies have no hooks
            self.register_step_pre_hook(_before_step)


class AdamW(Guarded, torch.optim.AdamW):
    """PyTorch's, guarded."""


class Muon(Guarded):
    """Muon for the matrices between layers, AdamW for all other parameters, as one optimizer.

    A step of Muon takes the momentum of the gradient, makes its singular values more alike
    (:func:`orthogonalize`), and goes ``lr`` · √max(1, rows / columns) in that direction. So rarer
    directions count almost as much as frequent ones, as far as the iterations reach. That makes
    sense for matrices that turn vectors into vectors, the weights of ``nn.Linear``; not for tables
    (embeddings) and scores of tokens.

    Args:
        model: what is trained. Parameters that need no gradient are left out.
        lr: rate of the matrices.
        adamw_lr, betas, eps: AdamW's, for the others.
        weight_decay: of matrices and embeddings; vectors do not decay.
        momentum: how much of the gradients before is kept (Nesterov's form).
        n_iterations: of Newton and Schulz. With 3, singular values of at least 0.018 of the
            matrix's norm end between 0.68 and 1.21; with 5, those of at least 0.0015. Smaller ones
            are multiplied by at most 41, or 485, and stay small; gradients can have many of them.
        dtype: that the iterations are computed in, the parameter's if None. bfloat16 is the faster
            one where the machine has units for it.
        outside: attributes of ``model`` (they may be None) whose matrices AdamW trains all the
            same, as they score tokens.

    Raises:
        ValueError: a rate, beta or decay out of its range; ``outside`` names nothing; no matrix.
        TypeError: ``dtype`` is not a floating point type.
        FloatingPointError: in :meth:`step`, on gradients that are not finite; nothing changes then.

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
        require_betas(betas)
        require_shares({"momentum": momentum})
        require_positive({"lr": lr, "adamw_lr": adamw_lr, "eps": eps})
        named = trainable(model)
        hidden = hidden_matrices(model, outside)
        require_matrices(hidden)
        others = {name: p for name, p in named.items() if name not in hidden}
        muon = {"params": list(hidden.items()), "method": "muon", "lr": lr, "momentum": momentum}
        muon |= {"n_iterations": n_iterations, "dtype": dtype, "weight_decay": weight_decay}
        adam = {"method": "adamw", "lr": adamw_lr, "betas": betas, "eps": eps}
        groups = [muon, *(adam | group for group in decay_groups(others, weight_decay))]
        super().__init__(groups, {})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Train these, too: by AdamW, unless ``method`` is ``"muon"``; with the numbers of the
        first group of that method, where this one has none of its own.
        """
        method = param_group.get("method", "adamw")
        alike = {group["method"]: group for group in reversed(self.param_groups)}.get(method, {})
        of_it = ("params", "param_names", "initial_lr")
        numbers = {name: number for name, number in alike.items() if name not in of_it}
        if alike:
            numbers["lr"] = alike.get("initial_lr", alike["lr"])
        super().add_param_group({"method": method} | numbers | param_group)
        if problem := _misfit(self.param_groups[-1]):
            self.param_groups.pop()
            raise ValueError(problem)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters that have a gradient.

        Args:
            closure: computes the loss and its gradients, and is called first, as by PyTorch's own
                optimizers.

        Returns:
            the loss that ``closure`` returned; None without one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if group["method"] == "muon":
                alike = defaultdict(list)  # matrices of one shape are multiplied together
                for p in parameters:
                    alike[p.shape, p.dtype, p.device].append(p)
                for matrices in alike.values():
                    self._step_muon(matrices, group)
            elif parameters:
                self._step_adamw(parameters, group)
        return loss

    # Both steps use PyTorch's functions for lists: on a GPU one kernel for all tensors, instead of
    # one for each.

    def _step_muon(self, matrices: list[Tensor], group: dict) -> None:
        rows, columns = matrices[0].shape
        gradients = [p.grad for p in matrices]
        for p in matrices:
            if not self.state[p]:
                self.state[p]["momentum"] = torch.zeros_like(p)
        means = [self.state[p]["momentum"] for p in matrices]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        ahead = torch.stack(torch._foreach_lerp(gradients, means, group["momentum"]))
        updates = self.directions(matrices, ahead, group)
        torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        step = group["lr"] * max(1, rows / columns) ** 0.5
        torch._foreach_add_(matrices, updates.to(matrices[0].dtype).unbind(), alpha=-step)

    def directions(
        self, matrices: list[Tensor], ahead: Float[Tensor, "matrices rows columns"], group: dict
    ) -> Float[Tensor, "matrices rows columns"]:
        """Which way each of these matrices, all of one shape, goes, given its momentum, ``ahead``.

        What a relative of Muon changes is mostly here; ``self.state[matrix]`` is saved with it.
        """
        return _orthogonalized(ahead, group["n_iterations"], group["dtype"])

    def _step_adamw(self, parameters: list[Tensor], group: dict) -> None:
        beta_1, beta_2 = group["betas"]
        for p in parameters:
            if not self.state[p]:
                zeros = {"mean": torch.zeros_like(p), "square": torch.zeros_like(p)}
                self.state[p] |= {"step": 0} | zeros
            self.state[p]["step"] += 1
        gradients, states = [p.grad for p in parameters], [self.state[p] for p in parameters]
        means, squares = ([state[name] for state in states] for name in ("mean", "square"))
        torch._foreach_lerp_(means, gradients, 1 - beta_1)
        torch._foreach_mul_(squares, beta_2)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - beta_2)
        spreads = torch._foreach_div(squares, [1 - beta_2 ** state["step"] for state in states])
        torch._foreach_sqrt_(spreads)
        torch._foreach_add_(spreads, group["eps"])
        torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        steps = [-group["lr"] / (1 - beta_1 ** state["step"]) for state in states]
        torch._foreach_addcdiv_(parameters, means, spreads, scalars=steps)


class NorMuon(Muon):
    """Muon whose steps change every row of a matrix, the weights of one output, about as much.

    Each row of a step is divided by the root of its running mean square, and the whole by one
    number more, so that the step is as long as Muon's. ``row_beta`` is how much of the squares
    before is kept. Everything else is as in :class:`Muon`.

    Raises:
        ValueError: ``row_beta`` is not a share.

    Source: Li et al. 2025 (NorMuon), algorithm 1.

    >>> layer = nn.Linear(2, 2, bias=False)
    >>> layer.weight.grad = torch.tensor([[1.0, 2.0], [0.0, 0.01]])
    >>> before = layer.weight.detach().clone()
    >>> NorMuon(nn.Sequential(layer), lr=1.0, outside=()).step()
    >>> (layer.weight - before).norm(dim=1).std() < 1e-5
    tensor(True)
    """

    def __init__(self, model: nn.Module, lr: float = 0.02, *, row_beta: float = 0.95, **options):
        require_shares({"row_beta": row_beta})
        super().__init__(model, lr, **options)
        self.param_groups[0]["row_beta"] = row_beta

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.param_groups[0].setdefault("row_beta", 0.95)  # older checkpoints do not say it

    def directions(
        self, matrices: list[Tensor], ahead: Float[Tensor, "matrices rows columns"], group: dict
    ) -> Float[Tensor, "matrices rows columns"]:
        """Muon's, with rows of about the same length."""
        steps = super().directions(matrices, ahead, group).to(ahead.dtype)
        squares = steps.square().mean(dim=-1, keepdim=True)
        for p, square in zip(matrices, squares, strict=True):
            rows = self.state[p].setdefault("rows", torch.zeros_like(square))
            rows.lerp_(square, 1 - group["row_beta"])
        means = torch.stack([self.state[p]["rows"] for p in matrices])
        scaled = steps / means.sqrt().clamp(min=1e-8)
        lengths = [x.norm(dim=(-2, -1), keepdim=True) for x in (steps, scaled)]
        return scaled * (lengths[0] / lengths[1].clamp(min=1e-8))


def orthogonalize(
    matrices: Float[Tensor, "*batch rows columns"],
    n_iterations: int = 5,
    *,
    dtype: torch.dtype | None = None,
) -> Float[Tensor, "*batch rows columns"]:
    """UVᵀ of the decomposition USVᵀ of each matrix, roughly: singular values go toward 1.

    By the iteration of Newton and Schulz: products only, so it suits a GPU and 16 bits. It begins
    with the matrix divided by its norm; singular values that are very small then do not reach 1
    (see :class:`Muon`). A matrix of zeros stays one. The result is of ``dtype``, that of
    ``matrices`` if None.

    Raises:
        ValueError: ``n_iterations`` is negative; ``matrices`` have no rows and columns.
        TypeError: ``dtype``, or that of ``matrices``, is not a floating point type.

    Source: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/.

    >>> orthogonalize(torch.diag(torch.tensor([5.0, 0.5]))).diag() > 0.65
    tensor([True, True])
    """
    checks.require_count(n_iterations, "n_iterations", least=0)
    checks.require_float_dtype(dtype)
    checks.require_float_tensor(matrices, "matrices")
    if matrices.ndim < 2:
        raise ValueError(
            f"matrices have shape {tuple(matrices.shape)}; their last two axes must be rows and "
            f"columns."
        )
    # Squares that overflow: a step of Muon need not look, and wait for a GPU, as its gradients are
    # looked at.
    if matrices.norm(dim=(-2, -1)).isinf().any():
        matrices = matrices / matrices.abs().amax(dim=(-2, -1), keepdim=True).clamp(min=1)
    return _orthogonalized(matrices, n_iterations, dtype)


def _orthogonalized(matrices: Tensor, n_iterations: int, dtype: torch.dtype | None) -> Tensor:
    """:func:`orthogonalize` of matrices whose norm is finite."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices  # the smaller of the two products
    norm = x.norm(dim=(-2, -1), keepdim=True)  # bounds the largest singular value
    x = (x / norm.clamp(min=1e-7)).to(dtype).contiguous()
    shape, x = x.shape, x.reshape(-1, *x.shape[-2:])
    for _ in range(n_iterations):
        products = x @ x.mT
        x = x.baddbmm(products.baddbmm(products, products, beta=b, alpha=c), x, beta=a)
    x = x.reshape(shape)
    return x.mT if tall else x


def set_rates(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Every group's rate becomes ``factor`` times that with which the optimizer was made.

    Raises:
        ValueError: a factor that is negative or not finite; no rate changes then.
        TypeError: a factor that is not a number.

    >>> optimizer = adamw(nn.Linear(3, 2), lr=0.5)
    >>> set_rates(optimizer, 0.1)
    >>> optimizer.param_groups[0]["lr"]
    0.05
    """
    require_rate_factor(factor)
    for group in optimizer.param_groups:
        group["lr"] = group.setdefault("initial_lr", group["lr"]) * factor


def _misfit(group: dict[str, Any]) -> str | None:
    """Why Muon cannot train a group; None if it can."""
    if group["method"] not in ("muon", "adamw"):
        return f"method is {group['method']!r}; a group is trained by 'muon' or by 'adamw'."
    shapes = [tuple(p.shape) for p in group["params"] if p.ndim != 2]
    if group["method"] == "muon" and shapes:
        return f"a parameter has shape {shapes[0]}; Muon is for matrices: give method='adamw'."
    return None


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """All parameters that need a gradient, each once, by its name.

    Raises:
        ValueError: there are none; one has no shape yet (a lazy module's).
        TypeError: ``model`` is not a module.
    """
    checks.require_model(model)
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise ValueError(
            f"this {type(model).__name__} has no parameter that needs a gradient, so there is "
            f"nothing to train. Check requires_grad."
        )
    for name, p in named.items():
        if is_lazy(p):
            raise ValueError(
                f"{name} has no shape before the first batch, so whether it decays is not known. "
                f"Let the model read one batch, then make the optimizer."
            )
    return named


def hidden_matrices(model: nn.Module, outside: Iterable[str] = ("head",)) -> dict[str, Tensor]:
    """The weights of ``nn.Linear`` that need a gradient, but for those in ``outside`` and those
    that are also a table of ``nn.Embedding``.

    Raises:
        ValueError: ``outside`` names what ``model`` does not have.
    """
    outer = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    for name in (outside,) if isinstance(outside, str) else outside:
        if not hasattr(model, name):
            raise ValueError(
                f"outside names {name!r}, which this {type(model).__name__} does not have. Name "
                f"the module that scores the tokens, or pass outside=() if there is none."
            )
        outer += [getattr(model, name)] if getattr(model, name) is not None else []
    others = {id(p) for module in outer for p in module.parameters()}
    linear = {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    return {name: p for name, p in trainable(model).items() if id(p) in linear - others}


def decay_groups(named: dict[str, Tensor], weight_decay: float) -> list[dict]:
    """Two groups for an optimizer: matrices, which decay, and vectors, which do not.

    Raises:
        ValueError: ``weight_decay`` is negative or not finite.
    """
    checks.require_number(weight_decay, "weight_decay")
    if not 0 <= weight_decay < float("inf"):
        raise ValueError(f"weight_decay is {weight_decay}; it must be finite and at least 0.")
    matrices = [(name, p) for name, p in named.items() if p.ndim >= 2]
    vectors = [(name, p) for name, p in named.items() if p.ndim < 2]
    groups = [(matrices, weight_decay), (vectors, 0.0)]
    return [{"params": group, "weight_decay": decay} for group, decay in groups if group]


def gradient_norm(optimizer: torch.optim.Optimizer) -> Tensor:
    """The norm of all gradients together. It is finite only if all their numbers are."""
    return torch.nn.utils.get_total_norm([gradient for _, gradient in _gradients(optimizer)])


def not_finite(optimizer: torch.optim.Optimizer) -> list[str]:
    """The names of the parameters whose gradients hold NaN or infinity. (A GPU waits for each.)"""
    return [name for name, g in _gradients(optimizer) if not bool(g.isfinite().all())]


def require_finite_gradients(optimizer: torch.optim.Optimizer) -> Tensor:
    """All gradients are finite, and so is the sum of their squares: the norm of all together.

    The optimizers of this module call it before each step. (A GPU has to wait for it, once.)

    Raises:
        FloatingPointError: names the parameters whose gradients are not.
    """
    norm = gradient_norm(optimizer)
    if not norm.isfinite():
        raise bad_gradients(optimizer)
    return norm


def bad_gradients(optimizer: torch.optim.Optimizer) -> FloatingPointError:
    """The error for gradients whose norm is not finite."""
    advice = "No parameter was changed. Lower the learning rate, lengthen the warm-up"
    if names := not_finite(optimizer):
        more = f" and {len(names) - 3} others" if len(names) > 3 else ""
        return FloatingPointError(
            f"the gradient of {', '.join(names[:3])}{more} {'holds' if len(names) == 1 else 'hold'}"
            f" NaN or infinity. {advice} or clip the gradients; in float16, scale the loss "
            f"(torch.amp.GradScaler)."
        )
    largest = {name: float(g.abs().max()) for name, g in _gradients(optimizer)}
    name = max(largest, key=largest.__getitem__)
    return FloatingPointError(
        f"the gradient of {name} has numbers of up to {largest[name]:.3g}, whose squares are too "
        f"large to be added up. It could not be clipped, and Adam's mean of squares would stay "
        f"infinite for good. {advice}, or look for what divides by almost 0."
    )


@contextmanager
def gradients_checked(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """A context in which ``optimizer.step`` does not check the gradients: its caller has."""
    optimizer.looks_at_gradients = False
    try:
        yield
    finally:
        optimizer.looks_at_gradients = True


def _gradients(optimizer: torch.optim.Optimizer) -> list[tuple[str, Tensor]]:
    named = []
    for group in optimizer.param_groups:
        numbered = [f"parameter {i}" for i in range(len(group["params"]))]
        named += zip(group.get("param_names", numbered), group["params"], strict=True)
    found = [(name, p.grad) for name, p in named if p.grad is not None]
    if sparse := [name for name, gradient in found if gradient.is_sparse]:
        raise TypeError(
            f"the gradient of {', '.join(sparse[:3])} is sparse, and its norm cannot be taken. No "
            f"parameter was changed. Make the nn.Embedding without sparse=True."
        )
    return found


def _before_step(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> tuple | None:
    """Look at the gradients that are there, or at those that the step's closure computes."""
    if not getattr(optimizer, "looks_at_gradients", True):
        return None
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if closure is None:
        require_finite_gradients(optimizer)
        return None

    def looked_at() -> Any:
        loss = closure()
        require_finite_gradients(optimizer)
        return loss

    return args[:1], {"closure": looked_at}  # in place of the step's own arguments


def require_shares(named: Mapping[str, float | tuple[float, ...]]) -> None:
    """Shares of what was before: at least 0, below 1."""
    for name, value in named.items():
        for i, share in enumerate(value if isinstance(value, tuple) else (value,)):
            checks.require_number(share, name)
            if not 0 <= share < 1:
                name = f"{name}[{i}]" if isinstance(value, tuple) else name
                raise ValueError(f"{name} is {share}; it is a share: choose 0 <= {name} < 1.")


def require_positive(named: Mapping[str, float]) -> None:
    """Finite numbers above 0."""
    for name, value in named.items():
        checks.require_number(value, name)
        if not 0 < value <= sys.float_info.max:  # an integer may be beyond
            raise ValueError(f"{name} is {value}; it must be a finite number above 0.")


def require_rate_factor(factor: float) -> None:
    """What a schedule gives: a finite number of at least 0."""
    checks.require_number(factor, "the schedule's factor of the rate")
    if not 0 <= factor < math.inf:
        raise ValueError(
            f"the schedule's factor of the rate is {factor}; it must be finite and at least 0. No "
            f"parameter was changed. Look at what schedule(step, n_steps) gives for this step."
        )


def require_betas(betas: tuple[float, float]) -> None:
    """Two of them, for the mean of the gradients and for that of their squares."""
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise ValueError(f"betas is {betas!r}; give two numbers, such as (0.9, 0.95).")
    require_shares({"betas": tuple(betas)})


def require_matrices(hidden: Mapping[str, Tensor]) -> None:
    """There are matrices for Muon."""
    if not hidden:
        raise ValueError(
            "the model has no nn.Linear between its layers, so there is nothing for Muon; use "
            "adamw(model, ...)."
        )
