"""Figures under what a notebook does to them and the book's page does not, one thing at a time.

tests/browser/test_jupyterlab.py has the notebook itself; this is quicker.

A view is rendered before it is in the document, may be taken out and put back, and has a notebook
around it that takes keys for commands.
"""

import pytest
import torch
from anywidget import AnyWidget
from harness import next_frame

from transformer_lib.widgets import (
    AttentionMap,
    MaskPainter,
    ScalingLab,
    SoftDictionary,
    VectorPlayground,
)

WORDS = ["mary", "gave", "roses", "to", "susan"]
X = torch.tensor([[1.6, 0.2], [0.8, 1.0], [0.2, 1.4], [0.2, 0.2], [1.4, 0.4]])

# The host puts a figure's place into the page by `after`: here that waits until it is called.
LATE = """<script>
const after = Element.prototype.after;
const late = [];
Element.prototype.after = function (place) { late.push(() => after.call(this, place)); };
</script>"""
FILLS = """(cells) => cells.map((cell) => cell.getAttribute("fill"))"""


def widgets() -> list:
    weights = torch.stack([X @ X.mT, X.flip(0) @ X.mT]).softmax(-1)
    return [
        VectorPlayground(WORDS, X.tolist()),
        MaskPainter(WORDS, X, X, X),
        AttentionMap(weights[None], WORDS),
        ScalingLab(),
    ]


def fills(page) -> list[str]:
    """The colors of all cells and bars, once the page has been laid out."""
    next_frame(page)  # learns how wide it is,
    next_frame(page)  # and is drawn so
    return page.locator(".afm-cell:not([fill^=url])").evaluate_all(FILLS)


def thumbnails(page) -> list[str]:
    return page.locator("canvas").evaluate_all("(all) => all.map((one) => one.toDataURL())")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_view_rendered_outside_of_the_document_has_its_colors(open_page, theme):
    # A system of the other theme: it must not decide where the page says what it is.
    other = {"light": "dark", "dark": "light"}[theme]
    usual = open_page(*widgets(), theme=theme, color_scheme=other)
    page = open_page(*widgets(), theme=theme, color_scheme=other, before=LATE)
    assert page.locator(".afm").count() == 0
    page.evaluate("late.forEach((put) => put())")
    assert fills(page) == fills(usual)
    assert len(set(fills(page))) > 20
    assert thumbnails(page) == thumbnails(usual)
    said = page.locator(".afm").evaluate_all("(all) => all.map((one) => one.dataset.afmTheme)")
    assert set(said) == {theme}


def test_figures_of_one_name_are_told_apart_before_they_are_in_the_document(open_page):
    page = open_page(*(AttentionMap(torch.eye(2), ["a", "b"]) for _ in range(3)), before=LATE)
    page.evaluate("late.forEach((put) => put())")
    next_frame(page)
    names = page.locator("figure.afm").evaluate_all("(all) => all.map((one) => one.ariaLabel)")
    assert len(set(names)) == 3, names


def test_without_a_word_from_the_page_the_background_decides_once_it_is_there(open_page):
    page = open_page(AttentionMap(torch.eye(2), ["a", "b"]), color_scheme="dark", before=LATE)
    page.evaluate("""() => {
      delete document.documentElement.dataset.theme;
      late.forEach((put) => put());
    }""")
    fills(page)
    assert page.locator(".afm").get_attribute("data-afm-theme") == "light"


def test_a_theme_that_changes_while_a_view_is_away(open_page):
    page = open_page(AttentionMap(torch.eye(2), ["a", "b"]))
    dark = open_page(AttentionMap(torch.eye(2), ["a", "b"]), theme="dark")
    page.evaluate("""async () => {
      const frame = () => new Promise((done) => setTimeout(done, 50));
      const view = document.querySelector(".afm-mount");
      const parent = view.parentElement;
      view.remove();
      await frame();
      document.documentElement.dataset.theme = "dark";
      await frame();
      parent.append(view);
    }""")
    assert fills(page) == fills(dark)


# Jupyter listens at the document, and is told by a keydown that nobody has stopped.
HEAR = "window.heard = []; document.addEventListener('keydown', (e) => heard.push(e.key));"


