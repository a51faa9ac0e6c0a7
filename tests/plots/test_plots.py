"""The figures: what is drawn where, in which color, readable, and a clear error for bad input."""

import time
from contextlib import nullcontext

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.text import Text

from transformer_lib import plots
from transformer_lib.plots.heatmaps import _readable_on
from transformer_lib.plots.style import (
    CARD,
    CYCLE,
    INK,
    SCORES,
    SOFT,
    WEIGHTS,
    as_on_dark,
    contrast,
)

WORDS = ["mary", "gave", "roses", "to", "susan"]


@pytest.fixture(autouse=True)
def _no_window():
    mpl.use("agg")
    yield
    plt.close("all")


def _calls():
    scores = torch.randn(5, 7)
    table = np.sin(np.arange(11)[:, None] / np.arange(1, 8))
    keys = [f"k{n}" for n in range(7)]
    return {
        "attention_heatmap": lambda ax: plots.attention_heatmap(
            scores.softmax(-1), WORDS, keys, mask=scores > 0, ax=ax, title="Weights"
        ),
        "scores_heatmap": lambda ax: plots.scores_heatmap(
            scores.masked_fill(scores < -1, -torch.inf), WORDS, keys, ax=ax
        ),
        "mask_heatmap": lambda ax: plots.mask_heatmap(scores > 0, ax=ax),
        "position_heatmap": lambda ax: plots.position_heatmap(table, ax=ax),
        "position_curves": lambda ax: plots.position_curves(table, ax=ax),
        "curves": lambda ax: plots.curves([1, 2, 3], {"a": [1, 2, 3], "b": [3, 2, 1]}, ax=ax),
        "histograms": lambda ax: plots.histograms(
            {"d_k 4": scores[0], "d_k 64": 4 * scores[0]}, ax=ax
        ),
        "bars": lambda ax: plots.bars(WORDS, {"a": np.ones(5), "b": np.ones(5)}, ax=ax),
        "vectors_2d": lambda ax: plots.vectors_2d(scores[:, :2], WORDS, ax=ax),
        "projections": lambda ax: plots.projections(
            [1.0, 0.0, -0.5], [("q", "W_Q", [0.0, 3.0], "query", ["a", "b"])], WORDS[:3], ax=ax
        ),
        "cells": lambda ax: plots.cells(
            ("x", [[0, 0.25], [-3, 4]], {"rows": WORDS[:2], "columns": ["a", "b"]}),
            "→",
            ("head 0", [["a", "b"]], {"parts": [0, 1]}),
            ax=ax,
        ),
        "fetches": lambda ax: plots.fetches(WORDS, [(0, 1, "1"), (2, 4, "2")], ax=ax),
        "next_words": lambda ax: plots.next_words(WORDS, after="end", ax=ax),
        "shape_boxes": lambda ax: plots.shape_boxes(("Q", ("s", "d_k")), "=", ("X", (5, 2)), ax=ax),
    }


DRAWING = sorted(set(plots.__all__) - {"COLORS", "LINE", "SOFT", "TEXT_COLORS", "house"})


def test_every_function_is_tried():
    assert sorted(_calls()) == DRAWING


@pytest.mark.parametrize("name", DRAWING)
def test_a_figure_of_its_own_opaque_and_readable(name):
    before = dict(mpl.rcParams)
    assert _calls()[name](None) is None
    assert len(plt.get_fignums()) == 1
    figure = plt.gcf()
    assert figure.get_facecolor()[3] == 1
    assert dict(mpl.rcParams) == before
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
    assert texts
    for text in texts:
        if text.get_visible():
            assert text.get_fontsize() * figure.dpi / 72 >= 12, text
    assert figure.get_size_inches()[0] <= 6.5


@pytest.mark.parametrize("name", DRAWING)
def test_drawing_on_axes_that_are_given(name):
    figure, axes = plt.subplots(1, 2)
    _calls()[name](axes[1])
    assert plt.get_fignums() == [figure.number]
    assert not axes[0].has_data()
    assert axes[1].get_children()[0] is not None
    assert axes[1].patches or axes[1].lines or axes[1].images or axes[1].texts


