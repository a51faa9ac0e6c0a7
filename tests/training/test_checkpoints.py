"""Checkpoints: what is kept; damaged, foreign and hostile ones are refused by name."""

import os
import random
import shutil
import tracemalloc
from functools import partial

import pytest
import torch
from damage import HOSTILE, forge

from transformer_lib.training import checkpoints
from transformer_lib.training.checkpoints import (
    MANIFEST,
    STATE,
    TENSORS,
    CheckpointError,
    find_checkpoints,
    load_checkpoint,
    save_checkpoint,
)

ABOUT = {"configuration": {"d_model": 8, "betas": (0.9, 0.95)}, "vocabulary": "c0ffee"}


def two_checkpoints(folder):
    for step in (1, 2):
        state = {"weight": torch.randn(50), "rates": (0.1, float("nan")), "drawn": step}
        save_checkpoint(folder, step, state, **ABOUT)
    return find_checkpoints(folder)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    two_checkpoints(folder)
    return folder


@pytest.fixture
def run_folder(originals, tmp_path):
    return shutil.copytree(originals, tmp_path / "run")


def refused(folder, message, **about):
    """Loading the newest is refused, by an error that offers the one before."""
    first, second = find_checkpoints(folder)
    with pytest.raises(CheckpointError, match=message) as caught:
        load_checkpoint(folder, **(ABOUT | about))
    assert str(second) in str(caught.value)
    return caught.value, first


def test_what_is_loaded_says_what_it_is(run_folder):
    loaded = load_checkpoint(run_folder)
    assert loaded.path == run_folder / "step-00000002"
    assert (loaded.step, loaded.threads) == (2, torch.get_num_threads())
    assert loaded.vocabulary == "c0ffee"
    assert loaded.configuration == {"d_model": 8, "betas": [0.9, 0.95]}
    assert load_checkpoint(run_folder / "step-00000001", **ABOUT).step == 1
    best = (run_folder / "step-00000001").rename(run_folder / "best")
    assert load_checkpoint(best).step == 1


def test_the_last_two_intact_ones_are_kept(tmp_path):
    save = partial(save_checkpoint, tmp_path / "new" / "run", state={"x": 1}, **ABOUT)
    for step in (5, 10, 9_999_999_999, 20):
        save(step=step)
    names = [path.name for path in find_checkpoints(tmp_path / "new" / "run")]
    assert names == ["step-00000010", "step-00000020", "step-9999999999"]  # later: not judged
    (tmp_path / "new" / "run" / "step-00000020" / STATE).write_bytes(b"")
    save(step=30)  # the damaged one does not count
    assert [path.name for path in find_checkpoints(tmp_path / "new" / "run")][:3] == [
        "step-00000010",
        "step-00000020",
        "step-00000030",
    ]
    save(step=40)
    names = [path.name for path in find_checkpoints(tmp_path / "new" / "run")]
    assert names == ["step-00000030", "step-00000040", "step-9999999999"]


def test_a_save_keeps_no_copy_while_it_reads_the_one_before(tmp_path, monkeypatch):
    def read(path, of_the_library=checkpoints._read):
        kept.append(tracemalloc.get_traced_memory()[0])
        return of_the_library(path)

    monkeypatch.setattr(checkpoints, "_read", read)
    state, kept = {"x": torch.zeros(2**18)}, []
    save_checkpoint(tmp_path, 1, state, **ABOUT)
    tracemalloc.start()
    save_checkpoint(tmp_path, 2, state, **ABOUT)
    tracemalloc.stop()
    assert len(kept) == 1
    assert kept[0] < state["x"].nbytes / 2


def test_a_step_that_is_saved_again_replaces_the_first(tmp_path):
    for x in range(12):
        path = save_checkpoint(tmp_path, 7, {"x": x}, **ABOUT)
        assert load_checkpoint(tmp_path).state == {"x": x}
    assert path.name == "step-00000007-12"
    assert len(find_checkpoints(tmp_path)) == 2


def test_another_configuration_or_vocabulary(run_folder):
    error, _ = refused(
        run_folder,
        r"of another configuration: d_ff is absent there and 3 here; d_model is 8 there and 4",
        configuration={"d_model": 4, "betas": (0.9, 0.95), "d_ff": 3},
    )
    assert error.before is None  # it is of that configuration, too
    error, _ = refused(run_folder, r"of another vocabulary \(hash c0ffee…", vocabulary="7ea")
    assert "Use the tokenizer of that run" in str(error)
    assert error.file.name == MANIFEST


def test_there_is_none(tmp_path):
    (tmp_path / "model.pt").write_bytes(b"PK")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "model.pt"):
        with pytest.raises(FileNotFoundError, match="there is no checkpoint in"):
            load_checkpoint(path)
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint in \.: no folder step"):
        load_checkpoint("")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flipped", "truncated", "extended", "zeros", "missing"])
