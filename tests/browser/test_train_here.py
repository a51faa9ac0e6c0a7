"""TrainHere in Chromium: it learns, with node's numbers, and says how a run ends."""

import csv
import io
import json
from pathlib import Path

import pytest
from harness import check_axe, check_fits, download, facts_of, pass_time, reading
from programs import run_node

from transformer_lib.widgets import Goal, TrainHere
from transformer_lib.widgets.train_here.widget import SEEDS, TASKS

NO_WORKER = "<script>window.Worker = class { constructor() { throw new Error('no'); } };</script>"


LEARN = Path(__file__).parents[1] / "js" / "math" / "learn.js"  # the same engine under node


def make(task="sort", **options):
    """The quickest of them: one layer that sorts."""
    return TrainHere(task, **{"layers": 1, "speed": "full", "name": "here"} | options)


def wait_for_end(page):
    """Until the run has paused by itself."""
    page.wait_for_function("document.querySelector('.afm-start').textContent === 'go on'")


def begun(page):
    page.wait_for_function("window.afmFigures?.get('here')[0].facts().loss > 0")
    return page


@pytest.mark.parametrize("before", ["", NO_WORKER], ids=["worker", "no worker"])
def test_the_numbers_are_nodes(open_page, before):
    """To the last digit, from the same seed, in a worker and without one."""
    page = begun(open_page(make("pairs", layers=2, seed=2), before=before))
    assert reading(page).startswith("Before its first step the model gives each of the 18 words")
    for step in (1, 2, 3):
        page.get_by_role("button", name="one step").click()
        page.wait_for_function(f"afmFigures.get('here')[0].facts().steps === {step}")
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode("utf-8-sig"))))
    settings = {"task": "pairs", "layers": 2, "optimizer": "muon", "rate": 0.02, "seed": 2}
    known = json.loads(run_node(LEARN, "run", json.dumps(settings | {"width": 32}), "4"))
    assert [float(row["loss"]) for row in rows] == [batch["loss"] for batch in known["batches"]]
    assert [float(row["right"]) for row in rows] == [batch["right"] for batch in known["batches"]]


def test_it_learns_reaches_a_goal_and_can_be_looked_at_again(open_page):
    goal = Goal("Sort.", when=["sort = 1", "layers = 1", "right >= 0.98"])
    page = begun(open_page(make(goals=[goal])))
    wrong = page.locator(".afm-read .afm-wrong")
    assert wrong.count() == 8
    page.get_by_role("button", name="start", exact=True).click()
    wait_for_end(page)
    assert "It reached the floor at step" in reading(page)
    assert page.locator(".afm-goal.afm-reached").count() == 1
    assert wrong.count() == 0
    last = facts_of(page)["steps"]
    along = page.get_by_role("slider", name="after step")
    along.focus()
    page.keyboard.press("Home")
    assert reading(page).startswith("Before its first step")
    assert wrong.count() == 8
    page.keyboard.press("End")
    assert reading(page).startswith(f"After step {last} ")
    assert wrong.count() == 0
    page.get_by_role("button", name="start over").click()
    begun(page)
    assert facts_of(page)["steps"] == 0
    assert page.locator(".afm-learning-before").count() == 1  # the run before, to compare with


def test_a_model_that_is_still_to_be_made_has_reached_nothing(open_page):
    """What two layers have learned does not count for the one layer that is chosen next."""
    goal = Goal("With one layer.", when=["sort = 1", "layers = 1", "right >= 0.98"])
    page = begun(open_page(make(layers=2, goals=[goal])))
    page.get_by_role("button", name="start", exact=True).click()
    wait_for_end(page)
    assert facts_of(page)["right"] >= 0.98
    page.get_by_role("radio", name="1", exact=True).check()
    begun(page)
    assert facts_of(page)["layers"] == 1
    assert page.locator(".afm-goal.afm-reached").count() == 0


def test_a_setting_begins_anew_and_a_wild_rate_is_lost(open_page):
    page = begun(open_page(make()))
    page.get_by_role("button", name="one step").click()
    page.wait_for_function("afmFigures.get('here')[0].facts().steps === 1")
    page.get_by_role("radio", name="Adam").check()
    begun(page)
    assert facts_of(page)["steps"] == 0
    assert facts_of(page)["rate"] == 0.005  # what is usual for Adam
    rate = page.get_by_role("slider", name="learning rate")
    rate.focus()
    page.keyboard.press("End")
    assert facts_of(page)["rate"] == 1
    page.get_by_role("button", name="start", exact=True).click()
    wait_for_end(page)
    assert facts_of(page)["lost"] == 1
    assert "this learning rate throws the model about" in reading(page)


def test_it_pauses_and_goes_on(open_page):
    page = begun(open_page(make(speed="watch")))
    page.get_by_role("button", name="start", exact=True).click()
    page.wait_for_function("afmFigures.get('here')[0].facts().steps >= 2")
    page.get_by_role("button", name="pause").click()
    there = facts_of(page)["steps"]
    pass_time(page, 300)
    assert facts_of(page)["steps"] <= there + 1  # the step that was being made
    page.get_by_role("button", name="go on").click()
    page.wait_for_function(f"afmFigures.get('here')[0].facts().steps > {there + 1}")


def test_the_text_starts_a_run_with_its_settings(open_page):
    link = "#set:here;task=repeats;layers=2;smear=on;optimizer=adam;rate=0.01;seed=3;run"
    before = f'<p><span class="afm-set" data-afm-set="{link}">train it</span></p>'
    page = begun(open_page(make(), before=before))
    page.get_by_role("button", name="train it").click()
    page.wait_for_function("afmFigures.get('here')[0].facts().steps > 0")
    assert facts_of(page) | {"steps": 0, "loss": 0, "right": 0} == {
        "repeats": 1, "pairs": 0, "owner": 0, "sort": 0, "layers": 2, "smear": 1, "muon": 0,
        "rate": 0.01, "seed": 3, "steps": 0, "loss": 0, "right": 0, "lost": 0,
    }  # fmt: skip
    assert page.get_by_role("grid").count() == 2


def test_fits_and_is_accessible(open_page):
    goals = [Goal("Make **one layer** learn it.", when=["right >= 0.98"])]
    page = begun(open_page(make("owner", layers=2, goals=goals), theme="dark", width=360))
    page.get_by_role("button", name="one step").click()
    page.wait_for_function("afmFigures.get('here')[0].facts().steps === 1")
    check_axe(page)
    check_fits(page)


@pytest.mark.soak
@pytest.mark.parametrize("task", TASKS)
def test_every_seed_reaches_the_floor(open_page, task):
    steps = []
    for seed in SEEDS:
        page = begun(open_page(make(task, layers=1 if task == "sort" else 2, seed=seed)))
        page.evaluate(TO_FLOOR)
        steps.append(facts_of(page)["steps"])
        page.close()
    assert max(steps) < 250


TO_FLOOR = """async () => {
  const { facts } = window.afmFigures.get("here")[0];
  document.querySelector(".afm-start").click();
  while (facts().right < 0.98 && facts().steps < 400)
    await new Promise((resolve) => setTimeout(resolve, 10));
}"""
