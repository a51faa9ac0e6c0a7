"""What widgets accept from outside, checked where it enters: arrays, masks and tokens."""

from collections.abc import Sequence

import numpy as np

from transformer_lib import checks


def to_numpy(array: object, name: str) -> np.ndarray:
    """float64 of a tensor (any device, any float type, with or without gradients) or an array.

    Raises ValueError for NaN or infinite values, by their index.

    >>> to_numpy([[1, 2]], "vectors")
    array([[1., 2.]])
    """
    if hasattr(array, "detach"):
        array = array.detach().cpu().double()
    array = np.asarray(array, dtype=np.float64)
    checks.require_finite(array, name)
    return array


def to_mask(mask: object, shape: tuple[int, ...]) -> np.ndarray:
    """A boolean array (True = may attend) broadcast to `shape`.

    Raises TypeError if the mask is not boolean, ValueError if it does not broadcast.

    >>> to_mask([[True, False]], (2, 2)).tolist()
    [[True, False], [True, False]]
    """
    array = np.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
    if array.dtype != np.bool_:
        raise TypeError(
            f"mask is {array.dtype}, but must be boolean (True = may attend); use mask.bool()"
        )
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise ValueError(
            f"mask of shape {array.shape} does not broadcast to the shape {shape} of the weights"
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
