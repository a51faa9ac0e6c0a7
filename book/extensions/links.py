"""Sphinx extension: what happens to a chapter's links.

- `[two layers](#set:painter;layers=2;follow=roses)` sets a figure. On the page it becomes a span
  that the host (book/assets/afm-host.js) makes a button of; without JavaScript and in print it is
  plain text. In a notebook it stays a link, which the figure's own JavaScript takes
  (transformer_lib/widgets/core/state.js). That each names a figure of its page, with a key and a
  value that it takes, is for the tests to say (tests/chapters/links.py).
- `[a query](../book/glossary.md#query)` in a notebook that is downloaded from a page leads to the
  published pages: opened alone it would lead nowhere. (Colab, which opens a notebook from GitHub,
  makes links absolute itself.)
- The button to Colab, which opens a notebook from its place on GitHub, is there once the repository
  has an address (`_config.yml`, `repository: url:`).
"""

import json
import posixpath
import re
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.transforms import SphinxTransform
from sphinx.writers.html5 import HTML5Translator
from stored_form import pages_address

LINK = re.compile(r"(?<=\]\()(?!#|\w+:)([^\s()#]+)\.(ipynb|md)(#[^\s()]*)?(?=\))")
COLAB = "https://colab.research.google.com"
PREFIX = "#set:"


class setter(nodes.inline):
    """A phrase that sets a figure."""


class SetLinks(SphinxTransform):
    """Takes these links before MyST looks for their targets (its priority is 879)."""

    default_priority = 870

    def apply(self, **options: object) -> None:
        for link in list(self.document.findall(nodes.reference)):
            if str(link.get("refuri", "")).startswith(PREFIX):
                link.replace_self(setter("", "", *link.children, target=link["refuri"]))


def visit_setter(self: HTML5Translator, node: setter) -> None:
    self.body.append(f'<span class="afm-set" data-afm-set="{escape(node["target"])}">')


def depart_setter(self: HTML5Translator, node: setter) -> None:
    self.body.append("</span>")


def with_absolute_links(text: str, folder: str) -> str:
    """Markdown whose links to chapters and pages lead to those of the published book.

    >>> folder = "https://someone.github.io/some-book/chapters/"
    >>> with_absolute_links("[a query](../book/glossary.md#query), [next](02-b.ipynb)", folder)
    ... # doctest: +NORMALIZE_WHITESPACE
    '[a query](https://someone.github.io/some-book/book/glossary.html#query),
    [next](https://someone.github.io/some-book/chapters/02-b.html)'
    """
    scheme, rest = folder.split("//", 1)

    def absolute(link: re.Match) -> str:
        return f"{scheme}//{posixpath.normpath(rest + link[1])}.html{link[3] or ''}"

    return LINK.sub(absolute, text)


def rewrite(app: Sphinx, error: Exception | None) -> None:
    pages = pages_address(app.config.html_theme_options.get("repository_url"))
    if error is not None or app.builder.format != "html" or not pages:
        return
    sources = Path(app.outdir) / "_sources"
    for path in sources.rglob("*.ipynb"):
        nb = json.loads(path.read_text(encoding="utf-8"))
        folder = f"{pages}{path.parent.relative_to(sources).as_posix()}/"
        for cell in nb["cells"]:
            if cell["cell_type"] == "markdown":
                source = with_absolute_links("".join(cell["source"]), folder)
                cell["source"] = source.splitlines(keepends=True)
        path.write_text(json.dumps(nb, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def add_button(app: Sphinx, config: Config) -> None:
    options = config.html_theme_options
    url = (options.get("repository_url") or "").rstrip("/")
    options["repository_url"] = url
    options["launch_buttons"] = {"colab_url": COLAB} if url else {}
    if url and not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        raise ConfigError(
            f"_config.yml: repository: url: is {url!r}. Colab opens notebooks from GitHub: "
            "write https://github.com/OWNER/NAME, or leave it empty until the book is published."
        )


def setup(app: Sphinx) -> None:
    # Before the theme reads its options at 500.
    app.connect("config-inited", add_button, priority=100)
    app.add_node(setter, html=(visit_setter, depart_setter))
    app.add_transform(SetLinks)
    app.connect("build-finished", rewrite)
