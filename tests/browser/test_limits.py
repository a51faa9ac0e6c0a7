"""Figures at the limits that Python sets, and other large ones: they open, with few elements."""

import pytest
import torch

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.widgets import (
    AttentionMap,
    MaskPainter,
    NextWord,
    PositionLab,
    SamplingLab,
    ScalingLab,
    SoftDictionary,
    StepScrubber,
    TrainingView,
    VectorPlayground,
)
from transformer_lib.widgets.attention_map.widget import MOST_TOKENS
from transformer_lib.widgets.mask_painter.widget import MOST_WORDS

STEPS = range(1, 20_001)


def tokens(count: int) -> list[str]:
    return [f"token {i}" for i in range(count)]


def unusable(page) -> list[str]:
    """Attributes and texts with numbers that could not be computed (a picture's data aside)."""
    return page.locator(".afm *").evaluate_all(
        """(nodes) => nodes.flatMap((node) => [
          ...[...node.attributes].filter(({ name }) => name !== "href").map(({ value }) => value),
          ...[...node.childNodes].filter(({ nodeType }) => nodeType === 3).map((one) => one.data),
        ]).filter((text) => /NaN|Infinity|undefined/.test(text))"""
    )


FIGURES = {
    "playground": (lambda: VectorPlayground(["a", "b"], [[1e6, 0.0], [1.0, 1.0]]), 400),
    "arrows": (lambda: VectorPlayground(tokens(16), torch.randn(16, 2)), 700),
    "dictionary": (
        lambda: SoftDictionary(["a", "b"], [[1e6, 0.0], [0.0, -1e6]], [1e9, -1e9]), 400),
    "map": (lambda: AttentionMap(torch.eye(MOST_TOKENS), tokens(MOST_TOKENS)), 20_000),
    "painter": (lambda: MaskPainter(tokens(MOST_WORDS), *torch.randn(3, MOST_WORDS, 2)), 12_000),
    "positions": (lambda: PositionLab(n_positions=512, d_model=1024, pair=511), 1_000),
    "alibi": (lambda: PositionLab(method="alibi", n_positions=512, n_heads=64), 1_000),
    "words": (lambda: NextWord(tokens(39), tokens(39), {"mine": torch.ones(38, 39) / 39}), 400),
    "sampling": (lambda: SamplingLab(torch.randn(8, 65), tokens(65), tokens(8)), 400),
    "scaling": (lambda: ScalingLab(n_keys=16), 400),
    "steps": (
        lambda: StepScrubber(tokens(32), torch.randn(32, 32), MultiHeadAttention(32, 4)), 4_000),
    "training": (lambda: TrainingView({"step": STEPS, "loss": [1 / n for n in STEPS]}), 200),
}  # fmt: skip


@pytest.mark.parametrize(("make", "most"), FIGURES.values(), ids=FIGURES)
def test_a_figure_at_its_limit_opens(open_page, make, most):
    """Not with a line, for instance, for each unit of a plane, which would take minutes."""
    page = open_page(make())
    assert page.locator(".afm *").count() < most
    assert unusable(page) == []
    assert page.locator(".afm-reading").inner_text()


def test_a_word_of_a_tiny_probability_is_drawn(open_page):
    rows = torch.tensor([[1e-50, 1 - 1e-50]], dtype=torch.float64)
    page = open_page(NextWord(["b", "a"], ["a", "b"], {"mine": rows}))
    reading = page.locator(".afm-reading").inner_text()
    assert "the probability 1e−50" in reading
    assert "≈ 115.13 nats" in reading
    assert "as if between 1e50 equally likely words" in reading
    assert unusable(page) == []
