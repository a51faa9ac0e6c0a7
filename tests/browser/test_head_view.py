"""bertviz's head view on a page: offline, by mouse and keyboard, with any tokens."""

import csv
import io
import shutil

import pytest
import torch
from harness import HOSTILE, check_axe, check_fits, download, each_look, reading
from programs import PATIENCE

from transformer_lib.widgets import HeadView

WORDS = ["mary", "gave", "roses", "to", "susan"]
WEIGHTS = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(1)).softmax(-1)


@pytest.fixture
def open_view(open_page, libraries, tmp_path):
    """The page of a HeadView, bertviz's libraries beside it as the build puts them there."""
    (tmp_path / "bertviz").mkdir()
    for name, source in libraries.items():
        shutil.copy(source, tmp_path / "bertviz" / name)

    def open_(attention=WEIGHTS, tokens=WORDS, **options):
        page = open_page(HeadView(attention, tokens), **options)
        page.locator(".afm-bertviz svg[data-named]").wait_for()
        return page

    return open_


def opacities(page):
    """The opacity of each line: [heads, queries, keys]."""
    flat = page.locator("#attention line").evaluate_all(
        "(lines) => lines.map((line) => Number(line.getAttribute('stroke-opacity')))"
    )
    return torch.tensor(flat, dtype=torch.float64).reshape(3, 5, 5)


def test_it_draws_the_weights(open_view):
    page = open_view()
    torch.testing.assert_close(opacities(page), WEIGHTS[0].double() / 3, atol=2e-4, rtol=0)
    texts = page.locator(":is(#left, #right) text").all_text_contents()
    assert texts == WORDS * 2


def test_another_layer(open_view):
    page = open_view()
    page.get_by_label("Layer").select_option("2")
    torch.testing.assert_close(opacities(page), WEIGHTS[1].double() / 3, atol=2e-4, rtol=0)
    page.get_by_role("option", name="query gave").hover()
    each = [f"{WORDS[row.argmax()]}: {row.max():.2f}" for row in WEIGHTS[1, :, 1]]
    said = "; ".join(f"{one} in head {head}" for head, one in enumerate(each, start=1))
    assert reading(page) == f"gave attends most to {said}"


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], "a attends to all alike: 0.50 each"),
        ([[1.0, 0.0], [0.0, 1.0]], "a attends most to a: 1.00"),
    ],
)
def test_a_tie_has_no_winner(open_view, weights, said):
    page = open_view(torch.tensor([[weights]]), ["a", "b"])
    page.get_by_role("option", name="query a").hover()
    assert reading(page) == said


def test_of_many_heads_the_largest_weight_is_named(open_view):
    weights = torch.full((1, 4, 3, 3), 1 / 3)
    weights[0, 2, 0] = torch.tensor([0.1, 0.1, 0.8])
    page = open_view(weights, ["a", "b", "c"])
    page.get_by_role("option", name="query a").hover()
    assert reading(page) == ("a attends most to c: 0.80 in head 3, the largest weight of 4 heads")


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_one_head_and_one_word(open_view, by):
    page = open_view()
    for head in (0, 2):
        box = page.get_by_role("checkbox", name=f"head {head + 1}")
        assert box.get_attribute("aria-checked") == "true"
        if by == "mouse":
            box.click()
        else:
            box.focus()
            page.keyboard.press("Space")
        assert box.get_attribute("aria-checked") == "false"
    shown = opacities(page)
    assert shown[0].sum() == shown[2].sum() == 0
    torch.testing.assert_close(shown[1], WEIGHTS[0, 1].double(), atol=6e-4, rtol=0)
    word = page.get_by_role("option", name="key susan")
    word.hover() if by == "mouse" else word.focus()
    column = WEIGHTS[0, 1, :, 4]
    assert reading(page) == (
        f"susan gets most attention from {WORDS[column.argmax()]}: {column.max():.2f} in head 2"
    )
    # Only the lines to this key remain: the group is hidden, they are not.
    assert page.locator("#attention").get_attribute("visibility") == "hidden"
    assert page.locator("#attention line[visibility=visible]").count() == 3 * 5


