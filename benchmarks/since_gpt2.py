"""The changes to the block since GPT-2, one at a time.

    python benchmarks/since_gpt2.py        about eight minutes on one core

Writes transformer_lib/runs/since-gpt2.json, which chapter 08's deeper page reads. The same small
GPT learns Python's documentation by characters: wired as GPT-2, and with one thing changed
(CHANGES). Muon at the rates of chapter 11's runs, a few steps, three seeds; a seed gives every
variant the same blocks in the same order. Nothing was tuned, for GPT-2's wiring or for another. The
loss is measured on the last tenth of the text. (That text needs no download. Another version of
Python has another one, so the log holds its hash.) At this size and length a change that matters
for large models, or for long runs, may do nothing; what is measured here is only this.
"""

import functools
import hashlib

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import Windows
from transformer_lib.data.texts import python_docs
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import CharacterTokenizer
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import trapezoid

RATE, ADAMW_RATE = 0.02, 0.005
SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 64}
CHANGES = {
    "GPT-2": {},
    "RMSNorm": {"rms_norm": True},
    "no biases": {"bias": False},
    "ReLU": {"activation": "relu"},
    "ReLU²": {"activation": "relu_squared"},
    "SwiGLU": {"activation": "swiglu"},
    "rotary positions": {"positions": "rotary"},
    "normalized queries and keys": {"qk_norm": True},
    "zero start": {"projections": "zero"},
    "untied output": {"tied": False},
    "smear": {"smear": 1},
}
LENGTH, BATCH, STEPS, SEEDS = 64, 16, 150, (0, 1, 2)
CHARACTERS = 20_000  # of the text's last tenth, for the loss


def model_of(change: str, vocabulary: int, seed: int) -> GPT:
    """A fresh GPT-2 with one thing changed."""
    torch.manual_seed(seed)
    sizes = {"vocabulary": vocabulary, "context": LENGTH} | SIZES
    return GPT(GPTConfig(**sizes | CHANGES[change]))


def train(model: GPT, ids: Int[Tensor, " tokens"], seed: int) -> None:
    """STEPS steps of Muon."""
    trainer = Trainer(
        model,
        Muon(model, lr=RATE, adamw_lr=ADAMW_RATE),
        Batches(Windows(ids, LENGTH), BATCH, seed=seed),
        n_steps=STEPS,
        schedule=functools.partial(trapezoid, warmup=STEPS // 15, decay=0.6),
    )
    for _ in trainer:
        pass


@torch.no_grad()
def loss(model: GPT, ids: Int[Tensor, " tokens"]) -> float:
    """The mean loss over all whole blocks of LENGTH, in nats a character."""
    n = (len(ids) - 1) // LENGTH * LENGTH
    inputs, targets = ids[:n].view(-1, LENGTH), ids[1 : n + 1].view(-1, LENGTH)
    return F.cross_entropy(model.eval()(inputs).flatten(0, 1), targets.flatten()).item()


def main() -> None:
    torch.set_num_threads(1)
    text = python_docs()
    tokenizer = CharacterTokenizer(text)
    ids = torch.tensor(tokenizer.encode(text))
    cut = len(ids) - len(ids) // 10
    training, unseen = ids[:cut], ids[cut : cut + CHARACTERS]
    result: dict[str, list | int] = {}
    for change in CHANGES:
        losses = []
        for seed in SEEDS:
            model = model_of(change, tokenizer.size, seed)
            train(model, training, seed)
            losses.append(loss(model, unseen))
        result[f"{change}: loss"] = losses
        print(change, [f"{value:.3f}" for value in losses], flush=True)
        result[f"{change}: parameters"] = model.n_parameters
    config = SIZES | {
        "changes": list(CHANGES), "length": LENGTH, "batch": BATCH, "steps": STEPS,
        "seeds": list(SEEDS), "optimizer": f"Muon {RATE:g}, AdamW {ADAMW_RATE:g}",
        "schedule": "trapezoid, warmup a fifteenth, decay 0.6", "text": "python_docs by characters",
        "characters": len(text), "sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(),
    }  # fmt: skip
    log = new_run("since-gpt2", config=config, curve={}, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
