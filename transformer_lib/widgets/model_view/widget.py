"""bertviz's own model view, all heads of all layers at once, without kernel or network."""

from collections.abc import Sequence

import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.bertviz import program, require_few, to_layers
from transformer_lib.widgets.inputs import to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet


class ModelView(Widget):
    """Every head of every layer as a small picture of its lines; a click makes one of them large.

    `attention` and `tokens` are those of :class:`~transformer_lib.widgets.HeadView`. At most 16
    tokens. The drawing is done by the file model_view.js of the package bertviz (Vig, 2019, "A
    Multiscale Visualization of Attention in the Transformer Model").

    Raises as :class:`~transformer_lib.widgets.HeadView` does.

    >>> ModelView([[[[1.0, 0.0], [0.4, 0.6]]]], ["mary", "gave"])
    ModelView(layers=1, heads=1, tokens=2)
    """

    _esm = bundle("model_view")
    _css = stylesheet("model_view")
    _data = traitlets.Bytes().tag(sync=True)
    _program = traitlets.Unicode().tag(sync=True)

    def __init__(self, attention: object, tokens: Sequence[str]) -> None:
        weights = to_layers(attention)
        self._shape = weights.shape
        tokens = to_tokens(tokens, weights.shape[-1], "tokens", "rows of the attention")
        require_few(tokens, "model view")
        super().__init__(
            _data=json_bytes({"attention": weights.round(3).tolist(), "tokens": tokens}),
            _program=program("model_view", "ModelView"),
        )

    def _sizes(self) -> dict[str, int]:
        return dict(zip(("layers", "heads", "tokens"), self._shape, strict=False))
