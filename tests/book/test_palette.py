"""One palette: the page's style sheet, the widgets' fallbacks and the plots agree, and can be read.

Text must reach a contrast of 4.5 : 1 on every background that it may have (WCAG 2.2, 1.4.3).
"""

import re
from pathlib import Path

import palette
import pytest
from palette import NOTATION, PAGE, ROOT, TEXTS, WIDGET
from picture import PICTURE
from PIL import Image

from transformer_lib.plots import style

ROLES = tuple(style.COLORS)


def variables(path: Path, selector: str) -> dict[str, str]:
    """The custom properties that the rules with exactly this selector set, in lower case."""
    css = re.sub(r"/\*.*?\*/", "", path.read_text("utf-8"), flags=re.DOTALL)
    rules = re.findall(r"([^{}]+)\{([^{}]*)\}", css)
    blocks = [body for names, body in rules if names.strip() == selector]
    assert blocks, f"there is no rule {selector}"
    return dict(re.findall(r"(--[\w-]+):\s*([^;]+);", "\n".join(blocks).lower()))


LIGHT = variables(PAGE, ":root") | variables(PAGE, 'html[data-theme="light"]')
DARK = LIGHT | variables(PAGE, 'html[data-theme="dark"]')
WIDGET_LIGHT = variables(WIDGET, ":is(.afm, .afm-back, .afm-pinned)")
WIDGET_DARK = WIDGET_LIGHT | variables(
    WIDGET, ':is(.afm, .afm-back, .afm-pinned)[data-afm-theme="dark"]'
)
# The theme's own light page is white and says so nowhere in our style sheet.
GROUNDS = {
    "light": ("#ffffff", LIGHT["--pst-color-surface"]),
    "dark": (DARK["--pst-color-background"], DARK["--pst-color-surface"]),
}


def fallback(value: str) -> tuple[str, str]:
    """`var(--afm-query, #0072b2)` as the page's variable and the value where there is no page."""
    return re.fullmatch(r"var\((--[\w-]+), (#[0-9a-f]{6})\)", value).groups()


def test_contrast_is_wcag_s():
    assert style.contrast("#ffffff", "#000000") == pytest.approx(21)
    assert style.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


def test_style_sheets_and_formulas_have_the_colors_of_plots():
    other = [
        path.name for path, text in palette.wanted().items() if text != path.read_text("utf-8")
    ]
    assert not other, "run `make palette`"


def test_a_role_is_called_what_its_color_is():
    lines = list(palette.misnamed())
    assert not lines, "\n".join(lines)


def test_the_readme_s_picture_has_the_palette_s_colors():
    stored = Image.open(PICTURE).info.get("comment", palette.FIRST.encode()).decode()
    assert stored == palette.look(), "run `make picture`"


def test_another_color_goes_everywhere_and_lines_that_name_the_old_one_are_found(monkeypatch):
    old = style.COLORS["query"]
    new = f"#{old[3:]}{old[1:3]}"  # its channels moved on, so that it has another name
    monkeypatch.setattr(style, "COLORS", style.COLORS | {"query": new})
    monkeypatch.setitem(style.DARK_TEXT_COLORS, "query", "#ABCDEF")
    texts = palette.wanted()
    for path, in_the_dark in {PAGE: 1, WIDGET: 1, NOTATION: 0}.items():
        assert old.lower() not in texts[path].lower()
        assert new.lower() in texts[path].lower()
        assert texts[path].count("#abcdef") == in_the_dark
    head, *lines = palette.misnamed()
    was, now = map(palette.word_for, (old, new))
    assert head.startswith(f"The query is {now}, no longer {was}.")
    found = {line.partition(":")[0] for line in lines}
    assert {"book/glossary.md", "book/notation.md"} < found
    assert not [path for path in found if path.endswith(("pixels.js", "color.js"))]


def colors_in_formulas(text: str) -> set[str]:
    """The values in `\\color{#0072B2}` (in a notebook's JSON the backslash is doubled)."""
    return {color.lower() for color in re.findall(r"\\color\{(#\w+)\}", text)}


@pytest.mark.parametrize(
    "path",
    [path for pattern in TEXTS for path in sorted(ROOT.glob(pattern))],
    ids=lambda path: path.name,
)
def test_formulas_use_the_roles_colors(path):
    used = colors_in_formulas(path.read_text("utf-8"))
    assert used <= {LIGHT[f"--afm-{role}"] for role in ROLES}


def test_the_colors_of_formulas_are_found():
    assert colors_in_formulas(r"$\color{#0072B2}{Q}\color{#123456}{K}$") == {"#0072b2", "#123456"}
    assert len(colors_in_formulas(NOTATION.read_text("utf-8"))) == 4


@pytest.mark.parametrize("role", ROLES)
def test_text_in_a_role_s_color_can_be_read(role):
    for theme, colors in (("light", LIGHT), ("dark", DARK)):
        for ground in GROUNDS[theme]:
            assert style.contrast(colors[f"--afm-{role}-text"], ground) >= 4.5, (theme, ground)
    for colors in (WIDGET_LIGHT, WIDGET_DARK):
        text = fallback(colors[f"--afm-{role[0]}-text"])[1]
        for ground in ("--afm-surface", "--afm-raised"):
            assert style.contrast(text, colors[ground]) >= 4.5, (ground, text)
    assert style.contrast(style.TEXT_COLORS[role], "#FFFFFF") >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["link", "text-base", "text-muted", "heading", "inline-code"])
def test_the_page_s_text_can_be_read(theme, name):
    color = {"light": LIGHT, "dark": DARK}[theme][f"--pst-color-{name}"]
    for ground in GROUNDS[theme]:
        assert style.contrast(color, ground) >= 4.5, (theme, ground)


@pytest.mark.parametrize("colors", [WIDGET_LIGHT, WIDGET_DARK], ids=["light", "dark"])
def test_the_widgets_text_can_be_read(colors):
    for text in ("--afm-ink", "--afm-soft"):
        for ground in ("--afm-surface", "--afm-raised"):
            assert style.contrast(colors[text], colors[ground]) >= 4.5, (text, ground)
