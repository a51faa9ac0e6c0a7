"""The state of a training run as tensors and JSON; the state of every random generator.

What ``state_dict()`` returns are dictionaries, lists and tuples with tensors and numbers in them.
:func:`pack` takes the tensors out, so that they can be stored as numbers and the rest as JSON;
:func:`unpack` puts them back. Neither can hold code, so that reading a file cannot run any.
"""

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
# The tensors that every version of safetensors writes and reads.
STORED = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.bfloat16, torch.float16, torch.float32, torch.float64,
}  # fmt: skip


def pack(state: Any) -> tuple[dict[str, Tensor], Any]:
    """Tensors by name, on the CPU, and the rest for JSON, with the names where the tensors were.

    A type that JSON does not have is an object with one key, as ``__tuple__``. A tensor that occurs
    twice (tied weights) is stored once. What comes back from :func:`unpack` is equal, types
    included: int keys, tuples, NaN, dtypes and NumPy arrays, too; but a lone number of NumPy's is
    one of Python's.

    Raises:
        TypeError: something that is none of these, or a tensor of a dtype or layout that would not
            be read again; the message says where.

    >>> pack({"weight": torch.ones(2), "betas": (0.9, 0.95)})
    ({'weight': tensor([1., 1.])}, {'weight': {'__tensor__': 'weight'}, 'betas': {'__tuple__': ...
    """
    tensors: dict[str, Tensor] = {}
    seen: dict[tuple, str] = {}

    def encode(value: Any, path: str) -> Any:
        if isinstance(value, Tensor):
            if value.layout != torch.strided or value.dtype not in STORED:
                raise TypeError(
                    f"the state's {path or 'value'} is a tensor of {value.dtype} ({value.layout}), "
                    f"which a checkpoint does not hold. Convert it: .float(), .to_dense(), "
                    f"torch.view_as_real(...)."
                )
            same = (value.data_ptr(), value.device, value.dtype, value.shape, value.stride())
            same += (value.is_neg(),)  # a view that turns the sign of what lies in memory
            if same in seen and value.numel():  # empty ones have no address
                return {"__tensor__": seen[same]}
            name = path or "state"
            # "a.b" can be one key or two; the other name is safetensors' own.
            while name in tensors or name == "__metadata__":
                name += "_"
            seen[same] = name
            tensor = value.detach().cpu().resolve_neg().contiguous()
            whole = tensor.untyped_storage().nbytes() == tensor.nbytes
            tensors[name] = tensor if whole else tensor.clone()  # without the rest of a larger one
            return {"__tensor__": name}
        if isinstance(value, np.bool_ | np.integer | np.floating):
            value = value.item()
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"__not_finite__": str(value)}
        if isinstance(value, torch.dtype):
            return {"__dtype__": str(value).removeprefix("torch.")}
        if type(value) is np.ndarray and value.ndim and value.dtype.name in INTEGERS:
            return {"__array__": value.tolist(), "dtype": value.dtype.name}
        if isinstance(value, Mapping):
            items = {key: encode(item, f"{path}.{key}".strip(".")) for key, item in value.items()}
            if all(isinstance(key, str) and not key.startswith("__") for key in items):
                return items
            items = [[encode(key, f"{path}, a key"), item] for key, item in items.items()]
            return {"__items__": items}
        if isinstance(value, (list, tuple)):
            items = [encode(item, f"{path}.{i}".strip(".")) for i, item in enumerate(value)]
            return {"__tuple__": items} if isinstance(value, tuple) else items
        raise TypeError(
            f"the state's {path or 'value'} is of type {type(value).__name__}, which a checkpoint "
            f"does not hold. Convert it to a tensor, numbers, texts, lists or dictionaries."
        )

    try:
        return tensors, encode(state, "")
    except RecursionError as error:
        raise TypeError("the state contains itself, which a checkpoint cannot.") from error


def unpack(tensors: Mapping[str, Tensor], packed: Any) -> Any:
    """The inverse of :func:`pack`.

    Raises:
        ValueError: ``packed`` names a tensor, a dtype or a type that is not there.

    >>> unpack(*pack({0: (1, float("nan"))}))
    {0: (1, nan)}
    """

    def decode(value: Any) -> Any:
        match value:
            case list():
                return [decode(item) for item in value]
            case {"__tensor__": str(name)} if name in tensors:
                return tensors[name]
            case {"__tuple__": list(items)}:
                return tuple(decode(items))
            case {"__items__": list(items)}:
                return {decode(key): decode(item) for key, item in items}
            case {"__not_finite__": "nan" | "inf" | "-inf" as text}:
                return float(text)
            # (getattr would import what PyTorch imports at the first use.)
            case {"__dtype__": str(name)} if isinstance(vars(torch).get(name), torch.dtype):
                return vars(torch)[name]
            case {"__array__": list(items), "dtype": str(name)} if name in INTEGERS:
                return np.array(items, dtype=name)
            case dict():
                if strange := [key for key in value if key.startswith("__")]:
                    told = f"{strange[0]} {value[strange[0]]!r:.80}"
                    raise ValueError(f"it names {told}, which is not there")
                return {key: decode(item) for key, item in value.items()}
        return value

    return decode(packed)


def random_state() -> dict[str, Any]:
    """The state of Python's, NumPy's and PyTorch's generators, those of GPUs in use included.

    >>> state = random_state()
    >>> first = torch.rand(()); restore_random_state(state); bool(torch.rand(()) == first)
    True
    """
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002 (others may draw from it)
    inner = {name: np.asarray(value).tolist() for name, value in numpy["state"].items()}
    return {
        "python": random.getstate(),
        "numpy": numpy | {"state": inner},  # torch.load reads no arrays
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        **{name: get() for name, (get, _) in _others().items()},
    }


def _others() -> dict[str, tuple[Callable[[], Any], Callable[[Any], None]]]:
    """How to get and set the generators of Apple's and Intel's GPUs, where there are any."""
    found = {}  # (old checkpoints know NVIDIA's alone)
    if torch.backends.mps.is_available():
        found["mps"] = torch.mps.get_rng_state, torch.mps.set_rng_state
    if torch.xpu.is_available():
        found["xpu"] = torch.xpu.get_rng_state_all, torch.xpu.set_rng_state_all
    return found


def restore_random_state(state: Mapping[str, Any], *, other_devices: bool = False) -> None:
    """Put all generators back to where :func:`random_state` found them.

    Raises:
        ValueError: another number of GPUs, unless ``other_devices``: then their generators are left
            as they are, and the run goes on with other random numbers than it would have had.
            Nothing has been changed.
    """
    require_same_gpus(state, other_devices)
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if torch.cuda.device_count() == len(state["cuda"]):
        torch.cuda.set_rng_state_all(state["cuda"])
    for name, (_, restore) in _others().items():
        if name in state:
            restore(state[name])


def require_same_gpus(state: Mapping[str, Any], other_devices: bool) -> None:
    """As many GPUs are in use as when the state was saved, unless others will do. (Checkpoints were
    once written with all that were there, used or not.)
    """
    there = torch.cuda.device_count()
    used = there if torch.cuda.is_initialized() else 0
    if len(state["cuda"]) not in (used, there) and not other_devices:
        raise ValueError(
            f"the checkpoint was saved with {len(state['cuda'])} GPUs, and {used} are in use here: "
            f"the run cannot go on with the same random numbers. Pass other_devices=True "
            f"(--other-devices) if it may go on with others."
        )
