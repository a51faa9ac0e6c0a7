"""Chapter 03's retrieval task at several widths: which learning rates work, with and without √d_k?

    python benchmarks/retrieval_scaling.py             some fifteen minutes on one core
    python benchmarks/retrieval_scaling.py --lookups   a minute or two

Writes transformer_lib/runs/retrieval-scaling.json, which chapters 03 and 03b read. For each width
d_k, optimizer and learning rate, ten seeds are trained in three ways on the same questions: with
raw scores; with scores divided by √d_k, from the same matrices; and with raw scores from a smaller
start, W_Q/√d_k, so that the first scores are those of the second. The loss is noted after 100 steps
and after 1,000. With --lookups: for each number of lookups in a step, the rates of gradient descent
at which all runs of the largest width learn in 100 steps. They go into
transformer_lib/runs/retrieval-lookups.json, behind a sentence of chapter 03.
"""

import sys

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.attention import attention_weights
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

D_MODEL, KEYS, SEEDS, BATCH, LAST = 16, 8, 10, 12, 20
STEPS = (100, 1000)
WIDTHS = (16, 128, 1024)
KINDS = ("raw", "scaled", "small start")
# Adam's step is the rate itself, whatever the gradient's size, so its rates are smaller.
RATES = {
    "gradient descent": tuple(10 ** (power / 2) for power in range(-10, 5)),
    "adam": tuple(10 ** (power / 2) for power in range(-12, 3)),
}
BETAS, EPSILON = (0.9, 0.999), 1e-8
LOOKUPS, LEARNED = (BATCH, 64), 0.3  # a run has learned if its loss ends below


def train(
    d_k: int, kind: str, optimizer: str, batch: int | None = None, numbers: tuple[int, ...] = ()
) -> dict[int, Tensor]:
    """The mean loss of the last steps, [rates, seeds], for each number of steps."""
    turn = torch.linalg.qr(torch.randn(16, 16, generator=torch.Generator().manual_seed(7)))[0]
    source = torch.Generator().manual_seed(0)
    rate = torch.tensor(RATES[optimizer])[:, None, None, None]
    start = torch.randn(2, SEEDS, D_MODEL, d_k, generator=source) / D_MODEL**0.5
    if kind == "small start":
        start[0] /= d_k**0.5
    matrices = start[:, None].repeat(1, len(rate), 1, 1, 1)  # [2, rates, seeds, d_model, d_k]
    mean, square = torch.zeros_like(matrices), torch.zeros_like(matrices)
    scale = d_k**-0.5 if kind == "scaled" else 1.0
    losses, batch, numbers = [], batch or BATCH, numbers or STEPS
    for step in range(1, max(numbers) + 1):
        matrices.requires_grad_()
        keys = torch.randn(SEEDS, batch, KEYS, D_MODEL, generator=source)
        which = torch.randint(KEYS, (SEEDS, batch), generator=source)
        asked = keys.gather(2, which[..., None, None].expand(-1, -1, 1, D_MODEL)) @ turn
        # W_Q W_Kᵀ first: the same scores and gradients as (asked W_Q)(keys W_K)ᵀ, much sooner.
        middle = matrices[0] @ matrices[1].mT
        queries, keys = asked @ middle[:, :, None], keys.expand(len(rate), *keys.shape)
        weights = attention_weights(queries, keys, scale=scale)[..., 0, :]
        loss = ((weights - F.one_hot(which, KEYS)) ** 2).sum(-1).mean(dim=-1)
        (gradient,) = torch.autograd.grad(loss.sum(), matrices)
        if optimizer == "adam":
            mean = BETAS[0] * mean + (1 - BETAS[0]) * gradient
            square = BETAS[1] * square + (1 - BETAS[1]) * gradient**2
            typical = (square / (1 - BETAS[1] ** step)).sqrt() + EPSILON
            gradient = mean / (1 - BETAS[0] ** step) / typical
        matrices = matrices.detach() - rate * gradient
        losses.append(loss.detach())
    return {steps: torch.stack(losses[steps - LAST : steps]).mean(0) for steps in numbers}


def lookups() -> None:
    torch.set_num_threads(1)
    result, steps = {}, STEPS[0]
    for batch in LOOKUPS:
        for kind in KINDS[:2]:
            worst = train(WIDTHS[-1], kind, "gradient descent", batch, (steps,))[steps].amax(dim=1)
            rates = zip(RATES["gradient descent"], worst, strict=True)
            result[f"{kind}, {batch} lookups"] = [rate for rate, loss in rates if loss < LEARNED]
    config = {"d_k": WIDTHS[-1], "steps": steps, "learned": f"below {LEARNED}"}
    log = new_run("retrieval-lookups", config=config, curve={}, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


def main() -> None:
    torch.set_num_threads(1)
    names = ("optimizer", "d_k", "kind", "rate", "seed", *(f"after {n}" for n in STEPS))
    columns: dict[str, list] = {name: [] for name in names}
    for optimizer, rates in RATES.items():
        for d_k in WIDTHS:
            for kind in KINDS:
                found = train(d_k, kind, optimizer)
                for steps, loss in found.items():
                    worst = " ".join(f"{x:.2f}" for x in loss.amax(dim=1))
                    print(f"{optimizer}, d_k {d_k}, {kind}, {steps} steps: worst {worst}")
                for i, rate in enumerate(rates):
                    for seed in range(SEEDS):
                        after = (round(found[n][i, seed].item(), 4) for n in STEPS)
                        row = (list(RATES).index(optimizer), d_k, KINDS.index(kind), rate, seed)
                        for name, value in zip(names, (*row, *after), strict=True):
                            columns[name].append(value)
    config = {
        "d_model": D_MODEL, "keys": KEYS, "seeds": SEEDS, "batch": BATCH, "steps": list(STEPS),
        "loss": f"mean of the last {LAST} steps", "optimizers": list(RATES), "kinds": list(KINDS),
    }  # fmt: skip
    lost = sum(x != x for n in STEPS for x in columns[f"after {n}"])
    result = {"runs": len(columns["rate"]), "diverged": lost}
    log = new_run("retrieval-scaling", config=config, curve=columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    lookups() if sys.argv[1:] == ["--lookups"] else main()
