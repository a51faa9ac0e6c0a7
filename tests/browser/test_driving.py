"""Phrases that set a figure: by mouse, keyboard and touch, and every key of every figure.

Those of the book are pressed in test_pages.py, on its pages.
"""

import pytest
import torch
from figures import (
    WORDS,
    X,
    make_examined,
    make_lab,
    make_lapse,
    make_machine,
    make_translator,
    make_view,
    make_walk,
    playground,
)
from harness import facts_of, phrase, write_page

from transformer_lib import widgets
from transformer_lib.attention import MultiHeadAttention
from transformer_lib.bpe import train_bpe
from transformer_lib.interpret.handmade import induction_gpt, slots
from transformer_lib.masks import sliding_window_mask
from transformer_lib.widgets import (
    ArchitectureWalk,
    AttentionMap,
    BeamTree,
    BlockLab,
    Circuit,
    DepthView,
    EmbeddingMap,
    Machine,
    MaskPainter,
    MatrixInTheMiddle,
    NextWord,
    PairMerger,
    PositionLab,
    RotaryArrows,
    SamplingLab,
    ScalingLab,
    SoftDictionary,
    StepScrubber,
    TextCutter,
    TimeLapse,
    TrainHere,
    TrainingView,
    Translator,
    YourPart,
    driving,
)

ROWS = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]


def said(page, name: str) -> str:
    """What a screen reader is told of the last setting, once a worker has computed it."""
    script = "afmFigures.get(name)?.[0].element.querySelector('.afm-unseen').textContent"
    page.wait_for_function(f"(name) => {script}", arg=name)
    return page.evaluate(f"(name) => {script}", name)


def test_every_figure_follows_the_text_and_goes_back(open_page):
    """Each key of each figure, once; and the facts are those that Python knows."""
    heads = torch.arange(2 * 3 * 5 * 5).reshape(2, 3, 5, 5).sin().softmax(-1)
    figures = {
        "plane": (playground(), "selected=roses;at=1,−1;length=2;angle=90"),
        "shelf": (SoftDictionary(WORDS, X, X[:, 0], name="shelf"), "query=1,0.5;temperature=0.1"),
        "width": (ScalingLab(name="width"), "d_k=1024;seed=5"),
        "mask": (
            MaskPainter(WORDS, X, X, X, name="mask"),
            "mask=padding;real=4;block=2;window=3;open=mary,susan;hide=gave,gave;layers=3;follow=to;"
            "keep=on;rule=zero-after",
        ),
        "middle": (
            MatrixInTheMiddle(
                WORDS, X, X[:2], ["a", "b"], presets={"zero": 0 * X[:2]}, name="middle"
            ),
            "matrix=zero;asking=b;answering=a;value=2;show=scores",
        ),
        "steps": (
            StepScrubber(WORDS, X.repeat(1, 3), MultiHeadAttention(6, 2), name="steps"),
            "step=softmax;head=1;shuffled=on;word=mary;cell=2,1;causal=on;placed=off;one_head=on",
        ),
        "map": (
            AttentionMap(heads, WORDS, name="map"),
            "layer=1;head=2;cell=to,to;query=mary;key=0",
        ),
        "places": (
            PositionLab(name="places"),
            "method=rotary;d_model=16;base=100;n_positions=16;position=2;offset=5;pair=1;"
            "projected=on;own_angle=on;n_heads=4;head=0;view=code",
        ),
        "turned": (
            RotaryArrows([1.0, 0.5], [-0.5, 1.5], name="turned"),
            "query_position=3;key_position=7;before=12;speed=0.5;add=on",
        ),
        "table": (
            EmbeddingMap(torch.randn(6, 5), [*"abcdef"], name="table"),
            "word=d;pair=1",
        ),
        "next": (
            NextWord(["a", "b", "c"], ["a", "b", "c"], {"x": ROWS, "y y": ROWS[::-1]}, name="next"),
            "predictor=y y;word=b",
        ),
        "drawn": (
            SamplingLab(torch.tensor(ROWS), ["a", "b", "c"], ["one", "two"], name="drawn"),
            "context=two;temperature=2;top_k=2;top_p=all;min_p=0.1;draw=10",
        ),
        "beam": (
            BeamTree(
                lambda texts: [ROWS[len(ids) % 2] for ids in texts],
                [1],
                ["a", "b", "c"],
                end=2,
                name="beam",
            ),
            "width=3;length_penalty=0.6;step=1",
        ),
        "merger": (
            PairMerger({"roses": "rose roses", "b": "a b"}, name="merger"),
            "sample=b;merges=1",
        ),
        "cutter": (
            TextCutter({"roses": "rose roses", "b": "a b"}, train_bpe("a a", 257), name="cutter"),
            "sample=b",
        ),
        "block": (
            make_lab(name="block")[0],
            "norm_1=off;attention=off;residual_1=on;norm_2=on;feed_forward=off;residual_2=on;story=2",
        ),
        "walk": (
            make_walk(name="walk")[2],
            "sentence=1;part=decoder.1.cross_attention;row=1;written=2",
        ),
        "depth": (
            make_view(name="depth", shown=["pre", "post", "no_norm", "no_residual"]),
            "pre=off;post=on;no_norm=on;no_residual=off;depth=12;start=1;quantity=stream",
        ),
        "run": (
            TrainingView({"step": [1, 2, 3], "loss": [2.0, 1.5, 1.2]}, floor=1.0, name="run"),
            "step=2;smoothing=5;log_steps=on;above_floor=on",
        ),
        "yours": (YourPart(*make_examined(), name="yours"), "word=3"),
    }
    links = [phrase(f"#set:{name};{text}", name) for name, (_, text) in figures.items()]
    links += [phrase(f"#set:{name};reset", f"{name} back") for name in figures]
    page = open_page(*(widget for widget, _ in figures.values()), before="".join(links))
    assert isinstance(figures["block"][0], BlockLab)
    assert isinstance(figures["depth"][0], DepthView)
    for name, (widget, text) in figures.items():
        keys = {setting.split("=")[0] for setting in text.split(";")}
        assert keys == set(widget._keys_of_text), name
        first = facts_of(page, name)
        known = {
            fact for one in widget._facts for fact in driving._some(one, widget._texts(), 10**6)
        }
        assert set(first) == known, name
        page.get_by_role("button", name=name, exact=True).click()
        set_ = facts_of(page, name)
        assert set_ != first, name
        assert said(page, name).startswith("The figure is set: "), name
        page.get_by_role("button", name=f"{name} back", exact=True).click()
        assert facts_of(page, name) == first, name
    assert facts_of(page, "plane")["length roses"] == pytest.approx(X[2].norm().item())


