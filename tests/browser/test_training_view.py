"""TrainingView in Chromium: the run read by slider, mouse, touch and keys; played; and live."""

import math
import re

import pytest
from harness import (
    HOSTILE,
    check_axe,
    check_fits,
    check_hostile,
    download,
    each_look,
    facts_of,
    reading,
)

from transformer_lib.widgets import TrainingView

STEPS = list(range(1, 201))
LOSSES = [0.5 + 2.6 * math.exp(-step / 25) + 0.02 * math.sin(7 * step) for step in STEPS]
VALIDATION = [
    loss + 0.05 if step % 50 == 0 else math.nan for step, loss in zip(STEPS, LOSSES, strict=True)
]
CURVE = {"step": STEPS, "loss": LOSSES, "validation_loss": VALIDATION, "rate": [0.1] * len(STEPS)}
BASELINES = {"log V": 3.0, "unigram": 2.0, "bigram": 1.0}


def view(**options):
    return TrainingView(CURVE, **{"baselines": BASELINES, "floor": 0.48, "smoothing": 1} | options)


def smoothed(window):
    means = []
    for i in range(len(STEPS)):
        width = max(1, min(window, (i + 1) // 4))
        means.append(sum(LOSSES[i + 1 - width : i + 1]) / width)
    return means


def read(page):
    """(step, loss, gap to the floor, baseline, its step) of the reading."""
    found = re.match(
        r"After step (\d+) the loss is ([\d.]+) nats(?: \(mean of the last \d+\))?, "
        r"([\d.]+) above the floor(?:; it passed (.*?) at step (\d+))?",
        reading(page),
    )
    step, loss, gap, name, when = found.groups()
    return int(step), float(loss), float(gap), name, when and int(when)


def assert_right(page, step, window=1):
    losses = smoothed(window)
    found = read(page)
    assert found[0] == step
    assert found[1] == pytest.approx(losses[step - 1], abs=0.0051)
    assert found[2] == pytest.approx(losses[step - 1] - 0.48, abs=0.0051)
    passed = [
        (level, name, next(s for s, x in zip(STEPS, losses, strict=True) if x < level))
        for name, level in BASELINES.items()
    ]
    reached = sorted(line for line in passed if line[2] <= step)
    assert found[3:] == (reached[0][1:] if reached else (None, None))


def test_first_state_teaches(open_page):
    page = open_page(view())
    assert_right(page, 200)
    assert "it passed bigram at step" in reading(page)
    assert f"The validation loss is {VALIDATION[-1]:.2f}." in reading(page)
    drawn = "".join(page.locator(".afm-training text").all_text_contents())
    assert re.search(r"log V 3, passed at \d+unigram 2, passed at \d+bigram 1, passed at", drawn)
    assert "floor 0.48" in drawn


@pytest.mark.parametrize(
    ("times", "told"), [(1.04, "perhaps the luck of its examples"), (1.06, "too good to be luck")]
)
def test_far_below_the_floor_is_an_alarm(open_page, times, told):
    page = open_page(view(floor=times * LOSSES[-1]))
    assert f" below the floor: {told}" in reading(page)


def test_the_slider_reads_each_step(open_page):
    page = open_page(view())
    slider = page.get_by_role("slider", name="step")
    slider.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert slider.get_attribute("aria-valuetext") == "2"
    assert_right(page, 2)
    assert "passed at" not in "".join(page.locator(".afm-baseline-name").all_text_contents()[1:])
    page.keyboard.press("End")
    assert_right(page, 200)
    slider.fill("60")
    assert_right(page, 61)
    assert "(step 50)" in reading(page), "a validation loss that is older than the step"


def test_what_it_writes_stands_below_the_curve(open_page):
    page = open_page(view(texts={1: "xq </b>", 60: "the king"}))
    written = page.locator(".afm-sample")
    assert written.inner_text() == "the king"
    slider = page.get_by_role("slider", name="step")
    slider.fill("58")
    assert read(page)[0] == 59
    assert written.inner_text() == "xq </b>"
    slider.fill("59")
    assert written.inner_text() == "the king"
    assert not open_page(view()).locator(".afm-sample").is_visible()


def test_smoothing_and_both_axes(open_page):
    page = open_page(view())
    linear = page.locator(".afm-curve-first").last.get_attribute("d")
    page.get_by_role("combobox", name="smoothing").select_option(label="mean of 20")
    assert_right(page, 200, window=20)
    assert "(mean of the last 20)" in reading(page)
    assert page.locator(".afm-curve-raw").count() == 1
    page.get_by_role("checkbox", name="logarithmic steps").check()
    page.get_by_role("checkbox", name="loss − floor").check()
    assert_right(page, 200, window=20)
    path = page.locator(".afm-curve-first").last.get_attribute("d")
    assert path != linear
    points = [tuple(map(float, p.split(","))) for p in re.split("[ML]", path)[1:]]
    x = [math.log(STEPS[i]) for i in (0, -1)]
    y = [math.log(smoothed(20)[i] - 0.48) for i in (0, -1)]
    middle = next(p for p in points if p[0] >= (points[0][0] + points[-1][0]) / 2)
    step = math.exp(
        x[0] + (middle[0] - points[0][0]) / (points[-1][0] - points[0][0]) * (x[1] - x[0])
    )
    gap = math.exp(
        y[0] + (middle[1] - points[0][1]) / (points[-1][1] - points[0][1]) * (y[1] - y[0])
    )
    assert gap == pytest.approx(smoothed(20)[round(step) - 1] - 0.48, rel=0.02)


def test_the_mouse_reads_and_chooses(open_page):
    page = open_page(view())
    box = page.locator(".afm-training").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 100)
    step = read(page)[0]
    assert 80 < step < 130
    assert_right(page, step)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 200)
    assert read(page)[0] == 200, "what was only pointed at remains"
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 100, steps=3)
    page.mouse.up()
    page.mouse.move(box["x"], box["y"] - 200)
    assert 45 < read(page)[0] < 80


