"""Draw a mask with the mouse, a finger or the arrow keys, and watch what it does to attention."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import traitlets
from torch import Tensor

from transformer_lib import checks
from transformer_lib.widgets.base import Widget, constant, float_bytes, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Option, Pair, Setting, Token
from transformer_lib.widgets.inputs import require_few, to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

# Measured in Chromium on two busy cores: 64 words open in 1 s and follow an arrow key within 0.1 s;
# 128 take 2.3 s and 0.25 s.
MOST_WORDS = 64
_MOST_LAYERS = 6
SHOWS = ("all", "weights", "layers", "mask")  # smaller copies, for one purpose each
PRESETS = {  # and their sizes, as in math/masks.js
    "causal": (),
    "padding": ("real",),
    "sliding window": ("window",),
    "bidirectional": (),
    "block": ("block",),
}
_RULES = (  # as in math/masks.js
    "−∞ on the scores; all hidden: 0",
    "0 on the weights",
    "−1e9 on the scores",
)


class MaskPainter(Widget):
    """Self-attention over a few words, under a mask that the reader draws.

    Cells are drawn one by one or by a stroke; presets give the usual masks. Weights, their row sums
    and the outputs follow at once, and a tracer shows which positions hold something of one chosen
    word after one layer and after several.

    `q` [words, d_k], `k` [words, d_k] and `v` [words, d_v] are the queries, keys and values; `mask`
    [words, words] is what is drawn at first, True = may attend (causal if left out). `show` makes a
    smaller copy: `weights` leaves the tracer out, `layers` the outputs, both the presets, and
    `mask` all controls: it is to draw in. `components` are names for the components of the values,
    and `hint` is what this copy asks the reader to try.

    What the reader does comes back: `widget.mask` is a boolean tensor that the library takes as it
    is, and can be set.

    Raises ValueError for shapes that do not fit, more than 64 words, an unknown `show`, components
    without a name, and NaN or infinity; TypeError for a mask that is not boolean, tensors that are
    not floating point and words that are not text.

    >>> x = torch.eye(3)
    >>> painter = MaskPainter(["i", "am", "fine"], x, x, x)
    >>> painter
    MaskPainter(words=3, allowed=6)
    >>> painter.mask
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """

    _esm = bundle("mask_painter")
    _css = stylesheet("mask_painter")
    _text = traitlets.Bytes().tag(sync=True)
    _vectors = traitlets.Bytes().tag(sync=True)
    _sizes_of = traitlets.List(traitlets.Int()).tag(sync=True)
    _limits = constant({"rules": _RULES})
    _show = traitlets.Enum(SHOWS, "all").tag(sync=True)
    cells = traitlets.List(traitlets.Int()).tag(sync=True)
    source = Setting(0, Token("words", "the position that the tracer follows"), link="follow")
    layers = Setting(2, Number(1, _MOST_LAYERS, "through how many it does"))
    rule = Setting(0, Option({"minus-infinity": 0, "zero-after": 1, "minus-1e9": 2}))
    _keys_of_text: ClassVar = {
        "mask": Option({name.replace(" ", "-"): name for name in PRESETS}),
        **{
            size: Number(1, MOST_WORDS, "the size of its mask, which it draws")
            for sizes in PRESETS.values()
            for size in sizes
        },
        "keep": Flag("presets only hide more"),
        "open": Pair("words", "words", "a cell"),
        "hide": Pair("words", "words", "a cell"),
    }
    _facts: ClassVar = {
        "changed cells": "that differ from the first mask",
        "open cells": "",
        "future cells": "open ones above the diagonal",
        "empty rows": "",
        f"{{words}} reaches {{words}} in {{1..{_MOST_LAYERS}}}": "1 if the second position holds "
        "something of the first word after so many layers",
        "weight {words} {words}": "",
        "row sum {words}": "",
    }

    def __init__(
        self,
        words: Sequence[str],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        *,
        show: str = "all",
        components: Sequence[str] = (),
        hint: str = "",
        **settings: Any,
    ) -> None:
        checks.require_attention(q, k, v)
        if show not in SHOWS:
            raise ValueError(f"show is {show!r}; give one of {', '.join(map(repr, SHOWS))}")
        words = _words(words, q, k)
        n = len(words)
        require_few(n, MOST_WORDS, "words", f"words[:{MOST_WORDS}], q[:{MOST_WORDS}]")
        vectors = [to_numpy(x, name) for name, x in (("q", q), ("k", k), ("v", v))]
        if mask is None:
            mask = torch.ones(n, n, dtype=torch.bool).tril()
        names = to_tokens(components, v.shape[1], "components", "components") if components else []
        super().__init__(
            _text=json_bytes({"words": words, "components": names, "hint": hint}),
            _vectors=b"".join(map(float_bytes, vectors)),
            _sizes_of=[n, q.shape[1], v.shape[1]],
            _show=show,
            **{"cells": _cells(mask, n), "source": n // 2} | settings,
        )

    @property
    def mask(self) -> Tensor:
        """The mask as it is drawn now: boolean, [queries, keys], True = may attend."""
        return torch.tensor(self.cells, dtype=torch.bool).reshape(self._sizes_of[0], -1)

    @mask.setter
    def mask(self, mask: Tensor) -> None:
        self.cells = _cells(mask, self._sizes_of[0])

    def _sizes(self) -> dict[str, object]:
        return {"words": self._sizes_of[0], "allowed": sum(self.cells)}

    @traitlets.validate("cells")
    def _check_cells(self, proposal: dict) -> list[int]:
        cells, n = proposal["value"], self._sizes_of[0]
        if len(cells) != n * n or not set(cells) <= {0, 1}:
            raise ValueError(f"cells are {len(cells)} numbers; they must be {n * n}, each 0 or 1")
        return cells


def _words(words: Sequence[str], q: Tensor, k: Tensor) -> list[str]:
    if isinstance(words, str) or not all(isinstance(word, str) for word in words):
        raise TypeError(f"words are {words!r}; give a list of texts, e.g. sentence.split()")
    if q.ndim != 2 or not len(words) == len(q) == len(k):
        raise ValueError(
            f"{len(words)} words, q {tuple(q.shape)} and k {tuple(k.shape)} do not fit: there must "
            "be one query and one key for each word, of one sentence: [words, d_k]"
        )
    return list(words)


def _cells(mask: Tensor, n: int) -> list[int]:
    checks.require_masks([mask])
    if mask.shape != (n, n):
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}, but it must be ({n}, {n}): one row for each "
            "query, one column for each key; give one sentence's mask, e.g. mask[0]"
        )
    return mask.flatten().int().tolist()