def test_damaged_ones_are_all_found(run_folder, kind):
    draw = random.Random(kind)
    first, second = find_checkpoints(run_folder)
    contents = {file: file.read_bytes() for file in second.iterdir()}
    assert {file.name for file in contents} == {TENSORS, STATE, MANIFEST}
    for i in range(100):
        file = sorted(contents)[i % 3]
        content = bytearray(contents[file])
        at = draw.randrange(len(content))
        if kind == "flipped":
            content[at] ^= 1 << draw.randrange(8)
        elif kind == "truncated":
            del content[at:]
        elif kind == "extended":
            content += b"\n" if i < 3 else draw.randbytes(5)
        elif kind == "zeros":  # a block that the disk lost
            at = draw.randrange(len(content) - 1)
            content[at : at + 512] = bytes(min(512, len(content) - at))
        file.unlink()
        if kind != "missing":
            file.write_bytes(content)
        error, _ = refused(run_folder, "The one before it is intact: load_checkpoint")
        assert error.file == file
        assert error.before == first
        file.write_bytes(contents[file])
    assert load_checkpoint(run_folder, **ABOUT).step == 2


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_and_run_nothing(run_folder, name, monkeypatch):
    monkeypatch.chdir(run_folder)
    file, changes = HOSTILE[name]
    _, second = find_checkpoints(run_folder)
    forge(second, **changes)
    error, first = refused(run_folder, str(file).replace(".", r"\."))
    assert error.file == second / file
    assert error.before == first
    assert not (run_folder / "owned").exists()


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
def test_what_is_no_regular_file_is_not_opened(run_folder, tmp_path, name, kind):
    _, second = find_checkpoints(run_folder)
    elsewhere = (second / name).rename(tmp_path / name)
    make = {
        "link": lambda path: path.symlink_to(elsewhere),
        "pipe": os.mkfifo,
        "folder": os.mkdir,
        "device": lambda path: path.symlink_to("/dev/zero"),
    }[kind]
    make(second / name)
    linked = kind in ("link", "device")
    message = "is a symbolic link" if linked else r"is not a regular file|cannot be opened"
    error, first = refused(run_folder, message)
    assert error.file.name == name
    assert error.before == first


def test_a_link_to_a_checkpoint_is_not_taken_for_one(run_folder, tmp_path):
    shutil.copytree(run_folder / "step-00000002", tmp_path / "step-00000009")
    (run_folder / "step-00000009").symlink_to(tmp_path / "step-00000009")
    assert load_checkpoint(run_folder, **ABOUT).step == 2
    with pytest.raises(CheckpointError, match=r"is a symbolic link\. Name the folder itself"):
        load_checkpoint(run_folder / "step-00000009")


@pytest.mark.usefixtures("as_a_reader")
def test_what_cannot_be_saved_leaves_nothing(tmp_path):
    for step, state, about, error, message in [
        (0, {}, {}, ValueError, "step is 0"),
        (1, {"x": object()}, {}, TypeError, "the state's x is of type object"),
        (1, {}, {"configuration": {"a": torch.ones(1)}}, TypeError, "configuration cannot be"),
        (1, {}, {"configuration": {"a": float("nan")}}, TypeError, "configuration cannot be"),
    ]:
        with pytest.raises(error, match=message):
            save_checkpoint(tmp_path / "run", step, state, **(ABOUT | about))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "configuration",
    [
        {"tokenizer": [f"a word {i}" for i in range(120_000)]},
        {"layers": {2: 1, 10: 2}, "pairs": [(1, 2)], "none": None},
    ],
)
def test_every_configuration_that_is_saved_is_loaded(tmp_path, configuration):
    about = ABOUT | {"configuration": configuration}
    save_checkpoint(tmp_path, 1, {"x": 1}, **about)
    assert load_checkpoint(tmp_path, **about).state == {"x": 1}


def test_a_tensor_may_be_called_as_safetensors_calls_its_own(tmp_path):
    state = {"__metadata__": torch.ones(2), "__metadata___": torch.zeros(3)}
    save_checkpoint(tmp_path, 1, state, **ABOUT)
    loaded = load_checkpoint(tmp_path).state
    assert loaded.keys() == state.keys()
    assert all(loaded[name].equal(tensor) for name, tensor in state.items())


@pytest.mark.usefixtures("as_a_reader")
def test_a_checkpoint_that_would_be_refused_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setitem(checkpoints.MOST_BYTES, MANIFEST, 2**20)
    monkeypatch.setattr(checkpoints, "MOST_HEADER_BYTES", 2**10)
    wrong = [({"vocabulary": None}, "vocabulary is None"), ({"vocabulary": 5}, "vocabulary is 5")]
    wrong += [({"configuration": {"a": "x" * 2**20}}, "at most 1,048,576 are read")]
    for about, message in wrong:
        with pytest.raises(TypeError, match=message):
            save_checkpoint(tmp_path / "run", 1, {}, **(ABOUT | about))
    tensors = {"x" * 2**10: torch.ones(1)}
    with pytest.raises(TypeError, match="the tensors' names and shapes would take"):
        save_checkpoint(tmp_path / "run", 1, tensors, **ABOUT)
    assert not list(tmp_path.iterdir())
