"""Noise in the last place of a kernel's numbers: what other processors do to a chapter.

IPython runs this file when a kernel starts (book/elsewhere.py puts it there). From then on every
result that another processor may round differently is moved by at most one unit in its last place:
products, reductions, softmax, exponentials, norms, normal random numbers, and their gradients.
Products and sums are also taken in another order, which is how processors come to differ; the signs
of eigenvectors and of QR decompositions, which are nobody's, are drawn. What IEEE arithmetic rounds
in one way only (a sum of two numbers, a square root) stays as it is, and so does a running sum that
nobody has to round: 0.5, 0.75, 0.875.

The seed is in NOISE_SEED. A cell whose source begins with `SAME_CALL` speaks of bits: in it the
same operation on the same shapes gets the same noise each time, as on one machine.
"""

import os
import re
import zlib

import torch
from torch.nn.attention.bias import CausalBias
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

SAME_CALL = "# bits:"

ROUNDED = re.compile(
    r"(add)?(mm|bmm|mv)|baddbmm|addbmm|addr|v?dot|convolution|linear|_cdist_forward"
    r"|(nan|log)?(cum)?sum(exp)?|logcumsumexp|mean|(cum)?prod|var|std|(var|std)_mean|trace"
    r"|(linalg_vector_|_foreach_)?norm|linalg_\w+|_linalg_\w+|cholesky\w*"
    r"|_?(log_)?softmax|_safe_softmax|logaddexp2?|nll_loss\w*|mse_loss|binary_cross_entropy\w*"
    r"|exp2?|expm1|log(2|10|1p)?|a?(sin|cos|tan)h?|atan2|sigmoid|log_sigmoid\w*|softplus|gelu|silu"
    r"|erf\w*|pow|rsqrt|reciprocal|polar|lerp|addcmul|addcdiv|linspace|logspace"
    r"|native_(layer|group|batch)_norm|_fused_rms_norm|_scaled_dot_product\w*"
    r"|normal|randn|index_add|scatter_add|scatter_reduce|\w+_backward"
)
EXACT = re.compile(r"(slice|select|unfold|threshold|diagonal|\w*pool\w*)_backward")
BITS = {torch.float16: torch.int16, torch.bfloat16: torch.int16}
BITS |= {torch.float32: torch.int32, torch.float64: torch.int64}
PLACES = 1 << 18  # where in the steps that were drawn a result's may begin
CONTRACTED = {"mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1)}
CONTRACTED |= {"addmm": (1, 2), "baddbmm": (1, 2), "addmv": (1, 2)}


def adds_up_exactly(numbers: torch.Tensor) -> bool:
    """Whether no sum of some of these numbers has to be rounded, in whatever order they come."""
    if not numbers.is_floating_point() or not numbers.numel():
        return False
    total = numbers.double().abs().sum()
    last_place = total.to(numbers.dtype) * torch.finfo(numbers.dtype).eps
    step = 2.0 ** last_place.double().log2().ceil()
    return bool((numbers.double() % step == 0).all())


class Noise(TorchDispatchMode):
    """Moves the last place of what is computed while it is entered."""

    def __init__(self, seed: int):
        super().__init__()
        self.seed, self.same_call = seed, False
        self.drawn = torch.Generator().manual_seed(seed)
        self.more_steps = torch.Generator().manual_seed(seed)
        self.steps = torch.zeros(0, dtype=torch.int8)
        self.names: dict = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func not in self.names:
            name = func._schema.name.removeprefix("aten::").rstrip("_")
            self.names[func] = name, ROUNDED.fullmatch(name) and not EXACT.fullmatch(name)
        name, rounded = self.names[func]
        complex_product = name in ("mul", "div") and any(
            isinstance(one, torch.Tensor) and one.is_complex() for one in args
        )
        if not complex_product and not rounded:
            return func(*args, **kwargs)
        if self.same_call:
            shapes = [tuple(one.shape) for one in args if isinstance(one, torch.Tensor)]
            self.drawn.manual_seed(zlib.crc32(f"{self.seed} {func} {shapes}".encode()))
        args = self.in_another_order(name, list(args))
        results = func(*args, **kwargs)
        if name == "cumsum" and adds_up_exactly(args[0]):
            return results
        if name in ("linalg_qr", "_linalg_svd", "_linalg_eigh"):
            self.turn(name, results)
        for one in results if isinstance(results, (tuple, list)) else (results,):
            if isinstance(one, torch.Tensor):
                self.move(one)
        return results

    def in_another_order(self, name: str, args: list) -> list:
        """The arguments with the terms of the sum, if the operation is one, in another order."""
        if name in CONTRACTED:
            left, right = CONTRACTED[name]
            axis = args[right].dim() - (1 if args[right].dim() == 1 else 2)
            order = torch.randperm(args[right].shape[axis], generator=self.drawn)
            args[left] = args[left].index_select(-1, order)
            args[right] = args[right].index_select(axis, order)
        elif name in ("sum", "mean") and args[0].dim():
            axes = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
            for axis in axes or range(args[0].dim()):
                order = torch.randperm(args[0].shape[axis], generator=self.drawn)
                args[0] = args[0].index_select(axis, order)
        return args

    def turn(self, name: str, results: tuple) -> None:
        """Another of the bases that a decomposition may give: other signs, another null space."""
        left, right = results[0 if name != "_linalg_eigh" else 1], results[-1]
        n = left.shape[-1]
        if n == 0 or not left.is_floating_point():
            return
        signs = (2 * torch.randint(0, 2, (n,), generator=self.drawn) - 1).to(left.dtype)
        left.mul_(signs)
        if name != "_linalg_eigh" and right.numel():
            right[..., :n, :].mul_(signs[: right.shape[-2], None])
            rest = right[..., n:, :]
            mix = torch.randn(2 * rest.shape[-2:-1], generator=self.drawn, dtype=left.dtype)
            rest.copy_(torch.linalg.qr(mix).Q @ rest)

    def move(self, result: torch.Tensor) -> None:
        if result.is_complex():
            result = torch.view_as_real(result)
        if result.dtype not in BITS or result.device.type != "cpu" or not result.numel():
            return
        moved = result.detach().view(BITS[result.dtype])
        steps = self.drawn_steps(result.numel()).view(result.shape)
        # A sum is finite only if all its terms are, and is taken sooner than each is looked at.
        there = result != 0 if result.sum().isfinite() else (result != 0) & result.isfinite()
        moved.add_(steps * there)

    def drawn_steps(self, n: int) -> torch.Tensor:
        """-1, 0 or 1 for each of `n` numbers: a piece of what was drawn once, which is quicker."""
        if (missing := PLACES + n - len(self.steps)) > 0:
            more = torch.randint(-1, 2, (missing,), generator=self.more_steps, dtype=torch.int8)
            self.steps = torch.cat([self.steps, more])
        begin = int(torch.randint(PLACES, (), generator=self.drawn))
        return self.steps[begin : begin + n]


def begin(seed: int) -> None:
    """Put noise on this kernel, until it ends."""
    from IPython import get_ipython

    noise = Noise(seed)
    noise.__enter__()

    # PyTorch cannot make this subclass of a tensor while a mode looks on.
    def without_noise(kind, *args):
        with _disable_current_modes():
            return torch.Tensor.__new__(kind)

    CausalBias.__new__ = without_noise

    def before_a_cell(info) -> None:
        noise.same_call = info.raw_cell.startswith(SAME_CALL)

    get_ipython().events.register("pre_run_cell", before_a_cell)


if "NOISE_SEED" in os.environ:
    begin(int(os.environ["NOISE_SEED"]))