def test_what_has_changed_is_marked_for_a_moment(open_page):
    page = open_page(ScalingLab(name="width"), before=phrase("#set:width;d_k=1024"))
    page.clock.install(time=0)
    page.clock.pause_at(1000)  # a moment is over when this test says so
    slider = page.get_by_role("slider", name="dₖ")
    page.get_by_role("button", name="set it").click()
    assert slider.input_value() == "10"
    marks = page.locator(".afm-change")
    assert marks.count() >= 2
    frame, box = marks.last.bounding_box(), slider.bounding_box()  # controls come last
    assert frame["x"] <= box["x"]
    assert frame["x"] + frame["width"] >= box["x"] + box["width"]
    assert abs(frame["y"] + frame["height"] / 2 - box["y"] - box["height"] / 2) < 8
    page.clock.run_for("00:02")
    assert marks.count() == 0
    page.get_by_role("button", name="set it").click()
    assert said(page, "width") == "The figure was already set: d_k 1024."
    assert marks.count() == 0


def test_what_is_folded_away_is_not_marked(open_page):
    """Chromium gives boxes to what a closed fold holds: frames would lie over other things."""
    target = "#set:walk;written=3;part=decoder.0.cross_attention;row=1"
    before = phrase(target) + phrase("#set:walk;reset", "again")
    page = open_page(make_walk(name="walk")[2], before=before)
    marks = page.locator(".afm-change")
    page.get_by_role("button", name="set it").click()
    folded = marks.count()
    assert folded > 0
    last = max(mark.bounding_box()["y"] for mark in marks.all())
    assert last < page.get_by_text("What goes in and out").bounding_box()["y"]
    page.get_by_role("button", name="again").click()
    page.evaluate("document.querySelector('.afm details').open = true")
    page.get_by_role("button", name="set it").click()
    assert marks.count() > folded


@pytest.mark.parametrize("key", ["Enter", " "])
def test_the_keyboard_sets_a_figure_and_stays_in_the_text(open_page, key):
    page = open_page(ScalingLab(name="width"), before=phrase("#set:width;d_k=2"))
    page.keyboard.press("Tab")
    page.keyboard.press(key)
    assert facts_of(page, "width")["d_k"] == 2
    assert page.evaluate("document.activeElement.textContent") == "set it"


