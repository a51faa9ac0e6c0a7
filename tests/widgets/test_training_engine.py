"""The engine that trains in the page, against PyTorch, the library's parts and its optimizers."""

import json
from pathlib import Path

import pytest
import torch
from programs import run_node
from torch import nn
from torch.nn.functional import cross_entropy

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.blocks import PreNorm
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.layers import Embedding, FeedForward, RMSNorm, Smear
from transformer_lib.positions import LearnedPositions, RotaryPositions
from transformer_lib.training.optimizers import Muon, adamw

LEARN = Path(__file__).parents[1] / "js" / "math" / "learn.js"
# A prime for each axis: no two can be taken for one another.
SIZES = {
    "two layers, two heads, smear, feed-forward": {
        "vocabulary": 7, "tokens": 11, "batch": 3, "width": 20, "layers": 2, "heads": 2,
        "reach": 2, "hidden": 23,
    },
    "one head, attention only": {
        "vocabulary": 5, "tokens": 13, "batch": 3, "width": 22, "layers": 2,
    },
    "learned positions": {
        "vocabulary": 11, "tokens": 5, "batch": 7, "width": 9, "layers": 1, "heads": 3,
        "positions": "learned",
    },
}  # fmt: skip
TEXTS = {
    "Muon, decay, simd": {
        "vocabulary": 7, "tokens": 13, "batch": 5, "width": 24, "heads": 3, "layers": 2,
        "hidden": 32, "optimizer": "muon", "rate": 0.02, "decay": 1.5, "level": 8, "tables": 0.5,
        "seed": 3, "fast": True,
    },
    "AdamW, decay": {
        "vocabulary": 7, "tokens": 13, "batch": 5, "width": 22, "layers": 1, "hidden": 17,
        "optimizer": "adam", "rate": 0.005, "decay": 0.7, "level": 8, "tables": 1.0, "seed": 4,
    },
}  # fmt: skip
RUNS = {
    "pairs, Muon": {
        "task": "pairs", "layers": 2, "width": 16, "optimizer": "muon", "rate": 0.02, "seed": 3,
    },
    "repeats, Adam, smear": {
        "task": "repeats", "layers": 1, "width": 12, "heads": 2, "hidden": 17, "reach": 1,
        "optimizer": "adam", "rate": 0.01, "seed": 4,
    },
    "owner, Muon": {
        "task": "owner", "layers": 2, "width": 8, "optimizer": "muon", "rate": 0.02, "seed": 2,
    },
    "sort, Muon, wide and tall matrices": {
        "task": "sort", "layers": 1, "width": 8, "hidden": 13, "optimizer": "muon", "rate": 0.02,
        "seed": 5,
    },
}  # fmt: skip


class Nothing(nn.Module):
    """In place of a feed-forward layer: nothing is added to the stream."""

    def forward(self, x):
        return torch.zeros_like(x)


class Small(nn.Module):
    """The engine's model, made of the library's parts; the gains of its norms stay at 1."""

    def __init__(
        self, vocabulary, tokens, width, layers=1, heads=1, hidden=0, reach=0, positions="rotary",
        **_,
    ):  # fmt: skip
        super().__init__()
        learned = LearnedPositions(tokens, width) if positions == "learned" else None
        smear = Smear(width, reach) if reach else None
        self.embedding = Embedding(vocabulary, width, positions=learned, smear=smear)
        turn = RotaryPositions(width // heads) if positions == "rotary" else None
        self.blocks = nn.ModuleList(
            PreNorm(
                MultiHeadAttention(width, heads, bias=False, positions=turn),
                FeedForward(width, hidden, "relu_squared", bias=False) if hidden else Nothing(),
                RMSNorm(width),
                RMSNorm(width),
            )
            for _ in range(layers)
        )
        self.final_norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        for name, parameter in self.named_parameters():
            parameter.requires_grad_("norm" not in name)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, causal=True)
        return self.head(self.final_norm(x))

    def named(self, part):
        """By the engine's names: it keeps the smear's vectors in one matrix."""
        found = {name: part(p) for name, p in self.named_parameters() if p.requires_grad}
        rows = [found.pop(name) for name in sorted(found) if ".smear." in name]
        return found | ({"embedding.smear.weights": torch.stack(rows)} if rows else {})


def learn(what, options, *more):
    return json.loads(run_node(LEARN, what, json.dumps(options), *more))


def tensor_of(entry):
    return torch.tensor(entry["data"], dtype=torch.float64).reshape(entry["shape"])


def made(sizes, weights):
    """The model in float64, with these weights."""
    model = Small(**sizes).double()
    found = {name: tensor_of(entry) for name, entry in weights.items()}
    for at, row in enumerate(found.pop("embedding.smear.weights", ())):
        found[f"embedding.smear.weights.{at}"] = row
    left = model.load_state_dict(found, strict=False)
    assert not left.unexpected_keys
    assert all("norm" in name for name in left.missing_keys)
    return model


