"""The widgets' Python side: what they accept, what comes back, and what is sent."""

import base64
import json
import re

import numpy as np
import pytest
import torch
import traitlets
from anywidget import AnyWidget
from ipywidgets.embed import embed_data

from transformer_lib import plots, widgets
from transformer_lib.widgets import AttentionMap, VectorPlayground
from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.joining import FOLDER

TOKENS = ["mary", "gave", "roses", "to", "susan"]
ALL = [getattr(widgets, name) for name in widgets.__all__]
OWN = [cls for cls in ALL if issubclass(cls, Widget)]


def softmax(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).softmax(-1)


# Every widget


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__name__)
def test_a_widget_carries_its_module_and_style_as_text(cls):
    assert isinstance(cls._esm, str)
    assert "\nexport default (() => {\n" in cls._esm
    assert isinstance(cls._css, str)
    assert not cls._css or cls._css.startswith("/*! afm: ")
    assert ".afm .afm-caption {" in cls._esm  # core/widget.css


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__name__)
def test_no_string_trait_takes_any_text(cls):
    """Strings are unescaped in the page: a choice that is checked may be one, a token not."""
    checked = {
        name
        for owner in cls.__mro__
        for member in vars(owner).values()
        if isinstance(member, traitlets.traitlets.ValidateHandler)
        for name in member.trait_names
    }
    strings = {
        name
        for name, trait in cls.class_traits(sync=True).items()
        if type(trait) in (traitlets.Unicode, traitlets.CUnicode, traitlets.Any, traitlets.Dict)
        and name not in AnyWidget.class_traits()
        and not trait.read_only  # what Python alone has written, such as a worker
    }
    assert strings <= checked, f"make these Bytes: {strings - checked}"


def test_html_is_never_made_from_text():
    for path in FOLDER.glob("**/*.js"):
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|\.send\(",
            path.read_text("utf-8"),
        )
        assert not found, f"{path.name} uses {found}"


def test_colors_are_those_of_the_page_and_the_plots():
    style = (FOLDER / "core" / "widget.css").read_text("utf-8")
    page = (FOLDER.parents[1] / "book" / "assets" / "afm.css").read_text("utf-8")
    themes = {"light": (0, 0), "dark": (style.index('="dark"]'), page.index('="dark"]'))}
    for role, color in plots.COLORS.items():
        fallback = re.search(rf"var\(--afm-{role}, (#\w+)\)", style)[1]
        assert fallback.lower() == color.lower(), role
        assert f"--afm-{role}: {fallback};" in page
        for theme, (in_style, in_page) in themes.items():
            text = re.compile(rf"--afm-{role}-text(?:, |: )(#\w+)")
            ours, theirs = text.search(style, in_style)[1], text.search(page, in_page)[1]
            assert ours == theirs, (role, theme)


# AttentionMap


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (7, 2, 3, 5)])
def test_weights_are_lifted_to_four_axes(shape):
    widget = AttentionMap(softmax(*shape), TOKENS[:3], TOKENS)
    layers, heads = (1, 1, *shape)[-4:-2]
    assert repr(widget) == f"AttentionMap(layers={layers}, heads={heads}, queries=3, keys=5)"
    sent = np.frombuffer(widget._weights, "<f4").reshape(layers, heads, 3, 5)
    np.testing.assert_array_equal(sent, softmax(*shape).numpy().reshape(sent.shape))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_any_float_tensor_is_taken(dtype):
    weights = softmax(5, 5).to(dtype).requires_grad_()
    AttentionMap(weights, TOKENS)


def test_first_selection_is_the_largest_weight_on_another_token():
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.3, 0.3, 0.4], [0.0, 0.2, 0.8]])
    assert AttentionMap(weights, list("abc")).selection == (0, 0, 1, 2)
    assert AttentionMap(weights, list("aaa")).selection == (0, 0, 0, 0)
    causal = torch.ones(3, 3).tril().bool()
    assert AttentionMap(weights * causal, list("abc"), mask=causal).selection == (0, 0, 1, 0)


