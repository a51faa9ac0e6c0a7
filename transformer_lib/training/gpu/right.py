"""Is a GPU right: in every precision, with every wiring, and in the same bits?

Each function tries one of these and returns an entry for the log. What must hold and does not
raises AssertionError.
"""

import dataclasses
import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.beam import beam_search
from transformer_lib.data.corpora import Corpus
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.sampling import generate
from transformer_lib.training.device import (
    PRECISIONS,
    chosen_kernels,
    in_precision,
    require_precision,
)
from transformer_lib.training.distributed import ALONE
from transformer_lib.training.optimizers import Muon, adamw
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import make_trainer
from transformer_lib.training.tasks import TASKS, corpus_of

SMALL = {"vocabulary": 23, "context": 32, "n_layers": 2, "n_heads": 4, "d_model": 48}
WIRINGS = {
    "gpt1": GPTConfig.gpt1(**SMALL, dropout=0.1),
    "gpt2": GPTConfig.gpt2(**SMALL, dropout=0.1),
    "fast": GPTConfig.fast(**SMALL),
    "fast, qk_norm, smear 3": GPTConfig.fast(**SMALL, qk_norm=True, rms_norm=True, smear=3),
    "sinusoidal": GPTConfig(**SMALL, positions="sinusoidal", rms_norm=True),
    "alibi": GPTConfig(**SMALL, positions="alibi", tied=False, bias=False),
    "llama": GPTConfig(
        **SMALL, positions="rotary", activation="swiglu", rms_norm=True, bias=False, n_kv_heads=2
    ),
}


def precisions_of(device: torch.device) -> tuple[list[str], dict[str, str]]:
    """Those that the device has units for; why the others are left out."""
    found, left_out = [], {}
    for precision in PRECISIONS:
        try:
            require_precision(precision, device)
            found.append(precision)
        except ValueError as error:
            left_out[precision] = str(error)
    return found, left_out


def every_wiring(device: torch.device, precisions: list[str], wirings: list[str]) -> dict[str, Any]:
    """Train, prefill, step, draw and search; the largest distance of each precision's loss."""
    largest = dict.fromkeys(precisions, 0.0)
    ids = torch.randint(23, (3, 32), generator=torch.Generator().manual_seed(0)).to(device)
    for name in wirings:
        torch.manual_seed(0)
        model = GPT(dataclasses.replace(WIRINGS[name], dropout=0.0)).to(device)
        with chosen_kernels(device):
            exact = loss_of(model, ids, "float32").item()
        for precision in precisions:
            with chosen_kernels(device, tf32=precision == "tf32"):
                loss = loss_of(model, ids, precision).item()
                largest[precision] = max(largest[precision], abs(loss - exact))
                train(GPT(WIRINGS[name]).to(device), ids, precision)
                check_writing(model, ids, precision, name)
    for precision, distance in largest.items():
        assert (distance > 0) == (precision != "float32"), f"{precision} was not used: {largest}"
    return {"largest distance of the loss from float32's": largest, "wirings": wirings}


def loss_of(model: nn.Module, ids: Tensor, precision: str) -> Tensor:
    with in_precision(ids.device, precision):
        logits = model(ids[:, :-1]).float()
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def train(model: nn.Module, ids: Tensor, precision: str) -> None:
    """Three steps of each optimizer; the loss falls."""
    scale = 1024.0 if precision == "float16" else 1.0  # both optimizers divide it out again
    for optimizer in (adamw(model, 3e-3), Muon(model, 3e-3, outside=())):
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = loss_of(model, ids, precision)
            (scale * loss).backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0], (precision, losses)


@torch.no_grad()
def check_writing(model: GPT, ids: Tensor, precision: str, name: str) -> None:
    """Cached, uncached and by a beam of one: the same text; and a draw that fits."""
    model.eval()
    with in_precision(ids.device, precision):
        texts = [generate(model, ids[:, :9], 20, temperature=0, cache=c) for c in (True, False)]
        beam = beam_search(model, ids[:, :9], 20, width=1)[0][:, 0]
        drawn = generate(
            model, ids[:1, :9], 20, top_k=7, top_p=0.9,
            generator=torch.Generator(ids.device).manual_seed(0),
        )  # fmt: skip
    assert drawn.shape == (1, 29)
    if precision == "float32":  # in fewer bits, near ties may go another way
        assert texts[0].equal(texts[1]), name
        assert texts[0].equal(beam), name


def translator(device: torch.device, precisions: list[str], steps: int) -> dict[str, Any]:
    """The book's translator, a little trained in each precision: its loss falls, and it writes."""
    found = {}
    for precision in precisions:
        recipe = PRESETS["kannada"].with_changes(n_steps=steps, precision=precision)
        recipe = recipe.with_changes(n_stories=500, n_validation=50)
        corpus, task = corpus_of(recipe), TASKS[recipe.data.task]
        trainer = make_trainer(recipe, corpus, ALONE, device)
        losses = [step.loss for step in trainer]
        assert losses[-1] < losses[0], (precision, losses)
        sentence = corpus.pairs[0].source
        with in_precision(device, precision):
            texts = task.translate(trainer.model.eval(), corpus.tokenizer, [sentence], width=2)
        found[precision] = {"loss": [losses[0], losses[-1]], sentence: texts[0]}
    return found


def attention_kernels(device: torch.device, corpus: Corpus, recipe: Recipe) -> dict[str, list[str]]:
    """Which of PyTorch's kernels of attention a training step took, by wiring and precision.

    None, where the library writes attention out as products (as it does on processors, in 16 bits).
    """
    taken = {}
    precisions = {"float32", recipe.precision or "float32"}
    for wiring, precision in itertools.product(("fast", "gpt2"), sorted(precisions)):
        short = recipe.with_changes(wiring=wiring, precision=precision, n_steps=2)
        trainer = make_trainer(short, corpus, ALONE, device)
        trainer.take_step()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            trainer.take_step()
        names = {event.key for event in profile.key_averages()}
        taken[f"{wiring}, {precision}"] = sorted(n for n in names if "attention" in n)
    return taken


def repeated(device: torch.device, corpus: Corpus, recipe: Recipe) -> bool:
    """Whether two runs of a few steps from one seed end in the same bits."""
    ends = []
    for _ in range(2):
        trainer = make_trainer(recipe, corpus, ALONE, device)
        for _ in trainer:
            pass
        ends.append([p.detach().clone() for p in trainer.model.parameters()])
    return all(map(torch.equal, *ends))


def resumed(device: torch.device, corpus: Corpus, recipe: Recipe) -> bool:
    """Whether a run that is stopped and resumed ends in the bits of one that was not."""
    whole = make_trainer(recipe, corpus, ALONE, device)
    for step in whole:
        if step.step == recipe.n_steps // 2:
            state = clone(whole.state_dict())
    other = make_trainer(recipe, corpus, ALONE, device)
    other.load_state_dict(state)
    for _ in other:
        pass
    return all(map(torch.equal, whole.model.parameters(), other.model.parameters()))


def bits(device: torch.device, corpus: Corpus, recipe: Recipe) -> dict[str, bool]:
    """Whether two runs end in the same bits: as it is, deterministic, and resumed."""
    ordered = recipe.with_changes(deterministic=True)
    found = {
        "as it is": repeated(device, corpus, recipe),
        "deterministic": repeated(device, corpus, ordered),
        "deterministic, resumed": resumed(device, corpus, ordered),
    }
    assert found["deterministic"], found
    assert found["deterministic, resumed"], found
    return found


def clone(value: Any) -> Any:
    """A copy of a state: its tensors are the trainer's own."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(clone(item) for item in value)
    return value
