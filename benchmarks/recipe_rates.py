"""Chapter 12's recipe elsewhere: at other rates, for longer, on a larger model, in another world.

    python benchmarks/recipe_rates.py        about nine minutes of one core

Writes transformer_lib/runs/recipe-rates.json. The run is that of recipe_parts.py, a smaller sister
of the chapter's. First at rates each twice as large as the one before, from one seed, with the
share of steps that were clipped. Then four times as long, with the rate falling and without; and
from a start in which the matrices that write into the stream are as large as all others.

The larger model is the chapter's own, trained by its recipe, at twice the rate, and without the
fall of the rate, once each. Of the first it is asked, too, whether it completes what it has read:
rounds of characters in a random order, each text twice the same round.

The world is the chapter's, of two gifts: the share of right answers of its model with a smear, with
the chapter's three choices (an output of its own, a larger start of the embedding, queries and keys
divided by their size), without any of them, and without each.
"""

from typing import Any

import torch
import torch.nn.functional as F
from recipe_parts import EVERY, N_STEPS, RECIPE, SIZES, learn, trained
from torch.nn.utils import clip_grad_norm_

from transformer_lib.data.batches import Batches
from transformer_lib.data.gifts import PLAIN, Grammar
from transformer_lib.data.packing import IGNORED, pack
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.interpret.scores import induction_score
from transformer_lib.tokenizers import WordTokenizer
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.optimizers import adamw, set_rates
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import trapezoid

RATES = (0.001, 0.002, 0.004, 0.008, 0.016)
LONG, SEEDS = 4 * N_STEPS, (0, 1)
LONG_WAYS: dict[str, dict[str, Any]] = {"falling": {}, "no fall": {"decay": 0.0}}
LARGER: dict[str, Any] = {"sizes": {"n_layers": 3, "d_model": 96}, "n_steps": 600}
LARGER_WAYS: dict[str, dict[str, Any]] = {
    "the chapter's": {},
    "twice the rate": {"lr": 0.008},
    "no fall": {"decay": 0.0},
}
ROUNDS, LETTERS = 200, 30  # texts, and the different characters of each

PEOPLE = ["mary", "susan", "john", "peter"]
GIFTS = ["roses", "books", "apples", "pens"]
WORLD = {"n_gifts": 2, "n_sentences": 4, "give": 0.2, "give_it": 0.1, "ask": 0.7, "the": 0.5}
N_STORIES, N_HELD_OUT, WORLD_STEPS, WORLD_LR, WORLD_SEEDS = 12_000, 400, 400, 0.01, (0, 1, 2)
SMEAR: dict[str, Any] = {"n_layers": 2, "n_heads": 4, "d_model": 64, "positions": "rotary",
                         "smear": 3, "smear_start": 0.5}  # fmt: skip
START: dict[str, Any] = {"tied": False, "embedding_std": 0.3, "qk_norm": True}


@torch.no_grad()
def completes(model: GPT, n_characters: int) -> dict[str, float]:
    """Losses in the first and the second round, and the largest induction score of a head."""
    source = torch.Generator().manual_seed(0)
    order = torch.rand(ROUNDS, n_characters, generator=source).argsort(dim=1)[:, :LETTERS]
    ids = torch.cat([order, order], dim=1)
    losses = F.cross_entropy(model(ids)[:, :-1].mT, ids[:, 1:], reduction="none")
    scores = [induction_score(maps, ids) for maps in attention_maps(model, ids).values()]
    first, second = losses[:, : LETTERS - 1], losses[:, LETTERS:]
    found = {"first round": first.mean(), "second round": second.mean()}
    return {name: loss.item() for name, loss in found.items()} | {
        "best head": max(score.max().item() for score in scores)
    }


