"""The ladder, further: what else makes a small GPT learn faster? A ledger, what failed included.

    python benchmarks/ladder.py                      all trials, some 25 minutes on a quiet core
    python benchmarks/ladder.py NorMuon --seeds 0    this one, from this seed; half a minute

Writes transformer_lib/runs/ladder.json, after each run, and does not repeat runs that are there.
Tiny Shakespeare by characters; the loss is exact, over the whole validation split in windows of 64.
The baseline is the rung ``+ smear`` of train_gpt.py in bfloat16, which a processor should have
units for (AMX or AVX512_BF16). Each trial changes one thing in it, and is shorter than the rung,
with its whole schedule; what is known of other lengths is known of the baseline alone. A trial is
worth as many steps as the baseline needs for the same loss.

All runs have one thread, and their steps are measured in the processor's time. While a trial runs,
a baseline takes turns with it, so that the ratio of the two depends little on what else the machine
does. The last trials put together what won. Rates were not tuned again for any of them.
"""

import argparse
import functools
import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from peers import BATCH, BLOCK, Peer, PeerTrainer
from three_minutes import add_smears
from torch import Tensor, nn
from train_gpt import RUNGS

from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import TRAINING_SHARE, Corpus, text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.gpt import GPT
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import COEFFICIENTS, Muon, NorMuon
from transformer_lib.training.run import seed_everything
from transformer_lib.training.run_log import RUNS_FOLDER, commit, load_run, new_run, save_run

SEEDS, BASELINE, PEER = (0, 1, 2), "baseline", "peer"
STEPS = 200  # of a trial
LENGTHS = (140, 200, 280, 400)  # of the baseline
EVERY = 10  # steps of a trial between two of the baseline
LOG = "ladder"
COLUMNS = (
    "trial", "seed", "steps", "loss", "milliseconds", "baseline milliseconds", "parameters",
    "commit",
)  # fmt: skip


_BASELINE = RUNGS["+ smear"].with_changes(precision="bfloat16")
# What a trial can change in a model: parts that listen to others (PyTorch's hooks), and are trained
# with it. Each function is given the model, the ids of the text that is trained on, and what the
# model is reading.


@dataclass
class Reading:
    """Of the batch in progress: its ids, its embeddings, and the values of the first layer."""

    ids: Tensor | None = None
    start: Tensor | None = None
    values: Tensor | None = None

    def begin(self, module: nn.Module, inputs: tuple[Tensor, ...], result: Tensor) -> None:
        """After the embedding."""
        self.ids, self.start, self.values = inputs[0], result, None


Change = Callable[[GPT, Tensor, Reading], None]


def counts(model: GPT, text: Tensor, reading: Reading, *, order: int = 2, learned: bool = True):
    """Logits begin with the logarithm of how often each token followed the last ``order`` - 1."""
    model.counted = nn.Embedding.from_pretrained(counted(text, model.config.vocabulary, order))
    model.counted.weight.requires_grad_(learned)

    def add(module: nn.Module, inputs: tuple[Tensor, ...], logits: Tensor) -> Tensor:
        return logits + model.counted(contexts(inputs[0], model.config.vocabulary, order))

    model.register_forward_hook(add)


def contexts(ids: Tensor, size: int, order: int) -> Tensor:
    """The number of each token's context: itself, and for order 3 the one before, or none."""
    if order == 2:
        return ids
    none = torch.full_like(ids[..., :1], size)
    return torch.cat((none, ids[..., :-1]), dim=-1) * size + ids


def counted(text: Tensor, size: int, order: int) -> Float[Tensor, "contexts size"]:
    """Logarithms of shares in ``text``. One is added to each pair; 8 to what 3 tokens share, as the
    pairs have it.
    """
    pairs = torch.bincount(text[:-1] * size + text[1:], minlength=size * size).view(size, size)
    pairs = (pairs + 1.0) / (pairs + 1.0).sum(dim=1, keepdim=True)
    if order == 2:
        return pairs.log()
    triples = contexts(text[:-1], size, 3)[1:] * size + text[2:]
    triples = torch.bincount(triples, minlength=(size + 1) * size * size).view(-1, size)
    triples = triples + 8 * pairs.repeat(size + 1, 1)
    return (triples / triples.sum(dim=1, keepdim=True)).log()


def bigrams(model: GPT, text: Tensor, reading: Reading) -> None:
    """A table of all pairs of tokens, zeros at first, is added to the logits."""
    counts(model, text, reading)
    nn.init.zeros_(model.counted.weight)


