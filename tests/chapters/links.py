"""Links between the chapters and the pages of `book/`, resolved on the files themselves.

Also the links that set a figure, `[two layers](#set:painter;layers=2)`: without running the
chapter, by the call that makes the figure. Values that depend on the figure's own words
(`follow=roses`) are for the browser tests, which click every such link of the built book.
"""

import ast
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlparse

import nbformat
import yaml
from anatomy import is_deeper

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
_LINK = re.compile(r"(?<!!)\[(?:[^\]\[]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?\)")


def markdown_of(path: Path) -> str:
    """The prose of a Markdown file or a notebook."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    nb = nbformat.read(path, as_version=4)
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def targets(text: str) -> list[str]:
    """Where the Markdown links of a text lead, code aside."""
    prose = re.sub(r"^(```+|~~~+).*?^\1\s*$", "", text, flags=re.S | re.M)
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", prose))


def slug(heading: str) -> str:
    """The anchor of a heading as MyST and GitHub make it: lower case, punctuation dropped."""
    bare = re.sub(r"[*`$]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", bare).replace(" ", "-")


@cache
def anchors(path: Path) -> frozenset[str]:
    """Every anchor that a link to this page may name."""
    text = markdown_of(path)
    prose = re.sub(r"^(```+|~~~+).*?^\1\s*$", "", text, flags=re.S | re.M)
    return frozenset(slug(heading) for heading in re.findall(r"^#{1,3} +(.+)$", prose, re.M))


def dead_links(path: Path) -> list[str]:
    """The links of a page that lead nowhere, each with the cause."""
    found = []
    for target in targets(markdown_of(path)):
        if target.startswith("#set:"):
            found += filter(None, [set_problem(path, target)])
            continue
        url = urlparse(target)
        if url.scheme:
            if url.scheme not in ("https", "mailto") or not (url.netloc or url.path):
                found.append(f"{target}: a link to the web must begin with https://")
            continue
        page = (path.parent / unquote(url.path)).resolve() if url.path else path.resolve()
        if not page.is_file():
            found.append(f"{target}: there is no such file")
        elif (
            url.fragment
            and page.suffix in (".md", ".ipynb")
            and (url.fragment not in anchors(page))
        ):
            found.append(f"{target}: the page has no anchor `{url.fragment}`")
    return found


def code_of(path: Path) -> list[str]:
    """The code cells of a notebook, or of a Markdown file (`{code-cell}`)."""
    if path.suffix != ".ipynb":
        text = path.read_text(encoding="utf-8")
        return re.findall(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```", text, re.M | re.S)
    nb = nbformat.read(path, as_version=4)
    return [cell.source for cell in nb.cells if cell.cell_type == "code"]


def named_figures(sources: list[str]) -> list[tuple[str, str]]:
    """(name, class) of every `SomeWidget(..., name="some-name")` in these cells."""
    found = []
    for source in sources:
        plain = re.sub(r"^\s*[%!].*$", "", source, flags=re.M)  # IPython's own lines
        try:
            tree = ast.parse(plain)
        except SyntaxError:
            continue  # an error that is the lesson, or one that the run finds
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for keyword in node.keywords:
                named = keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
                if named and isinstance(keyword.value.value, str) and called[:1].isupper():
                    found.append((keyword.value.value, called))
    return found


def figures_called_alike(path: Path) -> list[str]:
    """The names that two figures of a chapter have: a link could not say which it sets."""
    names = [name for name, _ in named_figures(code_of(path))]
    return [
        f"two figures are called {name!r}; rename one"
        for name in sorted(set(names))
        if names.count(name) > 1
    ]


def set_problem(path: Path, target: str) -> str | None:
    """Why a link does not set a figure of its page; None if it does."""
    from transformer_lib import widgets
    from transformer_lib.widgets import driving

    try:
        figure, settings = driving.read_link(target)
    except ValueError as error:
        return str(error)
    figures = dict(named_figures(code_of(path)))
    if figure not in figures:
        known = ", ".join(sorted(figures)) or "none"
        return f"{target}: no figure of this page has name={figure!r}; there are: {known}"
    keys = getattr(widgets, figures[figure])._keys_of_text
    causes = [driving.refusal(keys, key, value) for key, value in settings]
    return next((f"{target}: {cause}" for cause in causes if cause), None)


def listing(toc: dict) -> list[tuple[str, str | None]]:
    """(page, the page that it is nested under) for all that a table of contents lists, in order."""
    found: list[tuple[str, str | None]] = [(toc["root"], None)]

    def add(entries: list[dict], above: str | None) -> None:
        for entry in entries:
            found.append((entry["file"], above))
            add(entry.get("sections", []), entry["file"])

    for part in toc.get("parts", [toc]):
        add(part.get("chapters", []), None)
    return found


def road_names(root: Path) -> list[str]:
    """The names of the chapters that the road leads over, in order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    names = [name for name, above in listing(toc) if above is None]
    return [name.removeprefix("chapters/") for name in names if name.startswith("chapters/")]


def toc_problems(root: Path) -> list[str]:
    """Chapters that the table of contents lacks, entries of it without a file, wrong places.

    A deeper page, `07b-precision`, is nested under its chapter, 07, and nothing else is nested.
    (A second sitting, `07c`, is a chapter.)
    """
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = listing(toc)
    listed = [name for name, _ in pages]
    chapters = {
        p.relative_to(root).with_suffix("").as_posix() for p in root.glob("chapters/*.ipynb")
    }
    found = [f"{name} is not in _toc.yml" for name in sorted(chapters - set(listed))]
    for name, above in pages:
        if not any((root / f"{name}{suffix}").is_file() for suffix in (".ipynb", ".md")):
            found.append(f"_toc.yml lists {name}, and there is no such file")
        deeper = is_deeper(name.removeprefix("chapters/"))
        same = re.match(rf"{name[:11]}[a-z]?-", above or "")  # chapters/07
        if deeper and not same:
            found.append(f"_toc.yml must list {name} in the `sections` of its chapter")
        if above and not deeper:
            found.append(f"_toc.yml lists {name} under {above}, which is for deeper pages only")
    found += [f"_toc.yml lists {n} twice" for n in sorted(set(listed)) if listed.count(n) > 1]
    return found
