"""Sphinx extension: the references page, made from the bibliography at build time.

A chapter cites with a plain link to ``../book/references.md#vaswani2017``, because MyST's own
citation roles show raw in Colab. On the page, each entry of the .bib file stands under an anchor
that is its key, and names the pages that cite it.

The page's file itself is plain Markdown, for whoever opens it in JupyterLab, VS Code or on GitHub,
and holds a heading and a paragraph for each entry. Run

    python book/extensions/bibliography.py      (or `make references`)

after a change to references.bib.

The fields are BibTeX's usual ones; ``annote`` says in a sentence what to read the work for.
A malformed entry stops the build: see `check_entry`.
"""

import re
import unicodedata
from pathlib import Path

from docutils import nodes
from pybtex.database import Entry, Person, parse_file
from pybtex.richtext import Text
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

# The field in which each kind of entry says where it appeared.
VENUE = {
    "article": "journal",
    "book": "publisher",
    "inproceedings": "booktitle",
    "misc": "howpublished",
    "techreport": "institution",
}


def plain(latex: str) -> str:
    """A BibTeX field as plain text: accents decoded, protecting braces dropped.

    >>> plain("{FlashAttention} by R{\\\\'e}")
    'FlashAttention by Ré'
    """
    return str(Text.from_latex(latex))


def names(persons: list[Person]) -> str:
    """The authors in reading order; a closing ``and others`` becomes "et al."."""
    full = [
        plain(
            " ".join(
                p.first_names + p.middle_names + p.prelast_names + p.last_names + p.lineage_names
            )
        )
        for p in persons
    ]
    if full[-1] == "others":
        return ", ".join(full[:-1]) + ", et al."
    if len(full) < 3:
        return " and ".join(full)
    return ", ".join(full[:-1]) + ", and " + full[-1]


def check_entry(key: str, entry: Entry) -> None:
    """Raise ValueError if a field or link is missing or malformed, or the key does not fit them."""

    def fail(problem: str) -> None:
        raise ValueError(f"{key}: {problem}")

    if entry.type not in VENUE:
        fail(f"@{entry.type} is not one of {', '.join('@' + kind for kind in VENUE)}")
    for field in ("title", "year", VENUE[entry.type]):
        if not entry.fields.get(field, "").strip():
            fail(f"the field {field!r} is missing")
    if not entry.persons.get("author"):
        fail("the field 'author' is missing")
    first = plain(" ".join(entry.persons["author"][0].last_names))
    ascii_name = unicodedata.normalize("NFKD", first).encode("ascii", "ignore").decode().lower()
    year = entry.fields["year"]
    if not re.fullmatch(re.sub(r"[^a-z]", "", ascii_name) + re.escape(year) + "[a-z]?", key):
        fail(f"the key does not follow from {first!r} and {year!r}")
    links = [field for field in ("eprint", "doi", "url") if field in entry.fields]
    if not links:
        fail("none of eprint (an arXiv number), doi, url is given")
    if "eprint" in entry.fields:
        arxiv = re.fullmatch(r"(\d\d)(\d\d)\.\d{4,5}", entry.fields["eprint"])
        if not arxiv:
            fail(f"{entry.fields['eprint']!r} is not an arXiv number")
        if 2000 + int(arxiv[1]) > int(year) or not 1 <= int(arxiv[2]) <= 12:
            fail(f"arXiv:{arxiv[0]} cannot have appeared in {year}")
    if "doi" in entry.fields and not re.fullmatch(r"10\.\d{4,}/\S+", entry.fields["doi"]):
        fail(f"{entry.fields['doi']!r} is not a DOI")
    if "url" in entry.fields and not entry.fields["url"].startswith("https://"):
        fail(f"{entry.fields['url']!r} does not begin with https://")


def read_bibliography(path: str | Path) -> dict[str, Entry]:
    """The entries of a .bib file by key, checked, in the order of their keys."""
    entries = parse_file(str(path), bib_format="bibtex").entries
    for key, entry in entries.items():
        check_entry(key, entry)
    return dict(sorted(entries.items()))


# An entry's fields that are links: how they are shown, and where they lead.
LINKS = {
    "eprint": ("arXiv:{}", "https://arxiv.org/abs/{}"),
    "doi": ("doi:{}", "https://doi.org/{}"),
    "url": ("{}", "{}"),
}


def entry_parts(entry: Entry) -> tuple[str, str, str, list[tuple[str, str]], str]:
    """What is said of a work: who and when, its title, where, links (text, address), a note."""
    fields = entry.fields
    title, venue = plain(fields["title"]), plain(fields[VENUE[entry.type]])
    where = f" {venue}" + (f", {fields['volume']}" if "volume" in fields else "")
    where += (f":{fields['pages']}" if "pages" in fields else "") + ". "
    mark = "" if title.endswith("?") else "."
    links = []
    for field, (label, address) in LINKS.items():
        if field in fields:
            value = plain(fields[field]) if field != "url" else fields[field]
            links.append((label.format(value).removeprefix("https://"), address.format(value)))
    who = f"{names(entry.persons['author'])} ({fields['year']}). "
    return who, title, mark + where, links, plain(fields.get("annote", ""))