def bigram_embedding(model: GPT, text: Tensor, reading: Reading) -> None:
    """Each pair of tokens has a vector, zeros at first, which is added to the embedding."""
    size = model.config.vocabulary
    model.pairs = nn.Embedding((size + 1) * size, model.config.d_model)
    nn.init.zeros_(model.pairs.weight)

    def add(module: nn.Module, inputs: tuple[Tensor, ...], x: Tensor) -> Tensor:
        return x + model.pairs(contexts(inputs[0], size, 3))

    model.embedding.register_forward_hook(add)


def value_embeddings(model: GPT, text: Tensor, reading: Reading) -> None:
    """Each layer has a table of its own, zeros at first, which is added to the values."""
    for block in model.blocks:
        linear = block.attention.value
        linear.table = nn.Embedding(model.config.vocabulary, linear.out_features)
        nn.init.zeros_(linear.table.weight)
        linear.register_forward_hook(lambda m, inputs, v: v + m.table(reading.ids))


def skips(model: GPT, text: Tensor, reading: Reading) -> None:
    """Before each block but the first, the stream gets a share of the embeddings, 0 at first."""
    for block in model.blocks[1:]:
        block.skip = nn.Parameter(torch.zeros(model.config.d_model))
        block.register_forward_pre_hook(lambda b, inputs: (inputs[0] + b.skip * reading.start,))


def value_residual(model: GPT, text: Tensor, reading: Reading) -> None:
    """Values are mixed with those of the first layer, half and half at first."""

    def mix(linear: nn.Linear, inputs: tuple[Tensor, ...], v: Tensor) -> Tensor:
        if reading.values is None:
            reading.values = v
            return v
        return torch.lerp(v, reading.values, linear.share)

    for i, block in enumerate(model.blocks):
        if i > 0:
            block.attention.value.share = nn.Parameter(torch.tensor(0.5))
        block.attention.value.register_forward_hook(mix)


def smears(model: GPT, text: Tensor, reading: Reading) -> None:
    """What a layer of attention, or a feed-forward layer, reads has a smear of its own."""
    add_smears(model)


def zero_head(model: GPT, text: Tensor, reading: Reading) -> None:
    """The output begins with zeros: all tokens are equally likely."""
    nn.init.zeros_(model.head.weight)


# What it can change in Muon.


class PolarExpress(Muon):
    """Each iteration has three numbers of its own, the best ones for what the ones before left.

    ``least`` is the smallest singular value, as a share of the matrix's norm, that they care for.
    """

    least = 1e-3

    def directions(self, matrices: list[Tensor], ahead: Tensor, group: dict) -> Tensor:
        numbers = polar_coefficients(self.least, group["n_iterations"])
        return orthogonalize(ahead, numbers, group["dtype"], gram=False)


class Gram(Muon):
    """The same result by fewer products: what iterates is the small square matrix."""

    def directions(self, matrices: list[Tensor], ahead: Tensor, group: dict) -> Tensor:
        numbers = (COEFFICIENTS,) * group["n_iterations"]
        return orthogonalize(ahead, numbers, group["dtype"], gram=True)


class CautiousDecay(Muon):
    """Numbers that the step makes smaller anyway decay as well."""

    decay = 0.1

    def directions(self, matrices: list[Tensor], ahead: Tensor, group: dict) -> Tensor:
        updates = super().directions(matrices, ahead, group)
        weights = torch.stack(matrices)
        rows, columns = matrices[0].shape
        share = self.decay / max(1, rows / columns) ** 0.5
        return updates + share * weights * (weights * updates > 0)


@functools.cache
def polar_coefficients(least: float, n: int) -> tuple[tuple[float, float, float], ...]:
    """The odd polynomials of degree 5 that, one after the other, take [least, 1] nearest to 1.

    Source: Amsel et al. 2025 (The Polar Express), algorithm 1; by Remez' exchange.
    """
    low, high, found = least, 1.0, []
    for _ in range(n):
        inner = [(3 * low + high) / 4, (low + 3 * high) / 4]
        for _ in range(100):
            points = torch.tensor([low, *inner, high], dtype=torch.float64)
            signs = torch.tensor([1.0, -1, 1, -1], dtype=torch.float64)
            columns = (points, points**3, points**5, signs)
            a, b, c, _ = torch.linalg.solve(
                torch.stack(columns, dim=1), torch.ones(4, dtype=torch.float64)
            ).tolist()
            root = math.sqrt(9 * b * b - 20 * a * c)
            inner = [math.sqrt((-3 * b - sign * root) / (10 * c)) for sign in (1, -1)]
        found.append((a, b, c))
        low = a * low + b * low**3 + c * low**5
        high = 2 - low
    return tuple(found)


