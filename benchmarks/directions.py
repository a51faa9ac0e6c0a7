"""How even Muon makes the directions of a matrix, as it runs.

    python benchmarks/directions.py        about two minutes of one core

Writes transformer_lib/runs/directions.json. The small GPT of chapter 12b learns stories of gifts
with Muon, from three seeds, with three iterations and with five. At three steps, what Muon is about
to orthogonalize (the running mean of gradients, with its look ahead) is taken from the last block:
its queries, and both matrices of its feed-forward layer. Of 64 singular values, how many are below
a tenth of the largest, and how many above a half: before, of its signs, after three iterations and
after five.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.data.batches import Batches
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.packing import IGNORED, pack
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.optimizers import Muon, orthogonalize
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

SEEDS, ITERATIONS, STEPS = (0, 1, 2), (3, 5), (21, 80, 160)
GRAMMAR = {
    "people": ["mary", "susan", "john", "peter"], "gifts": ["roses", "books", "apples", "pens"],
    "n_gifts": 2, "n_sentences": 4,
}  # fmt: skip
SIZES = {"n_layers": 2, "n_heads": 4, "d_model": 64, "smear": 3, "smear_start": 0.5}
RATE, BATCH, STORIES = 0.02, 32, 2000
MATRICES = ("query", "expand", "contract")
WAYS = ("before", "signs", "3 iterations", "5 iterations")
COLUMNS = ("iterations", "seed", "step", "matrix", "way", "low", "high")


def counts(matrix: Tensor) -> dict[str, tuple[int, int]]:
    """Of each way, how many singular values are below a tenth of the largest, and above a half."""
    found = {}
    results = (matrix, matrix.sign(), orthogonalize(matrix, 3), orthogonalize(matrix, 5))
    for way, result in zip(WAYS, results, strict=True):
        values = torch.linalg.svdvals(result)
        share = values / values[0]
        found[way] = int((share < 0.1).sum()), int((share > 0.5).sum())
    return found


def ahead(optimizer: Muon, parameter: Tensor) -> Tensor:
    """What the step just taken has orthogonalized."""
    group = next(group for group in optimizer.param_groups if group["method"] == "muon")
    return parameter.grad.lerp(optimizer.state[parameter]["momentum"], group["momentum"])


def train(n_iterations: int, seed: int) -> list[tuple[int, ...]]:
    """A run; its rows."""
    grammar = Grammar(**GRAMMAR)
    tokenizer = WordTokenizer(grammar.vocabulary)
    ids = [tokenizer.encode(story) for story in grammar.stories(STORIES, seed=1)]
    batches = Batches(pack(ids, grammar.max_words), batch_size=BATCH, seed=seed)
    torch.manual_seed(seed)
    config = GPTConfig.fast(vocabulary=tokenizer.size, context=grammar.max_words, **SIZES)
    model = GPT(config)
    optimizer = Muon(model, lr=RATE, n_iterations=n_iterations)
    last = model.blocks[-1]
    chosen = (last.attention.query, last.feed_forward.expand, last.feed_forward.contract)
    rows = []
    for step in range(1, max(STEPS) + 1):
        inputs, targets = next(batches)
        logits = model(inputs).flatten(0, 1)
        optimizer.zero_grad()
        F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED).backward()
        optimizer.step()
        if step not in STEPS:
            continue
        for number, linear in enumerate(chosen):
            found = counts(ahead(optimizer, linear.weight))
            rows += [
                (n_iterations, seed, step, number, way, *found[name])
                for way, name in enumerate(WAYS)
            ]
    return rows


def main() -> None:
    torch.set_num_threads(1)
    rows: list[tuple[int, ...]] = []
    for n_iterations in ITERATIONS:
        for seed in SEEDS:
            rows += train(n_iterations, seed)
            print(n_iterations, seed, flush=True)
    result = {}
    for number, matrix in enumerate(MATRICES):
        for way, name in enumerate(WAYS):
            mine = [row for row in rows if row[3:5] == (number, way)]
            low, high = ([row[place] for row in mine] for place in (5, 6))
            result[f"{matrix}, {name}"] = {
                "below a tenth": [min(low), max(low)], "above a half": [min(high), max(high)],
            }  # fmt: skip
            print(matrix, name, result[f"{matrix}, {name}"])
    config = GRAMMAR | SIZES | {
        "seeds": list(SEEDS), "iterations": list(ITERATIONS), "steps": list(STEPS),
        "matrices": list(MATRICES), "ways": list(WAYS), "rate": RATE, "batch_size": BATCH,
    }  # fmt: skip
    curve = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    log = new_run("directions", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
