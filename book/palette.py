"""Take the palette's colors from `transformer_lib/plots/style.py` to wherever else they stand.

    python book/palette.py

Writes them into both style sheets and into the formulas of chapters and pages; then says which
lines call a role by the word for another color. `book/notation.md` holds each role's word: as long
as it has the old one, the lines are named again, and a test fails.
"""

import colorsys
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STYLE = ROOT / "transformer_lib" / "plots" / "style.py"
PAGE = ROOT / "book" / "assets" / "afm.css"
WIDGET = ROOT / "transformer_lib" / "widgets" / "core" / "widget.css"
NOTATION = ROOT / "book" / "notation.md"
TEXTS = ("chapters/*.ipynb", "book/*.md")
NAMING = (*TEXTS, "transformer_lib/**/*.js", "transformer_lib/**/*.py")
FORMULA = re.compile(r"(\\color\{)(#\w{6})")
VARIABLE = re.compile(r"((--afm-[\w-]+)(?:: |, ))(#\w{6})")
RULE = re.compile(r'(\[style\*="color:)(#\w{6})(" i\]\s*\{\s*color: var\(--afm-(\w+)-text\))')
SAID = re.compile(r"\\text\{(\w+)\}\}\$ (\w+)")  # $\color{#0072B2}{\text{query}}$ blue
HUES = {"red": 0, "orange": 25, "yellow": 55, "green": 140, "blue": 210, "purple": 275, "pink": 325}
FIRST = "a656b32c784b88b5"  # the palette of all pictures that name none


def look() -> str:
    """A checksum of the palette, which pictures are stored with."""
    colors = re.findall(r'"(#[0-9A-F]{6})"', STYLE.read_text("utf-8"))
    return hashlib.sha256("".join(colors).encode()).hexdigest()[:16]


def word_for(color: str) -> str:
    """What a color is called, by its hue.

    >>> word_for("#0072B2")
    'blue'
    """
    hue = 360 * colorsys.rgb_to_hsv(*bytes.fromhex(color[1:]))[0]
    return min(HUES, key=lambda word: abs((HUES[word] - hue + 180) % 360 - 180))


def variables() -> dict[str, dict[str, str]]:
    """The custom properties of the style sheets, in the light and in the dark."""
    from transformer_lib.plots import style

    names = "INK", "SOFT", "LINE", "CARD", "FULL", "NEGATIVE"
    ours = "ink", "soft", "line", "surface", "weight-full", "negative-full"
    shared = {f"--afm-{role}": color for role, color in style.COLORS.items()}
    light, dark = (
        shared | {f"--afm-{role}-text": color for role, color in text.items()}
        for text in (style.TEXT_COLORS, style.DARK_TEXT_COLORS)
    )
    light |= {f"--afm-{our}": getattr(style, name) for our, name in zip(ours, names, strict=True)}
    return {"light": light, "dark": dark}


def wanted() -> dict[Path, str]:
    """The texts of all files that hold the palette's colors, as they must be."""
    known, page = variables(), PAGE.read_text("utf-8")

    def sheet(css: str) -> str:
        def rule(text: str) -> str:
            own = known["dark" if 'theme="dark"' in text.partition("{")[0] else "light"]
            return VARIABLE.sub(lambda m: m[1] + own.get(m[2], m[3]).lower(), text)

        return RULE.sub(
            lambda m: m[1] + known["light"][f"--afm-{m[4]}"] + m[3],
            "".join(map(rule, re.split(r"(?<=\})", css))),
        )

    now = {old.upper(): known["light"][f"--afm-{role}"] for _, old, _, role in RULE.findall(page)}
    found = {PAGE: sheet(page), WIDGET: sheet(WIDGET.read_text("utf-8"))}
    for path in (path for pattern in TEXTS for path in sorted(ROOT.glob(pattern))):
        text = path.read_text("utf-8")
        found[path] = FORMULA.sub(lambda m: m[1] + now.get(m[2].upper(), m[2]), text)
    return found


def misnamed() -> Iterator[str]:
    """A role that `notation.md` calls by another color's word; then each line with the word."""
    from transformer_lib.plots import style

    for role, word in SAID.findall(NOTATION.read_text("utf-8")):
        if word == (now := word_for(style.COLORS[role])):
            continue
        yield f"The {role} is {now}, no longer {word}. Where {word} means it, in:"
        naming = re.compile(rf"\b{word}\b", re.IGNORECASE)
        for path in (path for pattern in NAMING for path in sorted(ROOT.glob(pattern))):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                channels = {"red", "green", "blue"} <= set(re.findall(r"\w+", line))
                if '"image/png"' in line or channels:
                    continue
                for hit in naming.finditer(line):
                    around = line[max(0, hit.start() - 40) : hit.end() + 40].strip()
                    yield f"{path.relative_to(ROOT)}:{number}: {around}"


def main() -> int:
    for path, text in wanted().items():
        if text != path.read_text("utf-8"):
            path.write_text(text, encoding="utf-8")
            print(f"Written: {path.relative_to(ROOT)}")
    if lines := list(misnamed()):
        print(*lines, sep="\n")
        print("book/notation.md last: until then, these lines are named again, and a test fails.")
    if look() != FIRST:
        print("Pictures: make notebooks takes the stills again, make picture the README's.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