@pytest.mark.parametrize("error", [None, KeyError])
def test_house_keeps_a_notebook_interactive(error):
    """A notebook's backend turns interactive mode on at the first figure; undone, none shows."""
    mpl.interactive(False)
    try:
        with pytest.raises(error) if error else nullcontext(), plots.house():
            mpl.interactive(True)
            if error:
                raise error
        assert mpl.is_interactive()
    finally:
        mpl.interactive(False)


# --- colors ---------------------------------------------------------------------------------------


def test_text_and_lines_reach_their_contrast():
    for color in [*plots.TEXT_COLORS.values(), INK, SOFT]:
        assert contrast(color, CARD) >= 4.5
    for color in CYCLE:
        assert contrast(color, CARD) >= 3


@pytest.mark.parametrize("scale", [WEIGHTS, SCORES])
def test_a_number_can_be_read_on_every_cell(scale):
    for place in np.linspace(0, 1, 101):
        ink, ground = _readable_on(scale(place))
        assert contrast(ink, to_hex(ground)) >= 4.5
        assert contrast(as_on_dark(ink), as_on_dark(ground)) >= 4.5  # where the page turns it
        assert np.abs(np.subtract(ground[:3], scale(place)[:3])).max() < 0.16  # near the cell's


# --- heatmaps -------------------------------------------------------------------------------------


def _numbers(axes):
    return [text.get_text() for text in axes.texts]


def _hatched(axes):
    return {
        (p.get_y(), p.get_x()) for p in axes.patches if isinstance(p, Rectangle) and p.get_hatch()
    }


def test_rows_are_queries_and_columns_are_keys():
    weights = torch.tensor([[0.0, 0.25, 0.75], [0.5, 0.5, 0.0]])
    plots.attention_heatmap(weights, ["mary", "$5"], ["a", "b", "c"])
    axes = plt.gca()
    assert axes.get_xlabel() == "keys"
    assert axes.get_ylabel() == "queries"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["mary", r"\$5"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "c"]
    assert _numbers(axes) == ["0.00", "0.25", "0.75", "0.50", "0.50", "0.00"]
    assert axes.yaxis_inverted()
    spots = {text.get_position(): text.get_text() for text in axes.texts}
    assert spots[2.5, 0.5] == "0.75"  # the first row is on top
    assert to_hex(WEIGHTS(0.0)) == "#ffffff"
    assert axes.images[0].get_clim() == (0, 1)


def test_hidden_cells_are_hatched_and_hold_no_number():
    mask = torch.tensor([[True, False], [True, True]])
    plots.attention_heatmap([[1.0, 0.0], [0.4, 0.6]], mask=mask)
    assert _hatched(plt.gca()) == {(0, 1)}
    assert _numbers(plt.gca()) == ["1.00", "0.40", "0.60"]
    plots.mask_heatmap(mask)
    assert _hatched(plt.gca()) == {(0, 1)}
    assert len(plt.gca().collections[-1].get_offsets()) == 3
    plots.scores_heatmap([[2.0, -np.inf], [-1.0, 0.5]])
    assert _hatched(plt.gca()) == {(0, 1)}
    assert _numbers(plt.gca()) == ["2.00", "−1.00", "0.50"]
    assert plt.gca().images[0].get_clim() == (-2, 2)


def test_numbers_of_a_logarithmic_axis_are_written_out_where_they_are_of_common_size():
    def ticks(values):
        plt.close("all")
        plots.curves([1, 2, 3], {"a": values}, log="y")
        low, high = plt.gca().get_ylim()
        labels = plt.gca().get_yticklabels(which="both")
        return [one.get_text() for one in labels if low <= one.get_position()[1] <= high]

    assert {"0.2", "0.3", "0.6"} <= set(ticks([0.2, 0.5, 0.7]))
    assert {"1", "10", "1,000"} <= set(ticks([1, 50, 2000]))
    assert any("10^{-6}" in text for text in ticks([1e-6, 0.5, 1]))