def test_what_is_true_travels_as_one_byte_a_cell():
    truth = torch.tensor([[True, False, False], [False, False, True]])
    widget = AttentionMap(softmax(2, 2, 2, 3), ["a", "b"], ["x", "y", "z"], truth=truth)
    assert widget._truth == bytes([1, 0, 0, 0, 0, 1])
    assert AttentionMap(softmax(2, 2), ["a", "b"])._truth == b""
    layers = (softmax(1, 3, 2, 2),) * 4  # as Hugging Face's models return them
    assert AttentionMap(layers, ["a", "b"])._shape == [4, 3, 2, 2]


def test_selection_comes_back_by_name_and_can_be_observed():
    widget = AttentionMap(softmax(2, 3, 5, 5), TOKENS)
    seen = []
    widget.observe(lambda change: seen.append(change["new"]), "selection")
    widget.set_state({"selection": [1, 2, 3, 4]})  # what the page's side sends
    assert widget.selection == widget.selection._replace(layer=1, head=2, query=3, key=4)
    assert seen == [(1, 2, 3, 4)]
    assert seen[0].query == 3
    with pytest.raises(ValueError, match=r"selection: head is 3, but must be in 0 .. 2"):
        widget.selection = (0, 3, 0, 0)


@pytest.mark.parametrize(
    ("weights", "queries", "keys", "error", "message"),
    [
        (torch.full((2, 2), float("nan")), "ab", None, ValueError, "NaN"),
        (torch.tensor([[float("inf"), 0]]), "a", "ab", ValueError, "infinite"),
        (torch.randn(2, 2) - 5, "ab", None, ValueError, "softmax over the keys first"),
        (torch.ones(2, 2), "ab", None, ValueError, r"sums to 2.*model\.eval\(\)"),
        (torch.eye(2), "abc", None, ValueError, "3 queries for 2 rows of the weights"),
        (softmax(2, 3), "ab", None, ValueError, "2 keys for 3 columns of the weights"),
        (softmax(1, 1, 1, 2, 2), "ab", None, ValueError, "5 axes.*one of the batch"),
        (softmax(2), "ab", None, ValueError, "1 axes"),
        (softmax(129, 2), "ab", None, ValueError, r"129 queries, .* 128, .*\[\.\.\., :128, :128\]"),
        (softmax(2, 1024), "ab", None, ValueError, "1024 keys, but this figure shows at most 128"),
        (softmax(2, 2) + 0j, "ab", None, TypeError, r"weights is complex64, .*weights\.real"),
        (torch.zeros(0, 2, 2), "ab", None, ValueError, "nothing to show"),
        ((None, None), "ab", None, TypeError, r"weights\[0\] is None; give numbers"),
    ],
)
def test_attention_map_refuses(weights, queries, keys, error, message):
    with pytest.raises(error, match=message):
        AttentionMap(weights, list(queries), keys and list(keys))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"queries": "mary gave"}, TypeError, r"one text, 'mary gave'.*text\.split\(\)"),
        ({"queries": [17, 4]}, TypeError, r"queries\[0\] is int.*decode ids first"),
        ({"mask": torch.ones(2, 2)}, TypeError, r"mask is float32.*mask\.bool\(\)"),
        ({"mask": torch.ones(3, 2).bool()}, ValueError, r"\(3, 2\) does not broadcast"),
        ({"truth": torch.ones(2, 2)}, TypeError, r"truth is float32.*truth\.bool\(\)"),
        ({"truth": torch.ones(3, 2).bool()}, ValueError, r"truth of shape \(3, 2\)"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_attention_map_refuses_what_is_not_a_token_or_a_mask(options, error, message):
    with pytest.raises(error, match=message):
        AttentionMap(torch.eye(2), **{"queries": ["a", "b"], **options})


def test_text_travels_in_base64_only():
    bad = "</SCRIPT><img onerror=alert(1)>\ud800"
    widget = AttentionMap(torch.eye(2), [bad, "b"], title=bad)
    state = embed_data([widget], drop_defaults=False)["manager_state"]["state"][widget.model_id]
    assert "SCRIPT><img" not in json.dumps(state)
    text = next(b["data"] for b in state["buffers"] if b["path"] == ["_text"])
    assert json.loads(base64.b64decode(text))["queries"] == [bad, "b"]
    assert json.loads(json_bytes(bad)) == bad


# VectorPlayground


def test_vectors_come_back_as_a_tensor():
    widget = VectorPlayground(TOKENS[:2], torch.tensor([[1.0, 0.5], [0.0, 2.0]]), selected=1)
    assert repr(widget) == "VectorPlayground(tokens=2)"
    seen = []
    widget.observe(lambda change: seen.append(change["new"]), "coordinates")
    widget.set_state({"coordinates": [[1, 0.5], [0.25, 2]], "selected": 0})
    assert torch.equal(widget.vectors, torch.tensor([[1.0, 0.5], [0.25, 2.0]]))
    assert seen == [[[1.0, 0.5], [0.25, 2.0]]]
    assert widget.selected == 0
    widget.vectors = torch.zeros(2, 2)
    assert widget.coordinates == [[0.0, 0.0], [0.0, 0.0]]
    assert widget._start == [[1.0, 0.5], [0.0, 2.0]], "what Reset goes back to has changed"


@pytest.mark.parametrize(
    ("tokens", "vectors", "options", "message"),
    [
        ("ab", [[1.0, 2.0, 3.0]] * 2, {}, r"\(2, 3\), but must be \[tokens, 2\]"),
        ("ab", [[1.0, 2.0]], {}, "2 tokens for 1 vectors"),
        ("a" * 17, [[1.0, 2.0]] * 17, {}, "1 to 16 tokens"),
        ("a", [[float("nan"), 2.0]], {}, "NaN"),
        ("ab", [[1e9, 0.0], [1.0, 1.0]], {}, r"vectors holds 1e\+09 at index \(0, 0\).*1e\+06"),
        ("a", [[1.0, -2.0]], {"reach": 1.5}, r"reach is 1.5, but must .* largest coordinate, 2"),
        ("a", [[0.0, 0.0]], {"reach": 0}, "reach is 0, but must be a number above 0"),
        ("a", [[0.0, 0.0]], {"reach": "1"}, "reach is '1', but must be a number"),
        ("a", [[0.0, 0.0]], {"reach": float("nan")}, "reach is nan"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_vector_playground_refuses(tokens, vectors, options, message):
    with pytest.raises(ValueError, match=message):
        VectorPlayground(list(tokens), vectors, **options)


def test_vectors_set_later_are_checked_too():
    widget = VectorPlayground(["a"], [[1.0, 2.0]])
    with pytest.raises(ValueError, match="2 vectors for 1 tokens"):
        widget.vectors = [[1.0, 2.0], [3.0, 4.0]]
    assert torch.equal(widget.vectors, torch.tensor([[1.0, 2.0]]))


def test_a_setting_that_is_given_comes_before_the_figures_own_choice():
    x = torch.eye(3)
    assert widgets.MaskPainter(["i", "am", "fine"], x, x, x, source=1).source == 1
    chosen = AttentionMap(x, ["i", "am", "fine"], selection=(0, 0, 1, 1)).selection
    assert tuple(chosen) == (0, 0, 1, 1)
    with pytest.raises(ValueError, match="query is 9"):
        AttentionMap(x, ["i", "am", "fine"], selection=(0, 0, 9, 1))


def test_a_misspelled_setting_is_not_set():
    widget = VectorPlayground(["a"], [[1.0, 0.0]])
    with pytest.raises(AttributeError, match="did you mean 'coordinates'"):
        widget.cordinates = [[0.0, 1.0]]
    widget.coordinates = [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("weights", "tokens", "options", "message"),
    [
        ({"attention": torch.eye(2)}, ["a", "b"], {}, r"a dict; .* weights\['attention'\]"),
        (None, ["a", "b"], {}, "weights is None"),
        ([[1.0], [1.0, 2.0]], ["a", "b"], {}, "rows of equal length"),
        (torch.eye(2), {"a", "b"}, {}, "of type set; give a list"),
        (torch.eye(2), None, {}, "of type NoneType; give a list"),
        (torch.eye(2), ["a", "b"], {"title": None}, "title is None, but must be a text"),
        (torch.eye(2), ["a", "b"], {"goals": None}, "goals are None"),
    ],
)
def test_what_is_not_of_the_right_kind_is_told_so(weights, tokens, options, message, as_a_reader):
    with pytest.raises(TypeError, match=message):
        AttentionMap(weights, tokens, **options)


def test_lists_of_tensors_with_gradients_are_numbers():
    rows = list(torch.eye(2, requires_grad=True))
    assert AttentionMap(rows, ["a", "b"])._sizes()["queries"] == 2