def test_a_finger_sets_a_figure(open_page):
    page = open_page(playground(), width=360, touch=True, before=phrase("#set:plane;selected=to"))
    page.get_by_role("button", name="set it").tap()
    assert page.get_by_role("radio", name="to").is_checked()


def test_a_figure_far_away_is_mounted_and_comes_to_the_phrase(browser, watched, tmp_path):
    gap = "<div style='height: 9000px'></div>"
    before = phrase("#set:width;d_k=2") + phrase("#set:nobody;d_k=2", "nobody") + gap
    path = write_page(tmp_path, playground(), ScalingLab(name="width"), before=before)
    context = watched(browser.new_context(reduced_motion="reduce"))
    page = context.new_page()
    page.goto(path.as_uri())
    page.get_by_role("button", name="set it").click()
    page.wait_for_function("window.afmFigures?.get('width')?.[0].facts().d_k === 2")
    page.locator(".afm-pinned").wait_for()
    assert page.evaluate("scrollY") == 0
    assert page.get_by_role("figure", name="Scaling lab").bounding_box()["y"] < 720
    with page.expect_console_message():
        page.get_by_role("button", name="nobody").click()
    assert context.wrong == ["console warning: There is no figure nobody on this page."]
    context.wrong.clear()
    context.close()


def test_a_figure_in_view_stays_where_it_is(open_page):
    page = open_page(ScalingLab(name="width"), before=phrase("#set:width;d_k=2"))
    page.set_viewport_size({"width": 1280, "height": 1600})
    page.get_by_role("button", name="set it").click()
    page.locator(".afm-change").first.wait_for()
    assert page.evaluate("scrollY") == 0


def test_a_figure_stands_beside_the_phrase_until_it_is_not_needed(browser, watched, tmp_path):
    gap = "<div style='height: 3000px'></div>"
    before = f"{gap}<p>{phrase('#set:width;d_k=2')} {phrase('#set:width;d_k=8', 'eight')}</p>{gap}"
    path = write_page(tmp_path, ScalingLab(name="width"), before=before)
    context = watched(browser.new_context(reduced_motion="reduce"))
    page = context.new_page()
    page.goto(path.as_uri())
    link = page.get_by_role("button", name="set it", exact=True)
    figure = page.get_by_role("figure", name="Scaling lab")
    panel = page.locator(".afm-pinned")
    home = figure.bounding_box()
    height = "document.documentElement.scrollHeight"
    whole = page.evaluate(height)

    def press(which=link):
        which.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
        place = which.bounding_box()["y"]
        which.click()
        panel.wait_for()
        assert abs(which.bounding_box()["y"] - place) < 2
        assert panel.bounding_box()["height"] <= 361  # half of the window
        assert abs(figure.bounding_box()["width"] - home["width"]) < 3
        assert abs(page.evaluate(height) - whole) < 3
        return place

    def is_back():
        panel.wait_for(state="detached")
        assert figure.evaluate("(node) => node.getBoundingClientRect().height") == home["height"]

    place = press()
    page.keyboard.press("Escape")
    is_back()
    assert page.evaluate("document.activeElement.textContent") == "set it"
    assert abs(link.bounding_box()["y"] - place) < 2
    press()
    press(page.get_by_role("button", name="eight"))  # and is set again there
    assert facts_of(page, "width")["d_k"] == 8
    page.get_by_role("button", name="Close: the figure goes back to its place").click()
    is_back()
    assert page.evaluate("document.activeElement.textContent") == "eight"
    press()
    page.evaluate("scrollBy(0, 900)")  # on, past the paragraph
    is_back()
    press()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")  # where its own place is
    is_back()
    press()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    is_back()
    place = press()
    page.get_by_role("button", name="go to its place").click()
    is_back()
    assert figure.bounding_box()["y"] < 500
    page.get_by_role("button", name="back to “set it”").click()
    page.wait_for_function(f"Math.abs({_TOP_OF_LINK} - {place}) < 2")
    context.close()


_TOP_OF_LINK = "document.querySelector('[data-afm-set]').getBoundingClientRect().top"


def test_phrase_and_change_stay_in_sight_together_where_there_is_room(open_page):
    gap = "<div style='height: 500px'></div>"
    page = open_page(ScalingLab(name="width"), before=gap + phrase("#set:width;d_k=1024"))
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.get_by_role("button", name="set it", exact=True).click()
    page.locator(".afm-change").first.wait_for()
    # It scrolls smoothly: until it is where it was a moment ago.
    page.wait_for_function("window.was === (window.was = scrollY)", polling=300)
    tops = page.evaluate(
        f"[{_TOP_OF_LINK}, ...[...document.querySelectorAll('.afm-change')]"
        ".flatMap((n) => [n.getBoundingClientRect().top, n.getBoundingClientRect().bottom])]"
    )
    assert all(0 <= top <= 1000 for top in tops)
    assert page.locator(".afm-back").count() == 0


