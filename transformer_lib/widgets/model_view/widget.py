"""bertviz's own model view, all heads of all layers at once, without kernel or network."""

from transformer_lib.widgets.bertviz import MapsView
from transformer_lib.widgets.joining import bundle, stylesheet


class ModelView(MapsView):
    """Every head of every layer as a small picture of its lines; a click makes one of them large.

    `attention` and `tokens` are those of :class:`~transformer_lib.widgets.HeadView`. At most 16
    tokens. The drawing is done by the file model_view.js of the package bertviz (Vig, 2019, "A
    Multiscale Visualization of Attention in the Transformer Model").

    Raises as :class:`~transformer_lib.widgets.HeadView` does.

    >>> ModelView([[[[1.0, 0.0], [0.4, 0.6]]]], ["mary", "gave"])
    ModelView(layers=1, heads=1, tokens=2)
    """

    view = "model_view"
    _esm = bundle(view)
    _css = stylesheet(view)
