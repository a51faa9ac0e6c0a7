"""A figure's still is taken of the figure itself, by a Chromium that nobody sees."""

import base64
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
import stills
import torch
from ipywidgets.embed import dependency_state, embed_data
from nbformat.v4 import new_notebook, new_output
from PIL import Image
from stored_form import PNG, is_still

from transformer_lib.widgets import HeadView, MaskPainter

WORDS = ["mary", "gave", "roses"]
X = torch.eye(3)


def photographed(*widgets):
    """The stills of widgets as a run has left them, and the run."""
    state = dependency_state(list(widgets), drop_defaults=False)
    state = embed_data(list(widgets), drop_defaults=False, state=state)["manager_state"]
    run = new_notebook(metadata={"widgets": {stills.STATE: state}})
    ids = [widget.model_id for widget in widgets]
    # In a thread of its own: this one has a Playwright, which all browser tests share.
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(stills.photographed, run, ids).result()
    return [found[id_] for id_ in ids]


def stored(still):
    return new_output("display_data", data={PNG: still})


def test_each_figure_gets_its_own_still_the_same_each_time():
    widgets = MaskPainter(WORDS, X, X, X), HeadView(X.view(1, 1, 3, 3), WORDS)
    first = photographed(*widgets)
    for still, again in zip(first, photographed(*widgets), strict=True):
        assert stills.settled(again, [stored(still)]) == still
        assert stills.settled(again, []) == again
    assert stills.settled(first[1], [stored(first[0])]) == first[1]
    for still in first:
        assert is_still(still)
        picture = Image.open(io.BytesIO(base64.b64decode(still)))
        assert picture.width == stills.WIDTH
        assert len(picture.convert("RGB").getcolors()) > 8


def test_a_figure_that_does_not_start_stops_it():
    broken = MaskPainter(WORDS, X, X, X)
    broken._esm = "export default { render() { throw new Error('no weights') } }"
    with pytest.raises(stills.StillError, match="could not start: no weights"):
        photographed(broken)


def test_without_a_browser_it_says_so(monkeypatch):
    monkeypatch.setenv("AFM_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(stills.NoBrowserError, match="No Chromium could be started"):
        photographed(MaskPainter(WORDS, X, X, X))
