"""Run a notebook with nbval, strictly, and keep what the run gave: one execution, two uses.

    python recording.py NOTEBOOK RUN [options of pytest]

The outputs that nbval has compared, its figures and the state of its widgets go to the file RUN, a
notebook, if and only if every cell has passed; the book is then built from that very run. Only the
plugin of nbval is loaded: the others take longer to load than some chapters to run.
"""

import sys
import tempfile
from contextlib import suppress
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import nbval.kernel
import pytest
import zmq
from nbclient import NotebookClient
from nbclient.client import CellExecutionComplete
from nbval.kernel import RunningKernel


class Recorder:
    """A plugin of pytest: nbclient hears what the kernel tells nbval, and makes outputs of it."""

    def __init__(self) -> None:
        self.client: NotebookClient | None = None
        self.cells: list[tuple[int, nbformat.NotebookNode]] = []
        self.request, self.current = "", -1

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.client is None:
            self.client = NotebookClient(deepcopy(item.parent.nb), record_timing=False)
            numbered = enumerate(self.client.nb.cells)
            self.cells = [(n, cell) for n, cell in numbered if cell.cell_type == "code"]
            for _, cell in self.cells:
                cell.outputs, cell.execution_count = [], None
        self.client.clear_before_next_output = False  # as nbclient begins a cell
        self.current, self.request = item.cell_num, ""

    def asked(self, message_id: str) -> None:
        self.request = message_id

    def heard(self, message: dict[str, Any]) -> None:
        if self.client is None or message["parent_header"].get("msg_id") != self.request:
            return
        index, cell = self.cells[self.current]
        with suppress(CellExecutionComplete):  # how nbclient says that the cell has come to its end
            self.client.process_message(message, cell, index)

    def run(self) -> nbformat.NotebookNode:
        """The notebook with the outputs of this run, its cells counted from 1 as in a notebook."""
        self.client.set_widgets_metadata()
        for count, (_, cell) in enumerate(self.cells, start=1):
            cell.execution_count = count
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = count
        return self.client.nb


def listen(recorder: Recorder) -> None:
    """Let `recorder` hear what nbval's kernels are asked and say."""
    ask, get = RunningKernel.execute_cell_input, RunningKernel.get_message

    def execute_cell_input(self: RunningKernel, *arguments: Any, **options: Any) -> str:
        message_id = ask(self, *arguments, **options)
        recorder.asked(message_id)
        return message_id

    def get_message(self: RunningKernel, stream: str, timeout: float | None = None) -> dict:
        message = get(self, stream, timeout)
        if stream == "iopub":
            recorder.heard(message)
        return message

    RunningKernel.execute_cell_input, RunningKernel.get_message = execute_cell_input, get_message


def without_ports(folder: str) -> None:
    """Let nbval's kernels talk through files in `folder`, as those of book/execution.py do."""
    transport = "ipc" if zmq.has("ipc") else "tcp"
    options = {"transport": transport, "connection_file": str(Path(folder, "kernel.json"))}
    nbval.kernel.KernelManager = partial(nbval.kernel.KernelManager, **options)


def main(notebook: str, run: str, *options: str) -> int:
    recorder = Recorder()
    listen(recorder)
    plugin = ["-p", "nbval.plugin", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as folder:
        without_ports(folder)
        status = pytest.main([*plugin, *options, notebook], plugins=[recorder])
    if status == pytest.ExitCode.OK:
        nbformat.write(recorder.run(), Path(run))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