def test_the_words_of_a_side_are_one_tab_stop_and_arrows_go_on(open_view):
    page = open_view()
    words = page.get_by_role("listbox", name="Queries").get_by_role("option")
    stops = "(all) => all.map((one) => one.getAttribute('tabindex'))"
    assert words.evaluate_all(stops) == ["0"] + ["-1"] * 4
    words.first.focus()
    for key, word in (("ArrowDown", 1), ("End", 4), ("ArrowDown", 4), ("ArrowUp", 3), ("Home", 0)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.ariaLabel") == f"query {WORDS[word]}"
        assert reading(page).startswith(f"{WORDS[word]} attends most to")
    words.nth(2).click()
    assert words.evaluate_all(stops) == ["-1", "-1", "0", "-1", "-1"]


def test_heads_are_numbered_and_the_weights_can_be_saved(open_view):
    page = open_view()
    assert page.locator(".afm-head-name").all_text_contents() == ["1", "2", "3"]
    rows = list(csv.DictReader(io.StringIO(download(page, "CSV").decode())))
    saved = torch.tensor([float(row["weight"]) for row in rows]).reshape(WEIGHTS.shape)
    torch.testing.assert_close(saved, WEIGHTS, atol=6e-4, rtol=0)
    assert [rows[7][name] for name in ("layer", "head", "query", "key")] == [
        "1",
        "1",
        "gave",
        "roses",
    ]
    assert download(page, "SVG").count(b"<line") == WEIGHTS[0].numel()


def test_hostile_tokens_stay_text(open_view):
    page = open_view(torch.full((1, 1, 8, 8), 1 / 8), HOSTILE)
    assert page.locator(".afm img, .afm b, .afm script").count() == 0
    assert "</SCRIPT><i" in page.locator("#left text").first.text_content()
    check_fits(page)


@each_look
def test_it_fits_and_axe_finds_nothing(open_view, theme, width):
    page = open_view(theme=theme, width=width)
    page.get_by_role("option", name="query roses").hover()
    check_fits(page)
    check_axe(page)


def test_two_views_do_not_mix(open_view, open_page):
    page = open_view()  # lays the libraries beside the page
    other = HeadView(WEIGHTS[:1, :1], WORDS)
    other.set_trait("_esm", f"{other._esm}\n// imported once more, as in a notebook")
    page = open_page(HeadView(WEIGHTS, WORDS), other)
    page.locator(".afm-bertviz svg[data-named]").nth(1).wait_for()
    counts = page.locator(".afm-bertviz").evaluate_all(
        "(views) => views.map((view) => view.querySelectorAll('line').length)"
    )
    assert counts == [3 * 25, 25]


@pytest.fixture
def notebook(browser, libraries):
    """A HeadView run as anywidget runs it, without the page's host; `page.asked` of the network.

    `kernel` is what it sends (texts, none of them, or None if it does not answer).
    """
    pages = []

    def open_(*, kernel, network, with_require=False):
        page = browser.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        pages.append(page)
        page.asked = []
        start(page, kernel, network, with_require, libraries)
        return page

    yield open_
    for page in pages:
        page.close()


def start(page, kernel, network, with_require, libraries):
    widget = HeadView(WEIGHTS, WORDS)

    def answer(route):
        page.asked.append(route.request.url)
        if not network:
            return route.abort()
        name = "d3.js" if "d3" in route.request.url else "jquery.js"
        return route.fulfill(path=libraries[name], content_type="text/javascript")

    page.route("https://cdnjs.cloudflare.com/**", answer)
    page.set_content("<main></main>")
    if with_require:
        # What require.js does with an anonymous define, as far as it matters here.
        page.evaluate(
            """() => {
              let paths = {}, known = {}, made;
              window.define = (...parts) => (made = parts);
              window.define.amd = true;
              window.require = (names, done) => (async () => {
                for (const name of names) {
                  await new Promise((resolve) => {
                    const script = document.createElement("script");
                    script.src = paths[name] + ".js";
                    script.onload = resolve;
                    document.head.append(script);
                  });
                  const needs = made.find(Array.isArray) ?? [];
                  const value = needs.includes("exports") ? {} : undefined;
                  known[name] = made.at(-1)(...(value ? [value] : [])) ?? value;
                }
                done(...names.map((name) => known[name]));
              })();
              window.require.config = (settings) => (paths = settings.paths);
            }"""
        )
    page.evaluate(
        """async ([esm, data, program, kernel]) => {
          const address = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
          const { default: widget } = await import(address);
          const bytes = (text) => new DataView(new TextEncoder().encode(text).buffer);
          const values = { _data: bytes(data), _program: program, _wanted: 0 };
          const heard = new Set();
          const model = {
            get: (name) => values[name],
            set: (name, value) => (values[name] = value),
            save_changes: () => setTimeout(() => {
              if (!kernel || values._wanted !== 1) return;
              for (const one of heard) one({ libraries: ["jquery", "d3"] }, kernel.map(bytes));
            }),
            on: (event, callback) => event === "msg:custom" && heard.add(callback),
            off: (event, callback) => heard.delete(callback),
          };
          const el = document.createElement("div");
          await widget.render({ model, el });
          setTimeout(() => document.querySelector("main").append(el), 50);  // as JupyterLab does
        }""",
        [widget._esm, widget._data.decode(), widget._program, kernel],
    )


def check_drawn(page):
    page.locator(".afm-bertviz svg[data-named]").wait_for()
    torch.testing.assert_close(opacities(page), WEIGHTS[0].double() / 3, atol=2e-4, rtol=0)


def test_in_a_notebook_the_libraries_come_from_the_kernel(notebook, libraries):
    kernel = [libraries[name].read_text("utf-8") for name in ("jquery.js", "d3.js")]
    page = notebook(kernel=kernel, network=False, with_require=True)
    check_drawn(page)
    assert page.asked == []
    assert page.evaluate("[typeof d3, typeof jQuery]") == ["undefined", "undefined"]


@pytest.mark.parametrize("with_require", [False, True], ids=["plain", "require.js"])
def test_if_the_kernel_has_none_they_come_from_bertvizs_addresses(notebook, with_require):
    page = notebook(kernel=[], network=True, with_require=with_require)
    check_drawn(page)
    assert sorted(page.asked) == [
        "https://cdnjs.cloudflare.com/ajax/libs/d3/5.7.0/d3.min.js",
        "https://cdnjs.cloudflare.com/ajax/libs/jquery/2.0.0/jquery.min.js",
    ]


@pytest.mark.parametrize("kernel", [None, []], ids=["no kernel", "nothing there"])
def test_without_either_the_figure_says_what_is_missing(notebook, kernel):
    page = notebook(kernel=kernel, network=False)
    page.locator(".afm-reading", has_text="The kernel has not sent them").wait_for()
    assert "`make book` installs them" in reading(page)
    assert ("It waits for the kernel" in reading(page)) == (kernel is None)