def test_a_score_that_rounds_to_zero_has_no_sign():
    plots.scores_heatmap([[-0.001, -1.0]])
    assert [text.get_text() for text in plt.gca().texts] == ["0.00", "−1.00"]


def test_a_score_of_many_digits_is_told_by_its_size():
    plots.scores_heatmap([[-1e9, 2.5e5]])
    assert _numbers(plt.gca()) == ["−1e9", "2e5"]


def test_very_many_hidden_cells_are_one_shape():
    plots.mask_heatmap(torch.ones(128, 128, dtype=torch.bool).tril())
    (shape,) = plt.gca().patches
    assert shape.get_hatch() == "////"
    corners = shape.get_path().vertices.reshape(-1, 5, 2)[:, 0]
    assert {tuple(corner) for corner in corners} == {
        (k, q) for q in range(128) for k in range(q + 1, 128)
    }
    plots.mask_heatmap(torch.ones(40, 40, dtype=torch.bool).tril())
    assert len(_hatched(plt.gca())) == 40 * 39 / 2


@pytest.mark.parametrize("name", ["attention_heatmap", "vectors_2d"])
def test_drawing_in_a_subfigure(name):
    part = plt.figure(figsize=(12, 5)).subfigures(1, 2)[0]
    _calls()[name](part.subplots())
    assert part.axes[0].texts


@pytest.mark.usefixtures("as_a_reader")
def test_labels_are_shown_as_they_are():
    for label in (r"\$", r"a\b$", r"a\b", "$5 and $6"):
        plots.mask_heatmap([[True]], [label])
        shown = plt.gca().get_yticklabels()[0]
        assert shown._preprocess_math(shown.get_text()) == (label, False)
    plots.mask_heatmap([[True, True]], [torch.tensor(5)], (word for word in "ab"))
    assert plt.gca().get_yticklabels()[0].get_text() == "5"


def test_losses_may_carry_their_gradients():
    plots.curves([1, 2], {"loss": [torch.tensor(2.0, requires_grad=True), torch.tensor(1.0)]})
    assert plt.gca().lines[0].get_ydata().tolist() == [2, 1]


def test_many_cells_carry_no_numbers_and_fewer_labels():
    plots.attention_heatmap(torch.full((41, 41), 1 / 41))
    assert _numbers(plt.gca()) == []
    assert len(plt.gca().get_xticks()) < 41


# --- lines, bars, arrows, boxes -------------------------------------------------------------------


def test_labels_of_many_arrows_are_placed_soon():
    tips = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    start = time.process_time()
    plots.vectors_2d(tips, [f"w{n}" for n in range(200)])
    assert time.process_time() - start < 15  # it was minutes


@pytest.mark.usefixtures("as_a_reader")
def test_names_and_sizes_of_boxes_of_every_kind():
    plots.shape_boxes(("W_", (np.int64(5), 2)))
    plt.gcf().draw_without_rendering()
    assert "W_" in _numbers(plt.gca())


def test_curves_keep_roles_and_differ_in_more_than_color():
    plots.curves([1, 2], {"query": [1, 2], "other": [2, 1], "third": [0, 0]}, log="x")
    lines = plt.gca().lines
    assert lines[0].get_color() == plots.COLORS["query"]
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in lines}) == 3
    assert plt.gca().get_xscale() == "log"
    assert plt.gca().get_yscale() == "linear"


def test_a_band_reaches_from_min_to_max_around_the_median():
    runs = np.array([[1.0, 5.0], [2.0, 9.0], [6.0, 7.0]])
    plots.curves([0, 1], {"scaled": runs, "one": [3, 4]})
    axes = plt.gca()
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [2, 7])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [3, 4])
    assert len(axes.collections) == 1
    box = axes.collections[0].get_paths()[0].get_extents()
    assert (box.y0, box.y1) == (1, 9)


