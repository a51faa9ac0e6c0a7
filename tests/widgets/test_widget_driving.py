"""The keys that links may set in a figure, and the facts that goals may read: Python's side."""

import inspect
import json
import math
import re
from typing import ClassVar

import numpy as np
import pytest
import torch
import traitlets
from figures import make_examined, make_lapse, make_machine, make_translator, make_walk

from transformer_lib import widgets
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.bpe import train_bpe
from transformer_lib.classifier import Classifier
from transformer_lib.interpret.handmade import induction_gpt, slots
from transformer_lib.widgets import (
    AttentionMap,
    BeamTree,
    BlockLab,
    Circuit,
    DepthView,
    EmbeddingMap,
    Goal,
    MaskPainter,
    MatrixInTheMiddle,
    NextWord,
    PairMerger,
    PositionLab,
    RotaryArrows,
    SamplingLab,
    ScalingLab,
    SoftDictionary,
    StepScrubber,
    TextCutter,
    TrainHere,
    TrainingView,
    TrainText,
    VectorPlayground,
    Write,
    YourPart,
    driving,
)
from transformer_lib.widgets.base import Widget
from transformer_lib.widgets.driving import (
    Action,
    Flag,
    Number,
    Numbers,
    Option,
    Pair,
    Setting,
    Token,
)
from transformer_lib.widgets.goals import read_condition
from transformer_lib.widgets.joining import FOLDER
from transformer_lib.widgets.mask_painter.widget import PRESETS

WORDS = ["mary", "gave", "the", "roses", "to", "the", "a, b"]
X = torch.randn(7, 6, generator=torch.Generator().manual_seed(1))
DRIVEN = {
    "VectorPlayground": lambda **more: VectorPlayground(WORDS, X[:, :2], **more),
    "SoftDictionary": lambda **more: SoftDictionary(WORDS, X[:, :2], X[:, 2], **more),
    "ScalingLab": lambda **more: ScalingLab(**more),
    "MaskPainter": lambda **more: MaskPainter(WORDS, X, X, X, **more),
    "MatrixInTheMiddle": lambda **more: MatrixInTheMiddle(
        WORDS, X, X[:6], list("abcdef"), presets={"zero": 0 * X[:6]}, **more
    ),
    "StepScrubber": lambda **more: StepScrubber(WORDS, X, MultiHeadAttention(6, 3), **more),
    "AttentionMap": lambda **more: AttentionMap((X @ X.mT).softmax(-1)[None], WORDS, **more),
    "PositionLab": lambda **more: PositionLab(**more),
    "RotaryArrows": lambda **more: RotaryArrows([1.0, 0.5], [0.5, 1.0], **more),
    "EmbeddingMap": lambda **more: EmbeddingMap(X, WORDS, **more),
    "NextWord": lambda **more: NextWord(
        ["a", "b"], ["a", "b"], {"one": [[0.5, 0.5]], "two": [[0.25, 0.75]]}, **more
    ),
    "PairMerger": lambda **more: PairMerger({"roses": "rose roses", "a, b": "a b"}, **more),
    "TextCutter": lambda **more: TextCutter(
        {"roses": "rose roses", "a, b": "a b"}, train_bpe("rose roses", 258), **more
    ),
    "SamplingLab": lambda **more: SamplingLab([[2.0, 1.0]], ["a", "b"], ["mary gave"], **more),
    "BeamTree": lambda **more: BeamTree(
        lambda texts: [[2.0, 1.0, 0.5]] * len(texts), [0], [".", "a", "b"], end=0, **more
    ),
    "Translator": lambda **more: make_translator(**more)[2],
    "TimeLapse": lambda **more: make_lapse(**more),
    "TrainHere": lambda **more: TrainHere(**more),
    "TrainText": lambda **more: TrainText({"a rhyme": "roses are red\n" * 80}, **more),
    "Write": lambda **more: Write("1 + 1", **more),
    "Machine": lambda **more: make_machine(**more)[1],
    "ArchitectureWalk": lambda **more: make_walk(**more)[2],
    "TrainingView": lambda **more: TrainingView({"step": [1, 2], "loss": [2.0, 1.5]}, **more),
    "YourPart": lambda **more: YourPart(*make_examined(), **more),
    "BlockLab": lambda **more: BlockLab(
        Classifier(3, 2, 4, 1, 2),
        {"who": ["a", "b"]},
        ["a c", "b c"],
        [[0, 2], [1, 2]],
        [0, 1],
        ["x", "y"],
        ["one", "two"],
        **more,
    ),
    "Circuit": lambda **more: Circuit(
        induction_gpt(3, 8), slots(3, 8), letters="abc", text="a b a", **more
    ),
    "DepthView": lambda **more: DepthView(
        {
            name: [depth] * 2 if name == "depth" else [1, 1]
            for depth in [6]
            for name in ("depth", "layer", "gradient", "stream")
        }
        | {"arrangement": [0, 1], "start": [0, 1]},
        ["pre-norm", "post-norm"],
        ["one", "two"],
        depth=6,
        **more,
    ),
}


