"""Gift stories read with other smears: is it the reach that helps, or where it starts?

    python benchmarks/smear.py        about 18 minutes on 2 cores

Writes transformer_lib/runs/smear.json. The preset ``gifts-small``, on stories without optional
words, from three seeds, with a smear of 0 to 3 tokens whose shares start at 0 or at a half. Nothing
else differs, and nothing was tuned for any of them but the preset's own. The loss and the share of
right answers are those of the preset's validation stories.
"""

from transformer_lib.data.gifts import PLAIN
from transformer_lib.training.recipes import PRESETS
from transformer_lib.training.run import Run
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.tasks import corpus_of

SMALL = PRESETS["gifts-small"]
RECIPE = SMALL.with_changes(block=49, grammar={**SMALL.data.grammar, **PLAIN})
SEEDS, EVERY = (0, 1, 2), 100
SMEARS = [(0, 0.0), (1, 0.0), (1, 0.5), (2, 0.0), (2, 0.5), (3, 0.0), (3, 0.5)]  # reach, start


def main() -> None:
    corpus = corpus_of(RECIPE)
    columns = ("reach", "start", "seed", "step", "loss", "accuracy")
    curve: dict[str, list[float]] = {name: [] for name in columns}
    for reach, start in SMEARS:
        for seed in SEEDS:
            model = {"smear": reach, "smear_start": start}
            run = Run(RECIPE.with_changes(model=model, seed=seed, evaluate_every=EVERY), corpus)
            for _ in run.steps():
                pass
            found = run.curve
            for row in zip(found["step"], found["validation_loss"], found["accuracy"], strict=True):
                for name, value in zip(columns, (reach, start, seed, *row), strict=True):
                    curve[name].append(value)
            print(f"reach {reach}, start {start}, seed {seed}: loss {row[1]:.4f}, ", end="")
            print(f"answers {row[2]:.2%}", flush=True)
    config = {"recipe": RECIPE.as_json(), "smears": [list(each) for each in SMEARS]}
    result = {"floor": corpus.floor}
    log = new_run("smear", config=config | {"seeds": list(SEEDS)}, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