def test_bars_carry_their_numbers():
    plots.bars(["a", "b"], {"one": [0.5, 2], "two": [1, 0.12345]})
    assert _numbers(plt.gca()) == ["0.5", "2", "1", "0.123"]
    assert [bar.get_height() for bar in plt.gca().patches[:4]] == [0.5, 2, 1, 0.12345]


def test_two_pictures_that_are_compared_have_one_scale():
    few, many = torch.tensor([[1.0, 0.2]]), torch.tensor([[-0.8, 2.4], [1.0, 0.2]])
    _, (left, right, alone) = plt.subplots(1, 3)
    plots.vectors_2d(few, like=many, ax=left)
    plots.vectors_2d(many, like=few, ax=right)
    plots.vectors_2d(few, ax=alone)
    assert left.get_xlim() == right.get_xlim() != alone.get_xlim()
    assert left.get_ylim() == right.get_ylim() != alone.get_ylim()
    assert sum(text.arrow_patch is not None for text in left.texts) == 1


@pytest.mark.parametrize("crowded", [False, True])
def test_arrows_end_at_their_vectors_and_labels_do_not_overlap(crowded):
    vectors = torch.tensor([[1.6, 0.2], [0.8, 1.0], [0.2, 1.4], [0.2, 0.2], [1.4, 0.4]])
    if crowded:  # as in chapter 01: a small plane, and one arrow more
        figure, (axes, _) = plt.subplots(1, 2, figsize=(6.4, 3.5), layout="constrained")
        vectors = torch.cat([vectors, torch.tensor([[0.925, 0.729]])])
        plots.vectors_2d(vectors, [*WORDS, "new gave"], like=[[-0.8, 2.4]], ax=axes)
    else:
        plots.vectors_2d(vectors, WORDS)
    figure, axes = plt.gcf(), plt.gcf().axes[0]
    arrows = [text for text in axes.texts if text.arrow_patch]
    np.testing.assert_allclose([arrow.xy for arrow in arrows], vectors)
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    shafts = [np.linspace(0, 1, 99)[:, None] * vector for vector in vectors.numpy()]
    points = axes.transData.transform(np.concatenate(shafts))
    assert not any(box.count_contains(points) for box in boxes)


def test_boxes_have_the_proportions_of_their_shapes():
    plots.shape_boxes(
        [("Q", ("s", "d_k"), "query"), "×", ("Kᵀ", ("d_k", "s"), "key")], [("W_O", (4, 6))],
        sizes={"s": 5, "d_k": 3},
    )  # fmt: skip
    q, k, w = [patch for patch in plt.gca().patches if isinstance(patch, FancyBboxPatch)]
    assert q.get_height() / q.get_width() == pytest.approx(5 / 3)
    assert (k.get_height(), k.get_width()) == pytest.approx((q.get_width(), q.get_height()))
    assert w.get_width() / q.get_height() == pytest.approx(6 / 5)
    assert to_hex(q.get_edgecolor()).upper() == plots.COLORS["query"]
    assert {"$d_{k}$", "$s$", "×", "Q", "Kᵀ", "6"} <= set(_numbers(plt.gca()))


def test_next_words_show_what_is_seen_and_what_comes_next():
    plots.next_words(["i", "am", "$fine"], after="end")
    texts = [text.get_text() for text in plt.gca().texts if text.get_text()]
    assert sorted(texts) == sorted(
        ["what is seen", "what comes next", *["i"] * 3, *["am"] * 3, *["\\$fine"] * 2, "end"]
    )
    assert sum(patch.get_hatch() is not None for patch in plt.gca().patches) == 3


