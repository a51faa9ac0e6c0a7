"""Which still a stored chapter keeps, which are taken anew, and which are found to be old."""

import base64
import io
import json
from copy import deepcopy

import numpy as np
import pytest
import stills
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image
from stored_form import LARGEST, PNG, VIEW, code_digest, is_still

NOISE = np.random.default_rng(0).integers(0, 256, (150, 450, 3), dtype=np.uint8)


def png(picture):
    picture.save(file := io.BytesIO(), "PNG")
    return base64.b64encode(file.getvalue()).decode()


PLOT, OTHER = (png(Image.new("RGB", (50, 40), color)) for color in ("white", "red"))
OLD, NEW = (stills.small(Image.new("RGB", (9, 9), color)) for color in ("blue", "green"))


def opened(picture):
    return Image.open(io.BytesIO(base64.b64decode(picture)))


def run(*, words="mary", number=0.5, plot=PLOT, code="x", id_="one"):
    """A chapter with a figure, a question and a plot, as it is after a run."""
    text = base64.b64encode(json.dumps({"tokens": [words], "x": number}).encode()).decode()
    floats = base64.b64encode(np.float32([number, 1]).tobytes()).decode()
    state = {"_esm": f"code {id_}", "layout": f"IPY_MODEL_{id_}", "level": 2}
    buffers = [{"path": ["_text"], "data": text}, {"path": ["_scores"], "data": floats}]
    view = {VIEW: {"model_id": id_}, "text/plain": "Figure()"}
    question = view | {"text/markdown": "**Question.** Whom?"}
    figure = {PNG: plot, "text/plain": "<Figure size 50x40 with 0 Axes>"}
    cells = [
        new_code_cell(source, id=source, outputs=[new_output("display_data", data=data)])
        for source, data in ((code, view), ("ask", question), ("draw", figure))
    ]
    widgets = {stills.STATE: {"state": {id_: {"state": state, "buffers": buffers}}}}
    return new_notebook(cells=cells, metadata={"widgets": widgets})


def pictures(nb):
    return [cell.outputs[0].data.get(PNG) for cell in nb.cells]


@pytest.fixture
def camera(monkeypatch):
    """In place of Chromium: says what it was asked for."""
    asked = []
    monkeypatch.setattr(
        stills, "photographed", lambda run, ids: asked.extend(ids) or dict.fromkeys(ids, NEW)
    )
    return asked


@pytest.fixture
def stored(camera):
    nb = run()
    stills.attach(nb, run())
    assert camera == ["one"]
    assert pictures(nb)[:2] == [NEW, None]
    nb.cells[0].outputs[0].data[PNG] = OLD
    nb.metadata.checksums = {"code": code_digest(nb)}
    camera.clear()
    return nb


def test_a_figure_that_shows_the_same_keeps_its_still_wherever_it_stands(stored, camera):
    nb = run(id_="two", code="another_line")
    stills.attach(nb, stored)
    assert pictures(nb)[0] == OLD
    assert camera == []
    assert stills.wrong(nb, run(code="another_line")) == {}


@pytest.mark.parametrize("change", [{"words": "susan"}, {"number": 0.25}])
def test_a_figure_that_shows_something_else_gets_a_new_one(stored, camera, change):
    nb = run(**change)
    stills.attach(nb, stored)
    assert pictures(nb)[0] == NEW
    assert camera == ["one"]


def test_another_kind_of_figure_in_the_same_state_gets_its_own(stored, camera):
    nb = run()
    nb.cells[0].outputs[0].data["text/plain"] = "OtherFigure()"
    stills.attach(nb, stored)
    assert camera == ["one"]


def test_all_are_taken_again_if_asked(stored, camera):
    nb = run(plot=OTHER)
    stills.attach(nb, stored, again=True)
    assert pictures(nb)[0] == NEW
    assert pictures(nb)[2] != pictures(stored)[2]


def test_without_a_browser_only_a_figure_that_has_changed_is_left_without(stored, monkeypatch):
    def none(run, ids):
        raise stills.NoBrowserError("none here")

    monkeypatch.setattr(stills, "photographed", none)
    same, changed = run(), run(words="susan")
    for nb in (same, changed):
        stills.attach(nb, stored)
    assert pictures(same) == pictures(stored)
    assert pictures(changed) == [None, None, pictures(stored)[2]]
    assert "still" in changed.cells[0].outputs[0].metadata
    with pytest.raises(stills.NoBrowserError):
        stills.attach(run(), stored, again=True)


def test_a_plot_is_kept_until_code_or_text_has_changed(stored):
    for nb, kept in ((run(plot=OTHER), True), (run(plot=OTHER, code="y"), False)):
        stills.attach(nb, stored)
        assert (pictures(nb)[2] == pictures(stored)[2]) == kept
    nb = run(plot=OTHER)
    nb.cells[1].outputs.append(new_output("stream", text="0.5"))
    stills.attach(nb, stored)
    assert pictures(nb)[2] != pictures(stored)[2]
    assert is_still(pictures(nb)[2])
    stored.cells[2].source = "draw_it_red"  # edited, and not yet run
    nb = deepcopy(stored)
    nb.cells[2].outputs[0].data[PNG] = OTHER
    stills.attach(nb, stored)
    assert pictures(nb)[2] != pictures(stored)[2]


def test_a_still_that_looks_the_same_keeps_its_bytes(stored):
    old = stills.small(Image.new("RGB", (9, 9), (100, 100, 100)))
    stored.cells[0].outputs[0].data[PNG] = old
    for shade, kept in ((104, True), (140, False)):
        new = Image.new("RGB", (9, 9), (100, 100, 100))
        new.putpixel((4, 4), (shade, 100, 100))
        found = stills.settled(stills.small(new), [cell.outputs[0] for cell in stored.cells])
        assert (found == old) == kept


def test_an_old_still_is_found_on_any_machine(stored):
    assert stills.wrong(stored, run()) == {}
    assert stills.wrong(stored, run(number=0.5000001)) == {}  # another processor
    assert stills.wrong(stored, run(words="susan")) == {"x": "Figure(): its still is an old one"}
    without = deepcopy(stored)
    without.cells[0].outputs[0].metadata = {}
    assert stills.wrong(without, run()) == {"x": "Figure(): there is no still of it"}
    trained = run(words="what training gave")
    trained.cells[0].metadata.tags = ["nbval-ignore-output"]
    assert stills.wrong(stored, trained) == {}


def test_a_still_is_small_whatever_it_shows(monkeypatch):
    """A quarter of the pixels for a quarter of the bytes: to count colors takes its time."""
    monkeypatch.setattr(stills, "LARGEST", LARGEST // 4)
    monkeypatch.setattr(stills, "WIDTH", stills.WIDTH // 2)
    noise = Image.fromarray(NOISE)
    assert not is_still(png(noise))
    still = stills.small(noise)
    assert is_still(still)
    assert len(base64.b64decode(still)) <= LARGEST // 4
    assert opened(still).width <= stills.WIDTH


def test_a_still_keeps_colors_size_and_a_white_ground():
    picture = Image.new("RGBA", (40, 30), (0, 0, 0, 0))
    picture.paste((17, 34, 51, 255), (0, 0, 20, 30))
    still = opened(stills.small(picture)).convert("RGB")
    assert still.size == (40, 30)
    assert [still.getpixel(at) for at in ((5, 5), (35, 5))] == [(17, 34, 51), (255, 255, 255)]
