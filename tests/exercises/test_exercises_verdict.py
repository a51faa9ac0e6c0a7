"""A verdict reads well as text and as HTML, and nothing in it can become markup."""

import re

import pytest

from transformer_lib.exercises.engine.verdict import NOT_ATTEMPTED, Verdict


@pytest.mark.parametrize(
    ("verdict", "text", "truth"),
    [
        (Verdict(True, "Right."), "✓ Right.", True),
        (Verdict(False, "No softmax."), "✗ No softmax.", False),
        (NOT_ATTEMPTED, "○ not attempted yet", False),
    ],
)
def test_text_and_truth(verdict, text, truth):
    assert repr(verdict) == str(verdict) == text
    assert bool(verdict) is truth
    assert re.sub("<[^>]+>", "", verdict._repr_html_()) == text


def test_the_symbol_has_a_name_and_the_look_comes_from_a_class():
    shown = Verdict(False, "No.")._repr_html_()
    assert 'class="afm-verdict afm-verdict-wrong"' in shown
    assert '<strong role="img" aria-label="wrong">✗</strong>' in shown
    assert "style" not in shown


def test_code_and_words_are_marked():
    shown = Verdict(False, "*gave* wins: `a < b`, not 2*x*y or w_ij")._repr_html_()
    assert "<em>gave</em> wins: <code>a &lt; b</code>, not 2*x*y or w_ij" in shown


@pytest.mark.parametrize(
    "hostile",
    [
        "</p><script>alert(1)</script>",
        "`<img onerror=x>`",
        "*x*<b>",
        "<!--<script>",
        '" onclick="x',
    ],
)
def test_an_answers_text_stays_text(hostile):
    shown = Verdict(False, hostile)._repr_html_()
    inside = shown.split("</strong>")[1].removesuffix("</p>")
    assert not re.sub(r"</?(code|em)>", "", inside).count("<")
    assert '"' not in inside


def test_a_verdict_does_not_change():
    with pytest.raises(AttributeError):
        NOT_ATTEMPTED.passed = True