# The observers that watch a figure.
WATCHING = """<script>
window.watching = new Set();
const { observe, disconnect } = MutationObserver.prototype;
MutationObserver.prototype.observe = function (target, options) {
  if (target.matches?.(".afm")) watching.add(this);
  return observe.call(this, target, options);
};
MutationObserver.prototype.disconnect = function () {
  watching.delete(this);
  return disconnect.call(this);
};
</script>"""


def test_unknown_keys_and_values_change_nothing_and_warn(open_page):
    links = phrase("#set:plane;selected=nobody;size=2") + phrase("#set:plane;size=2;angle=0", "ok")
    page = open_page(playground(selected=1), before=WATCHING + links)
    first = facts_of(page, "plane")
    page.get_by_role("button", name="set it").click()
    assert facts_of(page, "plane") == first
    refused = "The figure takes no selected=nobody. The figure takes no size=2."
    assert said(page, "plane") == refused
    assert page.evaluate("watching.size") == 0
    page.get_by_role("button", name="ok").click()  # what it knows, it does
    assert facts_of(page, "plane")["angle gave"] == 0
    assert said(page, "plane") == "The figure takes no size=2. The figure is set: angle 0."
    assert page.context.wrong == [
        "console warning: The figure plane takes no selected=nobody.",
        "console warning: The figure plane takes no size=2.",
        "console warning: The figure plane takes no size=2.",
    ]
    page.context.wrong.clear()


def test_a_link_moves_the_slider_of_what_it_sets(open_page):
    page = open_page(MaskPainter(WORDS, X, X, X, name="mask"), before=phrase("#set:mask;window=4"))
    page.get_by_role("button", name="set it").click()
    assert facts_of(page, "mask")["open cells"] == sliding_window_mask(5, 4).sum()
    assert page.get_by_role("slider", name="window").input_value() == "4"


def test_a_link_as_a_notebook_shows_it_works_too(open_page):
    page = open_page(ScalingLab(name="width"), before='<a href="#set:width;d_k=8">eight</a>')
    page.get_by_role("link", name="eight").click()
    assert facts_of(page, "width")["d_k"] == 8
    assert "#" not in page.url


def test_the_translator_follows_the_text_and_goes_back(open_page):
    """Alone, since what it writes is there only a moment later."""
    text = "example=hūvannu%20koṭṭaḷu;width=2;layer=1;head=1;word=0;more=on"
    links = phrase(f"#set:kannada;{text}", "set") + phrase("#set:kannada;reset", "back")
    widget = make_translator(name="kannada")[2]
    assert isinstance(widget, Translator)
    assert {setting.split("=")[0] for setting in text.split(";")} == set(widget._keys_of_text)
    page = open_page(widget, before=links)
    written = "afmFigures.get('kannada')?.[0].facts().words > 0"
    page.wait_for_function(written)
    first = facts_of(page, "kannada")
    assert set(first) == set(widget._facts)
    page.get_by_role("button", name="set", exact=True).click()
    assert said(page, "kannada").startswith("The figure is set: ")
    page.wait_for_function(written)
    assert facts_of(page, "kannada")["width"] == 2
    page.get_by_role("button", name="back", exact=True).click()
    page.wait_for_function(written)
    assert facts_of(page, "kannada") == first


def test_the_figure_that_trains_follows_the_text_and_goes_back(open_page):
    """Alone, since its numbers come from a worker; a run that the text starts: test_train_here."""
    text = "task=sort;layers=1;smear=on;optimizer=adam;rate=0.05;seed=5;speed=full;step=0"
    links = phrase(f"#set:here;{text}", "set") + phrase("#set:here;reset", "back")
    keys = {setting.split("=")[0] for setting in text.split(";")}
    assert keys | {"run"} == set(TrainHere._keys_of_text)
    page = open_page(TrainHere(name="here"), before=links)
    begun = "window.afmFigures?.get('here')[0].facts().loss > "
    page.wait_for_function(f"{begun} 0")
    first = facts_of(page, "here")
    assert set(first) == set(TrainHere._facts)
    page.get_by_role("button", name="set", exact=True).click()
    assert said(page, "here").startswith("The figure is set: ")
    settings = facts_of(page, "here")
    assert [settings[key] for key in ("sort", "layers", "smear", "muon")] == [1, 1, 1, 0]
    page.get_by_role("button", name="back", exact=True).click()
    page.wait_for_function(f"{begun} 0 && afmFigures.get('here')[0].facts().repeats === 1")
    assert facts_of(page, "here") == first