def test_fetches_arrive_at_the_word_that_asks():
    plots.fetches(["who", "has", "roses", "?"], [(2, 3, "near"), (0, 3, "far")])
    boxes = [patch for patch in plt.gca().patches if isinstance(patch, FancyBboxPatch)]
    near, far = (p for p in plt.gca().patches if isinstance(p, FancyArrowPatch))
    for arrow, start in ((near, boxes[2]), (far, boxes[0])):
        (left, _), (right, _) = arrow._posA_posB
        assert start.get_x() < left < start.get_x() + start.get_width()
        assert boxes[3].get_x() < right < boxes[3].get_x() + boxes[3].get_width()
    assert near._posA_posB[1][0] < far._posA_posB[1][0]  # the tips do not meet
    height = {text.get_text(): text.get_position()[1] for text in plt.gca().texts}
    assert height["far"] > height["near"] > 0


def test_projections_show_every_number_with_the_name_of_its_component():
    made = [
        ("q", "W_Q", [0.0, 3.0], "query", ["a", "b"]),
        ("k", "W_K", [1.0], "key", ["c"]),
        ("v", "W_V", [-2.0], "value"),
    ]
    plots.projections([1.0, 0.0, 0.5], made, WORDS[:3], name="gave")
    assert list(filter(None, _numbers(plt.gca()))) == [
        *["1", "mary", "0", "gave", "0.5", "roses", "gave"],
        *["0", "a", "3", "b", "$q$", "$W_{Q}$"],
        *["1", "c", "$k$", "$W_{K}$", "−2", "0", "$v$", "$W_{V}$"],
    ]


# --- errors ---------------------------------------------------------------------------------------

