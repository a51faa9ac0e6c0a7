"""book/new_figure.py, and with it the example of widgets/base.py, which it writes."""

import shutil
from functools import partial

import new_figure
import pytest

from transformer_lib import widgets
from transformer_lib.widgets import joining


def written(folder, monkeypatch):
    """The class of a new figure, written into a folder that has the shared modules."""
    for shared in ("core", "math"):
        shutil.copytree(joining.FOLDER / shared, folder / shared)
    (folder / "stream_norm").mkdir()
    texts = new_figure.files("stream_norm")
    for file, text in texts.items():
        (folder / "stream_norm" / file).write_text(text, encoding="utf-8")
    for maker in ("bundle", "stylesheet"):
        monkeypatch.setattr(joining, maker, partial(getattr(joining, maker), folder=folder))
    names = {"__name__": "stream_norm"}
    exec(texts["widget.py"], names)
    return names["StreamNorm"]


def test_a_new_figure(open_page, tmp_path, monkeypatch):
    cls = written(tmp_path, monkeypatch)
    figure = cls([1.0, 3.0], ["a", "b"], temperature=2, name="mine")
    assert repr(figure) == "StreamNorm(tokens=2)"
    assert "softmax(Array.from(scores)" in figure._esm
    assert figure.accepts("temperature", "0.5")
    with pytest.raises(ValueError, match=r"temperature is 4, but must be a number from 0.1 to 3"):
        figure.temperature = 4
    page = open_page(figure, before='<a href="#set:mine;temperature=0.1">cold</a>')
    slider = page.get_by_role("slider", name="temperature")
    assert [slider.get_attribute(end) for end in ("min", "max")] == ["0.1", "3"]
    facts = "afmFigures.get('mine')[0].facts()"
    assert page.evaluate(facts) == {"temperature": 2, "largest": pytest.approx(0.731, abs=1e-3)}
    page.get_by_role("link", name="cold").click()
    assert page.evaluate(facts) == {"temperature": 0.1, "largest": pytest.approx(1.0)}


@pytest.mark.parametrize("name", ["class", "import", "goal"])
def test_a_name_that_is_taken_is_refused(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(new_figure, "WIDGETS", tmp_path)
    monkeypatch.setattr("sys.argv", ["new_figure.py", name])
    assert new_figure.main() == 1
    assert "choose another" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_its_name_stands_in_its_place():
    listing = (joining.FOLDER / "__init__.py").read_text("utf-8")
    found = new_figure.listed(listing, "stream_norm")
    there = [*widgets.__all__, "StreamNorm"]
    assert [name for name in sorted(there) if f'    "{name}",' in found] == sorted(there)
    assert found.index("step_scrubber") < found.index("stream_norm") < found.index("text_cutter")
    assert found.count("\n") == listing.count("\n") + 2
