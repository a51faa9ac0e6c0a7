"""For the tests of benchmarks: one of them, made small."""

import pytest
import torch
from programs import load


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """tiny("positions", STEPS=2) is the benchmark with that constant, and writes to tmp_path."""
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)

    def load_with(name, **constants):
        module = load(name)
        for constant, value in (constants | {"RUNS_FOLDER": tmp_path}).items():
            assert hasattr(module, constant)
            monkeypatch.setattr(module, constant, value)
        return module

    return load_with
