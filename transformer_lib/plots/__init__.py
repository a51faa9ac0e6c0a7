"""Figures of the book: arrays or tensors in, a matplotlib picture out, nothing returned.

    from transformer_lib import plots

    plots.attention_heatmap(weights, queries=words, keys=words)

Every function draws on `ax` if given one, else on a new figure of its own, which a notebook shows
at the end of the cell (in a script, call `plt.show()`). Rows are queries, columns are keys.
A figure is an opaque light card in light and in dark, with text of at least 12 pixels.
"""

from .diagrams import shape_boxes, vectors_2d
from .heatmaps import attention_heatmap, mask_heatmap, position_heatmap, scores_heatmap
from .lines import bands, bars, curves, position_curves
from .style import COLORS, TEXT_COLORS, house

__all__ = [
    "COLORS",
    "TEXT_COLORS",
    "attention_heatmap",
    "bands",
    "bars",
    "curves",
    "house",
    "mask_heatmap",
    "position_curves",
    "position_heatmap",
    "scores_heatmap",
    "shape_boxes",
    "vectors_2d",
]
