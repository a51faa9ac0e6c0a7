"""Argument checks that several modules share. Each other check is at the foot of its owner's file.

``ValueError``: a shape, width, device or value that does not fit. ``TypeError``: a wrong dtype, or
not a tensor at all. Every message says what came in, why it cannot work, and what to do. Nothing
here looks at a tensor's numbers (on a GPU the program would have to wait for them), except
``require_finite`` and ``require_id_values``, which are for the boundaries.

Arguments are checked once, at the door. A model's ``forward``, decorated by :func:`require_once`,
checks what it is given; the parts within, whose own checks are decorated by :func:`at_the_door`, do
not check again what the library itself hands them. Where anything in the model is a reader's own,
every part checks, as it does when it is called alone. (To check everywhere would cost a fifth of
the pass of one token through a small model, and 2 to 5 % of a step of training.)
"""

import threading
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import wraps
from numbers import Integral, Real

import torch
from torch import Tensor, nn

_state = threading.local()  # .inside: a model that has checked its arguments is running


def require_once(forward: Callable) -> Callable:
    """Decorates the ``forward`` of a model: while it runs, the checks of its parts do nothing, if
    all of them are the library's own.
    """

    @wraps(forward)
    def checked(model: nn.Module, *args, **kwargs):
        inside = getattr(_state, "inside", False)
        if torch.compiler.is_compiling() or inside or holds_others(model):
            return forward(model, *args, **kwargs)
        _state.inside = True
        try:
            return forward(model, *args, **kwargs)
        finally:
            _state.inside = False

    return checked


def at_the_door(require: Callable[..., None]) -> Callable[..., None]:
    """Decorates the check of a part: it does nothing within a model that has checked already."""

    @wraps(require)
    def unless_inside(*args, **kwargs) -> None:
        if torch.compiler.is_compiling() or not getattr(_state, "inside", False):
            require(*args, **kwargs)

    return unless_inside


def holds_others(model: nn.Module) -> bool:
    """Whether anything in ``model`` is neither the library's nor PyTorch's: a part of another
    class, a hook, a ``forward`` put in the place of one, positions of a reader's own.

    >>> holds_others(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    False
    """
    parts = [model]
    for part in parts:  # which grows
        own = part.__dict__
        kinds = type(part), type(own.get("positions"))
        if not _known.issuperset(kinds) and not all(map(is_known, kinds)):
            return True
        if own["_forward_hooks"] or own["_forward_pre_hooks"] or "forward" in own:
            return True
        if own["_modules"]:
            parts += [child for child in own["_modules"].values() if child is not None]
    return False


_known: set[type] = set()  # so far


def is_known(kind: type) -> bool:
    """Whether a class is of this library, of PyTorch or of Python."""
    known = kind.__module__.partition(".")[0] in ("transformer_lib", "torch", "builtins")
    if known:
        _known.add(kind)
    return known


def require_count(value, name: str, least: int = 1) -> None:
    """``value`` is an int of at least ``least``."""
    require_whole(value, name)
    if value < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}.")


def require_whole(value, name: str) -> None:
    """``value`` is an int, also one of NumPy's."""
    if type(value).__name__ == "SymInt":  # PyTorch's, of a size that is open while it exports
        return
    if type(value) is not int and (not isinstance(value, Integral) or isinstance(value, bool)):
        raise TypeError(f"{name} is {value!r}, of type {type(value).__name__}; it must be an int.")


def require_number(value, name: str) -> None:
    """``value`` is a number, whole or not."""
    strange = not isinstance(value, Real) or isinstance(value, bool | Fraction)  # PyTorch, too
    if type(value) is not float and strange:
        raise TypeError(
            f"{name} is {value!r}, of type {type(value).__name__}; it must be a number, an int or "
            f"a float."
        )


def require_choice(value, name: str, choices) -> None:
    """``value`` is one of ``choices``."""
    if value not in list(choices):  # a list compares; a dict would want a hash of the value
        known = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} is {value!r}; choose one of {known}.")


def require_object(value, name: str) -> None:
    """``value`` is not a class where an object of it is meant."""
    if isinstance(value, type):
        kind = value.__name__
        raise TypeError(f"{name} is the class {kind}; give an object of it: {kind}(...).")


def require_kind(value, name: str, kind: type) -> None:
    """``value`` is of the class ``kind``."""
    require_object(value, name)
    if not isinstance(value, kind):
        made = f"of {kind.__name__}, as {kind.__name__}(...) makes it"
        raise TypeError(
            f"{name} is {value!r:.60}, of type {type(value).__name__}; it must be "
            f"{'an nn.Module' if kind is nn.Module else made}."
        )