@pytest.mark.parametrize("role", ["slider", "radio", "checkbox", "gridcell", "combobox"])
def test_keys_in_a_figure_are_no_commands_of_the_notebook(open_page, role):
    page = open_page(MaskPainter(WORDS, X, X, X))
    page.evaluate(HEAR)
    names = {"slider": "layers", "gridcell": "mary, mary:"}
    control = page.get_by_role(role, name=names.get(role)).first
    control.focus()
    for key in ["ArrowRight", "ArrowLeft", "d", "d", "j", "a", "Home"]:
        page.keyboard.press(key)
    assert page.evaluate("heard") == []
    for key in ["Control+s", "Escape", "Shift+Enter"]:
        control.focus()
        page.keyboard.press(key)
    heard = [key for key in page.evaluate("heard") if key not in ("Shift", "Control")]
    assert heard == ["s", "Escape", "Enter"]


LOOKS = """(figure) => [...figure.querySelectorAll("*")].map((node) => {
  const look = getComputedStyle(node);
  return ["fill", "background-color", "border", "padding", "font", "display"].map(
    (name) => [node.tagName, node.getAttribute("class"),
      look.getPropertyValue(name).replace(/#[\\w-]+/, "#id")].join(" "),
  );
})"""


def test_figures_look_the_same_whatever_other_kinds_came_before_or_after(open_page):
    """As in a notebook, and not as on the book's pages, each kind brings its own style whole."""
    make = [
        lambda: VectorPlayground(WORDS, X.tolist()),
        lambda: SoftDictionary(WORDS, X, X[:, 0]),
        lambda: MaskPainter(WORDS, X, X, X),
    ]
    alone = [open_page(one()).locator(".afm").evaluate(LOOKS) for one in make]
    for order in (1, -1):
        page = open_page(*(one() for one in make[::order]))
        together = page.locator(".afm").evaluate_all(f"(all) => all.map({LOOKS})")
        for kind, looks, expected in zip(make[::order], together, alone[::order], strict=True):
            changed = [pair for pair in zip(looks, expected, strict=True) if pair[0] != pair[1]]
            assert not changed, (kind, changed[:3])


def test_the_shared_style_is_there_once_and_first(open_page):
    """Where a notebook puts a kind's own style before its figure is made, and another one later."""
    page = open_page(ScalingLab(), VectorPlayground(WORDS, X.tolist()), MaskPainter(WORDS, X, X, X))
    styles = page.locator("head style").evaluate_all(
        "(all) => all.map((one) => one.id || one.textContent.slice(0, 30))"
    )
    own = [text for text in styles if text.startswith("/*! afm: ")]
    assert styles.count("afm-style") == 1
    assert len(own) == 3
    assert styles.index("afm-style") < styles.index(own[0])


def test_a_figure_says_that_its_kernel_has_restarted(open_page):
    """ipywidgets tells each model, by an event that the page's host does not have."""
    page = open_page(AttentionMap(torch.eye(2), ["a", "b"]))
    page.evaluate(
        """async ([esm, values]) => {
          const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
          const { default: widget } = await import(address);
          const bytes = ([name, value]) => [name, name[0] === "_" && value !== null
            ? new DataView(new TextEncoder().encode(value).buffer) : value];
          const state = Object.fromEntries(Object.entries(values).map(bytes));
          window.model = new EventTarget();
          Object.assign(model, {
            get: (name) => state[name],
            set: (name, value) => { state[name] = value; },
            on: (event, callback) => model.addEventListener(event, callback),
            off: (event, callback) => model.removeEventListener(event, callback),
            save_changes() {},
          });
          widget.render({ model, el: document.querySelector("main") });
        }""",
        [ScalingLab._esm, values_of(ScalingLab())],
    )
    note = page.locator(".afm-caption .afm-parted")
    assert note.count() == 0
    for _ in range(2):
        page.evaluate("model.dispatchEvent(new Event('comm_live_update'))")
    assert note.count() == 1
    assert "no longer reaches it" in note.inner_text()


def values_of(widget) -> dict:
    """A widget's own traits, bytes as text."""
    names = [name for name in widget.traits(sync=True) if name not in AnyWidget.class_traits()]
    names = [name for name in names if name not in ("_esm", "_css", "_anywidget_id")]
    values = {name: getattr(widget, name) for name in names}
    return {name: v.decode() if isinstance(v, bytes) else v for name, v in values.items()}
