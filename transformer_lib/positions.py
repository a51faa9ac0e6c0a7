"""Positions: how attention, which sees a set, learns where each token is.

There are four ways: sinusoidal and learned encodings are *added* to the tokens' vectors; rotary
positions *turn* queries and keys; ALiBi adds a *bias* to the scores. Positions count from 0.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lib import checks
from transformer_lib.fast.rotation import cosine_sine, has_complex_numbers, turn_pairs, unit_numbers

Device = torch.device | str | None


@runtime_checkable
class Positions(Protocol):
    """Positions that act within attention: the argument of ``MultiHeadAttention(positions=...)``.

    Queries and keys pass through ``rotate``, and ``bias`` is added to their scores. A scheme of its
    own is a class with these two methods; one of them may do nothing.
    """

    def rotate(
        self, x: Float[Tensor, "*batch tokens d_head"], start: int
    ) -> Float[Tensor, "*batch tokens d_head"]:
        """Queries or keys, with their positions; the first token of ``x`` is at ``start``."""

    def bias(
        self, queries: int, keys: int, device: Device, dtype: torch.dtype
    ) -> Float[Tensor, "n_heads queries keys"] | None:
        """The term added to the scaled scores; the last query is at the last key."""


@runtime_checkable
class AddedPositions(Protocol):
    """Positions that are added to the embeddings: the argument of ``Embedding(positions=...)``."""

    def __call__(
        self, x: Float[Tensor, "*batch tokens d_model"], start: int
    ) -> Float[Tensor, "*batch tokens d_model"]:
        """``x`` plus the vectors of its positions; its first token is at ``start``."""


def _angles(n_positions: int, width: int, base: float, start: int, device: Device) -> Tensor:
    """position · base^(-2i/width), ``[n_positions, width/2]``, in double precision.

    In single precision the angle of position 100,000 would be off by about a thousandth of a turn.
    """
    device = torch.get_default_device() if device is None else torch.device(device)
    exact = torch.float32 if device.type == "mps" else torch.float64  # mps knows no float64
    pair = torch.arange(0, width, 2, dtype=exact, device=device)
    frequencies = torch.exp(-math.log(base) * pair / width)
    positions = torch.arange(start, start + n_positions, dtype=exact, device=device)
    return positions.unsqueeze(1) * frequencies


def sinusoidal_encoding(
    n_positions: int,
    d_model: int,
    *,
    base: float = 10_000.0,
    start: int = 0,
    dtype: torch.dtype | None = None,
    device: Device = None,
) -> Float[Tensor, "n_positions d_model"]:
    """PE(p, 2i) = sin(p / base^(2i/d_model)) and PE(p, 2i+1) = cos of the same angle.

    Rows are the positions ``start``, ``start + 1``, …; the frequencies are computed by exp and log,
    in double precision, and then rounded to ``dtype`` (PyTorch's default if None).

    Source: Vaswani et al. 2017, section 3.5.

    Raises:
        ValueError: odd ``d_model``; fewer than 1 position; ``start`` < 0 or > 2**52; ``base`` <= 1.

    >>> sinusoidal_encoding(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    require_waves(d_model, "d_model", base, dtype, n_positions=n_positions, start=start)
    angles = _angles(n_positions, d_model, base, start, device)
    encoding = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(start_dim=1)
    return encoding.to(dtype or torch.get_default_dtype())


def shift_matrix(
    offset: float,
    d_model: int,
    *,
    base: float = 10_000.0,
    dtype: torch.dtype | None = None,
    device: Device = None,
) -> Float[Tensor, "d_model d_model"]:
    """R(k) with PE(p + k) = PE(p) R(k) at every position p: a rotation of each pair by its angle.

    PE(p) is a row, as :func:`sinusoidal_encoding` has it.

    Source: Vaswani et al. 2017, section 3.5 (stated there without the matrix).

    Raises:
        ValueError: odd ``d_model``; ``base`` <= 1.

    >>> shift_matrix(1, 2)
    tensor([[ 0.5403, -0.8415],
            [ 0.8415,  0.5403]])
    """
    require_waves(d_model, "d_model", base, dtype)
    require_offset(offset)
    angles = offset * _angles(1, d_model, base, 1, device)[0]
    sine, cosine = angles.sin(), angles.cos()
    blocks = torch.stack((cosine, -sine, sine, cosine), dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks).to(dtype or torch.get_default_dtype())


def rotary_angles(
    n_positions: int,
    d_head: int,
    *,
    base: float = 10_000.0,
    start: int = 0,
    dtype: torch.dtype | None = None,
    device: Device = None,
) -> Float[Tensor, "n_positions pairs"]:
    """The angle p / base^(2i/d_head) by which rotary positions turn pair i at position p.

    Source: Su et al. 2021 (RoFormer), section 3.2.2.

    Raises:
        ValueError: odd ``d_head``; fewer than 1 position; ``start`` < 0 or > 2**52; ``base`` <= 1.

    >>> rotary_angles(3, 4)
    tensor([[0.0000, 0.0000],
            [1.0000, 0.0100],
            [2.0000, 0.0200]])
    """
    require_waves(d_head, "d_head", base, dtype, n_positions=n_positions, start=start)
    angles = _angles(n_positions, d_head, base, start, device)
    return angles.to(dtype or torch.get_default_dtype())


def apply_rotary(
    x: Float[Tensor, "*batch tokens d_head"], angles: Float[Tensor, "tokens pairs"]
) -> Float[Tensor, "*batch tokens d_head"]:
    """Turn each pair of components (2i, 2i+1) of token p by ``angles[p, i]``.

    For queries and keys, not for values. The dot product of a turned query and a turned key
    depends on their distance only. (Hugging Face's Llama checkpoints pair component i with
    i + d_head/2: the same rotation after a permutation of the components.)

    Source: Su et al. 2021 (RoFormer), equation 34.

    Raises:
        ValueError: ``angles`` is not ``[tokens, d_head / 2]``.

    >>> apply_rotary(torch.tensor([[1.0, 0.0]]), torch.tensor([[torch.pi / 2]])).round()
    tensor([[-0., 1.]])
    """
    require_rotary(x, angles)
    exact = torch.promote_types(x.dtype, torch.float32)  # cosines in 16 bits would be off by 0.2 %
    cosine, sine = cosine_sine(angles, exact)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = (even * cosine - odd * sine, even * sine + odd * cosine)
    return torch.stack(turned, dim=-1).flatten(start_dim=-2).to(x.dtype)


def alibi_slopes(
    n_heads: int, *, dtype: torch.dtype | None = None, device: Device = None
) -> Float[Tensor, " n_heads"]:
    """How fast each head's attention falls with distance: 2^(-8/n), 2^(-16/n), …, 2^(-8).

    That is for a power of two. Otherwise: the slopes of the next lower power of two, then every
    other slope of twice that number, as in the authors' code.

    Source: Press et al. 2021, section 3.

    Raises:
        ValueError: fewer than 1 head.

    >>> alibi_slopes(8)
    tensor([0.5000, 0.2500, 0.1250, 0.0625, 0.0312, 0.0156, 0.0078, 0.0039])
    >>> alibi_slopes(3)
    tensor([0.0625, 0.0039, 0.2500])
    """
    checks.require_count(n_heads, "n_heads")
    checks.require_float_dtype(dtype)
    lower = 2 ** (int(n_heads).bit_length() - 1)
    slopes = [2 ** (-8 * head / lower) for head in range(1, lower + 1)]
    between = [2 ** (-8 * head / (2 * lower)) for head in range(1, 2 * lower + 1, 2)]
    return torch.tensor((slopes + between)[:n_heads], dtype=dtype, device=device)


def alibi_bias(
    n_heads: int,
    queries: int,
    keys: int,
    *,
    dtype: torch.dtype | None = None,
    device: Device = None,
) -> Float[Tensor, "n_heads queries keys"]:
    """-slope · distance, to be added to the scaled scores; the last query is at the last key.

    The paper's decoder sees the past only; with no causal mask, the future counts by its distance,
    too.

    Source: Press et al. 2021, section 3.

    Raises:
        ValueError: a size is smaller than 1.

    >>> alibi_bias(1, 2, 3) * 256
    tensor([[[-1., -0., -1.],
             [-2., -1., -0.]]])
    """
    checks.require_count(queries, "queries")
    checks.require_count(keys, "keys")
    checks.require_float_dtype(dtype)
    dtype = dtype or torch.get_default_dtype()
    slopes = alibi_slopes(n_heads, dtype=torch.promote_types(dtype, torch.float32), device=device)
    query = torch.arange(keys - queries, keys, device=device).unsqueeze(1)
    distance = (query - torch.arange(keys, device=device)).abs()
    return (-slopes[:, None, None] * distance).to(dtype)


class SinusoidalPositions(nn.Module):
    """Adds :func:`sinusoidal_encoding` to ``x [..., tokens, d_model]``, from position ``start`` on.

    >>> SinusoidalPositions(d_model=4)(torch.zeros(1, 1, 4), start=1)
    tensor([[[0.8415, 0.5403, 0.0100, 0.9999]]])
    """

    def __init__(self, d_model: int, *, base: float = 10_000.0):
        super().__init__()
        require_waves(d_model, "d_model", base, dtype=None)
        self.d_model, self.base = d_model, base

    def forward(
        self, x: Float[Tensor, "*batch tokens d_model"], start: int = 0
    ) -> Float[Tensor, "*batch tokens d_model"]:
        """``x`` plus the encoding of its positions."""
        require_encodable(x, self.d_model, start)
        options = {"base": self.base, "start": start, "dtype": x.dtype, "device": x.device}
        return x + sinusoidal_encoding(x.shape[-2], self.d_model, **options)

    def stepper(self, capacity: int, like: Tensor) -> Callable[[Tensor, int], Tensor]:
        """x, place -> x for one token: see :mod:`fast.steps`."""
        encoding = self(like.new_zeros(capacity, self.d_model))
        return lambda x, place: x + encoding[place]

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, base={self.base}"


class LearnedPositions(nn.Module):
    """Adds one learned vector for each position: a table of ``max_positions`` rows and no more.

    Source: Gehring et al. 2017, section 3.1; found about equal to sinusoids by Vaswani et al. 2017,
    table 3 (E).

    Raises:
        ValueError: in ``forward``, positions beyond the table.

    >>> LearnedPositions(max_positions=6, d_model=4)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 5, 4])
    """

    def __init__(self, max_positions: int, d_model: int):
        super().__init__()
        checks.require_count(max_positions, "max_positions")
        checks.require_count(d_model, "d_model")
        self.table = nn.Embedding(max_positions, d_model)

    def forward(
        self, x: Float[Tensor, "*batch tokens d_model"], start: int = 0
    ) -> Float[Tensor, "*batch tokens d_model"]:
        """``x`` plus the rows of the table for its positions."""
        max_positions, d_model = self.table.weight.shape
        require_encodable(x, d_model, start)
        require_learned(start, x.shape[-2], max_positions)
        return x + self.table.weight[start : start + x.shape[-2]]

    def stepper(self, capacity: int, like: Tensor) -> Callable[[Tensor, int], Tensor]:
        """x, place -> x for one token: see :mod:`fast.steps`."""
        table = self.table.weight

        def step(x: Tensor, place: int) -> Tensor:
            require_learned(place, 1, len(table))
            return x + table[place]

        return step


@dataclass(frozen=True)
class RotaryPositions:
    """Rotary :class:`Positions` for heads of this width: see :func:`apply_rotary`.

    >>> RotaryPositions(d_head=4).rotate(torch.ones(1, 2, 3, 4), start=0).shape
    torch.Size([1, 2, 3, 4])
    """

    d_head: int
    base: float = 10_000.0

    def __post_init__(self):
        require_waves(self.d_head, "d_head", self.base, dtype=None)

    def rotate(
        self, x: Float[Tensor, "*batch tokens d_head"], start: int
    ) -> Float[Tensor, "*batch tokens d_head"]:
        """``x``, queries or keys, turned; its first token is at position ``start``."""
        require_turnable(x, self.d_head)
        require_start(start)
        where = (x.shape[-2], self.d_head, self.base, start, x.device)
        if not has_complex_numbers(x.device):
            return apply_rotary(x, _angles(*where))
        exact = torch.promote_types(x.dtype, torch.float32).to_complex()
        return turn_pairs(x, unit_numbers(_angles, *where, dtype=exact))

    def bias(self, queries: int, keys: int, device: Device, dtype: torch.dtype) -> None:
        """Nothing is added to the scores."""

    def stepper(self, capacity: int, like: Tensor) -> Callable[[Tensor, int], None]:
        """x ``[..., d_head]``, place -> nothing, for one token: ``x`` itself is turned.

        See :mod:`fast.steps`.
        """
        where = (capacity, self.d_head, self.base, 0, like.device)
        numbers = unit_numbers(_angles, *where, dtype=like.dtype.to_complex())

        def turn(x: Tensor, place: int) -> None:
            torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(numbers[place])

        return turn


@dataclass(frozen=True)
class AlibiPositions:
    """ALiBi, as :class:`Positions` for this number of heads: see :func:`alibi_bias`.

    >>> AlibiPositions(n_heads=2).bias(3, 3, "cpu", torch.float32).shape
    torch.Size([2, 3, 3])
    """

    n_heads: int

    def __post_init__(self):
        checks.require_count(self.n_heads, "n_heads")

    def rotate(self, x: Tensor, start: int) -> Tensor:
        """Queries and keys stay as they are."""
        return x

    def bias(
        self, queries: int, keys: int, device: Device, dtype: torch.dtype
    ) -> Float[Tensor, "n_heads queries keys"]:
        """The term added to the scaled scores."""
        return alibi_bias(self.n_heads, queries, keys, dtype=dtype, device=device)


@checks.at_the_door
def require_turnable(x, d_head: int) -> None:
    """``x`` is ``[..., tokens, d_head]``."""
    checks.require_float_tensor(x, "x")
    if x.ndim < 2 or x.shape[-1] != d_head:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; these rotary positions turn queries and keys "
            f"[..., tokens, d_head] with d_head = {d_head}. Make them for the width of the heads."
        )


@checks.at_the_door
def require_rotary(x, angles) -> None:
    """``angles`` has one row for each token of ``x`` and one column for each pair."""
    checks.require_float_tensor(x, "x")
    checks.require_float_tensor(angles, "angles")
    if x.ndim < 2 or x.shape[-1] % 2 or angles.shape != (x.shape[-2], x.shape[-1] // 2):
        raise ValueError(
            f"x has shape {tuple(x.shape)} and angles has shape {tuple(angles.shape)}; for x "
            f"[..., tokens, d_head] the angles must be [tokens, d_head / 2]: make them by "
            f"rotary_angles(tokens, d_head)."
        )


@checks.at_the_door
def require_encodable(x, d_model: int, start: int) -> None:
    """``x`` is ``[..., tokens, d_model]``."""
    checks.require_float_tensor(x, "x")
    require_start(start)
    if x.ndim < 2 or x.shape[-1] != d_model or x.shape[-2] == 0:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; the positions need [..., tokens, d_model] with "
            f"d_model = {d_model} and at least one token."
        )


def require_learned(start: int, tokens: int, max_positions: int) -> None:
    """The positions are within the table. (In a model, too: its config may have been replaced.)"""
    if start + tokens > max_positions:
        raise ValueError(
            f"positions {start} to {start + tokens - 1} are asked for, but only positions 0 to "
            f"{max_positions - 1} were learned. Shorten the sequence, train with a larger "
            f"max_positions, or use positions that are computed (sinusoidal, rotary, ALiBi)."
        )


def require_waves(width, name: str, base, dtype, *, n_positions=1, start: int = 0) -> None:
    """The arguments that sinusoids and rotary angles share."""
    require_even(width, name, "each frequency turns a pair of components")
    checks.require_count(n_positions, "n_positions")
    require_base(base)
    require_start(start)
    checks.require_float_dtype(dtype)


def require_even(value, name: str, reason: str) -> None:
    """``value`` is a positive even int; ``reason`` says why."""
    checks.require_count(value, name)
    if value % 2:
        raise ValueError(f"{name} is {value}, an odd number; {reason}. Choose an even {name}.")


def require_base(base) -> None:
    """``base``, of the wavelengths, is a number above 1."""
    checks.require_number(base, "base")
    if not 1 < base < float("inf"):
        raise ValueError(
            f"base is {base}; it must be a finite number above 1 (the papers use 10000)."
        )


def require_offset(offset) -> None:
    """``offset``, between positions, is a finite number, or a tensor of one."""
    if not isinstance(offset, Tensor):
        checks.require_number(offset, "offset")
    if not abs(offset) < float("inf"):
        raise ValueError(f"offset is {offset}; it counts positions: choose a finite number.")


def require_start(start: int) -> None:
    """``start``, the position of the first token, is a number that 64 bits tell from the next."""
    checks.require_whole(start, "start")
    if not 0 <= start <= 2**52:
        raise ValueError(f"start is {start}; positions count from 0. Pass 0 <= start <= 2**52.")
