"""Goals of a figure: reached by hand or by keys, with hints, in both themes."""

from figures import playground
from harness import axe, check_fits, each_look, next_frame, phrase

from transformer_lib.widgets import Goal

LONG = Goal("Make *gave* longer than 1.5.", when=["length gave >= 1.5"], hint="Drag **its** tip.")


def test_a_goal_is_reached_by_hand_and_stays_reached(open_page):
    page = open_page(playground(selected=1, goals=[LONG]))
    goal = page.get_by_role("listitem").filter(has_text="longer than")
    assert goal.inner_text().split("\n")[0] == "○"
    assert "Not reached yet: Make gave longer than 1.5." in goal.text_content()
    slider = page.get_by_role("slider", name="length of gave")
    slider.fill("1.6")
    page.wait_for_function("document.querySelector('.afm-reached')")
    assert "✓Reached: Make gave longer than 1.5." in goal.text_content()
    status = page.get_by_role("status").filter(has_text="Reached: Make gave longer than 1.5.")
    assert status.count() == 1
    slider.fill("0.2")
    assert goal.text_content().startswith("✓")


def test_a_goal_can_be_reached_with_the_arrow_keys(open_page):
    page = open_page(playground(goals=[Goal("Move it.", when=["output x gave > 0.5"])]))
    page.get_by_role("slider", name="vector of gave").focus()
    for _ in range(14):
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("ArrowRight")
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    page.wait_for_selector(".afm-reached")


def test_a_hint_comes_after_five_tries_and_is_asked_for(open_page):
    page = open_page(playground(selected=1, goals=[LONG]))
    ask = page.get_by_role("button", name="hint")
    slider = page.get_by_role("slider", name="length of gave")
    for tried in range(5):
        assert ask.count() == 0, tried
        slider.fill(str(0.5 + 0.1 * tried))
        slider.dispatch_event("change")
    ask.click()
    assert page.get_by_text("Drag its tip.").is_visible()
    assert ask.get_attribute("aria-expanded") == "true"
    assert page.locator(".afm-goal-hint strong").inner_text() == "its"
    ask.click()
    assert not page.get_by_text("Drag its tip.").is_visible()


def test_a_hint_comes_a_minute_after_the_first_try(open_page):
    page = open_page(playground(selected=1, goals=[LONG]))
    page.clock.install()
    ask = page.get_by_role("button", name="hint")
    page.clock.fast_forward("05:00")  # nothing was tried
    slider = page.get_by_role("slider", name="length of gave")
    slider.fill("0.7")
    slider.dispatch_event("change")
    page.clock.fast_forward("00:59")
    assert ask.count() == 0
    page.clock.fast_forward("00:02")
    ask.wait_for()


def test_a_goal_that_holds_from_the_start_never_counts(open_page):
    goal = Goal("Keep still.", when=["longest growth <= 1"])
    page = open_page(playground(goals=[goal, LONG]))
    page.get_by_role("button", name="start again").click()
    page.get_by_role("slider", name="vector of gave").focus()
    page.keyboard.press("ArrowDown")
    next_frame(page)
    assert page.locator(".afm-reached").count() == 0
    [warning] = page.context.wrong
    assert warning.endswith("This goal holds from the start, and so never counts: Keep still.")
    page.context.wrong.clear()


@each_look
def test_goals_and_phrases_are_accessible_and_fit(open_page, theme, width):
    goals = [LONG, Goal("Make `gave` short.", when=["length gave < 0.5"], hint="As above.")]
    page = open_page(
        playground(selected=1, goals=goals),
        theme=theme,
        width=width,
        before=phrase("#set:plane;length=0.2"),
    )
    slider = page.get_by_role("slider", name="length of gave")
    for length in ("1", "1.1", "1.2", "1.3", "1.4"):
        slider.fill(length)
        slider.dispatch_event("change")
    page.get_by_role("button", name="hint").first.click()
    page.get_by_role("button", name="set it").click()
    page.wait_for_selector(".afm-reached")
    check_fits(page)
    wrong, passed = axe(page)
    assert passed
    assert not wrong, "\n".join(wrong)