def described(widget: Widget) -> dict:
    return json.loads(widget._driving)


def test_every_figure_of_the_book_can_be_driven():
    own = {name for name in widgets.__all__ if issubclass(getattr(widgets, name), Widget)}
    assert own - {"HeadView", "ModelView", "NeuronView", "Predict"} == set(DRIVEN)


@pytest.mark.parametrize("name", DRIVEN)
def test_settings_keys_and_facts_are_documented(name):
    cls = getattr(widgets, name)
    told = set(re.findall(r"^    (.+?)(?: =|:|$)", cls.__doc__.partition("Links ")[2], re.M))
    settings = set(re.findall(r"^    (\w+) = ", cls.__doc__.partition("Settings: ")[2], re.M))
    assert {key for key in cls._settings if key[0] != "_"} == settings
    assert {*cls._keys_of_text, driving.RESET, *cls._facts} <= told | settings
    assert {*settings, "name", "goals"} <= set(inspect.signature(cls).parameters)


class Figure(Widget):
    """A figure with a setting of each kind."""

    _text = traitlets.Bytes(b'{"words": ["a", "b", "b"]}').tag(sync=True)
    few = Setting(2, Number(1, "most", "things"))
    share = Setting(None, Number(0, 1, whole=False, none="all"))
    at = Setting(-1, Number(0, 9, none="last", none_is=-1))
    on = Setting(False, Flag("whether"))
    way = Setting("up", Option(["up", "down"]), link="")
    word = Setting(1, Token("words", first=1), link="follow")
    point = Setting((0.0, 0.0), Numbers(2))
    cell = Setting((0, 0), Pair("words", "words"))
    _keys_of_text: ClassVar = {"go": Action("begin")}
    _facts: ClassVar = {"speed": "of it"}

    def _sizes(self):
        return {"most": 4}


@pytest.mark.parametrize(
    "tokens", [["a", "a", "a#2"], ["a#2", "a", "a", "a"], ["a", "a", "a#2", "a#2", "a#2#2", "a#3"]]
)
def test_no_two_tokens_share_a_name(tokens):
    names = driving.labels(tokens)
    assert len(set(names)) == len(names)
    assert [names[tokens.index(token)] for token in tokens] == tokens


RIGHT = [("few", 3), ("share", None), ("share", 1), ("at", -1), ("at", 9), ("on", True),
         ("way", "down"), ("word", 2), ("point", [1, -2.5]), ("cell", (0, 2))]  # fmt: skip
WORDED = [("share", "all", None), ("at", "last", -1), ("on", "on", True), ("word", "b#2", 2),
          ("cell", ("b", 0), [1, 0]), ("cell", "b,a", [1, 0]), ("few", np.int64(3), 3),
          ("point", np.ones(2), [1, 1]), ("word", torch.tensor(2), 2)]  # fmt: skip
