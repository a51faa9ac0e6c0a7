"""Execute notebooks, and keep what their runs gave until the code or the library changes.

    execute(nb)                      a copy of `nb` with the outputs of a fresh run
    execute_all(paths, runs, jobs)   run those notebooks whose runs are not kept yet

`Runs(folder)` is a cache of jupyter-cache, where Jupyter Book looks for outputs. A run is kept for
the code of its notebook, and only as long as the library, Python and all packages are the same.
"""

import asyncio
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from copy import deepcopy
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

import nbformat
import zmq
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode

RUNS = Path(__file__).resolve().parents[1] / "_build" / "executed"  # as _config.yml says
TIMEOUT = 900  # seconds for one cell, against one that never ends
# One thread: two that wait for one another take five times as long where others use the cores.
SETTINGS = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1"}


async def _execute(
    nb: NotebookNode,
    timeout: int,
    kernel: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
    to_the_end: bool = False,
) -> NotebookNode:
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    os.environ |= SETTINGS
    if folders := os.environ.get("PYTHONPATH"):  # relative to this folder, which the kernel leaves
        absolute = map(os.path.abspath, folders.split(os.pathsep))
        os.environ["PYTHONPATH"] = os.pathsep.join(absolute)
    nb = deepcopy(nb)
    # No folders to search: the kernel is then ipykernel of this interpreter, whatever is installed.
    specs = KernelSpecManager() if kernel else KernelSpecManager(kernel_dirs=[])
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        # No TCP: a port that is free when it is chosen may be taken when the kernel has started.
        manager = AsyncKernelManager(
            kernel_name=kernel or "python3",
            kernel_spec_manager=specs,
            transport="ipc" if zmq.has("ipc") else "tcp",
            connection_file=str(Path(sockets, "kernel.json")),
        )
        client = NotebookClient(
            nb,
            km=manager,
            timeout=timeout,
            startup_timeout=400,  # an emulated processor takes minutes
            allow_errors=to_the_end,
            record_timing=False,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--log-level=ERROR"],  # not a word about Jupyter's own TCP ports
        )
        await client.async_execute(cleanup_kc=True, env=os.environ | environment)
    join_streams(nb)
    return nb


def join_streams(nb: NotebookNode) -> None:
    """What a cell has printed comes in pieces; join those that follow each other.

    MyST-NB would begin a new line at each: `print("a", end=" ")` and, later, `print("b")`.
    """
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        joined: list[NotebookNode] = []
        for output in cell.outputs:
            before = joined[-1] if joined else {}
            kinds = [one.get("name") for one in (before, output) if "text" in one]
            if len(kinds) == 2 and kinds[0] == kinds[1]:
                before.text += output.text
            else:
                joined.append(output)
        cell.outputs = joined


def execute(nb: NotebookNode, timeout: int = TIMEOUT, **elsewhere: Any) -> NotebookNode:
    """`nb` with the outputs of a fresh run, by this very Python, in an empty folder.

    `elsewhere`: the name of another `kernel`, what to change in its `environment`, and whether to
    go on `to_the_end` after a cell that fails. Raises nbclient's CellExecutionError for the first
    that fails otherwise.
    """
    return asyncio.run(_execute(nb, timeout, **elsewhere))


def surroundings() -> str:
    """A checksum of all that a run depends on besides its notebook."""
    found = hashlib.sha256(sys.version.encode() + Path(__file__).read_bytes())
    for package in sorted({f"{d.metadata['Name']}=={d.version}" for d in distributions()}):
        found.update(package.encode())
    library = find_spec("transformer_lib")
    for folder in library.submodule_search_locations if library else ():
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"\0{path.relative_to(folder).as_posix()}\0".encode())
                found.update(path.read_bytes())
    return found.hexdigest()


class Runs:
    """The runs of notebooks kept in `folder`, none of them older than the library."""

    def __init__(self, folder: Path):
        self._library, now = folder / "library.txt", surroundings()
        if not self._library.exists() or self._library.read_text("utf-8") != now:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            self._library.write_text(now, encoding="utf-8")
        self._cache = get_cache(str(folder))
        # How long each notebook took, which outlives the runs: so that the longest start first.
        self._times = folder.with_name(f"{folder.name}.json")

    def __contains__(self, nb: NotebookNode) -> bool:
        try:
            self._cache.match_cache_notebook(nb)
        except KeyError:
            return False
        return True

    def outputs(self, nb: NotebookNode) -> NotebookNode:
        """A copy of `nb` with the outputs of its run. Raises KeyError if none is kept."""
        return self._cache.merge_match_into_notebook(nb)[1]

    def keep(self, path: Path, nb: NotebookNode, seconds: float) -> None:
        """Keep the outputs of `nb`, the notebook at `path`, which has just run."""
        join_streams(nb)  # nbval's runs, too, come in pieces
        bundle = CacheBundleIn(nb, str(path), data={"execution_seconds": seconds})
        self._cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
        times = json.dumps(self.seconds() | {path.stem: round(seconds, 1)}, indent=1)
        self._times.write_text(times, encoding="utf-8")

    def seconds(self) -> dict[str, float]:
        """How long the notebooks took when they last ran, by name."""
        return json.loads(self._times.read_text("utf-8")) if self._times.exists() else {}


class ExecutionError(Exception):
    """A notebook did not run to its end: which, and what its cell said."""


def trains(nb: NotebookNode) -> bool:
    """Whether a notebook trains a model at length; two that do are not run side by side."""
    return any("Trainer(" in cell.source for cell in nb.cells if cell.cell_type == "code")


def longest_first(
    notebooks: dict[Path, NotebookNode], seconds: dict[str, float]
) -> dict[Path, NotebookNode]:
    """Those that train first; those that took longest first; of new ones, later chapters first."""

    def place(path: Path) -> tuple[bool, float]:
        return not trains(notebooks[path]), -seconds.get(path.stem, float("inf"))

    paths = sorted(sorted(notebooks, key=lambda path: path.stem, reverse=True), key=place)
    return {path: notebooks[path] for path in paths}


async def _execute_all(notebooks: dict[Path, NotebookNode], runs: Runs, jobs: int) -> None:
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    waiting = longest_first(notebooks, runs.seconds())

    async def job(may_train: bool) -> None:
        while path := next((p for p in waiting if may_train or not trains(waiting[p])), None):
            nb, start = waiting.pop(path), time.perf_counter()
            try:
                nb = await _execute(nb, TIMEOUT)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                raise ExecutionError(f"{path.name} did not run to its end.\n{error}") from None
            seconds = time.perf_counter() - start
            runs.keep(path, nb, seconds)
            print(f"{path.name}: executed in {seconds:.1f} s", flush=True)

    async with asyncio.TaskGroup() as tasks:  # the first that fails ends the others
        for number in range(jobs):
            tasks.create_task(job(may_train=number == 0))


def execute_all(paths: Iterable[Path], runs: Runs, jobs: int = 2) -> None:
    """Run those notebooks whose runs are not kept, up to `jobs` at a time, and keep their runs.

    Raises ExecutionError for the first that fails; the runs of those before it are kept.
    """
    notebooks = {path: nbformat.read(path, as_version=4) for path in paths}
    notebooks = {path: nb for path, nb in notebooks.items() if nb not in runs}
    try:
        asyncio.run(_execute_all(notebooks, runs, jobs))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
