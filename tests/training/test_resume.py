"""A run that is interrupted goes on bit by bit, from any of its steps."""

import pickle
import random

import numpy as np
import pytest
import torch
from torch import nn

from transformer_lib.training.checkpoints import load_checkpoint, save_checkpoint
from transformer_lib.training.optimizers import NorMuon, set_rates
from transformer_lib.training.schedules import trapezoid
from transformer_lib.training.state import random_state, restore_random_state

ABOUT = {"configuration": {"d_model": 8}, "vocabulary": "c0ffee"}
STEPS = 12


class Run:
    """A small training run with everything that has a state: dropout, scaler, data, generators."""

    def __init__(self, checkpoint=None):
        torch.manual_seed(1)
        random.seed(2)
        self.model = nn.Sequential(
            nn.Embedding(7, 8), nn.Linear(8, 8), nn.Dropout(0.3), nn.Linear(8, 7)
        )
        self.optimizer = NorMuon(self.model, outside=())
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=3)
        self.generators = {"order": np.random.default_rng(3), "noise": torch.Generator()}
        self.step, self.epoch = 0, []
        if checkpoint is not None:
            state = checkpoint.state
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.scaler.load_state_dict(state["scaler"])
            restore_random_state(state["random"])
            self.generators["order"].bit_generator.state = state["order"]
            self.generators["noise"].set_state(state["noise"])
            self.step, self.epoch = checkpoint.step, state["data"]

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "random": random_state(),
            "order": self.generators["order"].bit_generator.state,
            "noise": self.generators["noise"].get_state(),
            "data": self.epoch,
        }

    def train(self):
        """One step; the loss as Python's exact float."""
        self.step += 1
        if not self.epoch:
            self.epoch = self.generators["order"].permutation(5).tolist()
        noise = torch.randint(7, (2,), generator=self.generators["noise"])
        ids = torch.tensor([self.epoch.pop(), random.randrange(7), *noise.tolist()])
        set_rates(self.optimizer, trapezoid(self.step, STEPS, warmup=2, decay=0.5))
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(ids), ids.roll(1))
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


@pytest.mark.usefixtures("as_a_reader")  # beartype draws from Python's generator at each call
def test_a_run_goes_on_bit_by_bit_from_every_step(tmp_path):
    run = Run()
    losses, ends = [], []
    for step in range(STEPS):
        losses.append(run.train())
        save_checkpoint(tmp_path / f"{step}", run.step, run.state(), **ABOUT)
    end = run.state()
    for step in range(STEPS):
        torch.randn(3)  # what came before does not matter
        again = Run(load_checkpoint(tmp_path / f"{step}", **ABOUT))
        assert [again.train() for _ in range(again.step, STEPS)] == losses[step + 1 :]
        ends.append(again.state())
    for state in ends:
        assert repr(state["random"]) == repr(end["random"])
        assert state["scaler"] == end["scaler"]
        for name, p in state["model"].items():
            assert p.equal(end["model"][name])
        for i, each in state["optimizer"]["state"].items():
            for name, value in each.items():
                assert torch.as_tensor(value).equal(
                    torch.as_tensor(end["optimizer"]["state"][i][name])
                )


def test_nothing_unpickles(tmp_path, monkeypatch):
    run = Run()
    run.train()
    save_checkpoint(tmp_path, run.step, run.state(), **ABOUT)

    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    for module, name in [(pickle, "load"), (pickle, "loads"), (pickle, "Unpickler")]:
        monkeypatch.setattr(module, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(np, "load", refuse)
    assert Run(load_checkpoint(tmp_path, **ABOUT)).step == 1