WRONG = [("few", 0, "a whole number from 1 to 3"), ("few", 4, "from 1 to 3"), ("few", 1.5, "whole"),
         ("few", True, "whole"), ("share", math.nan, "a number from 0 to 1, or all"),
         ("at", -2, r"from 0 to 9, or last \(-1\)"), ("at", None, "last"), ("on", 1, "on or off"),
         ("way", "left", "one of: up, down"), ("word", 0, "one of: b, b#2; or 1 to 2"),
         ("word", 3, "one of"), ("point", [1], "2 numbers"), ("point", [1, math.inf], "2 numbers"),
         ("cell", [0, 3], "a row and a column"), ("few", "2", "whole"), ("word", "c", "one of"),
         ("cell", "ab", "a row and a column")]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_what_a_setting_takes(name, value):
    figure = Figure(**{name: value})
    assert np.array_equal(getattr(figure, name), value)
    figure.set_state({name: value})
    setattr(figure, name, value)


@pytest.mark.parametrize(("name", "value", "meant"), WORDED)
def test_what_links_say_and_arrays_hold_is_understood(name, value, meant):
    assert getattr(Figure(**{name: value}), name) == meant
    figure = Figure()
    setattr(figure, name, value)
    assert getattr(figure, name) == meant


REFUSED = [("AttentionMap", "selection", (0, 0, 9, 9)),
           ("VectorPlayground", "coordinates", [[1e9, 0.0]]),
           ("MatrixInTheMiddle", "entry", (0, 9)), ("RotaryArrows", "arrows", [[9.0, 9.0]]),
           ("TextCutter", "_letters", [0xD800]), ("MaskPainter", "cells", [2]),
           ("Circuit", "ids", [9])]  # fmt: skip


@pytest.mark.parametrize(("name", "trait", "value"), REFUSED)
def test_what_a_check_refuses_does_not_stay(name, trait, value):
    figure = DRIVEN[name]()
    before = getattr(figure, trait)
    with pytest.raises(ValueError), figure.hold_trait_notifications():  # noqa: PT011
        setattr(figure, trait, value)
    assert getattr(figure, trait) == before
    with pytest.raises(ValueError):  # noqa: PT011
        figure.set_state({trait: value})
    assert getattr(figure, trait) == before


@pytest.mark.parametrize(
    ("name", "trait", "word", "meant"),
    [
        ("MaskPainter", "rule", "zero-after", 1),
        ("EmbeddingMap", "selection", "the#2", 5),
        ("StepScrubber", "step", "softmax", 6),
        ("VectorPlayground", "selected", "gave", 1),
        ("Machine", "part", "block-2-head-1", None),
        ("Machine", "exchange", ("mary", "susan"), None),
    ],
)
def test_a_figure_takes_the_words_that_it_lists(name, trait, word, meant):
    figure = DRIVEN[name]()
    first = getattr(figure, trait)
    setattr(figure, trait, word)
    if meant is None:
        texts, key = figure._texts(), figure._settings[trait].key
        meant = key.read(",".join(word) if isinstance(word, tuple) else word, texts, {})
    assert getattr(figure, trait) == meant
    assert isinstance(first, type(meant))


@pytest.mark.parametrize(("name", "value", "cause"), WRONG)
def test_what_a_setting_refuses(name, value, cause):
    with pytest.raises(ValueError, match=f"{name} is .*, but must be .*{cause}"):
        Figure(**{name: value})
    figure = Figure()
    before = getattr(figure, name)
    with pytest.raises(ValueError, match=cause):
        setattr(figure, name, value)
    with pytest.raises(traitlets.TraitError, match=cause):
        figure.set_state({name: value})  # what the page sends
    assert getattr(figure, name) == before


def test_what_follows_from_a_setting():
    parameters = inspect.signature(Figure).parameters
    assert list(parameters) == ["name", "goals", *Figure._settings]
    assert parameters["few"].default == 2
    keys = described(Figure())["keys"]
    assert keys["few"] | {"low": 1, "high": 3} == keys["few"]
    traits = {key: one["trait"] for key, one in keys.items()}
    assert traits == {
        "few": "few", "share": "share", "at": "", "on": "on", "follow": "word", "point": "point",
        "cell": "cell", "go": "",
    }  # fmt: skip
    assert list(Figure._facts) == ["few", "share", "on", "follow", "speed"]
    assert "few = 2: a whole number of at least 1; things" in Figure.__doc__
    with pytest.raises(TypeError, match="there is no setting 'fewer'; there are name, goals, few"):
        Figure(fewer=2)


