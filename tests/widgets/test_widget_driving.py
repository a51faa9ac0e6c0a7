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


RIGHT = [("few", 3), ("share", None), ("share", 1), ("at", -1), ("at", 9), ("on", True),
         ("way", "down"), ("word", 2), ("point", [1, -2.5]), ("cell", (0, 2))]  # fmt: skip
WRONG = [("few", 0, "a whole number from 1 to 3"), ("few", 4, "from 1 to 3"), ("few", 1.5, "whole"),
         ("few", True, "whole"), ("share", math.nan, "a number from 0 to 1, or all"),
         ("at", -2, r"from 0 to 9, or last \(-1\)"), ("at", None, "last"), ("on", 1, "on or off"),
         ("way", "left", "one of: up, down"), ("word", 0, "one of: b, b#2; or 1 to 2"),
         ("word", 3, "one of"), ("point", [1], "2 numbers"), ("point", [1, math.inf], "2 numbers"),
         ("cell", [0, 3], "a row and a column")]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_what_a_setting_takes(name, value):
    figure = Figure(**{name: value})
    assert np.array_equal(getattr(figure, name), value)
    figure.set_state({name: value})
    setattr(figure, name, value)


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


ACCEPTED = {
    "VectorPlayground": ["selected=the#2", "selected=a, b", "selected=0", "at=1,−2.5", "angle=-90"],
    "SoftDictionary": ["query=0.5,1", "temperature=0.03"],
    "ScalingLab": ["d_k=4096", "seed=0"],
    "MaskPainter": ["follow=roses", "open=a, b,the#2", "hide=0,6", "rule=zero-after", "keep=off"],
    "MatrixInTheMiddle": ["matrix=zero", "asking=a", "answering=f", "value=-3.5", "show=scores"],
    "StepScrubber": ["step=softmax", "step=9", "head=2", "cell=1,0", "word=to", "placed=on"],
    "AttentionMap": ["layer=0", "head=0", "query=gave", "cell=mary,gave"],
    "PositionLab": ["method=rotary", "d_model=16", "base=2.5", "offset=-3", "view=code"],
    "RotaryArrows": ["query_position=5", "before=100", "speed=0.05", "add=on"],
    "EmbeddingMap": ["word=roses", "word=0", "pair=0", "pair=1"],
    "NextWord": ["predictor=two", "word=b", "word=1"],
    "PairMerger": ["sample=a, b", "sample=0", "merges=999", "reset="],
    "TextCutter": ["sample=a, b", "sample=0", "reset="],
    "SamplingLab": ["context=mary gave", "top_k=all", "top_k=3", "min_p=0.1", "draw=100"],
    "Translator": ["example=1", "example=hūvannu koṭṭaḷu", "width=8", "head=all", "word=0"],
    "Machine": [
        "story=1",
        "ask=roses",
        "say=mary",
        "word=last",
        "word=39",
        "part=block-2-head-1",
        "off=block-1-attention",
        "all_on=",
        "clicks=switches",
        "exchange=mary,ravi",
        "level=3",
        "patch=1,5",
        "temperature=0",
        "top_p=0.5",
    ],
    "ArchitectureWalk": [
        "sentence=1",
        "part=output",
        "part=decoder.1.norm_3",
        "row=15",
        "written=0",
    ],
    "BeamTree": ["width=5", "length_penalty=0.6", "length_penalty=2", "step=0", "step=last"],
    "BlockLab": ["story=1", "feed_forward=off", "norm_1=on"],
    "Circuit": ["at=0", "at=last", "fits=on"],
    "DepthView": ["pre=off", "no_residual=on", "depth=12", "start=1", "quantity=stream"],
    "TimeLapse": ["step=0", "step=35", "position=3", "position=11", "position=last", "seed=7"],
    "Write": ["run=", "reset="],
    "TrainHere": ["task=owner", "layers=1", "rate=0.0005", "rate=1", "smear=on", "run=", "step=9"],
    "TrainText": ["sample=a rhyme", "temperature=0.5", "seed=2", "run=", "step=9", "head=7"],
    "TrainingView": ["step=last", "step=2", "smoothing=10", "log_steps=on"],
    "YourPart": ["word=0", "word=last"],
}
REFUSED = {
    "VectorPlayground": ["selected=The", "selected=7", "at=1", "at=1,x", "length=-1", "size=2"],
    "SoftDictionary": ["query=1;2", "temperature=0.01", "temperature=", "query=1,2,3"],
    "ScalingLab": ["d_k=0", "d_k=1.5", "d_k=1e9", "reset=1", "n_keys=3"],
    "MaskPainter": ["follow=you", "open=mary", "open=mary,you", "mask=none", "layers=0", "keep=1"],
    "MatrixInTheMiddle": ["matrix=one", "asking=g", "value=101", "show=A"],
    "StepScrubber": ["step=10", "head=3", "cell=-1,0", "cell=0.5,0", "placed=yes"],
    "AttentionMap": ["layer=1", "head=1", "query=7", "cell=gave"],
    "PositionLab": ["method=none", "d_model=15", "base=1", "base=1e400", "offset=x", "pair=-1"],
    "RotaryArrows": ["query_position=32", "before=-1", "speed=2", "add=yes"],
    "EmbeddingMap": ["word=ravi", "word=7", "pair=3", "pair=-1"],
    "NextWord": ["predictor=three", "word=a", "word=0", "word=2"],
    "PairMerger": ["sample=2", "merges=1000", "merges=1.5", "text=roses"],
    "TextCutter": ["sample=2", "text=roses"],
    "SamplingLab": ["context=1", "top_k=0", "top_p=0", "min_p=2", "draw=0"],
    "Translator": ["example=2", "width=9", "head=2", "layer=-1", "word=31"],
    "Machine": [
        "story=2",
        "ask=tulips",
        "say=eats",
        "word=40",
        "part=block-3",
        "off=head",
        "all_on=1",
        "clicks=on",
        "exchange=mary",
        "level=4",
        "patch=1",
        "temperature=3",
        "top_p=0",
    ],
    "ArchitectureWalk": ["sentence=2", "part=decoder", "part=23", "row=16", "row=-1"],
    "BeamTree": [
        "width=0",
        "width=6",
        "width=1.5",
        "length_penalty=-1",
        "length_penalty=3",
        "step=x",
    ],
    "BlockLab": ["story=2", "feed_forward=0", "norm=off"],
    "Circuit": ["at=8", "at=-1", "fits=1", "text=aba"],
    "DepthView": ["depth=7", "start=2", "quantity=loss", "pre=1"],
    "TimeLapse": ["step=-1", "position=12", "position=-1", "seed=0", "ids=1"],
    "Write": ["run=1", "code=x"],
    "TrainHere": ["task=copy", "layers=3", "rate=0.03", "seed=0", "speed=fast", "run=1", "step=-1"],
    "TrainText": ["sample=mine", "temperature=2", "seed=0", "run=1", "step=-1", "head=8"],
    "TrainingView": ["step=first", "smoothing=0", "log_steps="],
    "YourPart": ["word=99", "word=first"],
}


@pytest.mark.parametrize("name", DRIVEN)
def test_settings(name):
    widget = DRIVEN[name]()
    for setting in ACCEPTED[name]:
        assert widget.refusal(*setting.split("=")) is None, setting
    for setting in REFUSED[name]:
        key, value = setting.split("=")
        assert not widget.accepts(key, value), setting
        assert key in widget.refusal(key, value)


def test_python_and_javascript_call_presets_and_steps_alike():
    masks = (FOLDER / "math" / "masks.js").read_text("utf-8")
    presets = re.findall(r'^  (?:\{ |  )name: "([\w ]+)"', masks, re.M)
    assert list(MaskPainter._keys_of_text["mask"].values.values()) == presets
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


def test_conditions():
    assert read_condition("weight a = b") == ("weight a", "=", "b")
    assert read_condition("x  y <= −.5") == ("x y", "<=", -0.5)
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
