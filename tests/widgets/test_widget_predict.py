"""Predict in Python: what it takes, what it refuses, and what comes back."""

import base64
import json

import numpy as np
import pytest
import torch
import traitlets
from ipywidgets.embed import embed_data

from transformer_lib.widgets import Predict

WORDS = ["mary", "gave", "roses"]
OPTIONS = {"mary": "She is near.", "gave": "It is itself."}


def choice(**changes):
    given = {"question": "Whom?", "options": OPTIONS, "right": "gave"} | changes
    return Predict(given.pop("question"), given.pop("options"), **given)


def number(**changes):
    given = {"question": "How many?", "right": 64.0, "otherwise": "Count."} | changes
    return Predict.number(given.pop("question"), **given)


def cell(**changes):
    given = {"question": "Which?", "rows": WORDS, "columns": WORDS, "otherwise": "Look."}
    given |= {"right": ("roses", "mary")} | changes
    return Predict.cell(given.pop("question"), **given)


def sent(widget):
    return json.loads(widget._text)


def test_nothing_that_is_stored_tells_the_answer():
    assert repr(choice()) == "Predict(options=2)"
    assert repr(number()) == "Predict(kind=number)"
    assert repr(cell(columns=["a", "mary"])) == "Predict(rows=3, columns=2)"


def test_a_guess_comes_back():
    for widget, state, guess in (
        (choice(), [1], "gave"),
        (number(), [-0.5], -0.5),
        (cell(), [2, 0], ("roses", "mary")),
    ):
        assert widget.guess is None
        widget.set_state({"_shown": True})
        assert widget.guess is None
        widget.set_state({"_guess": state})
        assert widget.guess == guess


@pytest.mark.parametrize(
    ("widget", "state"),
    [(choice(), [2]), (choice(), [0.5]), (choice(), [0, 0]), (number(), [1, 2]), (cell(), [0, 3])],
)
def test_a_guess_at_another_question_is_refused(widget, state):
    with pytest.raises(ValueError, match="not a guess at this question"):
        widget._guess = state
    with pytest.raises(traitlets.TraitError):
        widget._guess = ["mary"]


def test_computed_answers_are_taken():
    scores = torch.tensor([0.1, 0.9])
    assert sent(choice(right=["mary", "gave"][int(scores.argmax())]))["right"] == 1
    assert sent(number(right=scores[1], within=np.float32(0.5)))["right"] == pytest.approx(0.9)
    assert sent(cell(right=(scores.argmax(), np.int64(2))))["right"] == [1, 2]


def test_open_ranges_and_sentences_of_cells():
    ranges = [(float("-inf"), 10, "Low."), (10, 20, "Hm."), (4000, float("inf"), "High.")]
    expected = [[None, 10, "Low."], [10, 20, "Hm."], [4000, None, "High."]]
    assert sent(number(wrong=ranges))["ranges"] == expected
    wrong = {("mary", "gave"): "No.", (2, 2): "Long."}
    assert sent(cell(wrong=wrong))["wrong"] == [[0, 1, "No."], [2, 2, "Long."]]
    assert sent(cell(rows=["to", "to"], right=(1, "gave")))["right"] == [1, 1]


