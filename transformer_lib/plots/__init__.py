"""The book's figures: arrays or tensors in, a matplotlib picture out, nothing returned.

    from transformer_lib import plots

    plots.attention_heatmap(weights, queries=words, keys=words)

Every function draws on `ax` if it is given, else on a new figure, which a notebook shows at the end
of the cell (in a script, call `plt.show()`). Rows are queries, columns are keys. A figure is an
light card with text of at least 12 pixels; a dark page turns its colors (``book/assets/afm.css``).
"""

from .cells import cells
from .diagrams import projections, shape_boxes, vectors_2d
from .heatmaps import attention_heatmap, mask_heatmap, position_heatmap, scores_heatmap
from .lines import bars, curves, histograms, position_curves
from .sentences import fetches, next_words
from .style import COLORS, LINE, SOFT, TEXT_COLORS, house

__all__ = [
    "COLORS",
    "LINE",
    "SOFT",
    "TEXT_COLORS",
    "attention_heatmap",
    "bars",
    "cells",
    "curves",
    "fetches",
    "histograms",
    "house",
    "mask_heatmap",
    "next_words",
    "position_curves",
    "position_heatmap",
    "projections",
    "scores_heatmap",
    "shape_boxes",
    "vectors_2d",
]
