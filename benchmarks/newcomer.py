"""How long does a newcomer wait? From the landing page to a trained model, in Chromium.

    python benchmarks/newcomer.py        about three minutes on two quiet cores, after make book

Writes transformer_lib/runs/newcomer.json. The path of tests/browser/test_newcomer.py, on the built
pages from file://, without a kernel and without a network: the first word of chapter 0's machine,
words that are written, heads that are switched off, and page 12b's small model, trained at full
speed for each task and each seed that the figure offers until 98 % of its answers are right. All
times are read from the page's own clock, in milliseconds. Also the longest task of the page's own
thread on each stretch of the way (0: none took 50 ms), and the machine's load before and after.
"""

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from transformer_lib.training.run_log import REPOSITORY, RUNS_FOLDER, RunLog, new_run, save_run
from transformer_lib.widgets.train_here.widget import SEEDS, TASKS

sys.path += [str(REPOSITORY / "tests" / folder) for folder in ("support", "browser")]

from chromium import CHROMIUM_NAMES
from journey import Newcomer

BOOK = Path(os.environ.get("AFM_BUILD") or REPOSITORY / "_build" / "html")
LAYERS = {"sort": 1}  # all others need two
COLUMNS = ("task", "seed", "ms", "steps", "right", "longest_task")
WORDS = 12  # as many as there is room for in the shipped model's story


def visit(newcomer: Newcomer) -> tuple[dict, dict]:
    """From the landing page to the figure that trains: (ms, longest tasks)."""
    longest = {}
    newcomer.arrive()
    longest["landing page"] = newcomer.longest_task()
    newcomer.follow("a machine that reads", to="00")
    newcomer.figure("machine")
    first = newcomer.first_answer("machine")
    newcomer.page.wait_for_function("window.afmFigures.has('broken')")  # all figures are there
    longest["chapter 0 until its figures are there"] = newcomer.longest_task()
    words = newcomer.write_words("machine", WORDS)
    longest["words are written"] = newcomer.longest_task()
    newcomer.scroll_to("Cross it out")
    newcomer.figure("broken")
    newcomer.first_answer("broken")
    newcomer.longest_task()
    switches = newcomer.switch_off_until_it_forgets("broken")
    longest["heads are switched"] = newcomer.longest_task()
    newcomer.scroll_to("Where the numbers come from")
    newcomer.follow("12", to="12")
    newcomer.follow("page 12b", to="12b")
    newcomer.figure("train")
    newcomer.page.wait_for_function("window.afmFigures.get('train')[0].facts().loss > 0")
    longest["page 12b until its figure is there"] = newcomer.longest_task()
    taken = newcomer.taken | {"first answer": first, "word": words, "switch": switches}
    return taken, longest


def train(newcomer: Newcomer, task: str, seed: int) -> float:
    """One run of the figure at full speed, in ms."""
    figure = newcomer.page.get_by_role("figure", name="Train a model here")
    figure.get_by_role("combobox", name="task").select_option(index=TASKS.index(task))
    figure.get_by_role("combobox", name="seed").select_option(index=SEEDS.index(seed))
    figure.get_by_role("radio", name=str(LAYERS.get(task, 2)), exact=True).check()
    figure.get_by_role("radio", name="full").check()
    begun = f"f.{task} === 1 && f.seed === {seed} && f.steps === 0"
    newcomer.page.wait_for_function(f"(f => {begun})(afmFigures.get('train')[0].facts())")
    newcomer.longest_task()
    return newcomer.train("train")


def log_of(rows: list[tuple], result: dict, version: str) -> RunLog:
    """The run log, with a row of COLUMNS for each training."""
    curve = {name: [row[at] for row in rows] for at, name in enumerate(COLUMNS)}
    curve["task"] = [TASKS.index(task) for task in curve["task"]]
    config = {"browser": f"Chromium {version}", "words": WORDS, "tasks": TASKS, "seeds": SEEDS}
    return new_run("newcomer", config=config, curve=curve, result=result)


def main() -> None:
    load = os.getloadavg()
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
        newcomer = Newcomer(context.new_page(), BOOK)
        newcomer.page.set_default_timeout(120_000)
        taken, longest = visit(newcomer)
        for task in TASKS:
            for seed in SEEDS:
                ms = train(newcomer, task, seed)
                steps, right = newcomer.found["steps"], newcomer.found["right"]
                rows.append((task, seed, round(ms), steps, right, newcomer.longest_task()))
                print(*rows[-1], flush=True)
        version = browser.version
        browser.close()
    result = {"ms": taken, "longest_task": longest, "load": [load, os.getloadavg()]}
    print("written:", save_run(log_of(rows, result, version), RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
