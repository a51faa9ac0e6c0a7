"""`make arm`: the chapters that it runs, and the kernel that runs them."""

import json

import arm
from elsewhere import read
from execution import trains
from jupyter_client.kernelspec import KernelSpecManager
from nbclient.exceptions import CellTimeoutError
from stored_form import computed_digest

CHAPTERS = sorted((arm.ROOT / "chapters").glob("*.ipynb"))


def test_what_is_not_in_the_log_is_run_unless_it_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(arm, "LOG", tmp_path / "arm.json")
    fit = [path for path in CHAPTERS if not trains(read(path))]
    assert 20 < len(fit) < len(CHAPTERS)
    assert arm.waiting([]) == fit
    seen = {fit[0].stem: {"code": computed_digest(read(fit[0]))}, fit[1].stem: {"code": "older"}}
    arm.LOG.write_text(json.dumps(seen))
    assert arm.waiting([]) == fit[1:]
    assert arm.waiting([CHAPTERS[-1].stem, fit[0].stem]) == [CHAPTERS[-1], fit[0]]


def test_a_chapter_that_is_too_slow_is_not_as_stored(tmp_path, monkeypatch):
    def too_slow(*arguments):
        raise CellTimeoutError("a cell timed out")

    monkeypatch.setattr(arm, "LOG", tmp_path / "arm.json")
    monkeypatch.setattr(arm, "run", too_slow)
    assert not arm.look(CHAPTERS[1])
    assert not arm.LOG.exists()


def test_the_kernel_is_the_emulated_python(tmp_path, monkeypatch):
    monkeypatch.setattr(arm, "HOME", tmp_path)
    monkeypatch.setenv("JUPYTER_PATH", "")
    arm.kernel()
    spec = KernelSpecManager().get_kernel_spec("arm")
    assert spec.argv[:2] == ["qemu-aarch64-static", "-L"]
    assert spec.env["PYTHONPATH"].endswith(str(arm.ROOT))