def test_the_machine_follows_the_text_and_goes_back(open_page):
    """Alone, as the translator is."""
    text = (
        "story=1;say=mary;ask=roses;word=2;part=output;off=block-1-attention;"
        "on=block-1-attention;off=block-2-feed-forward;clicks=switches;exchange=mary,ravi;"
        "level=2;patch=1,2;temperature=0.5;top_p=0.9"
    )
    links = phrase(f"#set:gpt;{text}", "set") + phrase("#set:gpt;reset", "back")
    links += phrase("#set:gpt;all_on;unpatch;word=last", "whole")
    widget = make_machine(name="gpt")[1]
    assert isinstance(widget, Machine)
    keys = {setting.split("=")[0] for setting in text.split(";")} | {"all_on", "unpatch"}
    assert keys == set(widget._keys_of_text)
    page = open_page(widget, before=links)
    thought = "afmFigures.get('gpt')?.[0].facts()['probability .'] > 0"
    page.wait_for_function(thought)
    first = facts_of(page, "gpt")
    assert set(first) == {
        fact for one in widget._facts for fact in driving._some(one, widget._texts(), 10**6)
    }
    page.get_by_role("button", name="set", exact=True).click()
    assert said(page, "gpt").startswith("The figure is set: ")
    page.wait_for_function(thought)
    now = facts_of(page, "gpt")
    assert (now["asked"], now["off"], now["patched"]) == (1, 1, 1)
    page.get_by_role("button", name="whole", exact=True).click()
    page.wait_for_function(thought)
    assert facts_of(page, "gpt")["off"] == 0
    page.get_by_role("button", name="back", exact=True).click()
    page.wait_for_function(thought)
    assert facts_of(page, "gpt") == pytest.approx(first, abs=1e-6)


def test_all_figures_are_in_these_tests():
    driven = {cls.__name__ for cls in vars(widgets).values() if getattr(cls, "_keys_of_text", None)}
    # make_walk and playground; Write, which no page has; and TrainText, whose own tests drive it
    made_elsewhere = {ArchitectureWalk.__name__, "VectorPlayground", "Write", "TrainText"}
    assert driven <= {name for name in globals() if name[0].isupper()} | made_elsewhere


def test_the_figure_over_time_follows_the_text_and_goes_back(open_page):
    """Alone, since its weights are there only a moment later."""
    text = "step=33;position=4;seed=3"
    links = phrase(f"#set:time;{text}", "set") + phrase("#set:time;reset", "back")
    widget = make_lapse(name="time")
    assert {setting.split("=")[0] for setting in text.split(";")} == set(widget._keys_of_text)
    page = open_page(widget, before=links)
    page.wait_for_function("window.afmFigures?.get('time')?.[0].facts().looks > 0")
    first = facts_of(page, "time")
    assert set(first) == set(TimeLapse._facts)
    page.get_by_role("button", name="set", exact=True).click()
    assert said(page, "time").startswith("The figure is set: ")
    there = facts_of(page, "time")
    assert (there["step"], there["position"]) == (40, 4)
    page.get_by_role("button", name="back", exact=True).click()
    assert facts_of(page, "time") == first


def test_the_machine_written_by_hand_follows_the_text_and_goes_back(open_page):
    text = "at=1;fits=on"
    links = phrase(f"#set:circuit;{text}", "set") + phrase("#set:circuit;reset", "back")
    machine, given = induction_gpt(3, 8), {"letters": "abc", "text": "a b a"}
    widget = Circuit(machine, slots(3, 8), **given, name="circuit")
    assert {setting.split("=")[0] for setting in text.split(";")} == set(widget._keys_of_text)
    page = open_page(widget, before=links)
    page.wait_for_function("window.afmFigures?.get('circuit')?.[0].facts().sure > 0")
    first = facts_of(page, "circuit")
    assert set(first) == set(Circuit._facts)
    page.get_by_role("button", name="set", exact=True).click()
    assert said(page, "circuit").startswith("The figure is set: ")
    assert facts_of(page, "circuit")["at"] == 1
    assert page.get_by_role("radio", name="what fits what").is_checked()
    page.get_by_role("button", name="back", exact=True).click()
    assert facts_of(page, "circuit") == first
