"""A model's weights as bytes, small enough for a page: read in JavaScript by core/weights.js.

On a page they are a file of its own, which a figure loads when it comes into view
(book/extensions/figures.py); in a notebook they travel in the trait itself.
"""

import json
from collections.abc import Mapping

import numpy as np

MAGIC = b"AFMW"
BITS = (8, 32)


def pack_weights(weights: Mapping[str, object], *, bits: int = 8) -> bytes:
    """Tensors or arrays by name, of which matrices take ``bits`` a number and all else 32.

    With 8 bits, each row of a matrix has a factor of its own: its largest number is ±127 times it.
    So a number is off by at most half of that factor, 0.4 % of the largest in its row.

    Layout, little endian: ``AFMW``, the header's length in bytes (uint32), the header (JSON: a list
    of ``[name, shape, bits]``), zeros up to a multiple of 4, and then for each name, each filled up
    to a multiple of 4: for 32 bits its numbers; for 8 bits a factor for each row and then its
    integers.

    Raises:
        ValueError: other bits; numbers that are not finite; nothing to pack.

    >>> content = pack_weights({"table": [[2.0, -2.0], [0.5, 0.0]]})
    >>> unpack_weights(content)["table"].round(2).tolist()
    [[2.0, -2.0], [0.5, 0.0]]
    """
    if bits not in BITS:
        raise ValueError(f"bits is {bits!r}; choose one of {', '.join(map(str, BITS))}.")
    if not weights:
        raise ValueError("there are no weights to pack.")
    header, parts = [], []
    for name, value in weights.items():
        value = value.detach().float().cpu() if hasattr(value, "detach") else value
        array = np.ascontiguousarray(value, dtype="<f4")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are NaN or infinite.")
        kind = bits if array.ndim == 2 else 32
        header.append([name, list(array.shape), kind])
        if kind == 32:
            parts.append(array.tobytes())
            continue
        largest = np.abs(array).max(axis=1, keepdims=True)
        factor = np.where(largest > 0, largest / 127, 1).astype("<f4")
        parts += [factor.tobytes(), _filled(np.rint(array / factor).astype("i1").tobytes())]
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    size = len(text).to_bytes(4, "little")
    return b"".join([_filled(MAGIC + size + text), *parts])


def unpack_weights(content: bytes) -> dict[str, np.ndarray]:
    """What :func:`pack_weights` packed, as it will be used.

    Raises:
        ValueError: it is something else.
    """
    if content[:4] != MAGIC:
        raise ValueError(f"the weights begin with {content[:4]!r}, not with {MAGIC!r}.")
    at = 8 + int.from_bytes(content[4:8], "little")
    header, weights = json.loads(content[8:at]), {}
    at += -at % 4
    for name, shape, bits in header:
        count = int(np.prod(shape))
        if bits == 32:
            array = np.frombuffer(content, "<f4", count, at)
            at += 4 * count
        else:
            factor = np.frombuffer(content, "<f4", shape[0], at).reshape(-1, 1)
            at += 4 * shape[0]
            array = np.frombuffer(content, "i1", count, at).reshape(shape) * factor
            at += count + -count % 4
        weights[name] = array.reshape(shape)
    return weights


def _filled(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