def orthogonalize(
    matrices: Float[Tensor, "matrices rows columns"],
    numbers: tuple[tuple[float, float, float], ...],
    dtype: torch.dtype | None,
    *,
    gram: bool,
) -> Float[Tensor, "matrices rows columns"]:
    """The library's, with three numbers for each iteration.

    With A = XXᵀ, an iteration is X ← MX for M = a + bA + cA², and A ← MAM, as M and A commute. So
    with ``gram`` only the small square matrices are multiplied until the end.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    norm = x.norm(dim=(-2, -1), keepdim=True)
    x = (x / norm.clamp(min=1e-7)).to(dtype, memory_format=torch.contiguous_format)
    small = gram and x.shape[-1] > x.shape[-2]
    square, whole = x @ x.mT, None
    for i, (a, b, c) in enumerate(numbers):
        factor = square.baddbmm(square, square, beta=b, alpha=c)
        factor.diagonal(dim1=-2, dim2=-1).add_(a)
        last = i + 1 == len(numbers)
        if small:
            whole = factor if whole is None else factor @ whole
            square = square if last else factor @ square @ factor
        else:
            x = factor @ x
            square = square if last else x @ x.mT
    x = x if whole is None else whole @ x
    return x.mT if tall else x


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One thing that was tried.

    Attributes:
        lengths: how many steps; a run for each.
        recipe: fields of the recipe that differ from the baseline's.
        changes: of the model.
        muon: the optimizer.
        options: more of its arguments.
        averaged: of the weights' running mean, which is what is measured then, the share that is
            kept at each step.
    """

    lengths: tuple[int, ...] = (STEPS,)
    recipe: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    muon: type[Muon] = Muon
    options: Mapping[str, Any] = field(default_factory=dict)
    averaged: float | None = None

    def as_json(self) -> dict[str, Any]:
        """For the log."""
        parts = [part for change in self.changes for part in described(change)]
        settings = dict(self.recipe) | {"changes": parts, "optimizer": self.muon.__name__}
        return settings | dict(self.options) | {"averaged": self.averaged}


def described(change: Change) -> list[str]:
    """Its name, and that of what it is given."""
    if isinstance(change, functools.partial):
        name = change.func.__name__
        return [f"{name} {argument} = {value}" for argument, value in change.keywords.items()]
    return [change.__name__]


COUNTED = functools.partial(counts, order=2)
FROZEN = functools.partial(counts, order=2, learned=False)
TRIPLES = functools.partial(counts, order=3)
_QUICKER = {"momentum": 0.9}
_TWO = {"n_iterations": 2}
TRIALS = {
    PEER: Trial(lengths=(60,)),  # for what a step costs; the rest is known from train_gpt.py
    BASELINE: Trial(lengths=LENGTHS),
    "bigram table": Trial(changes=(bigrams,)),
    "bigram table, counted": Trial(changes=(COUNTED,)),
    "bigram table, counted and fixed": Trial(changes=(FROZEN,)),
    "trigram table, counted": Trial(changes=(TRIPLES,)),
    "bigram embedding": Trial(changes=(bigram_embedding,)),
    "value embeddings": Trial(changes=(value_embeddings,)),
    "skips from the embedding": Trial(changes=(skips,)),
    "value residual": Trial(changes=(value_residual,)),
    "NorMuon": Trial(muon=NorMuon),
    "2 iterations": Trial(recipe=_TWO),
    "5 iterations": Trial(recipe={"n_iterations": 5}),
    "Polar Express, 3 iterations": Trial(muon=PolarExpress),
    "Polar Express, 2 iterations": Trial(muon=PolarExpress, recipe=_TWO),
    "Gram form": Trial(muon=Gram),
    "momentum 0.9": Trial(options={"momentum": 0.9}),
    "momentum 0.8": Trial(options={"momentum": 0.8}),
    "cautious decay": Trial(muon=CautiousDecay),
    "mean of the last weights": Trial(averaged=0.9),
    "smear of 2": Trial(recipe={"model": {"smear": 2}}),
    "smear of 1 in every layer": Trial(changes=(smears,)),
    "smear of 3": Trial(recipe={"model": {"smear": 3}}),
    "normalized queries and keys": Trial(recipe={"model": {"qk_norm": True}}),
    "output of zeros": Trial(changes=(zero_head,)),
    "batch of 8": Trial(recipe={"batch_size": 8}),
    "batch of 16": Trial(recipe={"batch_size": 16}),
    "batch of 24": Trial(recipe={"batch_size": 24}),
    "float32": Trial(recipe={"precision": "float32"}),
    "together": Trial(muon=NorMuon, options=_QUICKER),
    "together, batch of 24": Trial(
        lengths=(120,), muon=NorMuon, options=_QUICKER, recipe={"batch_size": 24}
    ),
    "together, in float32": Trial(muon=NorMuon, options=_QUICKER, recipe={"precision": "float32"}),
    "together, AdamW's rate doubled, in float32": Trial(
        lengths=(190,),
        muon=NorMuon,
        options=_QUICKER,
        recipe={"adamw_lr": 2 * _BASELINE.optimizer.adamw_lr, "precision": "float32"},
    ),
    "together, bigram embedding, in float32": Trial(
        lengths=(185,),
        changes=(bigram_embedding,),
        muon=NorMuon,
        options=_QUICKER,
        recipe={"precision": "float32"},
    ),
    "together, batch of 24, in float32": Trial(
        lengths=(120,),
        muon=NorMuon,
        options=_QUICKER,
        recipe={"batch_size": 24, "precision": "float32"},
    ),
}


