"""The still pictures in stored chapters, for whoever looks at a notebook and runs nothing.

    attach(run, stored)               give the figures and plots of a run their stills
    attach(run, stored, again=True)   ... and take all of them anew
    wrong(stored, run)                the figures of a run of which there is no still, or an old one

A figure's still is taken by Chromium, of the figure itself as it opens; a plot is drawn by the run.
Both are palette PNGs of at most stored_form.LARGEST bytes. With a figure's still stand two digests
of the state that it shows, in the output's metadata:

- `words`, of its texts, settings and sizes, holds on every machine, and tests compare it;
- `all`, of its numbers, too, may differ from one processor to another. Where it is the same, the
  still that is there is kept, and no browser is needed.

A new palette (palette.py) asks for new stills of all. Else a plot is kept as long as the chapter's
code and all that it prints stay the same; and any still, if the new one looks the same. (The text
of a question is stored as Markdown, which `Predict` brings.)
"""

import base64
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from PIL import Image, ImageChops
from stored_form import LARGEST, PNG, VIEW, code_digest, is_still, normal_outputs, tags

STATE = "application/vnd.jupyter.widget-state+json"
QUESTION = "text/markdown"  # beside its view, a question brings its text
# Of a figure's state, what it does not show: its code, and what ipywidgets adds.
UNSEEN = re.compile(
    r"_(esm|css|worker|program|python|dom_classes|anywidget_id|view_count)"
    r"|_(model|view)_(name|module|module_version)|layout|tabbable|tooltip"
)
DECIMAL = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?")
WIDTH = 720  # CSS pixels of a figure; a plot is at most as wide
# (Colors, part of the size): the first with which a still is small enough.
SMALLER = ((64, 1.0), (48, 1.0), (32, 1.0), (24, 1.0), (32, 0.75), (24, 0.75), (32, 0.5))
COMMON = 12  # of these colors, the most frequent of the picture as they are: grounds, frames, ink
UNSEEABLE = 12  # of 255: by how much a pixel may differ from one machine, or one time, to another
# What nobody can use in a still: the challenges, and the buttons that export.
USELESS = ".afm-goals, .afm-exports { display: none !important; }"
# Until nothing has changed on the page for a second: what a worker computes has come.
QUIET = """() => new Promise((done) => {
  let timer;
  const watcher = new MutationObserver(again);
  function again() {
    clearTimeout(timer);
    timer = setTimeout(() => (watcher.disconnect(), done()), 1000);
  }
  watcher.observe(document.body, { subtree: true, childList: true, attributes: true });
  again();
})"""


class StillError(Exception):
    """A still could not be taken: the figure did not start."""


class NoBrowserError(StillError):
    """A still could not be taken: there is no Chromium here that could be started."""


def shown(nb: NotebookNode) -> Iterator[tuple[tuple[str, int], NotebookNode, NotebookNode]]:
    """(place, cell, output) of each value that the cells of `nb` show, by its cell's id."""
    for cell in nb.cells:
        if cell.cell_type == "code":
            values = [output for output in cell.outputs if "data" in output]
            for number, output in enumerate(values):
                yield (cell.id, number), cell, output


def figure_of(output: NotebookNode) -> str | None:
    """The id of the figure that an output of a run shows; None for all else, questions included."""
    figure = VIEW in output.data and QUESTION not in output.data
    return output.data[VIEW]["model_id"] if figure else None


def states(run: NotebookNode) -> dict[str, dict]:
    """The state of each widget of a run, by its id."""
    return run.metadata.get("widgets", {}).get(STATE, {}).get("state", {})