ERRORS = [
    (lambda: plots.attention_heatmap(torch.ones(2, 3, 5, 5)), r"2 axes, got shape \(2, 3, 5, 5\)"),
    (lambda: plots.attention_heatmap(torch.ones(5)), r"2 axes, got shape \(5,\)"),
    (lambda: plots.attention_heatmap([[0.5, np.nan]]), r"has nan at \[0, 1\]"),
    (lambda: plots.curves([1, 2], {"a": np.ma.array([1, 9], mask=[0, 1])}), "some are masked"),
    (lambda: plots.attention_heatmap(np.eye(2), {"a", "b"}), "a set, which has no order"),
    (
        lambda: plots.attention_heatmap([[1.5, -0.5]]),
        "is -0.5, .* never negative: draw scores with",
    ),
    (lambda: plots.attention_heatmap([["a", "b"]]), "must be numbers"),
    (lambda: plots.attention_heatmap([[1, 2], [3]]), "rows of equal length"),
    (lambda: plots.attention_heatmap(torch.ones(0, 3)), "nothing to draw"),
    (lambda: plots.attention_heatmap([[1.0]], queries=["a", "b"]), "2 labels for 1 positions"),
    (lambda: plots.attention_heatmap(torch.eye(4), queries="mary"), "got one string: split it"),
    (
        lambda: plots.attention_heatmap([[1.0]], mask=[[True, False]]),
        r"\(1, 1\), like .* \(1, 2\)",
    ),
    (lambda: plots.scores_heatmap([[np.inf]]), r"has inf at \[0, 0\]"),
    (lambda: plots.mask_heatmap(torch.ones(2, 2)), "boolean, True = may attend; got float32"),
    (lambda: plots.mask_heatmap([True]), "two axes"),
    (lambda: plots.mask_heatmap(torch.zeros(0, 0).bool()), r"and a cell, got shape \(0, 0\)"),
    (lambda: plots.vectors_2d(torch.ones(5, 3)), r"must have shape \(n, 2\)"),
    (lambda: plots.vectors_2d(torch.ones(2, 2), color=["key"]), "1 entries for 2 vectors"),
    (lambda: plots.vectors_2d(torch.ones(2, 2), like=torch.ones(5, 3)), "like must have shape"),
    (lambda: plots.curves([1, 2], {"a": [1, 2, 3]}), "curve 'a' has 3 points, x has 2"),
    (lambda: plots.curves([1, 2], [[1, 2]]), "the curves must be a dict"),
    (lambda: plots.histograms([1.0]), r"samples must be a dict .* got \[1\.0\]"),
    (lambda: plots.curves([1, 2], {"a": [1, 2]}, log="z"), 'log must be "", "x", "y" or "xy"'),
    (lambda: plots.curves([[1, 2]], {"a": [1, 2]}), r"x must have 1 axis, got shape \(1, 2\)"),
    (lambda: plots.curves([1], {"a": [[[1]]]}), r"1 or 2 axes, got shape \(1, 1, 1\)"),
    (lambda: plots.bars(["a"], [1, 2]), "2 numbers for 1 labels"),
    (lambda: plots.position_curves(torch.ones(3, 4), dims=[4]), "dimensions 0 to 3"),
    (
        lambda: plots.projections([1.0], [("q", "W_Q", [1.0], "asks")]),
        "q has the role 'asks'; roles are query, key",
    ),
    (lambda: plots.projections([1.0], []), "at least one vector"),
    (lambda: plots.fetches(["i", "am"], [(1, 0, "a")]), "'a' goes from place 1 to 0, .* 2 words"),
    (lambda: plots.fetches("i am", []), "give a list of at least one"),
    (lambda: plots.next_words("i am fine"), "give a list of at least one"),
    (lambda: plots.projections([1.0], [], ["a", "b"]), "labels has 2 labels for 1 positions"),
    (
        lambda: plots.curves([0, 1], {"a": [1, 2]}, log="x"),
        "'x' goes down to 0, which has no place",
    ),
    (
        lambda: plots.curves([1, 2], {"a": [0, 2]}, log="y"),
        "'a' goes down to 0, which has no place",
    ),
    (lambda: plots.fetches(["a", "b", "c"], [(0, 2, "1"), (0, 2, "2")]), "two arrows from place 0"),
    (lambda: plots.cells(("x", [[1, 2]], {"parts": [0.5, 1.9]})), "must be whole numbers"),
    (lambda: plots.vectors_2d([[1.0, 1.0]], color="kye"), "kye"),
    (lambda: plots.shape_boxes("×"), "at least one matrix"),
    (lambda: plots.shape_boxes([("Q", (2, 2))], ["="]), "at least one matrix"),
    (lambda: plots.shape_boxes(("Q", ("s", None))), r"sizes of 'Q' are \('s', None\); give num"),
    (lambda: plots.shape_boxes(("Q", (2, 2), "quary")), "'quary' is not a role .* query, key"),
    (lambda: plots.curves([1], {"a": [1 + 2j]}), r"complex128 is not drawn; choose \.real"),
    (lambda: plots.curves([1], {"a": torch.tensor([1 + 2j])}), "complex64 is not drawn"),
    (lambda: plots.bars(["a"], {}), "values must be .* not an empty one; got {}"),
    (lambda: plots.position_curves(torch.ones(3, 4), []), "dims is empty: give at least one"),
    (lambda: plots.cells(5), r"takes tables, \(name, values\), and texts; got 5"),
    (lambda: plots.position_curves(torch.ones(3, 4), 2), r"dims is 2; give .* such as \[2\]"),
    (lambda: plots.position_curves(torch.ones(3, 4), [1.0]), r"dims is 1\.0, of type float"),
    (lambda: plots.next_words([3, 4]), r"are \[3, 4\]; give a list of at least one text"),
    (lambda: plots.shape_boxes(("Q", 5, 2)), r"a matrix is \(name, .* got \('Q', 5, 2\)"),
]


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(("draw", "message"), ERRORS)
def test_errors_name_the_value_and_the_fix(draw, message):
    with pytest.raises((TypeError, ValueError), match=message):
        draw()
    assert not plt.get_fignums()


