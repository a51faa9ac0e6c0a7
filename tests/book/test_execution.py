"""book/execution.py: a notebook runs again when something has changed, and only then."""

import asyncio
import sys
from types import SimpleNamespace

import execution
import nbformat
import pytest
import recording
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from programs import ended

pytestmark = pytest.mark.slow


@pytest.fixture
def write(tmp_path):
    """Write a notebook of these code cells; its path."""

    def write_(name, *sources):
        cells = [new_markdown_cell("# Title"), *map(new_code_cell, sources)]
        path = tmp_path / f"{name}.ipynb"
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
        return path

    return write_


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A folder in the place of the library's."""
    folder = tmp_path / "library"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "module.py").write_text("x = 1")
    found = SimpleNamespace(submodule_search_locations=[str(folder)])
    monkeypatch.setattr(execution, "find_spec", lambda name: found)
    return folder


def test_a_notebook_runs_again_only_when_it_or_the_library_has_changed(write, library, tmp_path):
    noted = tmp_path / "noted"
    note = f"print(open({str(noted)!r}, 'a').write('x'))"

    def times_run(path):
        execution.execute_all([path], execution.Runs(tmp_path / "runs"))
        return len(noted.read_text())

    path = write("01-a", note, "1 + 1")
    assert [times_run(path), times_run(path)] == [1, 1]
    nb = nbformat.read(path, as_version=4)
    outputs = execution.Runs(tmp_path / "runs").outputs(nb).cells
    assert outputs[0].source == "# Title"
    assert outputs[1].outputs[0].text == "1\n"
    assert outputs[2].outputs[0].data["text/plain"] == "2"
    nb.cells[0].source = "# Another title"  # prose does not run
    nbformat.write(nb, path)
    (library / "__pycache__" / "module.pyc").write_text("compiled")
    assert times_run(path) == 1
    path = write("01-a", note, "1 + 2")
    assert [times_run(path), times_run(path)] == [2, 2]
    (library / "module.py").write_text("x = 2")
    assert [times_run(path), times_run(path)] == [3, 3]
    assert "01-a" in execution.Runs(tmp_path / "runs").seconds()


def test_a_line_that_is_printed_slowly_stays_one_line(write):
    slowly = "import time\nprint('a', end=' ', flush=True)\ntime.sleep(0.6)\nprint('b')"
    nb = execution.execute(nbformat.read(write("01-a", slowly), as_version=4))
    [printed] = nb.cells[1].outputs
    assert printed.text == "a b\n"


def test_so_does_one_in_a_run_of_nbvals(write, tmp_path):
    path, runs = write("01-a", "print('a', end=' ')"), execution.Runs(tmp_path / "runs")
    nb = nbformat.read(path, as_version=4)
    nb.cells[1].outputs = [new_output("stream", text=text) for text in ("a ", "b\n")]
    runs.keep(path, nb, 1.0)
    [printed] = runs.outputs(nbformat.read(path, as_version=4)).cells[1].outputs
    assert printed.text == "a b\n"


def test_no_kernel_waits_for_a_port(write, tmp_path, monkeypatch):
    """Another program could take the port before the kernel does: here, and under nbval."""
    said = "IPKernelApp.instance().transport"
    path = write("01-a", f"from ipykernel.kernelapp import IPKernelApp\nprint({said})")
    nb = execution.execute(nbformat.read(path, as_version=4))
    assert nb.cells[1].outputs[0].text == "ipc\n"
    nbformat.write(nb, path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # as for the chapters
    done = ended(sys.executable, recording.__file__, path, tmp_path / "run.ipynb", "-q")
    assert "1 passed" in done.stdout, done


def test_a_relative_path_to_modules_is_meant_from_here(write, tmp_path, monkeypatch):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "mine.py").write_text("x = 7")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "beside")
    nb = execution.execute(nbformat.read(write("01-a", "import mine\nmine.x"), as_version=4))
    assert nb.cells[1].outputs[0].data["text/plain"] == "7"


def test_what_a_run_depends_on(library, monkeypatch):
    seen = [execution.surroundings()]

    def changed():
        seen.append(execution.surroundings())
        return seen[-1] not in seen[:-1]

    assert not changed()
    (library / "style.css").write_text("")
    assert changed()
    (library / "style.css").rename(library / "other.css")
    assert changed()
    packages = [SimpleNamespace(metadata={"Name": "torch"}, version="2.10")]
    monkeypatch.setattr(execution, "distributions", lambda: packages)
    assert changed()
    packages[0].version = "2.11"
    assert changed()
    monkeypatch.setattr("sys.version", "3.99")
    assert changed()


def test_a_failure_is_named_and_the_runs_before_it_are_kept(write, library, tmp_path):
    good, bad = write("02-good", "1"), write("01-bad", "2", "undefined_name")
    runs = execution.Runs(tmp_path / "runs")
    with pytest.raises(execution.ExecutionError, match=r"(?s)01-bad\.ipynb did not.*undefined_n"):
        execution.execute_all([good, bad], runs, jobs=1)
    assert nbformat.read(good, as_version=4) in runs
    assert nbformat.read(bad, as_version=4) not in runs


@pytest.fixture
def pretended(write, library, tmp_path, monkeypatch):
    """Run notebooks only in name, each for as long as it says; (what ran at a time, in order)."""
    running, seen = [], []

    async def pretend(nb, timeout):
        *_, name, seconds = nb.cells[-1].source.split()
        running.append(name)
        seen.append(set(running))
        await asyncio.sleep(float(seconds))
        running.remove(name)
        return nb

    monkeypatch.setattr(execution, "_execute", pretend)
    return seen


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_what_trains_is_not_run_side_by_side(write, tmp_path, pretended, jobs):
    paths = [write(f"0{n}-train", f"Trainer()  # t{n} .02") for n in (1, 2, 3)]
    paths += [write(f"1{n}-short", f"# s{n} .01") for n in range(6)]
    execution.execute_all(paths, execution.Runs(tmp_path / "runs"), jobs)
    assert len(pretended) == len(paths)
    assert max(map(len, pretended)) == jobs
    assert max(sum(name[0] == "t" for name in names) for names in pretended) == 1
    assert pretended[0] == {"t3"}


def test_the_longest_starts_first(write, tmp_path, pretended):
    paths = [write(name, f"# {name} 0") for name in ("01-a", "02-b", "03-c", "04-d")]
    runs = execution.Runs(tmp_path / "runs")
    runs.keep(paths[1], new_notebook(), 5.0)
    runs.keep(paths[2], new_notebook(), 7.0)
    execution.execute_all(paths, runs, jobs=1)
    # Whose time is not known might be the longest.
    assert pretended == [{"04-d"}, {"01-a"}, {"03-c"}, {"02-b"}]
