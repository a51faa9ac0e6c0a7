"""The two processes of test_distributed.py: torchrun --nproc-per-node=2 together.py FOLDER

Each scenario runs in forks of torchrun's processes, which have loaded PyTorch and trained nothing,
so that one launch is enough for all; they meet at a port of their own. What a process returned, or
the signal that ended it, is in FOLDER/results-RANK.json; what it wrote to stdout and stderr, in
FOLDER/SCENARIO-RANK.txt. At last torchrun's processes themselves train until they are stopped.
"""

import json
import os
import signal
import sys
import time
import traceback
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import torch
import torch.distributed as dist
import torch.nn.functional as F
from no_gpu import cuda_group
from small_runs import RECIPE, differences, end_of, resumed, trained
from torch.distributed import TCPStore

from transformer_lib.data.packing import IGNORED
from transformer_lib.training import tasks
from transformer_lib.training.cli import main
from transformer_lib.training.distributed import Processes, processes
from transformer_lib.training.run import Run
from transformer_lib.training.state import random_state
from transformer_lib.training.tasks import corpus_of

FOLDER, RANK = Path(sys.argv[-1]), int(os.environ["RANK"])
CORPUS = corpus_of(RECIPE)
HANGS = 300  # seconds; one that waits for a process that is gone would wait for ten minutes
LOSSES = RECIPE.with_changes(
    block=130, dropout=0.0, n_steps=6, evaluate_every=6, optimizer="adamw", lr=0.01
)
# A batch of 7 rows in 2 x 1 and 2 x 3 parts, of 20 rows that end in padding.
UNEVEN = {"whole": {"accumulation": 1}, "parts": {"accumulation": 3}}
ENDLESS = [
    "train", "--n-layers=2", "--n-heads=2", "--d-model=16", "--dropout=0.1", "--block=170",
    "--batch-size=6", "--accumulation=2", "--n-steps=100000", "--n-stories=40",
    "--n-validation=8", "--evaluate-every=4", "--save-every=2", "--precision=float32",
]  # fmt: skip


def both(name):
    """Wait until both processes have come here."""
    (FOLDER / f"{name}-{RANK}").touch()
    while not (FOLDER / f"{name}-{1 - RANK}").exists():
        time.sleep(0.005)


def stores_of(name, number):
    """What torchrun has one of, and each scenario another: where its processes find each other."""
    stores = [
        TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False) for _ in range(number)
    ]
    (FOLDER / "written").write_text(json.dumps([store.port for store in stores]))
    (FOLDER / "written").rename(FOLDER / f"{name}-ports")
    return stores


def meet(name, number=0):
    """The processes that begin now will meet at the scenario's store of this number."""
    while not (FOLDER / f"{name}-ports").exists():
        time.sleep(0.005)
    os.environ["MASTER_PORT"] = f"{json.loads((FOLDER / f'{name}-ports').read_text())[number]}"


def resume():
    """A run of two, resumed after every step: what differed at the end, by the step."""
    with processes() as (here, _):
        whole = Run(RECIPE, CORPUS, processes=here)
        losses = trained(whole, FOLDER / "whole", keep=FOLDER / "kept")
        end, different = end_of(whole), {}
        for step in range(1, RECIPE.n_steps + 1):
            here.sum(torch.zeros(()))  # the first has saved
            again = resumed(RECIPE, CORPUS, FOLDER / "kept" / f"{step}", processes=here)
            same = trained(again, FOLDER / f"again-{step}") == losses[step:]
            different[step] = differences(end_of(again), end) + ["losses"] * (not same)
        own = [tensor.sum().item() for tensor in whole.trainer.state_dict()["random"][RANK].values()
               if isinstance(tensor, torch.Tensor)]  # fmt: skip
        return {"different": different, "epochs": whole.trainer.batches.epoch, "random": own}


def losses():
    """The losses of two processes, and those of one for the same batches."""
    found, corpus = {}, corpus_of(LOSSES)
    with processes() as (here, _):
        for name, changes in UNEVEN.items():
            recipe = LOSSES.with_changes(batch_size=7, **changes)
            together = Run(recipe, corpus, processes=here)
            found[name], exchanges = [], []
            with patch.object(dist, "all_reduce", wraps=dist.all_reduce) as exchanged:
                for step in together.steps():
                    found[name].append(step.loss)
                    exchanges.append(exchanged.call_count)
            found[f"{name}, exchanges"] = [b - a for a, b in pairwise(exchanges[:-1])]
            alone = Run(recipe, corpus)
            found[f"{name}, alone"] = [step.loss for step in alone.steps()]
            for kind, made in [("", together), (", alone", alone)]:
                found[name + kind] += made.curve["validation_loss"] + made.curve["accuracy"]
            found[f"{name}, padding"] = int((next(alone.trainer.batches)[1] == IGNORED).sum())
    return found