@pytest.mark.parametrize("name", DRIVEN)
def test_name_and_first_state_travel(name):
    widget = DRIVEN[name](name="the-figure-2")
    assert widget.name == "the-figure-2"
    assert widget.reached == []
    told = described(widget)
    traits = widget.traits(sync=True)
    assert told["first"]
    for trait, value in told["first"].items():
        assert json.loads(json.dumps(getattr(widget, trait))) == value
    assert all(key["trait"] in {"", *traits} for key in told["keys"].values())
    assert widget.accepts("reset")
    with pytest.raises(ValueError, match="letters, digits and hyphens"):
        DRIVEN[name](name="the figure")


@pytest.mark.parametrize("name", DRIVEN)
def test_a_goal_names_facts_that_there_are(name):
    with pytest.raises(ValueError, match=r"goal 'Do it\.': there is no fact 'nothing'"):
        DRIVEN[name](goals=[Goal("Do it.", when=["nothing > 1"])])
    fact = driving._some(list(getattr(widgets, name)._facts)[-1], DRIVEN[name]()._texts())[0]
    widget = DRIVEN[name](goals=[Goal("*Do* it.", [f"{fact} > 1", f"{fact} = {fact}"], "Try.")])
    [goal] = described(widget)["goals"]
    assert goal == {
        "text": "*Do* it.",
        "hint": "Try.",
        "when": [[fact, ">", 1.0], [fact, "=", fact]],
    }
    assert widget.reached == [False]
    widget.set_state({"reached": [True]})  # what the page sends
    assert widget.reached == [True]


def test_python_and_javascript_call_presets_and_steps_alike():
    masks = (FOLDER / "math" / "masks.js").read_text("utf-8")
    presets = re.findall(r'^  (?:\{ |  )name: "([\w ]+)"', masks, re.M)
    assert list(MaskPainter._keys_of_text["mask"].values.values()) == presets
    sizes = [re.findall(r'key: "(\w+)"', one) for one in re.findall(r"sizes: \[(.*)\]", masks)]
    assert [list(each) for each in PRESETS.values()] == sizes
    steps = (FOLDER / "step_scrubber" / "model.js").read_text("utf-8")
    count = re.search(r"STEPS = \[(.*?)\];", steps, re.S)[1].count('"') // 2
    assert sorted(set(StepScrubber._keys_of_text["step"].values.values())) == list(range(count))


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("#set:two words;a=1", "write #set:name;key=value"),
        ("set:name;a=1", "write #set:name;key=value"),
        ("#set:name", "it sets nothing"),
        ("#set:name;=1", "it sets nothing"),
        ("#set:name;a=1;", "it sets nothing"),
    ],
)
def test_links_that_cannot_be_read(target, problem):
    with pytest.raises(ValueError, match=problem):
        driving.read_link(target)


@pytest.mark.parametrize("value", ["٣", "３", "0x2", "1_0"])
def test_a_number_in_a_link_is_one_that_the_page_reads(value):
    assert driving.refusal({"few": driving.Number(1, 20)}, "few", value)


def test_conditions():
    assert read_condition("weight a = b") == ("weight a", "=", "b")
    assert read_condition("  weight a  the  <= −.5") == ("weight a  the", "<=", -0.5)
    for text, problem in {
        "x": "has 0 operators",
        "x > 1 > 2": "has 2 operators",
        "x>1": "has 0 operators",
        "> 1": "nothing on one side",
        "1 < x": "begins with a number",
    }.items():
        with pytest.raises(ValueError, match=problem):
            read_condition(text)


def test_goals_that_cannot_be_meant():
    with pytest.raises(TypeError, match="must be a list of conditions"):
        Goal("Do it.", when="x > 1")
    with pytest.raises(ValueError, match="could not be reached"):
        Goal("Do it.", when=[])
    with pytest.raises(ValueError, match="text is empty"):
        Goal(" ", when=["x > 1"])
    for goals in (Goal("Do it.", when=["d_k > 1"]), ["Do it."]):
        with pytest.raises(TypeError, match="goals"):
            ScalingLab(goals=goals)
    with pytest.raises(ValueError, match="did you mean 'd_k'"):
        ScalingLab(goals=[Goal("Do it.", when=["dk > 1"])])
