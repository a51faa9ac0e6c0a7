"""bertviz's own head view, as a widget that also works on a page without kernel or network."""

from collections.abc import Sequence

import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.bertviz import program, require_few, to_layers
from transformer_lib.widgets.inputs import to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet


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
    _program = traitlets.Unicode().tag(sync=True)

    def __init__(self, attention: object, tokens: Sequence[str]) -> None:
        weights = to_layers(attention)
        self._shape = weights.shape
        tokens = to_tokens(tokens, weights.shape[-1], "tokens", "rows of the attention")
        require_few(tokens, "head view")
        rounded = weights.round(3).tolist()
        super().__init__(
            _data=json_bytes({"attention": rounded, "tokens": tokens}),
            _program=program("head_view", "HeadView"),
        )

    def _sizes(self) -> dict[str, int]:
        return dict(zip(("layers", "heads", "tokens"), self._shape, strict=False))