def on_cuda_only():
    """What is exchanged by processes whose group serves GPUs and nothing else, as NCCL's do."""
    with cuda_group() as device:
        here = Processes(RANK, 2, device)
        state = {"rank": RANK, "random": random_state(), "rows": list(range(1 + 5 * RANK))}
        first, second = here.gather(state)
        mine = (first, second)[RANK]
        refused = ""
        try:
            replace(here, device=None).gather(state)  # from where they lie, the CPU
        except RuntimeError as error:
            refused = str(error)
        return {
            "ranks": [first["rank"], second["rank"]],
            "rows": [len(first["rows"]), len(second["rows"])],
            "random": mine["random"]["torch"].equal(state["random"]["torch"]),
            "sum": here.sum(torch.tensor([1.0, RANK])).tolist(),
            "refused": refused,
        }


def ended_by(number, where, function, call, *ranks):
    """Train; at the ``call``-th call of ``where.function`` a signal comes to ``ranks``."""
    calls, original = 0, getattr(where, function)

    def counting(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == call and RANK in ranks:
            os.kill(os.getpid(), number)
        return original(*arguments, **options)

    setattr(where, function, counting)
    return main([*ENDLESS, f"--folder={FOLDER / 'current'}"])


def other_number():
    """Go on together with what one process saved; then once more, with what the message says."""
    folder = FOLDER / "single"
    if RANK == 0:
        next(Run(RECIPE, CORPUS).steps(folder))
    both("one has saved")
    status = main(["resume", str(folder)])
    meet("other number", 1)
    return [status, main(["resume", str(folder), "--other-devices"])]


KILL, TERM = signal.SIGKILL, signal.SIGTERM
SCENARIOS = {
    "resume": resume,
    "losses": losses,
    "on cuda only": on_cuda_only,
    "other number": other_number,
    # The calls of step 6, of the save and the evaluation at step 8, and of step 5.
    "killed before the backward pass": lambda: ended_by(KILL, F, "cross_entropy", 12, 1),
    "killed before the sum of losses": lambda: ended_by(KILL, Processes, "sum", 7, 1),
    "killed before a save": lambda: ended_by(KILL, Processes, "gather", 4, 1),
    "killed in an evaluation": lambda: ended_by(KILL, tasks, "loss_and_accuracy", 2, 1),
    "the first killed": lambda: ended_by(KILL, F, "cross_entropy", 12, 0),
    "stopped in a step": lambda: ended_by(TERM, F, "cross_entropy", 10, 0, 1),
    "one stopped in a step": lambda: ended_by(TERM, F, "cross_entropy", 10, 1),
    "stopped in an evaluation": lambda: ended_by(TERM, tasks, "loss_and_accuracy", 2, 0, 1),
}


def in_a_fork(name):
    """What a scenario returned, and how it ended."""
    result = FOLDER / f"result-{RANK}.json"
    child = os.fork()
    if not child:
        try:
            signal.alarm(HANGS)
            output = os.open(FOLDER / f"{name}-{RANK}.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            meet(name)
            result.write_text(json.dumps(SCENARIOS[name]()))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(1)
    stores = stores_of(name, 2) if RANK == 0 else []
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    both(f"{name}-ended")
    stores.clear()  # no fork while their threads run
    return {"status": status, "returned": json.loads(result.read_text()) if status == 0 else None}


def all_scenarios():
    results = {}
    Run(RECIPE, CORPUS)  # what is imported at the first use
    for name in SCENARIOS:
        results[name] = in_a_fork(name)
        if RANK == 0 and (FOLDER / "current").exists():
            (FOLDER / "current").rename(FOLDER / f"{name}-run")
        both(f"{name}-kept")
    (FOLDER / f"results-{RANK}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    torch.set_num_threads(1)
    all_scenarios()
    sys.exit(main([*ENDLESS, f"--folder={FOLDER / 'last'}"]))
