"""Each chapter opened alone: in an empty folder, on the installed wheel, its outputs compared.

Outputs of text are compared by nbval; that each figure's still shows it as it is, by its digest.

This is `pytest --nbval` in its strict form, one run a chapter, none left out. What these runs
gave is kept (tests/support/recording.py): the book is built from it and executes no chapter again.

They take place on a machine that says to have a GPU (tests/support/no_gpu.py): a chapter that
would meet one somewhere, and stop there, stops here.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from zipfile import ZipFile

import nbformat
import pytest
import recording
from execution import RUNS, Runs
from no_gpu import STARTUP
from programs import ended
from stills import wrong

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "LICENSE-prose", "transformer_lib")
CELL_SECONDS = 900  # against a cell that hangs: how long a chapter takes is not tested


def run(*command: object, cwd: Path, **environment: str) -> str:
    """The command's output; the test fails with it if the command does."""
    together = {"stderr": subprocess.STDOUT, "patience": None}  # a cell that hangs has its limit
    done = ended(*command, cwd=cwd, env=os.environ | environment, **together)
    if done.returncode:
        pytest.fail(f"{command[3:]} ended with {done.returncode}\n{done.stdout[-8000:]}")
    return done.stdout


@pytest.fixture(scope="session")
def wheel(once, tmp_path_factory) -> Path:
    """The wheel, built from a copy of the sources: nothing left over from another build gets in."""

    def build(target: Path) -> None:
        source = tmp_path_factory.mktemp("source")
        for part in PARTS:
            if (ROOT / part).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / part, source / part, ignore=ignored)
            else:
                shutil.copy(ROOT / part, source)
        pip = [sys.executable, "-m", "pip", "--quiet"]
        options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", target]
        run(*pip, "wheel", *options, source, cwd=target)

    return next(once("wheel", build).glob("*.whl"))


@pytest.fixture(scope="session")
def site(wheel, once) -> Path:
    """A folder that holds the installed wheel and is found before the book's own sources."""

    def install(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "--quiet"]
        run(*pip, "install", "--no-deps", "--no-index", "--target", folder, wheel, cwd=folder)
        where = "import transformer_lib; print(transformer_lib.__file__)"
        found = run(sys.executable, "-c", where, cwd=folder, PYTHONPATH=str(folder))
        assert Path(found.strip()).is_relative_to(folder)

    return once("site", install)


def test_the_wheel_is_complete(wheel):
    """All of the library that is in the sources: modules, scripts, styles, logs, weights, texts."""
    suffixes = {".py", ".js", ".css", ".json", ".safetensors", ".txt"}
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "transformer_lib").rglob("*")
        if path.suffix in suffixes and "__pycache__" not in path.parts
    }
    names = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == sources


@pytest.fixture(scope="session")
def ipython(once) -> Path:
    """IPython's folder, in which a kernel finds nothing but the pretended accelerator."""

    def make(folder: Path) -> None:
        path = folder / "profile_default" / "startup" / "accelerator.py"
        path.parent.mkdir(parents=True)
        path.write_text(STARTUP, encoding="utf-8")

    return once("ipython", make)


def test_the_pretended_accelerator_refuses_the_cpus_tensors(ipython, site, tmp_path):
    """It is the best device, leaves no name behind, and what does not ask stays on the CPU.

    And a model is loaded without PyTorch's compiler, which takes a second to import.
    """
    lines = [
        f"exec({STARTUP!r})",
        "print([name for name in globals() if not name.startswith('__')])",
        "import sys, torch",
        "from transformer_lib.training.device import choose_device",
        "from transformer_lib.training.trained import load_shipped",
        "ids = torch.zeros(1, 2, dtype=torch.int64)",
        "print(load_shipped('gifts-v3').model(ids).device, choose_device())",
        "print('torch._dynamo' in sys.modules)",
        "load_shipped('gifts-v3', device=choose_device()).model(ids)",
    ]
    program = [sys.executable, "-c", "\n".join(lines)]
    environment = os.environ | {"PYTHONPATH": str(site), "NO_GPU_STARTED": str(tmp_path / "it")}
    done = subprocess.run(program, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["[]", "cpu", "meta", "False"]
    assert "the model is on meta and ids is on cpu" in done.stderr


def test_chapter(chapter, site, ipython, tmp_path, running):
    shutil.copy(chapter, tmp_path)
    record, start = tmp_path / "run.ipynb", time.perf_counter()
    quiet = [f"--nbval-cell-timeout={CELL_SECONDS}", "-q", "--color=no"]
    with running(chapter):
        said = run(
            *(sys.executable, recording.__file__, chapter.name, record.name, *quiet),
            cwd=tmp_path,
            PYTHONPATH=str(site),
            IPYTHONDIR=str(ipython),
            PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
            OMP_NUM_THREADS="1",
            PYTHONHASHSEED="0",
            HF_HUB_OFFLINE="1",
            NO_GPU_STARTED=str(tmp_path / "accelerator"),
        )
        assert (tmp_path / "accelerator").exists()  # the kernel has met it
        assert " passed" in said
        assert not any(word in said for word in ("skipped", "xfailed", "deselected"))
        seconds, done = time.perf_counter() - start, nbformat.read(record, as_version=4)
        with running(RUNS):  # one at a time writes into the cache
            Runs(RUNS).keep(chapter, done, seconds)
    assert wrong(nbformat.read(chapter, as_version=4), done) == {}, "run `make notebooks`"