def test_touch_chooses_and_the_page_still_scrolls(open_page):
    page = open_page(view(), touch=True, width=360, height=500)
    picture = page.locator(".afm-training")
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert 70 < read(page)[0] < 130
    assert picture.evaluate("(node) => getComputedStyle(node).touchAction") == "pan-y"


@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_play_goes_through_the_run(open_page, motion):
    page = open_page(view())
    page.emulate_media(reduced_motion=motion)
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # from here the clock goes by run_for alone
    page.get_by_role("button", name="play").click()
    seen = set()
    for _ in range(90):
        page.clock.run_for(50)
        seen.add(read(page)[0])
    assert (len(seen) <= 9) == (motion == "reduce"), "reduced motion: still pictures only"
    assert 100 < max(seen) < 200
    live = page.locator(".afm-reading")
    assert live.get_attribute("aria-live") == "off", "every picture is spoken"
    page.get_by_role("button", name="pause").click()
    paused = read(page)[0]
    page.clock.run_for(3000)
    assert read(page)[0] == paused
    page.get_by_role("button", name="play").click()
    page.clock.run_for(7000)
    assert_right(page, 200)
    assert live.get_attribute("aria-live") == "polite"
    assert page.get_by_role("button", name="play").count() == 1


LIVE = """async ([module, values]) => {
  const url = URL.createObjectURL(new Blob([module], { type: "text/javascript" }));
  const widget = (await import(url)).default;
  const bytes = (text) => new DataView(new TextEncoder().encode(text).buffer);
  for (const name of ["_text", "_curve", "_driving"]) values[name] = bytes(values[name]);
  const heard = {};
  const model = {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      (heard[`change:${name}`] ?? []).forEach((callback) => callback());
    },
    on: (event, callback) => (heard[event] = [...(heard[event] ?? []), callback]),
    off: (event, callback) => (heard[event] = heard[event].filter((known) => known !== callback)),
    save_changes() {},
  };
  window.push = (text) => model.set("_curve", bytes(text));
  window.heard = heard;
  const main = document.querySelector("main");
  main.replaceChildren();
  window.end = widget.render({ model, el: main });
}"""


