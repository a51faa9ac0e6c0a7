"""``python -m transformer_lib.training.gpu``: what this machine's GPU does, in ten minutes.

It writes ``gpu.json`` into the current folder after each part. A part that fails, or for which no
time is left, is an entry that says so. It trains on tiny Shakespeare by characters, which is
downloaded if it is not here yet (``TRANSFORMER_LIB_DATA`` names a folder that has it), or on any
text (``--data``); without a network, on Python's own documentation.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from transformer_lib.data.corpora import text_corpus
from transformer_lib.data.texts import from_file, python_docs, tiny_shakespeare
from transformer_lib.training.device import choose_device, choose_precision
from transformer_lib.training.gpu import programs, right, speed
from transformer_lib.training.gpu.machine import ONCE, asked, describe
from transformer_lib.training.gpu.timing import Measurements
from transformer_lib.training.recipes import PRESETS, Recipe

PROGRAM = "python -m transformer_lib.training.gpu"
FEW = {"n_layers": 1, "n_heads": 2, "d_model": 16, "block": 16, "window": 16, "batch_size": 4}
FEW |= {"n_steps": 12, "evaluate_every": 6}
PRESET_OF = {"bfloat16": "h200", "float16": "t4", "float32": "t4"}


def main(arguments: Sequence[str] | None = None, folder: Path | None = None) -> int:
    """Measure; 0, or 1 if a part has failed. ``folder``: for the log, if none is named."""
    chosen = parser().parse_args(arguments)
    few, device = chosen.few, choose_device(chosen.device)
    text, source = text_of(chosen.data)
    precisions, left_out = right.precisions_of(device)
    best = choose_precision(device)
    if few:
        text = text[:20_000]
        precisions = [name for name in precisions if name in ("float32", "bfloat16", best)]
    recipes = presets(best, precisions, few)
    first = next(iter(recipes.values()))
    corpus = text_corpus(text, first.data.block, first.data.window)
    where = chosen.folder or folder or Path.cwd()
    config = {"data": source, "presets": list(recipes), "few": few, "precisions": precisions}
    config |= {"precisions left out": left_out, "seconds": chosen.seconds}
    typed = shlex.join([*PROGRAM.split(), *(sys.argv[1:] if arguments is None else arguments)])
    m = Measurements(device, where, chosen.seconds, config, typed if folder is None else None)
    for name, needs, measure in questions(m, corpus, text, recipes, precisions, few):
        m.part(name, 0 if few else needs, measure)
    print(f"written: {where / 'gpu.json'}")
    if m.failed:
        print(f"failed: {', '.join(m.failed)}", file=sys.stderr)
    return int(bool(m.failed))


def questions(m, corpus, text, recipes, precisions, few):
    """Each part of the log: its name, about how many seconds it needs, and what measures it.

    In the order of their worth: what comes last may find no time.
    """
    device, (preset, recipe) = m.device, next(iter(recipes.items()))
    best = recipe.precision or "float32"
    rounds, warm = (2, 1) if few else (40, 8)
    short = recipe.with_changes(n_steps=4 if few else 12)
    kinds = {name: recipe.with_changes(precision=name) for name in precisions}
    kinds[f"{best}, deterministic"] = recipe.with_changes(deterministic=True)
    beside = {"plain": recipe, "compiled": recipe.with_changes(compiled=True)}
    large = {"n_layers": 1, "n_heads": 2, "d_model": 16, "context": 16, "vocabulary": 99}
    sizes, steps = (large, 6) if few else ({}, 50)
    wirings = ["fast", "llama"] if few else list(right.WIRINGS)
    of_program = recipe.with_changes(n_steps=120) if few else recipe
    yield "machine", 0, lambda: describe(device)
    yield "every wiring", 30, lambda: right.every_wiring(device, precisions, wirings)
    yield "large products", 5, lambda: speed.products(m, precisions, 256 if few else 8192)
    yield (
        "GPT-2 small", 20, lambda: speed.gpt2(m, best, sizes, steps, compiled=False),
    )  # fmt: skip
    yield "steps", 40, lambda: speed.step_times(m, corpus, kinds, rounds, warm)
    yield (
        f"losses of {preset}",
        60,
        lambda: speed.losses(m, corpus, recipe, (0, 1, 2)[: 3 - 2 * few]),
    )
    yield (
        "GPT-2 small, compiled", 90, lambda: speed.gpt2(m, best, sizes, steps, compiled=True),
    )  # fmt: skip
    yield "same bits", 20, lambda: right.bits(device, corpus, short)
    yield "stopped and resumed", 45, lambda: programs.stopped_and_resumed(device, of_program, text)
    yield "optimizers", 20, lambda: speed.optimizers(m, corpus, recipe, rounds, warm)
    yield "steps, compiled", 90, lambda: speed.step_times(m, corpus, beside, rounds, warm)
    yield "translator", 20, lambda: right.translator(device, precisions, 8 if few else 60)
    yield "kernels of attention", 10, lambda: right.attention_kernels(device, corpus, short)
    tokens = 3 if few else 200
    yield "writing", 25, lambda: speed.writing_times(m, recipe, corpus.tokenizer.size, tokens)
    pair = recipe.with_changes(n_steps=4 if few else 60)
    yield "two processes", 60, lambda: programs.two_processes(device, pair, text)
    for name in list(recipes)[1:]:
        yield (
            f"losses of {name}",
            60,
            lambda name=name: speed.losses(m, corpus, recipes[name], (0, 1, 2)),
        )
    if device.type == "cuda":
        yield "machine, at the end", 0, lambda: asked(device, ONCE)


def presets(best: str, precisions: list[str], few: bool) -> dict[str, Recipe]:
    """The preset for a GPU of this precision, and then the other one, if it can run there."""
    names = [PRESET_OF[best], *(n for p, n in PRESET_OF.items() if p in precisions and p != best)]
    found = {}
    for name in dict.fromkeys(names):
        recipe = PRESETS[name]
        if recipe.precision not in precisions:
            recipe = recipe.with_changes(precision=best)
        found[name] = recipe.with_changes(**FEW) if few else recipe
    return dict(list(found.items())[:1]) if few else found


def text_of(path: str | None) -> tuple[str, str]:
    """The text to train on, and where it is from."""
    if path is not None:
        return from_file(path), path
    try:
        return tiny_shakespeare(), "tiny_shakespeare"
    except OSError as error:
        return python_docs(), f"python_docs, as tiny Shakespeare was not to be had: {error}"


def parser() -> argparse.ArgumentParser:
    """The program's options."""
    top = argparse.ArgumentParser(prog=PROGRAM, description=__doc__.splitlines()[0])
    top.add_argument("--device", help="such as cuda:1 (default: the best that is here)")
    top.add_argument("--data", metavar="FILE", help="a text to train on")
    top.add_argument("--folder", type=Path, help="for gpu.json (default: the current one)")
    top.add_argument("--seconds", type=float, default=600, help="at most (default: %(default)s)")
    top.add_argument("--few", action="store_true", help="a share of it, of small models: a try")
    return top


if __name__ == "__main__":
    sys.exit(main())
