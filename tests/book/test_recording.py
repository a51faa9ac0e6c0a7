"""tests/support/recording.py: what nbval's run gave is what a run by nbclient gives."""

import json
import os
import re
import sys
from pathlib import Path

import execution
import nbformat
import pytest
import recording
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from programs import ended

CELLS = {
    "words": "for word in 'gave', 'roses':\n    print(word)",
    "value": "{'a': 1}",
    "figure": "import matplotlib.pyplot as plt\nplt.plot([0, 1])\nplt.show()",
    "widget": (
        "from transformer_lib.widgets import VectorPlayground\n"
        "w = VectorPlayground(['a', 'b'], [[1.0, 0.0], [0.0, 1.0]])\nw"
    ),
    "changed later": "w.selected = 1",
    "error": "1 / 0",
}


def notebook():
    cells = [new_code_cell(source) for source in CELLS.values()]
    cells[-1].metadata.tags = ["raises-exception"]
    return new_notebook(cells=[new_markdown_cell("# Words"), *cells])


def record(path, *options):
    command = [sys.executable, recording.__file__, path.name, "run.ipynb", *options]
    quiet = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"}
    return ended(*command, cwd=path.parent, env=os.environ | quiet)


def comparable(nb):
    """Outputs and widgets without random names, without colors and numbers of cells in errors."""
    nb = json.loads(json.dumps(nb))
    for cell in nb["cells"]:
        for output in cell.get("outputs", ()):
            output.pop("traceback", None)
            if "text" in output:
                output["text"] = "".join(output["text"])
    states = nb["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    outputs = [cell.get("outputs") for cell in nb["cells"]]
    counts = [cell.get("execution_count") for cell in nb["cells"]]
    named = json.dumps(
        [outputs, counts, sorted(states.values(), key=lambda state: state["model_name"])],
        sort_keys=True,
    )
    return json.loads(re.sub(r"[0-9a-f]{32}\b", "random", named))


@pytest.mark.slow
def test_a_recorded_run_is_an_execution(tmp_path):
    executed = execution.execute(notebook())
    stored = nbformat.from_dict(json.loads(json.dumps(executed)))
    stored.metadata.pop("widgets")
    nbformat.write(stored, tmp_path / "words.ipynb")
    done = record(tmp_path / "words.ipynb", "--nbval-cell-timeout=120")
    assert done.returncode == 0, done.stdout
    found = nbformat.read(tmp_path / "run.ipynb", as_version=4)
    assert comparable(found) == comparable(executed)
    widgets = found.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    assert [s["state"]["selected"] for s in widgets.values() if "selected" in s["state"]] == [1]


@pytest.mark.slow
def test_nothing_is_kept_of_a_run_that_differs(tmp_path):
    nb = new_notebook(cells=[new_code_cell("print(2)", execution_count=1)])
    nb.cells[0].outputs = [new_output("stream", text="3\n")]
    path = Path(tmp_path / "two.ipynb")
    nbformat.write(nb, path)
    assert record(path).returncode == 1
    assert not (tmp_path / "run.ipynb").exists()