def world_learner():
    """share(start, seed): of the answers in stories that the model has not read."""
    grammar = Grammar(people=PEOPLE, gifts=GIFTS, **PLAIN | WORLD)
    told = grammar.stories(N_STORIES, seed=1)
    held_out = sorted(set(grammar.stories(N_HELD_OUT, seed=2)).difference(told))
    words = WordTokenizer(grammar.vocabulary)
    learned, new = (
        pack([words.encode(story) for story in part], grammar.max_words)
        for part in (told, held_out)
    )
    asked = new.mark([[q.position for q in grammar.questions(story)] for story in held_out])

    def share(start: dict[str, Any], seed: int) -> float:
        torch.manual_seed(seed)
        form = {"vocabulary": words.size, "context": grammar.max_words}
        model = GPT(GPTConfig(**form, **SMEAR, **start))
        batches = Batches(learned, 32, seed=seed)
        optimizer = adamw(model, lr=WORLD_LR, betas=(0.9, 0.95), weight_decay=0.1)
        for step in range(1, WORLD_STEPS + 1):
            set_rates(optimizer, trapezoid(step, WORLD_STEPS, warmup=20, decay=0.7))
            inputs, targets = next(batches)
            logits = model(inputs).flatten(0, 1)
            F.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED).backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            said = model(new.inputs)[asked].argmax(dim=-1)
        return (said == new.targets[asked]).float().mean().item()

    return share


def world() -> dict[str, list[float]]:
    """The shares of right answers, for each start."""
    share, found = world_learner(), {}
    starts = {"all three": START, "none": {}}
    starts |= {f"no {name}": START | {name: getattr(GPTConfig, name)} for name in START}
    for name, start in starts.items():
        seeds = WORLD_SEEDS if name in ("all three", "none") else WORLD_SEEDS[:1]
        found[name] = [share(start, seed) for seed in seeds]
        print(name, *(f"{right:.1%}" for right in found[name]), flush=True)
    return found


def main() -> None:
    torch.set_num_threads(1)
    rates: dict[str, float] = {}
    clipped: dict[str, float] = {}
    for rate in RATES:
        rates[str(rate)], _, clipped[str(rate)] = learn(0, {"lr": rate})
        print(rate, f"{rates[str(rate)]:.3f}, clipped {clipped[str(rate)]:.0%}", flush=True)
    loud = [learn(seed, {"sizes": {"projections": "normal"}})[0] for seed in SEEDS]
    print("projections as large as all others", loud, flush=True)
    curve: dict[str, list[float]] = {"way": [], "seed": [], "step": [], "training_loss": []}
    ends: dict[str, list[float]] = {way: [] for way in LONG_WAYS}
    for seed in SEEDS:
        for number, (way, changes) in enumerate(LONG_WAYS.items()):
            loss, losses, _ = learn(seed, changes | {"n_steps": LONG})
            ends[way].append(loss)
            print(way, f"seed {seed}, {loss:.3f}", flush=True)
            for i, mean in enumerate(losses, start=1):
                row = (number, seed, i * EVERY, mean)
                for column, value in zip(curve.values(), row, strict=True):
                    column.append(value)
    larger: dict[str, Any] = {}
    for way, changes in LARGER_WAYS.items():
        model, corpus, _, _ = trained(0, LARGER | changes)
        larger[way] = mean_loss(model, corpus.validation, batch_size=64)
        print("larger,", way, f"{larger[way]:.3f}", flush=True)
        if not changes:
            rounds = completes(model.eval(), corpus.tokenizer.size)
            print(rounds, flush=True)
    config = SIZES | RECIPE | {
        "data": "python_docs", "n_steps": N_STEPS, "long": LONG, "seeds": list(SEEDS),
        "larger": LARGER, "world": WORLD, "world_model": SMEAR, "world_start": START,
        "world_steps": WORLD_STEPS, "letters": LETTERS,
    }  # fmt: skip
    result = {"rates": rates, "clipped": clipped, "ways": list(LONG_WAYS), "long": ends}
    result |= {"projections normal": loud, "larger": larger, "rounds": rounds, "world": world()}
    log = new_run("recipe-rates", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
