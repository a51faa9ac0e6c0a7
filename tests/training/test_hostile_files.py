"""Files of a stranger that are all in order but for what they ask for: refused, soon and cheaply.

Each is read in a process of its own that may take half a gigabyte more than it has.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
from damage import forge, in_a_child

from transformer_lib import storage
from transformer_lib.training import trained as library
from transformer_lib.training.checkpoints import (
    MANIFEST,
    STATE,
    TENSORS,
    CheckpointError,
    find_checkpoints,
    load_checkpoint,
    signed,
)
from transformer_lib.training.cli import main
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.run_log import RUNS_FOLDER, load_run
from transformer_lib.training.tasks import corpus_of
from transformer_lib.training.trained import TRAINED_FOLDER, load_shipped, load_trained

resource = pytest.importorskip("resource", reason="Windows has none")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc"),
]

RECIPE = Recipe.of(
    n_layers=1, n_heads=2, d_model=16, n_steps=2, n_stories=20, n_validation=4, block=85,
    precision="float32",
)  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    for _ in Run(RECIPE, device=torch.device("cpu")).steps(folder):
        pass
    shutil.rmtree(find_checkpoints(folder)[0])
    return folder


@pytest.fixture
def run_folder(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run")


def allowed():
    """Half a gigabyte more of addresses than there are now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    return pages * os.sysconf("SC_PAGE_SIZE") + 2**29


def refused(work, message, error=ValueError):
    """In a child with little memory and 30 seconds of its processor: the error that comes."""

    def limited():
        resource.setrlimit(resource.RLIMIT_AS, (allowed(), resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
        with pytest.raises(error, match=message):
            work()
        return 0

    assert in_a_child(limited) == 0


def with_recipe(checkpoint, **changes):
    configuration = load_checkpoint(checkpoint).configuration
    recipe = configuration["recipe"] | changes
    forge(checkpoint, configuration=configuration | {"recipe": recipe})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 8192, "n_layers": 8}, "a model of its recipe takes"),
        ({"model": {"d_ff": 2**20}}, "a model of its recipe takes"),
        ({"n_layers": 100, "d_model": 2**16}, "a model of its recipe takes"),
        ({"n_layers": 10**6}, "n_layers is 1,000,000; choose at most 1,000"),
        ({"d_model": 10**15 + 1}, "d_model is 1,000,000,000,000,001; choose at most"),
        ({"model": {"smear": 10**9}}, "smear = 1,000,000,000; choose at most"),
        ({"model": {"context": 10**12}}, "choose at most 1,048,576"),
        ({"model": {"vocabulary": 10**9}}, "vocabulary, which follows from the data"),
        ({"n_stories": 10**9}, "n_stories is 1,000,000,000"),
        ({"data": r"\\server\share"}, "a file on another machine"),
        ({"d_model": 24}, "a model of its recipe takes|does not hold the model"),
        ({"n_heads": 3}, "does not describe the model of a run"),
        ({"lr": None}, "does not hold the recipe of a run"),
        ({"new": 1}, "Recipe does not have"),
    ],
)
def test_a_recipe_that_asks_for_another_model_than_the_file_holds(run_folder, changes, message):
    (checkpoint,) = find_checkpoints(run_folder)
    with_recipe(checkpoint, **changes)
    refused(lambda: load_trained(run_folder), message, CheckpointError)


@pytest.mark.parametrize("command", ["resume", "sample", "evaluate"])
def test_no_command_makes_the_model_before_it_is_compared(run_folder, command):
    (checkpoint,) = find_checkpoints(run_folder)
    with_recipe(checkpoint, d_model=8192, n_layers=8)
    refused(lambda: told(main([command, str(run_folder)])), "status 1")


def test_lessons_of_a_thousand_million_texts_are_not_made(run_folder, capsys):
    (checkpoint,) = find_checkpoints(run_folder)
    with_recipe(checkpoint, lessons={"echo": 10**9}, n_steps=10**9, batch_size=2**20)
    for command in ("evaluate", "resume"):
        refused(lambda: corpus_of(load_trained(run_folder).recipe), "texts of lessons of up to")
        refused(lambda command=command: told(main([command, str(run_folder)])), "status 1")


def told(status):
    raise ValueError(f"status {status}")


@pytest.mark.parametrize("command", ["resume", "evaluate"])
@pytest.mark.parametrize("kind", ["device", "pipe", "another's", "missing"])
def test_data_that_a_stranger_names_is_a_regular_file_and_is_not_shown(
    run_folder, tmp_path, command, kind, capsys
):
    data = tmp_path / "data"
    if kind == "pipe":
        os.mkfifo(data)
    elif kind == "another's":
        data.write_text("secret words " * 100)
    (checkpoint,) = find_checkpoints(run_folder)
    with_recipe(checkpoint, data="/dev/zero" if kind == "device" else str(data), n_steps=9)
    assert main([command, str(run_folder)]) == 1
    error = capsys.readouterr().err
    words = {
        "device": "is not a regular file", "pipe": "is not a regular file",
        "another's": "its text has changed", "missing": "there is no file",
    }  # fmt: skip
    assert words[kind] in error
    assert "secret" not in error