def test_a_histogram_says_the_spread_and_keeps_one_axis():
    narrow = torch.tensor([-1.0, 1.0, -1.0, 1.0])
    plots.histograms({"narrow": narrow, "wide": 5 * narrow}, xlabel="score")
    axes = plt.gca()
    assert [text.get_text() for text in axes.texts] == ["spread 1", "spread 5"]
    assert [line.get_xdata().tolist() for line in axes.lines] == [[-1.0, 1.0], [-5.0, 5.0]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["narrow", "wide"]
    with pytest.raises(TypeError, match="not an empty one"):
        plots.histograms({})
    with pytest.raises(ValueError, match="samples 'a'"):
        plots.histograms({"a": [[1.0]]})


def test_two_score_maps_can_share_a_scale():
    for limit, shown in ((None, 2), (5, 5)):
        plots.scores_heatmap([[2.0, -1.0]], limit=limit)
        assert plt.gca().images[0].get_clim() == (-shown, shown)
    with pytest.raises(ValueError, match="limit is 0, but must be a positive score"):
        plots.scores_heatmap([[2.0, -1.0]], limit=0)


@pytest.mark.usefixtures("as_a_reader")
def test_cells_show_numbers_labels_and_parts():
    plots.cells(
        ("in", torch.tensor([[0.0, 1.5], [-2.0, 10.0]]), {"rows": ["mary", "gave"]}),
        "→",
        ("head 0", [["m0", "m1"]], {"parts": [0, 1], "columns": ["a", "b"]}),
    )
    axes = plt.gca()
    texts = [text.get_text() for text in axes.texts]
    assert {"0", "1.5", "−2", "10", "mary", "gave", "in", "→", "m0", "m1", "a", "b"} <= set(texts)
    faces = [to_hex(patch.get_facecolor()) for patch in axes.patches]
    assert faces[:4] == [CARD.lower()] * 4
    assert len({*faces[4:], CARD.lower()}) == 3
    near = [[0.001, -0.004, 0.0, 1e-9, torch.tensor(2)]]
    plots.cells(("x", near, {"columns": np.array(list("abcde"))}))
    colors = {text.get_position()[0]: text.get_color() for text in plt.gca().texts[6:]}
    assert [text.get_text() for text in plt.gca().texts[6:]] == ["0.00", "0.00", "0", "0", "2"]
    assert [*colors.values()] == [INK, INK, SOFT, SOFT, INK]
    assert all(contrast(INK, face) > 4.5 and contrast(SOFT, face) > 4.5 for face in faces)


def test_cells_in_several_lines_do_not_overlap():
    table = ("x", [[1, 2]], {"parts": [[0, 1]]})
    plots.cells([table, table], [table])
    boxes = [patch.get_bbox() for patch in plt.gca().patches]
    assert not any(
        a.overlaps(b) and min(a.x1, b.x1) - max(a.x0, b.x0) > 1e-6
        and min(a.y1, b.y1) - max(a.y0, b.y0) > 1e-6
        for n, a in enumerate(boxes)
        for b in boxes[:n]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("items", "cause"),
    [
        ([], "at least one table"),
        ([[("x", [[1]])], ["→"]], "at least one table"),
        ([("x", [[1], [2, 3]])], "rows of equal length"),
        ([("x", [1, 2])], r"'x' must be a table, \[rows, columns\], got \[1, 2\]"),
        ([("x", torch.ones(1, 2, 2))], r"must be a table"),
        ([("x", [[1, 2]], {"rows": ["a", "b"]})], "2 labels for 1 rows of 'x'"),
        ([("x", [[1, 2]], {"parts": [1, 2, 3]})], "one for each of its 2 columns"),
        ([("x", [[0, 1, 2]], {"parts": [0]})], "one for each of its 3 columns"),
        ([("x", [[1, 2]], {"colors": [1]})], "but no colors"),
    ],
)
def test_cells_refuse_what_does_not_fit(items, cause):
    with pytest.raises(ValueError, match=cause):
        plots.cells(*items)


def test_a_label_that_begins_with_a_line_below_is_in_the_legend():
    plots.curves([1, 2], {"_lr": [1, 2], "_b": [2, 3]})
    assert [text.get_text()[1:] for text in plt.gca().get_legend().get_texts()] == ["_lr", "_b"]
