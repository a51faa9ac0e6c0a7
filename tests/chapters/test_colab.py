"""Chapter 12d's cell for Colab, by IPython: `{kept}` and `$!` pass through Python and a shell."""

import subprocess
import sys

import nbformat
from links import ROOT
from programs import PATIENCE

RUN = "python -m transformer_lib.training train --preset t4 --folder runs/t4 --continue"
# It ends only when its first file has been copied, while it runs.
STAND_IN = (
    "sh -c 'echo 1 >runs/t4/first; until test -e {kept}/first; do sleep 0.1; done; "
    "echo 2 >runs/t4/last'"
)


def test_what_a_run_on_colab_saves_is_copied_while_it_runs_and_at_its_end(tmp_path):
    chapter = nbformat.read(ROOT / "chapters" / "12d-long-runs.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in chapter.cells)
    cell = text[text.index("kept = ") : text.index("drive.flush_and_unmount()")]
    assert RUN in cell
    cell = cell.replace(RUN, STAND_IN).replace("sleep 120", "sleep 0.1")
    cell = cell.replace("/content/drive/MyDrive", str(tmp_path / "drive"))
    shell = "from IPython.core.interactiveshell import InteractiveShell as S; S.instance().run_cell"
    subprocess.run(
        [sys.executable, "-c", f"{shell}({cell!r})"], cwd=tmp_path, check=True, timeout=PATIENCE
    )
    assert {path.name for path in (tmp_path / "drive/t4").iterdir()} == {"first", "last"}
