"""bertviz's own head view, as a widget that also works on a page without kernel or network."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

MOST_TOKENS = 16  # more lines than can be told apart, and a heavy page


class HeadView(Widget):
    """Attention drawn as lines from each query (left) to the keys (right), a color for each head.

    `attention` is what a model returns with `output_attentions=True`, a list with one tensor
    [batch=1, heads, tokens, tokens] or [heads, tokens, tokens] for each layer, or one tensor
    [layers, heads, tokens, tokens]. Rounded to 3 decimals. At most 16 tokens.

    The drawing is done by the file head_view.js of the package bertviz (Vig, 2019, "A Multiscale
    Visualization of Attention in the Transformer Model"). `bertviz.head_view` itself writes the
    tokens into a script of the page, and loads three scripts from the network; here the tokens
    stay text, and the page has d3 and jQuery beside it (in a notebook they come from the addresses
    that bertviz names).

    Raises ValueError for weights that are not finite, not in 0 .. 1, not square or of unequal
    shapes, for more than one sentence and for too many tokens; TypeError if tokens are not text;
    ImportError without bertviz.

    >>> HeadView([[[[0.9, 0.1], [0.4, 0.6]]]], ["mary", "gave"])
    HeadView(layers=1, heads=1, tokens=2)
    """

    _esm = bundle("head_view")
    _css = stylesheet("head_view")
    _data = traitlets.Bytes().tag(sync=True)
    _program = traitlets.Bytes().tag(sync=True)

    def __init__(self, attention: object, tokens: Sequence[str]) -> None:
        weights = _layers(attention)
        self._shape = weights.shape
        tokens = to_tokens(tokens, weights.shape[-1], "tokens", "rows of the attention")
        if len(tokens) > MOST_TOKENS:
            raise ValueError(
                f"{len(tokens)} tokens, but the head view shows at most {MOST_TOKENS}: choose a "
                "shorter sentence, or use AttentionMap"
            )
        rounded = weights.round(3).tolist()
        super().__init__(
            _data=json_bytes({"attention": rounded, "tokens": tokens}), _program=head_view_js()
        )

    def _sizes(self) -> dict[str, int]:
        return dict(zip(("layers", "heads", "tokens"), self._shape, strict=False))


def head_view_js() -> bytes:
    """The program of the installed bertviz."""
    spec = importlib.util.find_spec("bertviz")
    if spec is None:
        raise ImportError(
            "HeadView draws with bertviz, which is not installed: pip install bertviz"
        )
    return (Path(spec.origin).parent / "head_view.js").read_bytes()


def _layers(attention: object) -> np.ndarray:
    """[layers, heads, tokens, tokens], whichever of the usual forms it came in."""
    layers = list(attention) if isinstance(attention, list | tuple) else attention
    if isinstance(layers, list):
        layers = [_one_layer(to_numpy(layer, f"attention[{n}]")) for n, layer in enumerate(layers)]
        if len(shapes := {layer.shape for layer in layers}) != 1:
            raise ValueError(f"the layers have different shapes: {sorted(shapes)}")
    weights = np.stack(layers) if isinstance(layers, list) else to_numpy(layers, "attention")
    if weights.ndim != 4 or 0 in weights.shape or weights.shape[2] != weights.shape[3]:
        raise ValueError(
            f"attention has the shape {weights.shape}, but must be [layers, heads, tokens, tokens] "
            "or a list with one [heads, tokens, tokens] for each layer"
        )
    if weights.min() < 0 or weights.max() > 1.01:  # bfloat16 rounds a weight to a hundredth
        raise ValueError(
            f"attention holds values from {weights.min():.4g} to {weights.max():.4g}, but weights "
            "lie in 0 .. 1; these may be scores: take their softmax over the keys first"
        )
    return weights


def _one_layer(layer: np.ndarray) -> np.ndarray:
    """[heads, tokens, tokens], the batch axis of one sentence taken off."""
    if layer.ndim == 4 and layer.shape[0] == 1:
        return layer[0]
    if layer.ndim == 4:
        raise ValueError(
            f"attention is of {layer.shape[0]} sentences, but the head view shows one: choose it, "
            "for example [layer[:1] for layer in attention]"
        )
    return layer
