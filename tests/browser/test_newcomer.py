"""A newcomer, offline and without a kernel: from the landing page to a model that learns."""

import pytest
from built import BUILD
from journey import Newcomer


def test_a_newcomer_breaks_a_machine_and_trains_a_model(book, browser, watched):
    context = watched(browser.new_context(viewport={"width": 1280, "height": 900}))
    page = context.new_page()
    newcomer = Newcomer(page, BUILD)
    newcomer.arrive()
    newcomer.follow("a machine that reads", to="00")

    newcomer.figure("machine")
    newcomer.first_answer("machine")
    words = newcomer.facts("machine")["words"]
    newcomer.write_words("machine", 2)
    found = newcomer.facts("machine")
    assert (found["words"], found["known"]) == (words + 2, 1)  # it goes on as its grammar allows
    chances = [chance for fact, chance in found.items() if fact.startswith("probability ")]
    assert sum(chances) == pytest.approx(1, abs=1e-3)

    newcomer.scroll_to("Cross it out")
    broken = newcomer.figure("broken")
    newcomer.first_answer("broken")
    assert newcomer.facts("broken")["right"] > 0.9
    newcomer.switch_off_until_it_forgets("broken")
    assert newcomer.facts("broken")["right"] < 0.5
    assert broken.query_selector_all(".afm-goal.afm-reached")

    newcomer.scroll_to("Where the numbers come from")
    newcomer.follow("12", to="12")
    newcomer.follow("page 12b", to="12b")
    newcomer.scroll_to("Train one here")
    here = newcomer.figure("train")
    page.wait_for_function("window.afmFigures.get('train')[0].facts().loss > 0")
    before = newcomer.facts("train")
    assert before["right"] < 0.1
    here.query_selector("label:has-text('full')").click()
    newcomer.train("train")
    page.wait_for_function("document.querySelector('.afm-start').textContent === 'go on'")
    after = newcomer.facts("train")
    assert after["right"] >= 0.98
    assert after["loss"] < 0.05 < before["loss"]
    assert "It reached the floor at step" in here.query_selector(".afm-reading").inner_text()
