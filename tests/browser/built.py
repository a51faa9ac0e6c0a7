"""The built book, as the tests of its pages see it: files, links, and what a page loads."""

import gzip
import os
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import yaml
from build import documents

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("AFM_BUILD") or ROOT / "_build" / "html")
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
DOCUMENTS = documents(TOC)
READ = sorted(f"{document}.html" for document in [*DOCUMENTS, "search"])
PAGES = [*READ, "index.html"]  # which only leads on to the first page
# The attributes by which a page loads something by itself; links only lead the reader there.
LOADING = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src"}
COMPRESSED = {".woff2", ".png", ".jpg"}


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))


@cache
def elements(page: Path) -> list[tuple[str, dict[str, str]]]:
    """(tag, attributes) of everything on a page."""
    parser = _Parser()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.elements


@cache
def anchors(page: Path) -> frozenset[str]:
    return frozenset(attributes["id"] for _, attributes in elements(page) if "id" in attributes)


def dead_links(page: Path) -> list[str]:
    """The addresses on a page, inside the book, at which there is nothing."""
    dead = []
    for tag, attributes in elements(page):
        for name in ("href", "src"):
            address, fragment = urldefrag(attributes.get(name, ""))
            if name not in attributes or urlsplit(address).scheme:
                continue
            target = page.parent / unquote(urlsplit(address).path) if address else page
            if not target.is_file():
                dead.append(f"<{tag} {name}={attributes[name]!r}>: no such file")
            elif fragment and target.suffix == ".html" and unquote(fragment) not in anchors(target):
                dead.append(f"<{tag} {name}={attributes[name]!r}>: no such place on the page")
    return dead


def third_parties(page: Path) -> list[str]:
    """The addresses elsewhere from which a page would load something."""
    found = []
    for tag, attributes in elements(page):
        address = attributes.get(LOADING.get(tag, ""), "")
        scheme = urlsplit(address).scheme
        if address.startswith("//") or scheme not in ("", "data"):
            found.append(f"<{tag}> {address}")
    return found


def poor_images(page: Path) -> list[str]:
    """Pictures without a text of somebody's own."""
    found = []
    for tag, attributes in elements(page):
        if tag == "img" and "launch" not in attributes.get("class", ""):
            text = attributes.get("alt")
            if text is None or "_images/" in text or len(text.split()) < 3:
                found.append(f"{attributes.get('src')}: {text!r}")
    return found


def weight(page: Path, addresses: set[str]) -> int:
    """Bytes of a page's pictures and of these files, as a server sends them, gzipped."""
    total = 0
    pictures = {page.parent / each["src"] for tag, each in elements(page) if tag == "img"}
    loaded = {unquote(urlsplit(each).path) for each in addresses if each.startswith("file:")}
    for path in {path.resolve() for path in [*pictures, *map(Path, loaded)]}:
        content = path.read_bytes()
        total += len(content if path.suffix in COMPRESSED else gzip.compress(content, 9))
    return total
