"""For every test: checked shapes, one thread, one seed, its place in the order, shared folders."""

import os
import random
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import hypothesis
import pytest
import signatures
import torch
from schedule import place, unit

# Shapes and types in the library's signatures are checked in the tests, and only there. This must
# come before anything imports the library.
signatures.check("transformer_lib")

torch.set_num_threads(1)

# The same examples in every run: a failure must be there again when one looks for it.
hypothesis.settings.register_profile("book", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.register_profile(
    "soak", parent=hypothesis.settings.get_profile("book"), max_examples=1000
)
hypothesis.settings.load_profile("book")  # pytest --hypothesis-profile=soak: the other one


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
    random.seed(0)  # beartype draws from it which item of a sequence it checks


@pytest.fixture(scope="session", autouse=True)
def _on_the_cpu():
    """Also where there is a GPU: the tests expect equal bits, and mix tensors of their own.

    (The programs that tests start see no GPU of NVIDIA's: pytest_configure. On a Mac they would
    choose its GPU, and are told --device=cpu.)
    """
    with pytest.MonkeyPatch.context() as patch:
        name = "transformer_lib.training.device.best_device"
        patch.setattr(name, lambda: torch.device("cpu"))
        yield


@pytest.fixture
def as_a_reader():
    """Without the checked signatures: what a reader sees who passes a wrong argument."""
    with signatures.unchecked():
        yield


@pytest.fixture(scope="session")
def once(tmp_path_factory) -> Callable[[str, Callable[[Path], None]], Path]:
    """`once(name, make)`: a folder that `make(folder)` fills in one worker; the others wait for it.

    Where it fails, it fails in every test that asks, and is not tried again.
    """
    from filelock import FileLock

    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def get(name: str, make: Callable[[Path], None]) -> Path:
        folder, made, failed = root / name, root / f"{name} made", root / f"{name} failed"
        with FileLock(root / f"{name}.lock"):
            if failed.exists():
                pytest.fail(f"{name} could not be made: another test says why")
            if not made.exists():
                shutil.rmtree(folder, ignore_errors=True)  # what a killed worker has left
                folder.mkdir()
                try:
                    make(folder)
                except BaseException:
                    failed.touch()
                    shutil.rmtree(folder)
                    raise
                made.touch()
        return folder

    return get


@pytest.fixture(scope="session")
def running(tmp_path_factory) -> Callable[[Path], AbstractContextManager]:
    """`with running(path):` while a notebook runs or a folder is written: another worker waits."""
    from filelock import FileLock

    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    return lambda path: FileLock(root / f"{path.name}.running")


def asks_for_a_gpu(config) -> bool:
    return config.getoption("markexpr") == "gpu"


def pytest_collection_modifyitems(config, items):
    if not asks_for_a_gpu(config):
        left_out = [item for item in items if item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Units of tests/support/schedule.py, in the order of `place`, whatever --dist says."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid, self.numnodes)

    config.option.loadscopereorder = False
    return Units(config, log)


def pytest_configure(config):
    if not asks_for_a_gpu(config):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if hasattr(config.option, "numprocesses") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(AtOnce(config), "at-once")


def pytest_terminal_summary(terminalreporter):
    """What a newcomer meets in each chapter, if the chapters were looked at."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    names = (getattr(report, "nodeid", "") for report in reports)
    if any(name.startswith("tests/chapters/test_structure.py") for name in names):
        from report import table

        terminalreporter.section("the road of each chapter")
        for line in table():
            terminalreporter.write_line(line)


class AtOnce:
    """Say in a line, at once, what has failed; the whole comes at the end, minutes later."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            words = crash.message.splitlines()[:1] if crash else []
            terminal = self.config.pluginmanager.get_plugin("terminalreporter")
            terminal.ensure_newline()
            terminal.write_line(f"{report.nodeid} failed: {''.join(words)}", red=True)
