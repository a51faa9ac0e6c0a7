"""Sphinx extension: a chapter has the number of its file, in sidebar, arrows and search.

`chapters/07-positional-encodings` is chapter 7 whatever comes before it in the table of contents
(Sphinx's own numbering counts entries, and some chapters are not written yet).

`chapters/07b-precision` is a *deeper page* of chapter 7: the road does not lead over it. It is
listed below its chapter and marked in the sidebar, says so above its title, and leads back there;
the arrows of the chapters pass it by. Where one chapter is two sittings, the second has a letter,
too, and the road does lead over it (SECOND_SITTINGS).
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

CHAPTER = re.compile(r"chapters/0*(\d+)([a-z]?)-")
SECOND_SITTINGS = ("7c",)


def number(document: str) -> str | None:
    """The number in a chapter's file name; None for another page.

    >>> number("chapters/07-positional-encodings"), number("chapters/07b-precision")
    ('7', '7b')
    >>> number("book/glossary")
    """
    found = CHAPTER.match(document)
    return "".join(found.groups()) if found else None


def is_deeper(document: str) -> bool:
    """Whether a page is one that the road does not lead over."""
    found = CHAPTER.match(document)
    return bool(found and found[2]) and number(document) not in SECOND_SITTINGS


def add_number(app: Sphinx, document: nodes.document) -> None:
    page = app.env.docname
    if number(page) is None:
        return
    entry = next(iter(app.env.tocs[page].findall(nodes.reference)))
    for title in (app.env.titles[page], entry):
        title.insert(0, nodes.Text(f"{number(page)} · "))
    if is_deeper(page):
        entry += [nodes.Text(" "), nodes.inline("", "deeper", classes=["afm-deeper"])]


def chapter_of(document: str, documents: list[str]) -> str | None:
    """The chapter that a deeper page belongs to; `documents` are the pages in order.

    >>> chapter_of("chapters/07b-precision", ["book/index", "chapters/07-positions"])
    'chapters/07-positions'
    """
    found = CHAPTER.match(document)
    if not found:
        return None
    before = documents[: documents.index(document)] if document in documents else documents
    same = [d for d in before if (other := CHAPTER.match(d)) and other[1] == found[1]]
    return next((d for d in reversed(same) if not is_deeper(d)), None)


def lead_on(
    app: Sphinx, page: str, template: str, context: dict, document: nodes.document | None
) -> None:
    """The arrows at a page's foot: along the road, or back to it."""
    relations = app.env.collect_relations()
    if page not in relations:
        return

    def link(other: str | None) -> dict[str, str] | None:
        if other is None:
            return None
        title = app.builder.render_partial(app.env.titles[other])["title"]
        return {"link": app.builder.get_relative_uri(page, other), "title": title}

    def along(step: int) -> str | None:
        other = relations[page][step]
        while other and is_deeper(other):
            other = relations[other][step]
        return other

    context["chapter_number"] = number(page)
    context["deeper"] = is_deeper(page)
    if is_deeper(page):
        chapter = chapter_of(page, list(relations))
        context["chapter_link"] = link(chapter)
        context["chapter_number"] = number(chapter) if chapter else number(page)[:-1]
        context["prev"], context["next"] = None, link(chapter)
    else:
        context["prev"], context["next"] = link(along(1)), link(along(2))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", add_number, priority=900)  # after Sphinx has collected the titles
    app.connect("html-page-context", lead_on)