def test_a_sparse_file_of_many_gigabytes_is_not_read(run_folder):
    (checkpoint,) = find_checkpoints(run_folder)
    manifest = json.loads((checkpoint / MANIFEST).read_text())
    os.truncate(checkpoint / TENSORS, 12 * 2**30)
    files = manifest["files"] | {TENSORS: {"size": 12 * 2**30, "sha256": "0" * 64}}
    write_manifest(checkpoint, files=files)
    refused(lambda: load_trained(run_folder), "says that the tensors take 12,884,901,888 bytes")
    run = Run(RECIPE, device=torch.device("cpu"))
    refused(lambda: run.load(run_folder), "says that the tensors take 12,884,901,888 bytes")
    refused(lambda: load_checkpoint(run_folder), "cannot be read")


def write_manifest(checkpoint, **changes):
    manifest = json.loads((checkpoint / MANIFEST).read_text())
    del manifest["sha256"]
    (checkpoint / MANIFEST).write_bytes(signed(manifest | changes))


@pytest.mark.parametrize("name", [STATE, MANIFEST])
def test_json_of_hundreds_of_megabytes_is_not_read(run_folder, name):
    (checkpoint,) = find_checkpoints(run_folder)
    if name == STATE:
        files = json.loads((checkpoint / MANIFEST).read_text())["files"]
        said = {"size": 200 * 2**20, "sha256": "0" * 64}
        write_manifest(checkpoint, files=files | {STATE: said})
    os.truncate(checkpoint / name, 200 * 2**20)
    refused(lambda: load_checkpoint(run_folder), "at most 16,777,216 are expected")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.update(step=10), "step is 10, and that of its manifest is 2"),
        (lambda state: state.pop("run"), "KeyError: 'run'"),
        (lambda state: state.pop("random"), "lacks random"),
        (lambda state: state.pop("optimizer"), "lacks optimizer"),
        (lambda state: state["run"].update(seconds="1"), "something other than numbers"),
        (lambda state: state["run"]["curve"].pop("step"), "lacks a column"),
        (lambda state: state["run"]["curve"]["step"].append(3), "of unequal length"),
        (lambda state: state["run"].update(recent=[]), "of unequal length"),
        (lambda state: state.update(run=5), "does not hold the state of a run"),
    ],
)
def test_a_state_that_is_not_that_of_the_run(run_folder, change, message):
    (checkpoint,) = find_checkpoints(run_folder)
    state = json.loads((checkpoint / STATE).read_text())
    change(state)
    forge(checkpoint, state=json.dumps(state).encode())
    with pytest.raises(CheckpointError, match=message):
        Run(RECIPE, device=torch.device("cpu")).load(run_folder)


def test_a_step_that_is_not_a_number(run_folder):
    (checkpoint,) = find_checkpoints(run_folder)
    state = (checkpoint / STATE).read_bytes().replace(b'"step":2', b'"step":NaN')
    forge(checkpoint, state=state)
    with pytest.raises(CheckpointError, match="NaN is not a number in JSON"):
        load_checkpoint(run_folder)


def with_weights(checkpoint, change):
    tensors = safetensors.torch.load((checkpoint / TENSORS).read_bytes())
    name = "model.embedding.weight"
    tensors[name] = change(tensors[name])
    forge(checkpoint, tensors=safetensors.torch.save(tensors))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.T.contiguous(), "size mismatch for embedding.weight"),
        (lambda w: w.to(torch.int32), "embedding.weight has dtype torch.int32"),
        (lambda w: w * float("nan"), "embedding.weight holds numbers that are NaN"),
    ],
)
def test_weights_of_other_shapes_and_dtypes(run_folder, change, message):
    (checkpoint,) = find_checkpoints(run_folder)
    with_weights(checkpoint, change)
    with pytest.raises(CheckpointError, match=message):
        load_trained(run_folder)


# --- Exported models -----------------------------------------------------------------------------


@pytest.fixture
def exported(tmp_path):
    return shutil.copytree(TRAINED_FOLDER / "gifts-v3", tmp_path / "exported")


