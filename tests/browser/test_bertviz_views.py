"""bertviz's model view and neuron view on a page: offline, by mouse and keyboard."""

import shutil

import pytest
import torch
from harness import HOSTILE, check_axe, check_fits, each_look, reading

from transformer_lib.attention import attention_weights
from transformer_lib.widgets import HeadView, ModelView, NeuronView

LAYERS, HEADS, TOKENS, D_HEAD = 2, 3, 5, 7
WORDS = ["mary", "gave", "roses", "to", "susan"]
SOURCE = torch.Generator().manual_seed(2)
Q, K = (2 * torch.randn(LAYERS, HEADS, TOKENS, D_HEAD, generator=SOURCE) for _ in range(2))
WEIGHTS = attention_weights(Q, K, causal=True)


def model_view(tokens=WORDS):
    return ModelView(WEIGHTS, tokens)


def neuron_view(tokens=WORDS):
    return NeuronView(WEIGHTS, list(zip(Q, K, strict=True)), tokens, layer=1, head=2)


@pytest.fixture
def open_views(open_page, libraries, tmp_path):
    (tmp_path / "bertviz").mkdir()
    for name, source in libraries.items():
        shutil.copy(source, tmp_path / "bertviz" / name)

    def open_(*widgets, **options):
        page = open_page(*widgets, **options)
        page.locator(".afm-bertviz svg[data-named]").nth(len(widgets) - 1).wait_for()
        return page

    return open_


def test_the_model_view_draws_every_weight(open_views):
    page = open_views(model_view())
    flat = page.locator("svg > g line").evaluate_all(
        "(lines) => lines.map((line) => Number(line.getAttribute('stroke-opacity')))"
    )
    drawn = torch.tensor(flat).reshape(WEIGHTS.shape)
    torch.testing.assert_close(drawn, WEIGHTS, atol=6e-4, rtol=0)


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_head_is_made_large(open_views, by):
    page = open_views(model_view())
    picture = page.get_by_role("button", name="layer 2, head 3")
    for texts in (2 * TOKENS + 1, 0):
        if by == "mouse":
            picture.click()
        else:
            picture.focus()
            page.keyboard.press("Enter")
        assert page.locator("text.detail, .detail text").count() == texts
        assert picture.get_attribute("aria-pressed") == str(texts > 0).lower()
        if texts:
            row = WEIGHTS[1, 2, -1]
            assert reading(page) == (
                f"Layer 2, head 3: of the last token, susan, the largest weight is on "
                f"{WORDS[row.argmax()]}: {row.max():.2f}"
            )


def test_the_neuron_view_multiplies_as_the_library_does(open_views):
    page = open_views(neuron_view())
    assert page.locator("#expanded").get_attribute("visibility") == "visible"
    scores = page.locator("#dotproducts rect").evaluate_all(
        "(all) => all.map((one) => Number(one.getAttribute('data-value')))"
    )
    expected = Q[1, 2, -1] @ K[1, 2].T / D_HEAD**0.5
    torch.testing.assert_close(torch.tensor(scores), expected, atol=0.02, rtol=0)
    page.get_by_label("Layer").select_option(label="1")
    page.get_by_label("Head").select_option(label="2")
    page.locator("#expanded").get_by_role("button", name="query roses").hover()
    row = WEIGHTS[0, 1, 2]
    score = (Q[0, 1, 2] @ K[0, 1, row.argmax()] / D_HEAD**0.5).item()
    said = reading(page)
    assert said.startswith(f"roses attends most to {WORDS[row.argmax()]}: {row.max():.2f}")
    assert float(said.split("score of ")[1][:-1].replace("−", "-")) == pytest.approx(
        score, abs=0.02
    )


def test_the_numbers_fold_by_keyboard(open_views):
    page = open_views(neuron_view())
    page.locator("#expanded").get_by_role("button", name="query gave").focus()
    for shown in ("collapsed", "expanded"):
        page.keyboard.press("Enter")
        assert page.locator(f"#{shown}").get_attribute("visibility") == "visible"
        focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
        assert focused == "query gave"


def test_each_drawing_has_one_tab_stop_and_arrow_keys(open_views):
    page = open_views(model_view(), neuron_view())
    stops = """(all) => all.map((svg) => [...svg.querySelectorAll("[tabindex='0']")]
      .filter((one) => one.checkVisibility({ visibilityProperty: true })).length)"""
    assert page.locator(".afm-bertviz svg").evaluate_all(stops) == [1, 1]
    page.get_by_role("button", name="layer 1, head 1").focus()
    for key, reached in [("ArrowRight", "layer 1, head 2"), ("ArrowDown", "layer 2, head 2")]:
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.ariaLabel") == reached
    page.locator("#expanded").get_by_role("button", name="query susan").focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.ariaLabel") == "query to"
    assert page.locator(".afm-bertviz svg").evaluate_all(stops) == [1, 1]


def test_three_views_on_one_page_keep_apart(open_views):
    page = open_views(HeadView(WEIGHTS, WORDS), model_view(), neuron_view())
    assert page.locator(".afm-bertviz-neuron #dotproducts rect").count() == TOKENS
    assert page.locator(".afm-bertviz-model line").count() == WEIGHTS.numel()
    assert page.locator(".afm-bertviz-heads #left text").count() == TOKENS
    # Each keeps its own size, whichever style comes last.
    wide = page.locator(".afm-bertviz svg").evaluate_all("(all) => all.map((s) => s.clientWidth)")
    assert wide[0] <= 420 < 600 <= min(wide[1:])


@pytest.mark.parametrize("make", [model_view, neuron_view])
def test_hostile_tokens_stay_text(open_views, make):
    page = open_views(make(HOSTILE[:TOKENS]))
    assert page.locator(".afm img, .afm b, .afm script").count() == 0


@each_look
def test_they_fit_and_axe_finds_nothing(open_views, theme, width):
    page = open_views(model_view(), neuron_view(), theme=theme, width=width)
    page.get_by_role("button", name="layer 1, head 2").click()
    check_fits(page)
    check_axe(page)
