"""Counts what a newcomer meets on the road of each chapter: `python tests/chapters/report.py`.

`make test` prints the same table at its end. Words, open code cells and asserts are those before
`## Exercises`, less what is folded; questions are `Predict`, challenges the goals of figures; a
line is cut if it is wider than the page at 1280 px.
"""

import sys
from pathlib import Path

import nbformat
from anatomy import counts, is_deeper
from rules import AIMS, HELD_TO_AIMS

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


def table(folder: Path = CHAPTERS) -> list[str]:
    """The lines of the table; `!` marks what is beyond an aim, `*` a chapter held to the aims."""
    most = ("words", "open cells", "asserts", "lines cut")
    aims = AIMS | {"lines cut": 0}
    lines = [f"{'':<28}" + "".join(f"{name:>13}" for name in aims)]
    signs = {name: f"{'≤' if name in most else '≥'} {aim:,}" for name, aim in aims.items()}
    lines.append(f"{'aim':<28}" + "".join(f"{sign:>13}" for sign in signs.values()))
    for path in sorted(folder.glob("*.ipynb")):
        found, row = counts(nbformat.read(path, as_version=4)), ""
        for name, aim in aims.items():
            beyond = found[name] > aim if name in most else found[name] < aim
            mark = "!" if beyond and not is_deeper(path.stem) else ""
            row += f"{f'{mark}{found[name]:,}':>13}"
        held = "*" if path.stem in HELD_TO_AIMS else ""
        lines.append(f"{path.stem + held:<28}{row}")
    return lines


if __name__ == "__main__":
    print(*table(), sep="\n")
    sys.exit()
