"""bertviz's own head view, as a widget that also works on a page without kernel or network."""

from transformer_lib.widgets.bertviz import MapsView
from transformer_lib.widgets.joining import bundle, stylesheet


class HeadView(MapsView):
    """Attention drawn as lines from each query (left) to the keys (right), a color for each head.

    `attention` is what a model returns with `output_attentions=True`, a list with one tensor
    [batch=1, heads, tokens, tokens] or [heads, tokens, tokens] for each layer, or one tensor
    [layers, heads, tokens, tokens]. Rounded to 3 decimals. At most 16 tokens.

    The drawing is done by the file head_view.js of the package bertviz (Vig, 2019, "A Multiscale
    Visualization of Attention in the Transformer Model"). `bertviz.head_view` itself writes the
    tokens into a script of the page, and loads three scripts from the network; here the tokens
    stay text, and the page has d3 and jQuery beside it. In a notebook they come from where `make
    book` has installed them, and else from the addresses that bertviz names.

    Raises ValueError for weights that are not finite, not in 0 .. 1, not square or of unequal
    shapes, for more than one sentence and for too many tokens; TypeError if tokens are not text;
    ImportError without bertviz.

    >>> HeadView([[[[0.9, 0.1], [0.4, 0.6]]]], ["mary", "gave"])
    HeadView(layers=1, heads=1, tokens=2)
    """

    view = "head_view"
    _esm = bundle(view)
    _css = stylesheet(view)
