"""Trials that a run must survive: a small one is killed, damaged and forged, again and again.

The runs are real ones, in forks of this process, which must not have trained anything itself.
"""

import errno
import mmap
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import torch
from damage import DAMAGES, HOSTILE, Disk, damaged, forge, in_a_child, only_reading, write_to_full

from transformer_lib.data.corpora import Corpus
from transformer_lib.storage import LOCK
from transformer_lib.training.checkpoints import (
    MANIFEST,
    STATE,
    TENSORS,
    CheckpointError,
    find_checkpoints,
    load_checkpoint,
)
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.state import pack
from transformer_lib.training.tasks import corpus_of

LONGEST_LIFE = 0.4  # seconds until a kill


def expect(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


class Soak:
    """Campaigns against one small run; each returns what it counted.

    Args:
        folder: for the runs, an empty one.
        recipe: that they train by.
    """

    def __init__(self, folder: Path, recipe: Recipe):
        self.folder, self.recipe, self.draw = folder, recipe, random.Random(0)
        self.corpus: Corpus = corpus_of(recipe)
        self.configuration = self.new().configuration
        self.reached = mmap.mmap(-1, 8)  # shared with the forks: the step that was finished last
        for name, last in [("whole", None), ("two", 3 * recipe.save_every - 1)]:
            expect(self.train(folder / name, last) == 0, f"the run {name} was killed")
        self.end = self.state(folder / "whole")

    def new(self) -> Run:
        return Run(self.recipe, self.corpus, device=torch.device("cpu"))

    def load(self, folder: Path, configuration=None, vocabulary=None):
        """The newest checkpoint of ``folder``, as a run would read it."""
        return load_checkpoint(
            folder,
            configuration=configuration or self.configuration,
            vocabulary=vocabulary or self.corpus.tokenizer.hash,
        )

    def train(self, folder: Path, last: int | None = None, before=lambda: 0) -> int | None:
        """Train in a fork, up to step ``last``, from what there is; None if it was killed."""

        def work():
            started = before()
            run = self.resumed(folder)
            for step in run.steps(folder):
                self.reached[:] = step.step.to_bytes(8, "big")
                if step.step == last:
                    break
            return started.calls if started else 0

        return in_a_child(work)

    def resumed(self, folder: Path) -> Run:
        run = self.new()
        if find_checkpoints(folder):
            run.load(folder)
        return run

    def state(self, folder: Path):
        """All that the last checkpoint holds, but the seconds that it took."""
        saved = self.load(folder)
        expect(saved.step == self.recipe.n_steps, f"the run ended at step {saved.step}")
        run = saved.state["run"]
        run["seconds"] = run["wall"] = 0.0
        run["curve"]["seconds"] = [0.0] * len(run["curve"]["seconds"])
        return pack(saved.state)

    def ends_equally(self, folder: Path) -> None:
        """The run in ``folder``, completed, has come to the very bits of the uninterrupted one."""
        expect(self.train(folder) == 0, "the resumed run was killed")
        (tensors, rest), (expected, others) = self.state(folder), self.end
        different = [name for name in expected if not expected[name].equal(tensors[name])]
        expect(tensors.keys() == expected.keys() and not different, f"other bits in {different}")
        expect(rest == others, "another state of generators, data, scaler, or curve")

    def kills(self, n: int) -> dict[str, int]:
        """SIGKILL at random moments of runs that are resumed until they have ended."""
        counts, lost, number = Counter(killed=0, ended_bit_identical=0), 0, 0
        while counts["killed"] < n:
            folder = self.folder / f"killed-{number}"
            self.reached[:] = bytes(8)
            while counts["killed"] < n:
                if self.killed_or_done(folder):
                    break
                counts["killed"] += 1
                taken = int.from_bytes(self.reached, "big") + 1  # perhaps: the one in progress
                saved = 0
                for path in find_checkpoints(folder):  # each is whole
                    saved = self.load(path).step
                lost = max(lost, taken - saved)
                expect(lost <= self.recipe.save_every, f"{lost} steps lost at {saved}")
                self.reached[:] = saved.to_bytes(8, "big")
            self.ends_equally(folder)
            counts["ended_bit_identical"] += 1
            shutil.rmtree(folder)
            number += 1
        return dict(counts) | {"most_steps_lost": lost, "save_every": self.recipe.save_every}

    def killed_or_done(self, folder: Path) -> bool:
        """A run that lives for a random time; whether it came to its end."""
        child = os.fork()
        if not child:
            try:
                for step in self.resumed(folder).steps(folder):
                    self.reached[:] = step.step.to_bytes(8, "big")
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        try:
            time.sleep(self.draw.uniform(0, LONGEST_LIFE))
        finally:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        expect(os.WIFSIGNALED(status) or not os.WEXITSTATUS(status), "a run could not be resumed")
        return not os.WIFSIGNALED(status)

    def kills_in_saves(self, share: int = 4) -> dict[str, int]:
        """The end at each call of a save that has two older checkpoints beside it."""
        counts = Counter(killed=0, power_lost=0, ended_bit_identical=0)
        interval = self.recipe.save_every
        for power_lost in (False, True):
            call, calls = 1, None
            while calls is None:
                folder = self.folder / f"save-{call}-{power_lost}"
                shutil.copytree(self.folder / "two", folder)
                calls = self.train(
                    folder, 3 * interval, lambda n=call, lost=power_lost: Disk(n, lost)
                )
                saved = self.load(folder).step
                expect(saved in (2 * interval, 3 * interval), f"step {saved} after call {call}")
                if calls is None:
                    counts["power_lost" if power_lost else "killed"] += 1
                if call % share == 1 or share == 1:
                    self.ends_equally(folder)
                    counts["ended_bit_identical"] += 1
                shutil.rmtree(folder)
                call += 1
        return dict(counts)

    def damaged(self, n: int) -> dict[str, int]:
        """Each of ``n`` is refused by the name of the file, and the one before it is offered."""
        first, second = find_checkpoints(self.folder / "two")
        contents = {path: path.read_bytes() for path in sorted(second.iterdir())}
        counts = Counter()
        for i in range(n):
            kind, file = DAMAGES[i % len(DAMAGES)], self.draw.choice(list(contents))
            about = {}
            if kind == "other configuration":
                field = self.draw.choice(["d_model", "n_layers", "lr", "batch_size", "seed"])
                recipe = self.configuration["recipe"]
                about = {"recipe": recipe | {field: recipe[field] * 2 + 1}}
                about = {"configuration": self.configuration | about}
            elif kind == "other vocabulary":
                about = {"vocabulary": f"{self.draw.getrandbits(256):064x}"}
            else:
                file.unlink()
                if kind != "missing":
                    old = (first / file.name).read_bytes()
                    file.write_bytes(damaged(kind, contents[file], old, self.draw))
            file = second / MANIFEST if about else file
            try:
                self.load(second.parent, **about)
            except CheckpointError as error:
                expect(error.file == file, f"{kind} of {file.name}: {error}")
                expect(about or error.before == first, f"{kind}: {first.name} is not offered")
                counts[kind] += 1
            else:
                raise AssertionError(f"{kind}: {file.name} was loaded")
            file.write_bytes(contents[file])
        expect(self.load(second.parent).path == second, "intact again")
        return {"detected": sum(counts.values()), **counts}

    def hostile(self) -> dict[str, int]:
        """Forged checkpoints, loaded under an audit that ends the process at anything but reading.

        The interpreter itself reports what it does to the audit: imports, compiling, unpickling,
        starting programs, opening files for writing, connecting.
        """
        for name, (file, changes) in HOSTILE.items():
            folder = self.folder / "hostile"
            shutil.copytree(self.folder / "two", folder)
            first, second = find_checkpoints(folder)
            forge(second, **changes)

            def work(folder=folder, first=first, file=second / file):
                self.load(first)  # what is imported at the first use
                sys.addaudithook(only_reading)
                try:
                    self.load(folder)
                except CheckpointError as error:
                    return 0 if error.file == file and error.before == first else 2
                return 1

            expect(in_a_child(work) == 0, f"{name}: loaded, wrongly reported, or it ran something")
            shutil.rmtree(folder)
        return {"refused": len(HOSTILE)}

    def full_disks(self, limits: int) -> dict[str, int]:
        """No room for one of the three files, or a limit to their size: the old one stays."""
        largest = max(path.stat().st_size for path in (self.folder / "whole").rglob("*"))
        for name in (TENSORS, STATE, MANIFEST):
            self.no_room(lambda name=name: write_to_full(name), errno.ENOSPC)
        for _ in range(limits):
            most = self.draw.randrange(largest)
            limit = (most, resource.RLIM_INFINITY)
            self.no_room(lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
                         errno.EFBIG)  # fmt: skip
        return {"no_room": 3, "size_limits": limits}

    def no_room(self, limit, number: int) -> None:
        folder, interval = self.folder / "full", self.recipe.save_every
        shutil.copytree(self.folder / "two", folder)

        def work():
            run = self.resumed(folder)
            limit()
            try:
                for _ in run.steps(folder):
                    pass
            except OSError as error:
                return 0 if error.errno == number and "Make room" in str(error) else 2
            return 1

        expect(in_a_child(work) == 0, "a save without room gave no message")
        expect(self.load(folder).step == 2 * interval, "the older checkpoint is not the newest")
        names = {path.name for path in folder.iterdir()} - {LOCK}
        expect(len(names) == 2, "something half-written stays")
        shutil.rmtree(folder)
