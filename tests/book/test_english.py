"""Habits of phrase that read as translated, and once were everywhere: code, comments, pages."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("transformer_lib", "book", "benchmarks", "tests")
FILES = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".js", ".css", ".md"} and path != Path(__file__).resolve()
]
# "is no regular file". Natural: "there is no file", "no longer", "no more than".
IS_NO = re.compile(r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer|more|one\b|such)\w+")
STANDS = re.compile(r"\b[Ww]hat stands\b|\bstands? there\b")
TITLED_WHAT = re.compile(r'(?:"""|// |/\* )What\b')


def habits(text: str) -> list[str]:
    line = re.sub(r"\s+", " ", text)
    found = [hit[0] for habit in (IS_NO, STANDS) for hit in habit.finditer(line)]
    return found + [text.splitlines()[0]] * bool(TITLED_WHAT.match(text))


def test_the_habits_are_known():
    assert habits('"""What a file does."""\n# x is no regular\n# file') != []
    assert habits("The bytes are no text.") == ["are no text"]
    assert habits("# What stands\n in a box. Your guess stands.") == ["What stands"]
    assert habits('"""Files. What is left:"""\n# There is no file, which is no longer here.') == []


def test_nothing_reads_as_translated():
    assert len(FILES) > 400
    found = {
        str(path.relative_to(ROOT)): habits(path.read_text(encoding="utf-8")) for path in FILES
    }
    assert {name: hits for name, hits in found.items() if hits} == {}
