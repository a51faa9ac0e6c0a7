"""German into English on Multi30k, from its 29,000 pairs alone.

    python benchmarks/translate.py                   one seed: 35 to 90 minutes of one core
    python benchmarks/translate.py --seeds 1 2       others, beside it in the log
    python benchmarks/translate.py --try "dropout 0.1" --changes '{"dropout": 0.1}' --steps 1500

Writes transformer_lib/runs/multi30k.json, after each seed; what the log has of other seeds and the
same recipe stays in it. The preset ``multi30k`` is trained, saved and resumed in
_build/multi30k; stop it whenever you like. The beam's width and length penalty are those with the
best BLEU on the validation pairs. Then the test pairs are translated (test_2016_flickr), and
the same output is judged three times:

    bleu        sacreBLEU as its signature says: cased, with punctuation, its own tokens (13a)
    bleu_lower  in small letters and split at punctuation, as many others report it
    chrf        chrF2, of characters

The bootstrap says how far the BLEU of 1,000 sentences can be off, and whether beams beat a greedy
search on the same sentences (paired; Koehn 2004).

With ``--try`` a change of the recipe is trained for fewer steps and judged on the validation pairs
only, greedily. Each trial, useless ones too, becomes a row of the ledger,
transformer_lib/runs/multi30k-ledger.json.
"""

import argparse
import datetime
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from transformer_lib.data.pairs import Pair, multi30k
from transformer_lib.training.checkpoints import find_checkpoints
from transformer_lib.training.recipes import FIELDS, PRESETS, Recipe
from transformer_lib.training.run import Run, trained_run
from transformer_lib.training.run_log import RUNS_FOLDER, commit, load_run, new_run, save_run
from transformer_lib.training.tasks import translated

FOLDER = Path("_build/multi30k")
LEDGER = "multi30k-ledger"
WIDTHS, PENALTIES = (2, 4, 8), (0.0, 0.6, 1.0)
SEARCHES = [(1, 0.0), *((width, alpha) for width in WIDTHS for alpha in PENALTIES), (16, 0.0)]
# Of no data set: the book's own sentences, from what the photographs show to what they do not.
OWN = [
    "Ein Mann spielt Gitarre.",
    "Zwei Kinder spielen im Schnee.",
    "Eine Frau verkauft Rosen auf dem Markt.",
    "Maria gibt Susanne Rosen.",
    "Ein Hund liest ein Buch.",
    "Die Regierung erhöht die Steuern.",
    "Ich habe dich gestern nicht gesehen.",
]
MARKS = ".,;:!?\"'()"
SAMPLES = 1000  # of the bootstrap
COLUMNS = (
    "name", "changes", "steps", "validation_loss", "bleu", "minutes", "parameters", "commit", "date"
)  # fmt: skip


def texts_of(run: Run, pairs: Sequence[Pair], width: int, length_penalty: float) -> list[str]:
    """The translations of the pairs' sources."""
    options = {"width": width, "length_penalty": length_penalty}
    sources = [pair.source for pair in pairs]
    return translated(run.trainer.model, run.corpus.tokenizer, sources, **options)


def bleu(texts: Sequence[str], pairs: Sequence[Pair], **options: Any) -> float:
    return BLEU(**options).corpus_score(texts, [[pair.target for pair in pairs]]).score


def chosen_search(run: Run, pairs: Sequence[Pair]) -> tuple[tuple[int, float], dict[str, float]]:
    """The width and penalty that are best on these pairs, and the BLEU of all."""
    found = {search: bleu(texts_of(run, pairs, *search), pairs) for search in SEARCHES}
    named = {f"width {width}, penalty {alpha}": score for (width, alpha), score in found.items()}
    return max(found, key=found.__getitem__), named


def judged(texts: list[str], greedy: list[str], pairs: Sequence[Pair]) -> dict[str, Any]:
    """All that is reported of one translation of the test pairs."""
    references = [[pair.target for pair in pairs]]
    metric = BLEU(references=references)
    systems = [("greedy", greedy), ("chosen", texts)]
    test = PairedTest(systems, {"BLEU": metric}, references=None, test_type="bs", n_samples=SAMPLES)
    signatures, scores = test()
    chosen = scores["BLEU"][1]
    return {
        "bleu": chosen.score,
        "bleu_interval": chosen.ci,
        "bleu_greedy": scores["BLEU"][0].score,
        "p_against_greedy": chosen.p_value,
        "signature": str(signatures["BLEU"]),
        "bleu_lower": bleu(texts, pairs, lowercase=True, tokenize="intl"),
        "chrf": CHRF().corpus_score(texts, references).score,
        "exact": sum(t == p.target for t, p in zip(texts, pairs, strict=True)) / len(pairs),
    }


def described(train: Sequence[Pair], others: Sequence[Pair]) -> dict[str, float]:
    """What the data is like: words are what spaces separate, without marks at their ends."""

    def words(pairs: Sequence[Pair]) -> list[str]:
        return [w.strip(MARKS) for pair in pairs for w in pair.source.split() if w.strip(MARKS)]

    known, unseen = set(words(train)), words(others)
    return {
        "pairs": len(train),
        "source_words": len(known),
        "words_a_sentence": len(words(train)) / len(train),
        "new_words": sum(word not in known for word in unseen) / len(unseen),
        "with_new_words": sum(not known.issuperset(words([p])) for p in others) / len(others),
    }