def require_flag(value, name: str) -> None:
    """``value`` is True or False, not a text or a number that is taken for one."""
    if not isinstance(value, bool):
        kind = type(value).__name__
        kind = f"NumPy's {kind}, which has .item()" if kind == "bool" else kind
        raise TypeError(f"{name} is {value!r}, of type {kind}; it must be True or False.")


def require_model(model) -> None:
    """``model`` is a module of PyTorch's."""
    if not isinstance(model, nn.Module):
        raise TypeError(
            f"model is of type {type(model).__name__}; it must be an nn.Module: the model itself, "
            f"not its parameters(), and not what holds it (give trained.model)."
        )


def require_listed(values, name: str, **options) -> Tensor:
    """``values``, a list, an array or a tensor of numbers, as a tensor."""
    try:
        return torch.as_tensor(values, **options)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name} {values!r:.60} cannot be a tensor ({error}); give a list of integers."
        ) from error


def require_dropout(dropout: float) -> None:
    """``dropout`` is a probability below 1."""
    require_number(dropout, "dropout")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; it is a probability: choose 0 <= dropout < 1.")


def require_float_dtype(dtype: torch.dtype | None) -> None:
    """``dtype`` is a floating point type, or None."""
    if dtype is not None and not getattr(dtype, "is_floating_point", False):
        raise TypeError(f"dtype is {dtype!r}; choose a floating point type such as torch.float32.")