def digests(entry: dict) -> dict[str, str]:
    """Two checksums of what a figure shows: of its words, and of all.

    >>> one, other = (digests({"state": {"name": "a", "_x": [n, 2]}}) for n in (0.5, 0.6))
    >>> one["words"] == other["words"], one["all"] == other["all"]
    (True, False)
    """
    traits = {name: x for name, x in entry["state"].items() if not UNSEEN.fullmatch(name)}
    everything, words = dict(traits), dict(traits)
    for buffer in entry.get("buffers", ()):
        name, content = ".".join(map(str, buffer["path"])), base64.b64decode(buffer["data"])
        everything[name] = hashlib.sha256(content).hexdigest()
        try:
            words[name] = json.loads(content)
        except ValueError:
            words[name] = len(content)
    found = {"words": without_decimals(words), "all": everything}
    return {
        kind: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
        for kind, value in found.items()
    }


def without_decimals(value: Any) -> Any:
    """A value of JSON without the numbers whose last digits hang on a processor."""
    if isinstance(value, dict):
        return {key: without_decimals(one) for key, one in value.items()}
    if isinstance(value, list):
        return [without_decimals(one) for one in value]
    if isinstance(value, str):
        return DECIMAL.sub(".", value)
    return "." if isinstance(value, float) else value


def said(nb: NotebookNode) -> list[list]:
    """All that a chapter's compared cells say."""
    return [
        [
            output.get("text") or output.get("evalue") or output.data.get("text/plain")
            for output in normal_outputs(cell.outputs)
        ]
        for cell in nb.cells
        if cell.cell_type == "code" and "nbval-ignore-output" not in tags(cell)
    ]


def in_few_colors(picture: Image.Image, count: int) -> Image.Image:
    """The picture with a palette: its most frequent colors, and means of the others."""
    counted = sorted(picture.getcolors(picture.width * picture.height), reverse=True)
    common = [part for _, color in counted[:COMMON] for part in color]
    rest, plain = count - len(common) // 3, Image.Dither.NONE
    others = picture.quantize(rest, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=plain)
    palette = Image.new("P", (1, 1))
    palette.putpalette(common + others.getpalette()[: 3 * rest])
    return picture.quantize(palette=palette, dither=plain)


def small(picture: Image.Image) -> str:
    """A picture as a palette PNG of at most LARGEST bytes, in base64. ValueError if none is."""
    ground = Image.new("RGBA", picture.size, "white")
    ground.alpha_composite(picture.convert("RGBA"))
    fits = min(1.0, WIDTH / picture.width)
    for colors, part in SMALLER:
        size = tuple(round(side * fits * part) for side in picture.size)
        scaled = ground.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        in_few_colors(scaled, colors).save(file := io.BytesIO(), "PNG", optimize=True)
        if len(file.getvalue()) <= LARGEST:
            return base64.b64encode(file.getvalue()).decode("ascii")
    raise ValueError(f"a picture of {picture.size} takes more than {LARGEST} bytes")


def photographed(run: NotebookNode, ids: list[str]) -> dict[str, str]:
    """The stills of these figures of a run.

    Raises NoBrowserError without a Chromium, StillError if a figure does not start.
    """
    from playwright.sync_api import Error, sync_playwright

    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "browser"))
    from chromium import CHROMIUM_NAMES
    from extensions.notices import BERTVIZ, NPM
    from harness import HOST, html_of, mount_all

    held = {"state": {id_: deepcopy(states(run)[id_]) for id_ in ids}}
    views = [{"model_id": id_} for id_ in ids]
    names = (os.environ.get("AFM_CHROMIUM"), *map(shutil.which, CHROMIUM_NAMES))
    options = {"executable_path": next(filter(None, names), None)}
    options["args"] = ["--no-sandbox", "--disable-gpu"]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder, file = Path(name), Path(name, "page.html")
        shutil.copy(HOST, folder)
        (folder / "bertviz").mkdir()
        for script, source in BERTVIZ.items():
            if (NPM / source).exists():  # else bertviz's views do not start
                shutil.copy(NPM / source, folder / "bertviz" / script)
        html = html_of(held, views, before=f"<style>{USELESS}</style>", folder=folder)
        file.write_text(html, encoding="utf-8", errors="surrogatepass")
        try:
            browser = playwright.chromium.launch(**options)
        except Error as error:
            raise NoBrowserError(f"No Chromium could be started: {error}") from None
        window = {"width": WIDTH + 24, "height": 1000}
        page = browser.new_page(viewport=window, reduced_motion="reduce")
        page.goto(file.as_uri())
        mount_all(page)
        places = page.locator(".afm-mount").all()
        before, now = [], None
        while before != now:
            page.evaluate(QUIET)
            before, now = now, [place.screenshot(animations="disabled") for place in places]
        if failed := page.get_by_text("figure could not start:").all_text_contents():
            raise StillError(failed[0])
        browser.close()
    return {id_: small(Image.open(io.BytesIO(shot))) for id_, shot in zip(ids, now, strict=True)}