def entry_markdown(key: str, entry: Entry) -> str:
    """The entry as plain Markdown, under a heading that is its key, so that links reach it."""
    who, title, where, links, note = entry_parts(entry)
    shown = "".join(f"[{text}]({address}). " for text, address in links)
    return f"### {key}\n\n{who}*{title}*{where}{shown}{note}".rstrip() + "\n"


def page_markdown(page: str, entries: dict[str, Entry]) -> str:
    """The references page with these entries below the line that says what they are made from."""
    head, made_from, _ = re.split(r"^(<!-- Made from .*? -->)$", page, maxsplit=1, flags=re.M)
    listed = "\n".join(entry_markdown(key, entry) for key, entry in entries.items())
    return f"{head}{made_from}\n\n{listed}"


MADE_FROM = re.compile(r"^<!-- Made from (\S+\.bib) by .*? -->$.*", re.DOTALL | re.MULTILINE)


def make_directive(app: Sphinx, document: str, source: list[str]) -> None:
    """On the page, what was made from a .bib file is made anew, with the pages that cite."""
    source[0] = MADE_FROM.sub(r"```{bibliography} \1\n```\n", source[0])


class cited_in(nodes.General, nodes.Inline, nodes.Element):
    """Placeholder for the links to the pages that cite an entry, filled in when all are read."""


def entry_node(key: str, entry: Entry) -> nodes.paragraph:
    who, title, where, links, note = entry_parts(entry)
    node = nodes.paragraph(classes=["reference-entry"], ids=[key], names=[key])
    node += [nodes.Text(who), nodes.emphasis("", title), nodes.Text(where)]
    for text, address in links:
        node += nodes.reference("", text, refuri=address, internal=False)
        node += nodes.Text(". ")
    if note:
        node += nodes.inline("", note, classes=["reference-annote"])
    node += cited_in(key=key)
    return node


def is_entry(node: nodes.Node) -> bool:
    return isinstance(node, nodes.paragraph) and "reference-entry" in node["classes"]


class Bibliography(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        entries = [entry_node(key, entry) for key, entry in read_bibliography(path).items()]
        for node in entries:
            self.state.document.note_explicit_target(node)
        return entries


def read_page(app: Sphinx, document: nodes.document) -> None:
    """Note what a page cites, and where its entries are."""
    page = app.env.metadata[app.env.docname]
    links = (link for link in document.findall(addnodes.pending_xref) if link.get("reftargetid"))
    page["afm_cites"] = {
        link["reftargetid"] for link in links if str(link.get("reftarget")).endswith("references")
    }
    for entry in document.findall(is_entry):
        # MyST looks for a link's anchor among the headings of its page.
        [name] = entry["names"]
        page.setdefault("myst_slugs", {})[name] = (None, entry["ids"][0], name)
        page["afm_entries"] = True


def rewrite_page(app: Sphinx, env: BuildEnvironment) -> list[str]:
    return [name for name, page in env.metadata.items() if "afm_entries" in page]


def fill_in(app: Sphinx, document: nodes.document, docname: str) -> None:
    env = app.env
    for node in list(document.findall(cited_in)):
        # Chapters first, in their order, then the pages around them.
        pages = [
            page for page, of in env.metadata.items() if node["key"] in of.get("afm_cites", ())
        ]
        pages = sorted(pages, key=lambda page: (not page.startswith("chapters/"), page))
        line = nodes.inline(classes=["reference-cited-in"])
        for i, page in enumerate(pages):
            line += nodes.Text(", " if i else " Cited in ")
            title = nodes.Text(env.titles[page].astext())
            line += make_refnode(app.builder, docname, page, None, title)
        if pages:
            line += nodes.Text(".")
        node.replace_self(line)


def setup(app: Sphinx) -> None:
    app.add_node(cited_in)
    app.add_directive("bibliography", Bibliography)
    app.connect("source-read", make_directive)
    app.connect("doctree-read", read_page)
    app.connect("env-updated", rewrite_page)
    app.connect("doctree-resolved", fill_in)


def main() -> None:
    page = Path(__file__).resolve().parents[1] / "references.md"
    entries = read_bibliography(page.with_suffix(".bib"))
    page.write_text(page_markdown(page.read_text("utf-8"), entries), encoding="utf-8")
    print(f"{page.name}: {len(entries)} entries")


if __name__ == "__main__":
    main()
