"""Draw the README's moving picture, book/assets/machine.gif: the real figure, in Chromium.

    python book/picture.py        under a minute

A story is written into the Machine, the question is asked, the roses go on, and the head that
fetched the answer is crossed out. Every frame is what the figure shows then.
"""

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from transformer_lib.training.run_log import REPOSITORY
from transformer_lib.training.trained import load_shipped
from transformer_lib.widgets import Machine

sys.path += [str(REPOSITORY / "tests" / "browser"), str(REPOSITORY / "book")]

from chromium import CHROMIUM_NAMES
from harness import write_page
from palette import look

PICTURE = REPOSITORY / "book" / "assets" / "machine.gif"
STORY = "<story> mary has roses at first . john has books at first . peter has cups at first ."
HEAD = "block-3-head-1"
WIDTH = 724  # of the page
COLORS = 200
WORD, LOOK, END = 260, 2600, 3200  # milliseconds that a frame is shown
SET = "(settings) => window.afmFigures.get('picture')[0].set(settings)"
READY = "window.afmFigures?.get('picture')?.[0].facts()['probability .'] > 0"


def scenes() -> Iterator[tuple[list[list[str]], int]]:
    """What is set in the figure, and how long the frame after it is shown."""
    yield [["word", "last"]], 2 * WORD
    for sentence in ("mary gave roses to susan .", "who has roses ?"):
        yield from (([["say", word]], WORD) for word in sentence.split())
    yield [], LOOK
    yield [["story", "1"]], 2 * WORD
    for sentence in ("susan gave roses to john .", "who has roses ?"):
        yield from (([["say", word]], WORD) for word in sentence.split())
    yield [], LOOK
    yield [["off", HEAD]], END


def frames(page: Page) -> Iterator[tuple[Image.Image, int]]:
    """Each scene as a picture of the figure, all of one size, and how long it is shown."""
    figure = page.locator(".afm-machine")
    page.wait_for_function(READY)
    pictures, boxes, times = [], [], []
    for settings, shown in scenes():
        if settings:
            page.evaluate(SET, settings)
            page.wait_for_function(READY)
        pictures.append(Image.open(io.BytesIO(page.screenshot(animations="disabled"))))
        boxes.append(figure.bounding_box())
        times.append(shown)
    left, top = boxes[0]["x"], boxes[0]["y"]
    width, height = (max(box[side] for box in boxes) for side in ("width", "height"))
    for picture, shown in zip(pictures, times, strict=True):
        yield picture.convert("RGB").crop((left, top, left + width, top + height)), shown


def draw(folder: Path) -> list[tuple[Image.Image, int]]:
    begun = f"{STORY} mary gave roses to susan ."
    machine = load_shipped("gifts-v3")
    figure = Machine(machine, [STORY, begun], view="drawing", part=HEAD, name="picture")
    path = write_page(folder, figure)
    program = next((found for name in CHROMIUM_NAMES if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        size = {"width": WIDTH, "height": 1000}
        page = browser.new_page(viewport=size)
        page.goto(path.as_uri())
        found = list(frames(page))
        browser.close()
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pictures, times = zip(*draw(Path(folder)), strict=True)
    # One palette for all frames, so that only what changes is stored of each.
    width, height = pictures[0].size
    some = Image.new("RGB", (width, 3 * height))
    for at, picture in enumerate((pictures[0], pictures[len(pictures) // 2], pictures[-1])):
        some.paste(picture, (0, at * height))
    palette = some.quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    first, *rest = (p.quantize(palette=palette, dither=Image.Dither.NONE) for p in pictures)
    told = {"duration": list(times), "comment": look()}
    first.save(PICTURE, save_all=True, append_images=rest, loop=0, optimize=True, **told)
    print(
        f"{PICTURE.relative_to(REPOSITORY)}: {len(times)} frames, {PICTURE.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