def require_tensor(x, name: str) -> None:
    """``x`` is a tensor."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name} is of type {type(x).__name__}; it must be a tensor: torch.tensor(...)."
        )


def require_float_tensor(x, name: str) -> None:
    """``x`` is a tensor of floating point numbers."""
    require_tensor(x, name)
    if x.is_nested:
        raise TypeError(f"{name} is nested; give its texts one by one, or padded and masked.")
    if not x.is_floating_point():
        raise TypeError(
            f"{name} has dtype {x.dtype}; it must be floating point: {name}.float(). "
            f"(Token ids go through an embedding first.)"
        )


def require_same(name_a: str, a: Tensor, name_b: str, b: Tensor) -> None:
    """``a`` and ``b`` have the same device and dtype."""
    require_same_device(name_a, a, name_b, b)
    require_same_dtype(name_a, a, name_b, b)


def require_same_device(name_a: str, a: Tensor, name_b: str, b: Tensor) -> None:
    """``a`` and ``b`` are on the same device."""
    if a.device != b.device:
        raise ValueError(
            f"{name_a} is on {a.device} and {name_b} is on {b.device}; move both to one device: "
            f"{name_b} = {name_b}.to({str(a.device)!r})."
        )


def require_same_dtype(name_a: str, a: Tensor, name_b: str, b: Tensor) -> None:
    """``a`` and ``b`` have the same dtype."""
    if a.dtype != b.dtype:
        raise TypeError(
            f"{name_a} has dtype {a.dtype} and {name_b} has dtype {b.dtype}; use one for both: "
            f"{name_b} = {name_b}.to({a.dtype})."
        )


def require_finite(x, name: str) -> None:
    """``x``, a tensor or array, holds neither NaN nor infinity (at boundaries: a GPU must wait)."""
    bad = ~torch.isfinite(torch.as_tensor(x))
    if bad.any():
        where = tuple(bad.nonzero()[0].tolist())
        raise ValueError(
            f"{name} holds {int(bad.sum())} numbers that are NaN or infinite, the first at index "
            f"{where}; find out which step made them before you look at the result."
        )


def require_ids(ids, vocabulary: int, name: str = "ids") -> None:
    """``ids`` are ``[batch, tokens]``, integers below ``vocabulary``.

    Their values are looked at on the CPU only: on a GPU that would make the program wait.
    """
    if not isinstance(ids, Tensor) or ids.dtype not in (torch.int64, torch.int32):
        tensor = isinstance(ids, Tensor)
        found = f"have dtype {ids.dtype}" if tensor else f"are of type {type(ids).__name__}"
        raise TypeError(
            f"{name} {found}; token ids are a tensor of int64 or int32: torch.tensor(ids), "
            f"ids.long()."
        )
    if ids.is_nested or ids.layout is not torch.strided:
        raise TypeError(
            f"{name} are sparse or nested; give a plain tensor [batch, tokens], padded if need be."
        )
    if ids.ndim != 2 or 0 in ids.shape:
        raise ValueError(
            f"{name} have shape {tuple(ids.shape)}; they must be [batch, tokens] with at least one "
            f"sequence and one token. One sequence gets its first axis by ids.unsqueeze(0); an "
            f"empty prompt has nothing to go on from: begin with a separator of your vocabulary."
        )
    if can_be_read(ids):
        require_id_values(ids, vocabulary, name)


def can_be_read(ids: Tensor) -> bool:
    """Whether the numbers of ``ids`` are there now: a GPU would have to wait, neither a compiler
    nor a ``FakeTensor`` knows them, and within ``torch.vmap`` nobody may ask for one.
    """
    here = type(ids) is Tensor and ids.device.type == "cpu"
    return here and not torch.compiler.is_compiling() and not _is_batched(ids)


def _is_batched(x: Tensor) -> bool:
    """Whether ``x`` is one of many within ``torch.vmap``, also where ``torch.func.grad`` is."""
    while torch._C._functorch.is_gradtrackingtensor(x):
        x = torch._C._functorch.get_unwrapped(x)
    return torch._C._functorch.is_batchedtensor(x)


def require_id_values(ids: Tensor, vocabulary: int, name: str = "ids") -> None:
    """Every id is in 0 … vocabulary - 1 (at boundaries: a GPU must wait).

    Within ``torch.vmap`` nobody may ask for a number, so nothing is looked at.
    """
    if _is_batched(ids):
        return
    if ids.is_meta:
        raise ValueError(
            f"{name} are on the device meta, which knows shapes and no numbers: there is nothing "
            f"to look up or to draw. Move model and ids to a device that computes."
        )
    low, high = (int(x) for x in ids.aminmax())
    if low < 0 or high >= vocabulary:
        row, column = ((ids < 0) | (ids >= vocabulary)).nonzero()[0].tolist()
        raise ValueError(
            f"{name}[{row}, {column}] is {int(ids[row, column])}; this model's vocabulary has ids "
            f"0 to {vocabulary - 1}. Encode the text with the tokenizer that the model was made "
            f"for."
        )


def require_context(tokens: int, context: int, new: int = 0) -> None:
    """``tokens`` of a prompt and ``new`` ones fit into ``context``."""
    if tokens + new <= context:
        return
    if new == 0:
        raise ValueError(
            f"{tokens} tokens are more than the model's context of {context}. Cut the text into "
            f"pieces of at most {context}."
        )
    raise ValueError(
        f"a prompt of {tokens} tokens and {new} new ones make {tokens + new}, more than this "
        f"model's context of {context}. Ask for fewer, or give the last tokens of the prompt only: "
        f"ids[:, -n:]."
    )


@at_the_door
def require_attention(
    q, k, v=None, *, mask=None, causal=False, scale=None, bias=None, dropout: float = 0.0
) -> None:
    """Queries, keys, values, mask and bias fit together."""
    _require_vectors("q", q, q)
    _require_vectors("k", k, q)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q is {q.shape[-1]} wide and k is {k.shape[-1]} wide: a dot product needs equal "
            f"widths. Project both to the same d_k, their last axis."
        )
    if v is not None:
        _require_vectors("v", v, q)
        if v.shape[-2] != k.shape[-2]:
            raise ValueError(
                f"there are {k.shape[-2]} keys (k: {tuple(k.shape)}) and {v.shape[-2]} values "
                f"(v: {tuple(v.shape)}): each key needs its value. Make them from the same tokens."
            )
    if mask is not None:
        require_mask(mask, (*q.shape[:-1], k.shape[-2]), q.device)
    if bias is not None:
        require_float_tensor(bias, "bias")
        require_same("q", q, "bias", bias)
        require_broadcast("bias", bias, (*q.shape[:-1], k.shape[-2]))
    require_flag(causal, "causal")
    require_dropout(dropout)
    if scale is not None:
        require_factor(scale)


def _require_vectors(name: str, x, q) -> None:
    """``x`` is ``[..., tokens, width]``, and of the kind that ``q`` is."""
    require_float_tensor(x, name)
    shape = x.shape
    if len(shape) < 2:
        raise ValueError(
            f"{name} has shape {tuple(shape)}; it needs an axis of tokens and an axis of "
            f"components: [..., tokens, width]."
        )
    if 0 in shape[-2:]:
        raise ValueError(
            f"{name} has shape {tuple(shape)}: there is nothing in it (an empty sequence). "
            f"Attention needs at least one token; leave empty sequences out of the batch."
        )
    if x is q:
        return
    require_same("q", q, name, x)
    if shape[:-2] != q.shape[:-2]:
        raise ValueError(
            f"q has shape {tuple(q.shape)} and {name} has shape {tuple(shape)}: all axes "
            f"before the last two must be equal. Use {name}.expand(...) to repeat one."
        )


def require_factor(scale) -> None:
    """``scale``, of the scores, is a finite number."""
    if isinstance(scale, Tensor):
        raise TypeError(
            "scale is a tensor; it must be a number, since the fused kernel takes no other. "
            "Multiply the queries by a scale that is learned, and pass scale=1.0."
        )
    require_number(scale, "scale")
    if not abs(scale) < float("inf"):
        raise ValueError(f"scale is {scale}; it multiplies the scores: choose a finite number.")


def require_mask(mask, shape: tuple[int, ...], device: torch.device) -> None:
    """``mask`` is boolean, on ``device``, and broadcastable to ``shape``."""
    require_masks([mask])
    if mask.device != device:
        raise ValueError(
            f"mask is on {mask.device} and the queries are on {device}; move it: "
            f"mask.to({str(device)!r})."
        )
    require_broadcast("mask", mask, shape)


def require_broadcast(name: str, x: Tensor, shape: tuple[int, ...]) -> None:
    """``x`` is broadcastable to ``shape``, that of the weights, which end in queries and keys."""
    sizes = zip(reversed(x.shape), reversed(shape), strict=False)
    if x.ndim <= len(shape) and all(size in (1, wanted) for size, wanted in sizes):
        return
    hint = f"Its last axes must be queries ({shape[-2]}) and keys ({shape[-1]})."
    if x.ndim == 2 and len(shape) > 2 and x.shape == (shape[0], shape[-1]):
        axes = "an axis" if len(shape) == 3 else "axes for the heads and"
        added = ".unsqueeze(1)" * (len(shape) - 2)
        hint = f"To hide keys (padding), add {axes} for the queries: {name}{added}."
    elif x.ndim == 3 and len(shape) == 4 and x.shape[0] == shape[0]:
        hint = f"It has no axis for the heads: {name}.unsqueeze(1)."
    raise ValueError(
        f"{name} has shape {tuple(x.shape)}, which does not broadcast to the weights' shape "
        f"{tuple(shape)}. {hint}"
    )


def require_masks(masks: list) -> None:
    """``masks`` are boolean tensors on one device whose shapes broadcast."""
    for mask in masks:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
            tensor = isinstance(mask, Tensor)
            found = f"has dtype {mask.dtype}" if tensor else f"is of type {type(mask).__name__}"
            raise TypeError(
                f"mask {found}; a mask is a boolean tensor, True = may attend. From 1 and 0: "
                f"mask.bool(); from 0 and -inf: mask == 0. Numbers to be added to the scores are "
                f"a bias."
            )
        if mask.device != masks[0].device:
            raise ValueError(
                f"one mask is on {masks[0].device}, another on {mask.device}; move all to one."
            )
    try:
        torch.broadcast_shapes(*(mask.shape for mask in masks))
    except RuntimeError as error:
        shapes = " and ".join(str(tuple(mask.shape)) for mask in masks)
        raise ValueError(
            f"masks of shapes {shapes} do not broadcast. Axes count from the right: the last is "
            f"keys, the one before it queries; give a missing axis the size 1 (unsqueeze)."
        ) from error


def require_fields(configuration, called: Mapping[str, str] | None = None) -> None:
    """Each field of a dataclass is of the type that its class states.

    An int is good for a float; True and False are good for neither. ``called`` has the names of
    fields that a message calls otherwise.
    """
    hints = typing.get_type_hints(type(configuration))
    for field in fields(configuration):
        value, hint = getattr(configuration, field.name), hints[field.name]
        if not _fits(value, hint):
            raise TypeError(
                f"{(called or {}).get(field.name, field.name)} is {value!r}, of type "
                f"{type(value).__name__}; it must be {_spelled(hint)}."
            )


def _fits(value, hint) -> bool:
    options = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return any(_fits(value, option) for option in options)
    if typing.get_origin(hint) is tuple:
        alike = isinstance(value, tuple) and len(value) == len(options)
        return alike and all(map(_fits, value, options))
    if typing.get_origin(hint) is Mapping:
        return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if hint in (int, float):
        return isinstance(value, int | hint) and not isinstance(value, bool)
    return isinstance(value, typing.get_origin(hint) or hint)


def _spelled(hint) -> str:
    """A type in words."""
    options = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return " or ".join(_spelled(option) for option in options)
    if typing.get_origin(hint) is tuple:
        return f"{len(options)} numbers"
    if typing.get_origin(hint) is Mapping:
        return 'names with values, such as {"smear": 3}'
    known = {int: "an int", float: "a number", str: "a text", bool: "True or False"}
    known |= {types.NoneType: "None"}
    return known.get(hint, f"a {getattr(hint, '__name__', hint)}")