def loss_of(model, ids, targets, tokens):
    """In PyTorch: the mean over the targets that are not −1."""
    logits = model(torch.tensor(ids).view(-1, tokens))
    return logits, cross_entropy(logits.flatten(0, 1), torch.tensor(targets), ignore_index=-1)


@pytest.mark.parametrize("fast", [False, True], ids=["plain", "simd"])
@pytest.mark.parametrize("name", SIZES)
def test_gradients_are_pytorchs(name, fast):
    sizes = SIZES[name]
    found = learn("gradients", sizes | {"fast": fast})
    model = made(sizes, found["weights"])
    logits, loss = loss_of(model, found["ids"], found["targets"], sizes["tokens"])
    loss.backward()
    assert found["loss"] == pytest.approx(loss.item(), rel=1e-6)
    chances = torch.tensor(found["probabilities"]).view_as(logits)
    torch.testing.assert_close(chances, logits.softmax(-1).float(), atol=1e-6, rtol=0)
    maps = attention_maps(model, torch.tensor(found["ids"]).view(-1, sizes["tokens"]))
    for layer, weights in zip(found["maps"], maps.values(), strict=True):
        theirs = torch.tensor(layer).view_as(weights)
        torch.testing.assert_close(theirs, weights.float(), atol=1e-6, rtol=0)
    gradients = model.named(lambda p: p.grad)
    assert gradients.keys() == found["gradients"].keys()
    for key, gradient in gradients.items():
        theirs = tensor_of(found["gradients"][key])
        assert (theirs - gradient).abs().max() < 1e-5 * gradient.abs().max(), key


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_the_librarys(name):
    """The same weights, texts and optimizer: the same losses at each step, weights at the end."""
    settings = RUNS[name]
    steps, rate = 30, settings["rate"]
    found = learn("run", settings, steps)
    vocabulary = found["weights"]["head.weight"]["shape"][0]
    tokens = len(found["batches"][0]["ids"]) // 17
    positions = "learned" if settings["task"] == "sort" else "rotary"
    sizes = settings | {"vocabulary": vocabulary, "tokens": tokens, "positions": positions}
    model = made(sizes, found["weights"])
    if settings["optimizer"] == "muon":
        optimizer = Muon(model, rate, adamw_lr=rate / 2, n_iterations=3)
    else:
        optimizer = adamw(model, rate, weight_decay=0.0)
    full = [group["lr"] for group in optimizer.param_groups]
    for step, batch in enumerate(found["batches"], start=1):
        for group, most in zip(optimizer.param_groups, full, strict=True):
            group["lr"] = most * min(1, step / 20)
        _, loss = loss_of(model, batch["ids"], batch["targets"], tokens)
        assert batch["loss"] == pytest.approx(loss.item(), abs=1e-4), step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert found["batches"][-1]["loss"] < found["batches"][0]["loss"]
    for key, weight in model.named(lambda p: p.data).items():
        theirs = tensor_of(found["after"][key])
        torch.testing.assert_close(theirs, weight, atol=0.01 * rate, rtol=0)


@pytest.mark.parametrize("name", TEXTS)
def test_a_run_on_a_text_is_the_librarys(name):
    """Its pieces, its schedule and its decay; and the loss of the held-out text, by windows."""
    settings, steps = TEXTS[name], 40
    tokens, rate = settings["tokens"], settings["rate"]
    found = learn("text", settings, steps)
    model = made(settings, found["weights"])
    decay = {"weight_decay": settings["decay"]}
    if settings["optimizer"] == "muon":
        optimizer = Muon(model, rate, adamw_lr=rate / 2, n_iterations=3, **decay)
    else:
        optimizer = adamw(model, rate, **decay)
    full = [group["lr"] for group in optimizer.param_groups]
    for step, batch in enumerate(found["batches"], start=1):
        factor = min(1, step / 20, (settings["level"] / step) ** 0.5)
        for group, most in zip(optimizer.param_groups, full, strict=True):
            group["lr"] = most * factor
        _, loss = loss_of(model, batch["ids"], batch["targets"], tokens)
        assert batch["loss"] == pytest.approx(loss.item(), abs=2e-4), step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for key, weight in model.named(lambda p: p.data).items():
        theirs = tensor_of(found["after"][key])
        torch.testing.assert_close(theirs, weight, atol=0.02 * rate, rtol=0)
    held_out = torch.tensor(found["heldOut"])
    with torch.no_grad():
        losses = [
            cross_entropy(model(held_out[None, at : at + tokens])[0], after, reduction="sum")
            for at in range(0, len(held_out) - 1, tokens)
            if len(after := held_out[at + 1 : at + 1 + tokens]) == tokens
        ]
        rest = (len(held_out) - 1) % tokens
        last = model(held_out[None, -1 - rest : -1])[0]
        losses.append(cross_entropy(last, held_out[-rest:], reduction="sum"))
    mean = torch.stack(losses).sum().item() / (len(held_out) - 1)
    assert found["unseen"] == pytest.approx(mean, abs=2e-4)
    assert mean < found["batches"][0]["loss"] - 0.2
