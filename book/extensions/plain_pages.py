"""Sphinx extension: glossary and references are plain Markdown, which any reader can show.

In JupyterLab, VS Code or on GitHub, where a chapter's links open these files themselves, directives
and roles would show as raw text. So

- `book/glossary.md` has a heading for each term, and links a term by `[keys](#key)`. For the page
  it becomes a ``{glossary}``, with ``{term}`keys <key>` ``;
- `book/references.md` has a heading and a paragraph for each entry, written by `make references`
  (bibliography.py) from the .bib file that it names. For the page they become a ``{bibliography}``.
"""

import re

from anchors import slug
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

TERM = re.compile(r"^### ([^\n]+)\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\(#([\w-]+)\)")
MADE_FROM = re.compile(r"^<!-- Made from (\S+\.bib) by .*? -->$.*", re.DOTALL | re.MULTILINE)


def glossary(text: str) -> str:
    r"""The page with a ``{glossary}`` in place of its headings of the third level.

    >>> print(glossary("# Words\n\n### key\n\nIt fits a [lock](#lock).\n\n### lock\n\nWaits.\n"))
    # Words
    <BLANKLINE>
    ```{glossary}
    key
      It fits a {term}`lock`.
    <BLANKLINE>
    lock
      Waits.
    ```
    <BLANKLINE>
    """
    entries = TERM.findall(text)
    if not entries:
        raise ExtensionError("glossary.md has no headings `### term`")
    terms = {slug(term): term for term, _ in entries}

    def reference(link: re.Match) -> str:
        if link[2] not in terms:
            raise ExtensionError(f"glossary.md links to #{link[2]}, and there is no such term")
        # A name in other words than the term, `values` for `value`, needs both.
        term, words = terms[link[2]], " ".join(link[1].split())
        return (
            f"{{term}}`{words}`" if words.lower() == term.lower() else f"{{term}}`{words} <{term}>`"
        )

    parts = []
    for term, body in entries:
        lines = LINK.sub(reference, body.strip()).splitlines()
        parts.append("\n".join([term, *(f"  {line}".rstrip() for line in lines)]))
    head = text[: TERM.search(text).start()]
    return "\n".join([f"{head}```{{glossary}}", "\n\n".join(parts), "```\n"])


def references(text: str) -> str:
    """The page with a ``{bibliography}`` in place of the entries that its file was made with."""
    return MADE_FROM.sub(r"```{bibliography} \1\n```\n", text)


def make_directives(app: Sphinx, document: str, source: list[str]) -> None:
    page = document.rsplit("/", 1)[-1]
    if page == "glossary":
        source[0] = glossary(source[0])
    elif page == "references":
        source[0] = references(source[0])


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("source-read", make_directives)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
