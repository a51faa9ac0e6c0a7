"""Arrays, masks and tokens from outside, checked where they enter a widget."""

from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np

from transformer_lib import checks

# Numbers travel to the page as float32; a larger one would arrive there as infinity.
_FLOAT32 = float(np.finfo(np.float32).max)


def to_numpy(array: object, name: str, *, largest: float = _FLOAT32) -> np.ndarray:
    """float64 of a tensor (any device, any float type, with or without gradients) or an array.

    Raises ValueError for NaN, infinity and numbers beyond `largest`, by their index; TypeError for
    complex numbers.

    >>> to_numpy([[1, 2]], "vectors")
    array([[1., 2.]])
    """
    if isinstance(array, Mapping):
        raise TypeError(
            f"{name} is a dict; choose what to show, such as {name}[{next(iter(array), None)!r}]"
        )
    if array is None:
        raise TypeError(f"{name} is None; give numbers: a tensor, an array or a list")
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        array = array if array.is_complex() else array.double()
    alone = isinstance(array, list | tuple)  # the parts have to be looked at one by one
    if alone and any(part is None or hasattr(part, "detach") for part in array):
        array = [to_numpy(part, f"{name}[{at}]") for at, part in enumerate(array)]
    try:
        array = np.asarray(array)
        array = array if np.iscomplexobj(array) else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers in rows of equal length: {error}") from error
    if np.iscomplexobj(array):
        raise TypeError(
            f"{name} is {array.dtype}, but a figure draws real numbers: choose {name}.real, "
            f"or {name}.abs()"
        )
    checks.require_finite(array, name)
    if (np.abs(array) > largest).any():
        where = tuple(int(i) for i in np.argwhere(np.abs(array) > largest)[0])
        raise ValueError(
            f"{name} holds {array[where]:.4g} at index {where}, but this figure draws numbers of "
            f"at most {largest:.4g}: scale them down"
        )
    return array


def require_few(count: int, most: int, name: str, example: str) -> None:
    """At most `most` tokens: a cell for each pair of them is an element of the page.

    >>> require_few(1024, 128, "tokens", "weights[..., :128, :128]")
    Traceback (most recent call last):
    ValueError: 1024 tokens, but this figure shows at most 128, ... such as weights[..., :128, :128]
    """
    if count > most:
        raise ValueError(
            f"{count} {name}, but this figure shows at most {most}, since each pair of tokens is "
            f"a cell and more cells would freeze the page: give it a part, such as {example}"
        )


def require_mapping(value: object, name: str, form: str) -> None:
    """A dict, as the constructor needs it; readers tend to forget the name of a bare value.

    >>> require_mapping("roses", "samples", "{name: text}")
    Traceback (most recent call last):
    TypeError: samples is of type str, but must be a dict: {name: text}
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is of type {type(value).__name__}, but must be a dict: {form}")


def require_parts(value: object, parts: Sequence[str], name: str, maker: str) -> None:
    """An object that has these attributes, and not, for instance, the name of one.

    >>> require_parts("gifts-v3", ["model"], "trained", "load_shipped('gifts-v3')")
    Traceback (most recent call last):
    TypeError: trained is 'gifts-v3', which has no model: give what load_shipped('gifts-v3') returns
    """
    for part in parts:
        if not hasattr(value, part):
            raise TypeError(
                f"{name} is {value!r:.60}, which has no {part}: give what {maker} returns"
            )


def first_largest(array: np.ndarray) -> tuple[int, ...]:
    """Where the largest number is: the first of those that only rounding tells apart.

    So a figure opens at the same place on every processor.

    >>> first_largest(np.array([[0.0, 1.0], [1.0000001, 0.5]]))
    (0, 1)
    """
    found = int((array >= array.max() - 1e-4).argmax())
    return tuple(map(int, np.unravel_index(found, array.shape)))


def to_mask(mask: object, shape: tuple[int, ...], name: str = "mask") -> np.ndarray:
    """A boolean array (of a mask: True = may attend) broadcast to `shape`.

    Raises TypeError if the mask is not boolean, ValueError if it does not broadcast.

    >>> to_mask([[True, False]], (2, 2)).tolist()
    [[True, False], [True, False]]
    """
    array = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    means = " (True = may attend)" if name == "mask" else ""
    if array.dtype != np.bool_:
        raise TypeError(f"{name} is {array.dtype}, but must be boolean{means}; use {name}.bool()")
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise ValueError(
            f"{name} of shape {array.shape} does not broadcast to the shape {shape} of the weights"
        ) from error


def to_tokens(tokens: Sequence[str], count: int, name: str, axis: str) -> list[str]:
    """The tokens as a list of texts, one for each of the `count` rows, columns or vectors (`axis`).

    Raises TypeError if one is not text, ValueError if their number is wrong.

    >>> to_tokens(("mary", "gave"), 2, "tokens", "vectors")
    ['mary', 'gave']
    """
    if isinstance(tokens, str):
        raise TypeError(
            f"{name} is one text, {tokens[:40]!r}; give a list of tokens, for example text.split()"
        )
    if isinstance(tokens, Set | Mapping) or not isinstance(tokens, Iterable):
        raise TypeError(
            f"{name} is of type {type(tokens).__name__}; give a list of tokens, in their order"
        )
    tokens = list(tokens)
    for position, token in enumerate(tokens):
        if not isinstance(token, str):
            raise TypeError(
                f"{name}[{position}] is {type(token).__name__}, but tokens are shown as text; "
                "decode ids first, for example with tokenizer.convert_ids_to_tokens(ids)"
            )
    if len(tokens) != count:
        raise ValueError(f"{len(tokens)} {name} for {count} {axis}; there must be one for each")
    return tokens
