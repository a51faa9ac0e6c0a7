"""The benchmarks run, at sizes that a test can afford; a run log names a command that exists."""

import importlib.util
import shlex

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training import runs
from transformer_lib.training.machine import REPOSITORY
from transformer_lib.training.runs import load_run

FOLDER = REPOSITORY / "benchmarks"
LOGS = sorted(path.stem for path in runs.RUNS_FOLDER.glob("*.json"))


def load(name):
    """The module benchmarks/NAME.py; scripts are no package."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", LOGS)
def test_a_run_log_names_a_command_that_exists(name):
    log = load_run(name)
    assert log.name == name
    script = next(word for word in shlex.split(log.command) if word.startswith("benchmarks/"))
    assert (REPOSITORY / script).is_file(), log.command


@pytest.fixture
def positions(monkeypatch, tmp_path):
    module = load("positions")
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 12, "smear": False}
    text = "Mary gave roses to Susan. Now Susan has the roses.\n" * 30
    changes = {"LENGTH": 6, "REACH": 3, "BIN": 2, "BATCH": 2, "STEPS": 2, "SEEDS": 2}
    changes |= {"SIZES": sizes, "RUNS_FOLDER": tmp_path, "python_docs": lambda: text}
    for constant, value in changes.items():
        monkeypatch.setattr(module, constant, value)
    return module


def test_positions_measures_each_method_where_it_can(positions, tmp_path):
    positions.main()
    log = load_run(tmp_path / "positions.json")
    rows = list(zip(log.curve["method"], log.curve["seed"], log.curve["position"], strict=True))
    points = {"sinusoidal": 9, "learned": 3, "rotary": 9, "alibi": 9}
    expected = [
        (number, seed, 2 * i)
        for number, method in enumerate(log.config["methods"])
        for seed in range(2)
        for i in range(points[method])
    ]
    assert rows == expected
    assert "only positions 0 to 5 were learned" in log.result["beyond_the_table"]


@pytest.mark.parametrize("reach", [1, 3])
def test_positions_compares_the_same_targets_everywhere(positions, reach):
    ids = torch.randint(7, (100,), generator=torch.Generator().manual_seed(1))
    sizes = {"vocabulary": 7, "context": 6 * reach, "positions": "alibi"}
    model = GPT(GPTConfig.fast(**positions.SIZES | sizes)).eval()
    torch.nn.init.normal_(model.head.weight)
    measured = positions.loss_by_position(model, ids)
    assert measured.shape == (6 * reach,)
    for k in range(reach):  # block by block, each behind k blocks of context
        expected = []
        for block in range(2, 14):  # 16 whole blocks, without two on either side
            start, end = (block - k) * 6, (block + 1) * 6
            logits = model(ids[None, start:end])[0, -6:]
            expected.append(F.cross_entropy(logits, ids[end - 5 : end + 1], reduction="none"))
        mean = torch.stack(expected).double().mean(dim=0)
        torch.testing.assert_close(measured[6 * k : 6 * k + 6], mean, rtol=1e-5, atol=1e-6)