def trained(recipe: Recipe, folder: Path) -> Run:
    """The finished run in this folder: begun, gone on with, or only loaded."""
    resume = folder if find_checkpoints(folder) else None

    def report(run: Run, step) -> None:
        if step is not None and step.step % 50 == 0:
            print(f"step {step.step}: {step.loss:.3f}, {run.seconds / 60:.1f} min", flush=True)

    return trained_run(recipe, folder, resume=resume, report=report)


def benchmark(seeds: Sequence[int]) -> None:
    validation, test = multi30k("val"), multi30k("test")
    for seed in seeds:
        run = trained(PRESETS["multi30k"].with_changes(seed=seed), FOLDER / f"seed-{seed}")
        search, searches = chosen_search(run, validation)
        model, tokenizer = run.trainer.model, run.corpus.tokenizer
        texts = texts_of(run, test, *search)
        greedy = texts_of(run, test, 1, 0.0)
        found = judged(texts, greedy, test)
        found["own"] = translated(model, tokenizer, OWN, width=search[0], length_penalty=search[1])
        found |= {"width": search[0], "length_penalty": search[1], "validation_bleu": searches}
        found |= {"minutes": run.seconds / 60, "parameters": run.trainer.model.n_parameters}
        found |= now()
        print(f"seed {seed}:", found, flush=True)
        add(seed, found, dict(run.curve))


def now() -> dict[str, str]:
    """Of each seed and of each trial: the code that ran, and the day."""
    return {"commit": commit(), "date": datetime.date.today().isoformat()}


def add(seed: int, found: dict[str, Any], curve: dict[str, list[float]]) -> None:
    """Write what a seed has given into the log, beside the other seeds of the same recipe."""
    recipe = PRESETS["multi30k"]
    seeds, result, curves = kept(recipe, without=seed)
    seeds = [*seeds, seed]
    for name, value in found.items():
        result.setdefault(name, []).append(value)
    for name, column in (curve | {"seed": [seed] * len(curve["step"])}).items():
        curves.setdefault(name, []).extend(column)
    config = recipe.as_json() | {"seeds": seeds, "samples": SAMPLES, "own": OWN}
    config["described"] = described(multi30k("train"), multi30k("val"))
    command = f"python benchmarks/translate.py --threads {torch.get_num_threads()} --seeds "
    command += " ".join(map(str, seeds))
    log = new_run("multi30k", config=config, curve=curves, result=result, command=command)
    print("written:", save_run(log, RUNS_FOLDER).name)


def known_fields(config: dict[str, Any]) -> dict[str, Any]:
    """Of a log's configuration, what is the recipe's. A field that is newer has its default."""
    return {name: config[name] for name in FIELDS if name in config}


def kept(recipe: Recipe, without: int) -> tuple[list[int], dict, dict]:
    """Of the log: its other seeds, what they gave, and their curves. None, if the recipe is new."""
    path = RUNS_FOLDER / "multi30k.json"
    log = load_run(path) if path.exists() else None
    if log is None or Recipe.from_json(known_fields(log.config)) != recipe:
        return [], {}, {}
    seeds = [seed for seed in log.config["seeds"] if seed != without]
    places = [log.config["seeds"].index(seed) for seed in seeds]
    rows = [i for i, seed in enumerate(log.curve["seed"]) if seed != without]
    result = {name: [values[i] for i in places] for name, values in log.result.items()}
    return seeds, result, {name: [column[i] for i in rows] for name, column in log.curve.items()}


def trial(name: str, changes: dict[str, Any], steps: int) -> None:
    """One row of the ledger."""
    validation, every = multi30k("val"), {"evaluate_every": steps, "save_every": steps}
    run = Run(PRESETS["multi30k"].with_changes(n_steps=steps, **every | changes))
    begin = time.perf_counter()
    for step in run.steps():
        if step.step % 50 == 0:
            print(f"step {step.step}: {step.loss:.3f}", flush=True)
    minutes = (time.perf_counter() - begin) / 60
    score = bleu(texts_of(run, validation, 1, 0.0), validation)
    loss, n_parameters = run.curve["validation_loss"][-1], run.trainer.model.n_parameters
    row = (name, json.dumps(changes), steps, loss, score, minutes, n_parameters, *now().values())
    rows = rows_of_ledger()
    result = {c: [*rows[c], value] for c, value in zip(COLUMNS, row, strict=True)}
    print(dict(zip(COLUMNS, row, strict=True)))
    log = new_run(LEDGER, config=PRESETS["multi30k"].as_json(), curve={}, result=result)
    save_run(log, RUNS_FOLDER)


def rows_of_ledger() -> dict[str, list]:
    """Of the log, by column."""
    path = RUNS_FOLDER / f"{LEDGER}.json"
    return load_run(path).result if path.exists() else {column: [] for column in COLUMNS}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--seeds", type=int, nargs="+", default=[0])
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--try", dest="name")
    options.add_argument("--changes", type=json.loads, default={})
    options.add_argument("--steps", type=int, default=1500)
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    if given.name is None:
        benchmark(given.seeds)
    else:
        trial(given.name, given.changes, given.steps)


if __name__ == "__main__":
    main()