def settled(still: str, before: Iterable[NotebookNode]) -> str:
    """A new still; or one of `before` that nobody could tell from it, so that no byte changes."""
    new = Image.open(io.BytesIO(base64.b64decode(still))).convert("RGB")
    for output in before:
        if not is_still(old := output.data.get(PNG, "")):
            continue
        picture = Image.open(io.BytesIO(base64.b64decode(old)))
        if picture.size == new.size:
            extremes = ImageChops.difference(picture.convert("RGB"), new).getextrema()
            if max(most for _, most in extremes) <= UNSEEABLE:
                return old
    return still


def attach(run: NotebookNode, stored: NotebookNode, *, again: bool = False) -> None:
    """Give each figure and each plot of `run` its still: the one that `stored` has, or a new one.

    `again`: new ones, whatever is there. A figure that needs a new one, where there is no browser,
    is left without; notebooks.py says so.
    """
    before = {place: output for place, _, output in shown(stored)}
    # `stored` may be edited: its plots are of the code that its checksum is of.
    drawn_by = stored.metadata.get("checksums", {}).get("code")
    same = code_digest(run) == drawn_by and said(run) == said(stored)
    kept = {  # by the figure's name, too: two kinds may show one state
        (output.data["text/plain"], output.metadata.still["all"]): output.data[PNG]
        for output in before.values()
        if "still" in output.metadata and PNG in output.data
    }
    wanted = []
    for place, _, output in shown(run):
        if id_ := figure_of(output):
            still = digests(states(run)[id_])
            output.metadata = NotebookNode(still=still)
            name = output.data["text/plain"], still["all"]
            if name in kept and not again:
                output.data[PNG] = kept[name]
            else:
                wanted.append((id_, output))
        elif PNG in output.data:
            old = before[place].data.get(PNG, "") if place in before else ""
            if same and not again and is_still(old):
                output.data[PNG] = old
            else:
                picture = Image.open(io.BytesIO(base64.b64decode(output.data[PNG])))
                output.data[PNG] = settled(small(picture), before.values())
    if not wanted:
        return
    try:
        pictures = photographed(run, list(dict.fromkeys(id_ for id_, _ in wanted)))
    except NoBrowserError:
        if again:
            raise
        return
    for id_, output in wanted:
        output.data[PNG] = settled(pictures[id_], before.values())


def wrong(stored: NotebookNode, run: NotebookNode) -> dict[str, str]:
    """By a cell's id: its figure in a run, of which `stored` has no still, or an old one."""
    before = {place: output for place, _, output in shown(stored)}
    found = {}
    for place, cell, output in shown(run):
        if not (id_ := figure_of(output)):
            continue
        still = before[place].metadata.get("still") if place in before else None
        name = output.data["text/plain"]
        if still is None:
            found[cell.id] = f"{name}: there is no still of it"
        elif "nbval-ignore-output" in tags(cell):
            continue
        elif still["words"] != digests(states(run)[id_])["words"]:
            found[cell.id] = f"{name}: its still is an old one"
    return found
