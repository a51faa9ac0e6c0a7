"""A short run with all that has a state, and what must be equal, bit for bit, after a resume."""

import shutil

from transformer_lib.data.gifts import PLAIN
from transformer_lib.storage import canonical_json
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.state import pack

# 40 stories are 20 rows: with 6 in a batch, epochs end within steps 4 and 7.
RECIPE = Recipe.of(
    n_layers=2, n_heads=2, d_model=16, dropout=0.1, block=122, batch_size=6, accumulation=2,
    clip=1.0, n_steps=8, n_stories=40, n_validation=8, evaluate_every=3, save_every=1,
    precision="float32", grammar=PLAIN,
)  # fmt: skip


def trained(run, folder, keep=None):
    """Train to the end; a copy of each step's checkpoint in ``keep``. All losses, as exact floats.

    The copies are what a kill just after the save would leave: taken before the step's evaluation.
    """
    losses = []
    save = run.save

    def save_and_keep(folder):
        path = save(folder)
        kept = keep / f"{run.trainer.step}" if keep and path else None
        if kept and not kept.exists():
            shutil.copytree(path, kept / path.name)
        return path

    run.save = save_and_keep
    for step in run.steps(folder):
        losses.append((step.step, step.loss, step.gradient_norm, step.rate))
    return losses


def end_of(run):
    """Everything at the end of a run, and the next batch; but the seconds that it took."""
    curve = {name: column for name, column in run.curve.items() if name != "seconds"}
    state = {"state": run.trainer.state_dict(), "curve": curve, "next": next(run.trainer.batches)}
    return pack(state)


def differences(end, other):
    """The names of what is not equal in two ends, bit for bit."""
    (tensors, rest), (others, other_rest) = end, other
    names = [name for name in tensors.keys() | others.keys() if name not in tensors.keys() & others]
    names += [n for n in tensors.keys() & others.keys() if not tensors[n].equal(others[n])]
    return names + [k for k in rest if canonical_json(rest[k]) != canonical_json(other_rest[k])]


def resumed(recipe, corpus, checkpoint, **options):
    """A new run that has loaded ``checkpoint``."""
    run = Run(recipe, corpus, **options)
    run.load(checkpoint)
    return run