def test_live_from_no_step_to_a_run(open_page):
    live = TrainingView(baselines=BASELINES, floor=0.48, n_steps=200, smoothing=1)
    page = open_page(live)
    assert "No step yet" in reading(page)
    assert page.get_by_role("slider", name="step").is_disabled()
    state = live.get_state()
    names = ["_text", "_curve", "_driving", "name", "reached"]
    names += ["step", "smoothing", "log_steps", "above_floor"]
    values = {
        name: state[name].decode() if isinstance(state[name], bytes) else state[name]
        for name in names
    }
    page.evaluate(LIVE, [TrainingView._esm, values])
    for step, loss in zip(STEPS, LOSSES, strict=True):
        live.append(step, loss)
        if step in (1, 40, 120):
            live.flush()
            page.evaluate("(text) => push(text)", live._curve.decode())
            assert_right(page, step)
    assert page.locator(".afm-reading").get_attribute("aria-live") == "off"
    page.get_by_role("slider", name="step").fill("9")
    live.flush()
    page.evaluate("(text) => push(text)", live._curve.decode())
    assert_right(page, 10)  # who looks back is not pulled away
    page.evaluate("() => end()")
    assert page.locator(".afm").count() == 0
    left = page.evaluate("() => Object.values(heard).flat().length")
    assert left == 0, f"{left} listeners remain after the end"


def test_no_floor_no_baselines_and_a_loss_that_is_no_number(open_page):
    curve = {"step": [0, 10, 20], "loss": [2.0, 1.5, math.inf]}
    page = open_page(TrainingView(curve, floor=1.0, name="here"))
    assert math.isnan(facts_of(page)["above floor"])
    page = open_page(TrainingView(curve))
    assert "At step 20 no loss was measured, or it is not a number." in reading(page)
    page.get_by_role("slider", name="step").fill("1")
    assert reading(page) == "After step 10 the loss is 1.50 nats."
    assert page.get_by_role("checkbox", name="loss − floor").count() == 0
    page.get_by_role("checkbox", name="logarithmic steps").check()
    assert reading(page) == "After step 10 the loss is 1.50 nats."


@pytest.mark.parametrize("width", [1280, 360])
def test_every_curve_is_named_whatever_the_width(open_page, width):
    names = ["loss of the plain recipe", "loss of the fast recipe", "loss of a third one"]
    curve = {"step": [1, 2, 3]} | {name: [3.0, 2.0, 1.5 + i] for i, name in enumerate(names)}
    page = open_page(TrainingView(curve), width=width)
    texts = page.locator(".afm-training text").all_text_contents()
    assert [f"{names[0]}, in nats", *names[1:]] == [text for text in texts if "loss" in text]
    boxes = [page.get_by_text(name, exact=True).bounding_box() for name in names[1:]]
    assert all(box["x"] + box["width"] <= width for box in boxes)
    lines = len(
        {box["y"] for box in [page.get_by_text(f"{names[0]}, in nats").bounding_box(), *boxes]}
    )
    assert lines == (1 if width == 1280 else 2)
    assert page.locator(".afm-caption").inner_text() == "Try: move along the curve, or press play."


def test_downloads_are_what_is_shown(open_page):
    page = open_page(view(smoothing=20))
    page.get_by_role("combobox", name="below").select_option(label="rate")
    assert "0.1" in page.locator(".afm-training text").all_text_contents()
    picture = download(page, "SVG").decode("utf-8")
    assert picture.startswith("<svg")
    for part in ("bigram", "clipPath", ">rate<"):
        assert part in picture
    rows = [row.split(",") for row in download(page, "CSV").decode("utf-8").splitlines()]
    assert rows[0] == ["step", "loss", "smoothed", "validation_loss", "rate"]
    shown = [float(row[2]) for row in rows[1:]]
    assert shown == pytest.approx(smoothed(20), rel=1e-6)
    assert rows[1][3] == ""


@each_look
def test_fits_and_is_accessible_in_both_themes(open_page, theme, width):
    page = open_page(view(), theme=theme, width=width)
    assert page.locator("figure.afm").get_attribute("data-afm-theme") == theme
    page.get_by_role("combobox", name="below").select_option(label="rate")
    check_fits(page)
    check_axe(page)


def test_hostile_names_stay_text(open_page):
    names = {f"{name} loss": [1.0, 0.5] for name in HOSTILE}
    lines = {name: 0.9 - 0.01 * i for i, name in enumerate(HOSTILE)}
    hostile = TrainingView({"step": [1, 2], **names, HOSTILE[0]: [1, 2]}, baselines=lines)
    check_hostile(open_page(hostile, width=360))
