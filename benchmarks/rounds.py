"""Small GPTs learn to repeat rounds of letters, of one length or of many: chapter 14.

    python benchmarks/rounds.py        about three minutes on one quiet core

Writes transformer_lib/runs/rounds.json. A text is a round of different letters, again and again:
c a f c a f c ... In "fixed" texts every round has FIXED letters, so what comes next always stands
at the same distance; in "random" ones the length is drawn from RANDOM for each text. Each model is
then tried on rounds of all the lengths in TRIED.

    right       mean probability of the right letter, wherever it is known
    induction   the highest induction score among the model's heads, on the same texts
"""

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.interpret.scores import induction_score
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import linear

LETTERS, TOKENS, TEXTS = 20, 32, 256
FIXED, RANDOM, TRIED = 8, range(4, 13), range(3, 16)
WIRINGS = {
    "one layer, fixed": (1, [FIXED]),
    "two layers, fixed": (2, [FIXED]),
    "one layer, random": (1, RANDOM),
    "two layers, random": (2, RANDOM),
}
SIZES = {"n_heads": 1, "d_model": 32, "smear": 0}
STEPS, BATCH, LR, SEEDS = 600, 64, 0.003, 3
COLUMNS = ("wiring", "seed", "length", "right", "induction")


def rounds(n: int, lengths, generator: torch.Generator) -> Int[Tensor, "n TOKENS"]:
    """Texts of TOKENS letters; the length of each text's rounds is drawn from ``lengths``."""
    length = torch.tensor(lengths)[torch.randint(len(lengths), (n,), generator=generator)]
    letters = torch.rand(n, LETTERS, generator=generator).argsort(dim=1)
    return letters.gather(1, torch.arange(TOKENS) % length[:, None])


def trained(wiring: str, seed: int) -> GPT:
    """A model that has read STEPS batches of new texts."""
    n_layers, lengths = WIRINGS[wiring]
    torch.manual_seed(seed)
    model = GPT(GPTConfig.fast(vocabulary=LETTERS, context=TOKENS, n_layers=n_layers, **SIZES))
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = LR * linear(step + 1, STEPS)
        ids = rounds(BATCH, list(lengths), generator)
        loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def tried(model: GPT, length: int) -> tuple[float, float]:
    """``right`` and ``induction`` on rounds of one length, the same texts for all models."""
    ids = rounds(TEXTS, [length], torch.Generator().manual_seed(2**20 + length))
    # Whoever has read the first letter of the second round knows all that follows.
    p = model(ids)[:, length:-1].softmax(dim=-1)
    right = p.gather(-1, ids[:, length + 1 :, None]).mean().item()
    scores = [induction_score(maps, ids) for maps in attention_maps(model, ids).values()]
    return right, torch.stack(scores).max().item()


def main() -> None:
    torch.set_num_threads(1)
    curve: dict[str, list] = {column: [] for column in COLUMNS}
    for number, wiring in enumerate(WIRINGS):
        for seed in range(SEEDS):
            model = trained(wiring, seed)
            for length in TRIED:
                row = (number, seed, length, *tried(model, length))
                for column, value in zip(COLUMNS, row, strict=True):
                    curve[column].append(value)
            print(f"{wiring}, seed {seed}: {min(curve['right'][-len(TRIED) :]):.3f}", flush=True)
    config = {"letters": LETTERS, "tokens": TOKENS, "texts": TEXTS, **SIZES, "fixed": FIXED}
    config |= {"random": list(RANDOM), "steps": STEPS, "batch": BATCH, "lr": LR}
    result = {}
    for number, wiring in enumerate(WIRINGS):
        result[f"{wiring}: worst"] = [
            min(
                right
                for w, s, right in zip(curve["wiring"], curve["seed"], curve["right"], strict=True)
                if (w, s) == (number, seed)
            )
            for seed in range(SEEDS)
        ]
    log = new_run("rounds", config=config | {"wirings": list(WIRINGS)}, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
