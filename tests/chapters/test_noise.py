"""A chapter prints what is stored on every processor: book/elsewhere.py, and its log.

`make noise` tries three seeds and more, and notes it; a chapter that has changed since is tried
here with one.
"""

from concurrent.futures import ThreadPoolExecutor

import elsewhere
import nbformat
import pytest
from links import CHAPTERS

ABOUT_BITS = {"04-masking": 2, "04b-leaks-and-empty-rows": 2, "12d-long-runs": 3}


@pytest.mark.slow
def test_chapter_under_noise(chapter):
    new = elsewhere.changed([chapter])
    with ThreadPoolExecutor(1) as pool:
        assert not new or elsewhere.noisy(chapter, [0], pool) == set()


def test_how_many_cells_speak_of_bits():
    found = {}
    for path in CHAPTERS:
        cells = nbformat.read(path, as_version=4).cells
        if reasons := [cell.metadata["bits"] for cell in cells if "bits" in cell.metadata]:
            assert all(len(reason) > 20 for reason in reasons)
            found[path.stem] = len(reasons)
    assert found == ABOUT_BITS
