"""Chapter 03's retrieval task at several widths: which learning rates work, with and without √d_k?

    python benchmarks/retrieval_scaling.py        about a minute on 2 cores

Writes transformer_lib/runs/retrieval-scaling.json, which chapter 03 reads. For each width d_k and
learning rate, five seeds are trained by plain gradient descent from the same initial weights and on
the same data, once with raw scores and once with scores divided by √d_k.
"""

import torch
import torch.nn.functional as F

from transformer_lib.attention import attention_weights
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

D_MODEL, KEYS, SEEDS, BATCH, STEPS, LAST = 16, 8, 5, 12, 100, 20
WIDTHS = (16, 128, 1024)
RATES = tuple(10 ** (power / 2) for power in range(-6, 5))


def train(d_k: int, scale: float, rate: float) -> list[float]:
    """The mean loss of the last steps, for each seed."""
    turn = torch.linalg.qr(torch.randn(16, 16, generator=torch.Generator().manual_seed(7)))[0]
    source = torch.Generator().manual_seed(0)
    shape = (SEEDS, 1, D_MODEL, d_k)
    W_Q, W_K = (torch.randn(*shape, generator=source) / D_MODEL**0.5 for _ in range(2))
    losses = []
    for _ in range(STEPS):
        W_Q, W_K = W_Q.detach().requires_grad_(), W_K.detach().requires_grad_()
        keys = torch.randn(SEEDS, BATCH, KEYS, D_MODEL, generator=source)
        which = torch.randint(KEYS, (SEEDS, BATCH), generator=source)
        asked = keys.gather(2, which[..., None, None].expand(-1, -1, 1, D_MODEL)) @ turn
        weights = attention_weights(asked @ W_Q, keys @ W_K, scale=scale)[:, :, 0]
        loss = ((weights - F.one_hot(which, KEYS)) ** 2).sum(-1).mean(dim=1)
        toward_q, toward_k = torch.autograd.grad(loss.sum(), (W_Q, W_K))
        W_Q, W_K = W_Q - rate * toward_q, W_K - rate * toward_k
        losses.append(loss.detach())
    return torch.stack(losses[-LAST:]).mean(0).tolist()


def main() -> None:
    torch.set_num_threads(2)
    columns: dict[str, list[float]] = {
        name: [] for name in ("d_k", "scaled", "rate", "seed", "loss")
    }
    for d_k in WIDTHS:
        for scaled in (False, True):
            for rate in RATES:
                losses = train(d_k, d_k**-0.5 if scaled else 1.0, rate)
                print(f"d_k {d_k:4} scaled {scaled!s:5} rate {rate:8.3f}: worst {max(losses):.3f}")
                for seed, loss in enumerate(losses):
                    row = (d_k, int(scaled), rate, seed, loss)
                    for column, value in zip(columns.values(), row, strict=True):
                        column.append(value)
    config = {
        "d_model": D_MODEL, "keys": KEYS, "seeds": SEEDS, "batch": BATCH, "steps": STEPS,
        "loss": f"mean of the last {LAST} steps", "optimizer": "gradient descent",
    }  # fmt: skip
    result = {"runs": len(columns["loss"]), "diverged": sum(x != x for x in columns["loss"])}
    log = new_run("retrieval-scaling", config=config, curve=columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