class Run:
    """A trial in progress. Steps are measured in milliseconds of the processor."""

    def __init__(self, trial: Trial, n_steps: int, seed: int, corpus: Corpus, text: Tensor):
        recipe = _BASELINE.with_changes(**trial.recipe, n_steps=n_steps, seed=seed)
        seed_everything(seed)
        self.model = GPT(recipe.model_config(corpus.tokenizer.size))
        reading = Reading()
        self.model.embedding.register_forward_hook(reading.begin)
        for change in trial.changes:
            change(self.model, text, reading)
        low = torch.bfloat16 if recipe.precision == "bfloat16" else None
        chosen = recipe.optimizer
        optimizer = trial.muon(
            self.model, chosen.lr, adamw_lr=chosen.adamw_lr, betas=chosen.betas, eps=chosen.eps,
            n_iterations=chosen.n_iterations, dtype=low, **trial.options,
        )  # fmt: skip
        self.trainer = Trainer(
            self.model, optimizer, Batches(corpus.training, recipe.data.batch_size, seed=seed),
            n_steps=n_steps, schedule=recipe.factor, precision=recipe.precision,
        )  # fmt: skip
        self.precision = self.trainer.precision
        self.averaged, self.mean = trial.averaged, list(self.model.parameters())
        if self.averaged is not None:
            self.mean = [p.detach().clone() for p in self.mean]
        self.milliseconds: list[float] = []

    @torch.no_grad()
    def take_step(self) -> None:
        start = time.process_time()
        with torch.enable_grad():
            self.trainer.take_step()
        if self.averaged is not None:
            torch._foreach_lerp_(self.mean, list(self.model.parameters()), 1 - self.averaged)
        self.milliseconds.append(1000 * (time.process_time() - start))

    @torch.no_grad()
    def loss(self, corpus: Corpus) -> float:
        """In the end."""
        for p, mean in zip(self.model.parameters(), self.mean, strict=True):
            p.copy_(mean)
        return mean_loss(self.model, corpus.validation, batch_size=256, precision=self.precision)

    @property
    def n_parameters(self) -> int:
        """With those of the parts that were added."""
        return sum(p.numel() for p in self.model.parameters())


class PeerRun(Run):
    """The peer, as in train_gpt.py."""

    def __init__(self, n_steps: int, seed: int, corpus: Corpus):
        seed_everything(seed)
        self.model = Peer(corpus.tokenizer.size)
        self.trainer = PeerTrainer(self.model, Batches(corpus.training, BATCH, seed=seed))
        self.trainer.n_steps, self.precision = n_steps, "float32"
        self.averaged, self.mean = None, list(self.model.parameters())
        self.milliseconds = []


def measure(name: str, n_steps: int, seed: int, corpus: Corpus, text: Tensor) -> list[float]:
    """Train: what is in a row of the log, from its fourth column on."""
    if name == PEER:
        run = PeerRun(n_steps, seed, corpus)
    else:
        run = Run(TRIALS[name], n_steps, seed, corpus, text)
    beside = Run(TRIALS[BASELINE], n_steps, seed, corpus, text)
    for step in range(n_steps):
        run.take_step()
        if step % EVERY == 0:
            beside.take_step()
    medians = [statistics.median(each.milliseconds) for each in (run, beside)]
    return [run.loss(corpus), *medians, run.n_parameters]


def steps_for(loss: float, losses: dict[int, float]) -> float | None:
    """How many steps the baseline needs for this loss, on lines between what was measured.

    The lines are drawn over the logarithm of the steps. None: beyond what was measured.

    >>> round(steps_for(1.5, {100: 2.0, 400: 1.0}))
    200
    """
    lengths = sorted(losses)
    for short, long in itertools.pairwise(lengths):
        if losses[short] >= loss >= losses[long]:
            share = (losses[short] - loss) / (losses[short] - losses[long])
            return short * (long / short) ** share
    return None


