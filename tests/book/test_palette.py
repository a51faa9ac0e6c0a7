"""One palette: the page's style sheet, the widgets' fallbacks and the plots agree, and can be read.

Text must reach a contrast of 4.5 : 1 on every background that it may have (WCAG 2.2, 1.4.3).
"""

import colorsys
import re
from pathlib import Path

import pytest

from transformer_lib.plots import style
from transformer_lib.widgets.joining import FOLDER

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "assets" / "afm.css").read_text("utf-8")
WIDGET = (FOLDER / "core" / "widget.css").read_text("utf-8")
ROLES = ("query", "key", "value", "output", "masked")
# What prose, hints and alternative texts call a color, by its hue.
WORDS = {"query": ("blue", 200), "key": ("orange", 25), "value": ("green", 165)}
WORDS |= {"output": ("pink", 325)}


def variables(css: str, selector: str) -> dict[str, str]:
    """The custom properties that the rules with exactly this selector set, in lower case."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
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


def test_the_palette_is_okabe_and_ito_s():
    colors = [LIGHT[f"--afm-{role}"] for role in ROLES[:4]]
    assert colors == ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]


@pytest.mark.parametrize("role", ROLES)
def test_plots_use_the_page_s_colors(role):
    assert style.COLORS[role].lower() == LIGHT[f"--afm-{role}"]
    assert style.TEXT_COLORS[role].lower() == LIGHT[f"--afm-{role}-text"]


@pytest.mark.parametrize(
    ("variable", "color"),
    [
        ("ink", style.INK),
        ("soft", style.SOFT),
        ("line", style.LINE),
        ("surface", style.CARD),
        ("weight-full", style.FULL),
        ("negative-full", style.NEGATIVE),
    ],
)
def test_plots_use_the_light_widgets_colors(variable, color):
    assert WIDGET_LIGHT[f"--afm-{variable}"] == color.lower()


def colors_in_formulas(text: str) -> set[str]:
    """The values in `\\color{#0072B2}` (in a notebook's JSON the backslash is doubled)."""
    return {color.lower() for color in re.findall(r"\\color\{(#\w+)\}", text)}


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "chapters").glob("*.ipynb")), *sorted((ROOT / "book").glob("*.md"))],
    ids=lambda path: path.name,
)
def test_formulas_use_the_roles_colors(path):
    used = colors_in_formulas(path.read_text("utf-8"))
    assert used <= {LIGHT[f"--afm-{role}"] for role in ROLES}


def test_the_colors_of_formulas_are_found():
    assert colors_in_formulas(r"$\color{#0072B2}{Q}\color{#123456}{K}$") == {"#0072b2", "#123456"}
    assert len(colors_in_formulas((ROOT / "book" / "notation.md").read_text("utf-8"))) == 4


@pytest.mark.parametrize("role", WORDS)
def test_colors_are_what_words_call_them(role):
    word, hue = WORDS[role]
    red, green, blue = bytes.fromhex(LIGHT[f"--afm-{role}"][1:])
    now = 360 * colorsys.rgb_to_hsv(red, green, blue)[0]
    places = ("chapters/*.ipynb", "book/*.md", "transformer_lib/widgets/**/*.js")
    files = [path for place in places for path in ROOT.glob(place)]
    said = [path for path in files if re.search(rf"\b{word}\b", path.read_text("utf-8"))]
    names = sorted(str(path.relative_to(ROOT)) for path in said)
    assert abs(now - hue) < 20, f"the {role} is no longer {word}, as these say: {names}"


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("suffix", ["", "-text"])
@pytest.mark.parametrize(("page", "widget"), [(LIGHT, WIDGET_LIGHT), (DARK, WIDGET_DARK)])
def test_widgets_fall_back_to_the_page_s_colors(role, suffix, page, widget):
    variable, value = fallback(widget[f"--afm-{role[0]}{suffix}"])
    assert variable == f"--afm-{role}{suffix}"
    assert value == page[variable]


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


def test_formulas_in_a_role_s_color_take_its_readable_variant():
    """Chapters write `\\color{#0072B2}{Q}`: the style sheet must know exactly these values."""
    rules = re.findall(r'\[style\*="color:(#\w+)" i\]\s*\{\s*color: var\((--[\w-]+)\)', PAGE)
    expected = [(style.COLORS[role].lower(), f"--afm-{role}-text") for role in ROLES]
    assert [(color.lower(), variable) for color, variable in rules] == expected
