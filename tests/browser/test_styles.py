"""A figure's own style holds wherever the shared one comes: in notebooks, with each figure."""

import pytest
import torch
from lapses import make_lapse
from machines import make_machine
from test_block_lab import make_lab
from test_depth_view import make_view
from translators import make_translator, make_walk

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.widgets import (
    AttentionMap,
    MaskPainter,
    MatrixInTheMiddle,
    NextWord,
    PairMerger,
    PositionLab,
    Predict,
    RotaryArrows,
    SamplingLab,
    ScalingLab,
    SoftDictionary,
    StepScrubber,
    TrainHere,
    TrainingView,
    VectorPlayground,
)
from transformer_lib.widgets.joining import FOLDER

WORDS = ["mary", "gave", "roses", "to", "susan"]
X = torch.tensor([[1.2, 0.3], [-0.4, 1.1], [0.9, 1.0], [-0.2, -0.4], [1.0, -0.6]])
ROWS = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
GROUPS = {
    "text": lambda: [
        AttentionMap(torch.eye(5), WORDS),
        NextWord(["a", "b", "c"], ["a", "b", "c"], {"x": ROWS}),
        SamplingLab(torch.tensor(ROWS), ["a", "b", "c"], ["one", "two"]),
        PairMerger({"roses": "rose roses"}),
    ],
    "plane": lambda: [
        VectorPlayground(WORDS, X),
        SoftDictionary(WORDS, X, X[:, 0]),
        RotaryArrows([1.0, 0.5], [-0.5, 1.5]),
        PositionLab(),
    ],
    "matrices": lambda: [
        MaskPainter(WORDS, X, X, X),
        MatrixInTheMiddle(WORDS, X, X[:2], ["a", "b"]),
        StepScrubber(WORDS, X.repeat(1, 3), MultiHeadAttention(6, 2)),
        ScalingLab(),
    ],
    "training": lambda: [
        TrainHere("sort", layers=1),
        TrainingView({"step": [1, 2, 3], "loss": [2.0, 1.5, 1.2]}, baselines={"a": 1.4}, floor=1.0),
        make_lapse(),
        make_view(),
        Predict.number("How many?", right=3, otherwise="Three."),
        Predict.cell("Which?", rows=WORDS, columns=WORDS, right=("to", "to"), otherwise="Look."),
    ],
    "models": lambda: [
        make_machine(view="laboratory")[1], make_translator()[2], make_lab()[0], make_walk()[2],
    ],
}  # fmt: skip

# [looks, what differs once the style has come again], without a pause in which a figure could move.
# Of all elements of a figure that have the same classes, the first.
LOOKS = """(shared) => {
  const look = () => {
    const found = {};
    for (const node of document.querySelectorAll(".afm, .afm *")) {
      const figure = node.closest(".afm").querySelector("figcaption")?.textContent ?? "";
      const kind = `${figure.slice(0, 20)} ${node.tagName}.${node.getAttribute("class") ?? ""}`;
      if (found[kind]) continue;
      const style = getComputedStyle(node);
      found[kind] = Object.fromEntries([...style].map((name) => [name, style[name]]));
    }
    return found;
  };
  const before = look();
  const style = document.createElement("style");
  style.textContent = shared;
  document.body.append(style);
  const after = look();
  const changed = [];
  for (const [kind, style] of Object.entries(before))
    for (const [name, value] of Object.entries(style))
      if (after[kind][name] !== value) changed.push([kind, name, value, after[kind][name]]);
  return [Object.keys(before).length, changed];
}"""


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_the_shared_style_undoes_nothing_when_it_comes_again(open_page, group):
    page = open_page(*GROUPS[group]())
    page.wait_for_timeout(500)
    shared = (FOLDER / "core" / "widget.css").read_text(encoding="utf-8")
    looks, changed = page.evaluate(LOOKS, shared)
    assert looks > 50
    assert changed == []