def change_exported(folder, *, weights=None, recipe=None):
    """Change files and recipe of an exported model so that all of them still fit together."""
    manifest = json.loads((folder / library.MANIFEST).read_text())
    log = json.loads((folder / library.RUN).read_text())
    manifest["recipe"].update(recipe or {})
    log["config"].update(recipe or {})
    (folder / library.RUN).write_text(json.dumps(log))
    if weights is not None:
        (folder / library.WEIGHTS).write_bytes(weights)
    for name in (library.WEIGHTS, library.RUN):
        manifest["files"][name] = storage.signature((folder / name).read_bytes())
    (folder / library.MANIFEST).write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"d_model": 8192, "n_layers": 8}, "says that the tensors take 1,356,912 bytes"),
        ({"n_layers": 10**6}, "n_layers is 1,000,000; choose at most"),
        ({"d_model": 10**15 + 1}, "choose at most 65,536"),
        ({"model": {"smear": 10**9}}, "choose at most 1,000"),
        (
            {"n_heads": 4, "model": {"smear": 4, "smear_start": 0.5}},
            r"is damaged .*smear\.weights\.3",
        ),
    ],
)
def test_an_exported_model_that_is_larger_than_its_file(exported, recipe, message):
    change_exported(exported, recipe=recipe)
    refused(lambda: load_shipped(exported), message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.to(torch.int8), "says that the tensors take|has dtype torch.int8"),
        pytest.param(
            lambda w: w.to(torch.complex64),
            "has dtype torch.complex64",
            marks=pytest.mark.skipif(
                torch.complex64 not in safetensors.torch._SIZE,
                reason="this version of safetensors knows no complex numbers",
            ),
        ),
        (lambda w: w * float("nan"), "holds numbers that are NaN or infinite"),
    ],
)
def test_exported_weights_that_are_not_numbers_of_the_model(exported, change, message):
    weights = safetensors.torch.load((exported / library.WEIGHTS).read_bytes())
    weights["embedding.weight"] = change(weights["embedding.weight"])
    change_exported(exported, weights=safetensors.torch.save(weights))
    with pytest.raises(ValueError, match=message):
        load_shipped(exported)


def test_exported_weights_with_a_header_that_is_none(exported):
    content = bytearray((exported / library.WEIGHTS).read_bytes())
    content[:8] = (2**62).to_bytes(8, "little")
    change_exported(exported, weights=bytes(content))
    with pytest.raises(ValueError, match=r"weights\.safetensors is damaged .*[Hh]eader"):
        load_shipped(exported)


def test_a_manifest_of_gigabytes_or_at_the_end_of_a_link_is_not_read(exported, tmp_path):
    (exported / library.MANIFEST).rename(tmp_path / "elsewhere")
    (exported / library.MANIFEST).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is a symbolic link"):
        load_shipped(exported)
    (exported / library.MANIFEST).unlink()
    (exported / library.MANIFEST).touch()
    os.truncate(exported / library.MANIFEST, 6 * 2**30)
    refused(lambda: load_shipped(exported), "at most 16,777,216 are expected")


# --- Run logs, and what lies in a run's folder ----------------------------------------------------


def test_a_run_log_of_gigabytes_is_not_read_nor_one_that_says_a_thing_twice(tmp_path):
    log = tmp_path / "log.json"
    log.touch()
    os.truncate(log, 4 * 2**30)
    refused(lambda: load_run(log), "at most 16,777,216 are expected")
    text = (RUNS_FOLDER / "smear.json").read_text()
    log.write_text(text.replace('"name": ', '"name": "other", "name": ', 1))
    with pytest.raises(ValueError, match="it names 'name' twice"):
        load_run(log)


def test_what_else_lies_in_a_run_s_folder_is_left_alone(run_folder, capsys, tmp_path):
    """A foreign manifest.json, JSON that is not a log, and a file too large to be read."""
    shutil.rmtree(run_folder)
    run_folder.mkdir()
    (run_folder / "manifest.json").write_text('{"name": "app"}')
    (run_folder / "z.json").write_text("[1]")
    (run_folder / "data.json").touch()
    os.truncate(run_folder / "data.json", 3 * 2**30)
    options = ["--n-steps=2", "--n-layers=1", "--d-model=16", "--n-stories=20", "--n-validation=4"]
    assert main(["train", f"--folder={run_folder}", *options]) == 0
    assert main(["resume", str(run_folder)]) == 0
    assert main(["sample", str(run_folder), "--tokens=5"]) == 0
    assert main(["evaluate", str(run_folder)]) == 0
    assert main(["export", str(run_folder), str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.count("error") == 0
    assert (run_folder / "manifest.json").read_text() == '{"name": "app"}'


def test_no_message_advises_to_delete_what_was_not_understood(run_folder, as_a_reader):
    (checkpoint,) = find_checkpoints(run_folder)
    (checkpoint / MANIFEST).write_text('{"name": "app"}')
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(run_folder)
    assert "is JSON, but not a transformer_lib checkpoint" in str(caught.value)
    assert "delete" not in str(caught.value)