@pytest.mark.parametrize(
    ("make", "changes", "error", "message"),
    [
        (
            choice,
            {"right": "susan"},
            ValueError,
            r"'susan', which is not an option.*'mary', 'gave'",
        ),
        (choice, {"options": ["mary", "gave"]}, TypeError, "options is list, but must map"),
        (choice, {"options": {"gave": "Yes."}}, ValueError, "1 options, but a guess is among 2 to"),
        (choice, {"options": {str(n): "." for n in range(9)}}, ValueError, "9 options"),
        (choice, {"options": OPTIONS | {"to": " "}}, ValueError, "sentence of the option 'to' is"),
        (choice, {"options": OPTIONS | {"to": None}}, TypeError, "option 'to' is NoneType"),
        (choice, {"options": OPTIONS | {"": "x"}}, ValueError, "the option '' is empty"),
        (choice, {"question": ""}, ValueError, "question is empty"),
        (choice, {"then": 3}, TypeError, "then is int"),
        (number, {"right": float("nan")}, ValueError, "right is nan, but nobody can guess that"),
        (number, {"right": "64"}, TypeError, "right is str, but must be a number"),
        (number, {"within": -1}, ValueError, "within is -1.0; it is a distance"),
        (number, {"unit": None}, TypeError, "unit is NoneType"),
        (number, {"otherwise": ""}, ValueError, "otherwise is empty"),
        (number, {"wrong": [(0, 64, "x")]}, ValueError, r"0 to 64, but 64.0 in it is right"),
        (number, {"wrong": [(5, 1, "x")]}, ValueError, "the lower end comes first"),
        (number, {"wrong": [(1, 5, "x"), (4, 6, "y")]}, ValueError, "overlap: 1.0 to 5.0, and 4.0"),
        (number, {"wrong": [(1, 5)]}, TypeError, r"wrong\[0\] is \(1, 5\), but must be"),
        (number, {"wrong": [(1, "b", "x")]}, TypeError, "its ends must be numbers"),
        (number, {"wrong": [(1, 5, "")]}, ValueError, r"the sentence of wrong\[0\] is empty"),
        (cell, {"right": ("susan", "mary")}, ValueError, "the row 'susan' is not one of"),
        (cell, {"right": ("mary", 3)}, ValueError, "the column is 3, but must be in 0 .. 2"),
        (cell, {"right": "mary"}, TypeError, r"'mary', but a cell is \(row, column\)"),
        (cell, {"right": ("mary", 0.5)}, TypeError, "the column is float"),
        (cell, {"rows": ["a", "a"], "right": ("a", 0)}, ValueError, "'a' is there 2 times"),
        (cell, {"wrong": {("roses", 0): "x"}}, ValueError, "this is the right cell"),
        (cell, {"wrong": {(0, 0): "x", ("mary", 0): "y"}}, ValueError, "twice"),
        (cell, {"wrong": {("to", "mary"): "x"}}, ValueError, "the row 'to' is not one of"),
        (cell, {"wrong": {(0, 0): ""}}, ValueError, r"the cell \(0, 0\) is empty"),
        (cell, {"rows": [str(n) for n in range(17)]}, ValueError, "17 rows, but a cell is guessed"),
        (cell, {"columns": []}, ValueError, "0 columns"),
        (cell, {"rows": "mary"}, TypeError, "rows is one text, 'mary'"),
        (cell, {"otherwise": " "}, ValueError, "otherwise is empty"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_predict_refuses(make, changes, error, message):
    with pytest.raises(error, match=message):
        make(**changes)


def test_text_travels_in_base64_only():
    bad = "</SCRIPT><img onerror=alert(1)>\ud800"
    widget = choice(question=bad, options={bad: bad, "b": bad}, right="b", then=bad)
    state = embed_data([widget], drop_defaults=False)["manager_state"]["state"][widget.model_id]
    assert "SCRIPT><img" not in json.dumps(state)
    text = next(b["data"] for b in state["buffers"] if b["path"] == ["_text"])
    assert json.loads(base64.b64decode(text))["question"] == bad


def as_markdown(widget):
    return widget._repr_mimebundle_()[0]["text/markdown"]


def test_a_notebook_that_is_not_run_shows_the_question_without_the_answer():
    """GitHub, for instance, shows Markdown, and no widget."""
    asked = choice(question="Whom does *gave*\n  ask?", then="Read on.")
    assert as_markdown(asked) == "**Question.** Whom does *gave* ask?\n\n- mary\n- gave"
    share = number(unit="%", otherwise="Count.")
    assert as_markdown(share) == "**Question.** How many?\n\n- a number: …… %"
    grid = cell(rows=["a"], columns=["b", "c|d"], right=("a", "b"), titles=("of", ""))
    lines = ["| of | b | c\\|d |", "| --- | --- | --- |", "| a | ☐ | ☐ |"]
    assert as_markdown(grid) == "\n".join(["**Question.** Which?", "", *lines])


def test_what_markdown_would_take_for_its_own_stays_text():
    asked = choice(question="Is <story> W_Q, [x](y), $1 or `a_b <c>`?", options=OPTIONS)
    expected = r"**Question.** Is \<story\> W\_Q, \[x\](y), \$1 or `a_b <c>`?"
    assert as_markdown(asked).startswith(expected)


def test_beside_the_question_a_notebook_that_runs_gets_the_figure():
    data, _ = choice()._repr_mimebundle_()
    assert data["text/plain"] == "Predict(options=2)"
    assert "application/vnd.jupyter.widget-view+json" in data
