"""Shared by the three views of bertviz: its programs, the forms in which weights come, a base."""

import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.inputs import to_numpy, to_tokens

# Where `make` installs what is needed of npm. The book's pages get copies of their own.
NPM = Path(os.environ.get("AFM_NPM") or Path(sys.prefix, "npm", "node_modules"))
LIBRARIES = ("jquery/dist/jquery.slim.min.js", "d3/dist/d3.min.js")
MOST_TOKENS = 16  # more lines than can be told apart, and a heavy page


def program(view: str, widget: str) -> str:
    """The program of the installed bertviz: ``head_view``, ``model_view`` or ``neuron_view``."""
    spec = importlib.util.find_spec("bertviz")
    if spec is None:
        raise ImportError(
            f"{widget} draws with bertviz, which is not installed: pip install bertviz"
        )
    return (Path(spec.origin).parent / f"{view}.js").read_text(encoding="utf-8")


def require_few(tokens: list[str], view: str) -> None:
    """Not more tokens than a view can show."""
    if len(tokens) > MOST_TOKENS:
        raise ValueError(
            f"{len(tokens)} tokens, but the {view} shows at most {MOST_TOKENS}: choose a "
            "shorter sentence, or use AttentionMap"
        )


def to_layers(attention: object) -> np.ndarray:
    """[layers, heads, tokens, tokens], whichever of the usual forms it came in."""
    if isinstance(attention, Mapping):  # of attention_maps
        attention = list(attention.values())
    some = isinstance(attention, list | tuple) and len(attention) > 0
    layers = list(attention) if some else attention
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
            f"attention is of {layer.shape[0]} sentences, but the view shows one: choose it, "
            "for example [layer[:1] for layer in attention]"
        )
    return layer


class BertvizView(Widget):
    """What the three views share: data, a program, and in a notebook the libraries that it needs.

    They are sent as a message when a figure asks for them, so that no notebook's file holds them.
    """

    view: ClassVar[str]  # the file of bertviz that draws it
    _data = traitlets.Bytes().tag(sync=True)
    _program = traitlets.Unicode(read_only=True).tag(sync=True)
    _wanted = traitlets.Int(0).tag(sync=True)  # grows by one when a figure asks (core/bertviz.js)

    @traitlets.default("_program")
    def _own_program(self) -> str:
        return program(self.view, type(self).__name__)

    @traitlets.observe("_wanted")
    def _send_libraries(self, _: object) -> None:
        paths = [NPM / name for name in LIBRARIES]
        there = all(path.exists() for path in paths)
        files = [path.read_bytes() for path in paths] if there else []
        self.send({"libraries": LIBRARIES}, buffers=files)


class MapsView(BertvizView):
    """What the head view and the model view take: weights of any layers and heads, and tokens."""

    def __init__(self, attention: object, tokens: Sequence[str], **settings: Any) -> None:
        weights = to_layers(attention)
        self._shape = weights.shape
        tokens = to_tokens(tokens, weights.shape[-1], "tokens", "rows of the attention")
        require_few(tokens, self.view.replace("_", " "))
        data = {"attention": weights.round(3).tolist(), "tokens": tokens}
        super().__init__(_data=json_bytes(data), **settings)

    def _sizes(self) -> dict[str, int]:
        return dict(zip(("layers", "heads", "tokens"), self._shape, strict=False))