def ledger(rows: list[list[float]], names: list[str]) -> dict[str, dict[str, Any]]:
    """Of each trial, what its runs say; of the baseline, those that are as long as a trial."""
    base = names.index(BASELINE) if BASELINE in names else None
    curve: dict[int, list[float]] = {}
    for trial, _, steps, loss, *_ in rows:
        if trial == base:
            curve.setdefault(steps, []).append(loss)
    means = {steps: statistics.fmean(losses) for steps, losses in curve.items()}
    result = {}
    for number, name in enumerate(names):
        mine = [r for r in rows if r[0] == number and (number != base or r[2] == STEPS)]
        if not mine:
            continue
        loss, steps = statistics.fmean(row[3] for row in mine), mine[0][2]
        worth, cost = steps_for(loss, means), statistics.median(row[4] / row[5] for row in mine)
        result[name] = {
            "seeds": [row[1] for row in mine],
            "steps": steps,
            "loss": loss,
            "losses": [row[3] for row in mine],
            "worth in steps": worth,
            "cost of a step": cost,
            "times faster": None if worth is None else worth / steps / cost,
            "parameters": mine[0][6],
        }
    return result


def kept() -> tuple[list[list[float]], dict[str, Any], list[str]]:
    """The rows of the log whose trials are still what they were, what these are, and the commits.

    The last column of a row is the number of its commit. (Rows older than this column have that of
    the whole log, which is the last that wrote one of them.)
    """
    path = RUNS_FOLDER / f"{LOG}.json"
    if not path.exists():
        return [], {}, []
    log = load_run(path)
    commits = list(log.config.get("commits", [log.commit]))
    columns = {"commit": [0] * len(log.curve["trial"])} | dict(log.curve)
    known = log.config["trials"]
    same = {name: known[name] for name in known if name in TRIALS}
    same = {name: told for name, told in same.items() if told == TRIALS[name].as_json()}
    places = {list(known).index(name): number for number, name in enumerate(same)}
    rows = zip(*(columns[column] for column in COLUMNS), strict=True)
    rows = [(places[trial], *rest) for trial, *rest in rows if trial in places]
    once = {row[:3]: list(row) for row in reversed(rows)}  # two programs may have done the same
    return list(reversed(once.values())), same, commits


def is_there(name: str, seed: int, n_steps: int) -> bool:
    """Whether the log has this run."""
    rows, trials, _ = kept()
    return name in trials and [list(trials).index(name), seed, n_steps] in [r[:3] for r in rows]


def add(name: str, row: list[float]) -> None:
    """Write a run into the log. It is read again, as another run may have come in meanwhile."""
    rows, trials, commits = kept()
    trials.setdefault(name, TRIALS[name].as_json())
    if (now := commit()) not in commits:
        commits.append(now)
    rows.append([list(trials).index(name), *row, commits.index(now)])
    config = {
        "trials": trials, "baseline": _BASELINE.as_json(), "steps": STEPS,
        "lengths of the baseline": list(LENGTHS), "steps between two of the baseline": EVERY,
        "commits": commits,
    }  # fmt: skip
    curve = dict(zip(COLUMNS, map(list, zip(*rows, strict=True)), strict=True))
    result, command = ledger(rows, list(trials)), f"python benchmarks/{LOG}.py"
    log = new_run(LOG, config=config, curve=curve, result=result, command=command)
    save_run(log, RUNS_FOLDER)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trials", nargs="*", metavar="TRIAL", help=", ".join(TRIALS))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    options = parser.parse_args(arguments)
    names = options.trials or list(TRIALS)
    if unknown := [name for name in names if name not in TRIALS]:
        parser.error(f"there is no trial {unknown[0]!r}; there are {', '.join(TRIALS)}.")
    torch.set_num_threads(1)
    text = tiny_shakespeare()
    corpus = text_corpus(text, BLOCK)
    ids = torch.tensor(corpus.tokenizer.encode(text[: int(TRAINING_SHARE * len(text))]))
    for seed in options.seeds:
        for name in names:
            for n_steps in TRIALS[name].lengths:
                if not is_there(name, seed, n_steps):
                    row = [seed, n_steps, *measure(name, n_steps, seed, corpus, ids)]
                    add(name, row)
                    print(name, dict(zip(COLUMNS[1:-1], row, strict=True)), flush=True)


if __name__ == "__main__":
    main()
