"""book/assets/afm-host.js: what it gives to widgets, what it loads, and how it fails."""

import base64
import json

import pytest
import traitlets
from harness import HOST, mount_all, next_frame, page_html
from ipywidgets import IntSlider

from transformer_lib.widgets.base import Widget, json_bytes

# Says what it was given, and counts how often its parts run.
PROBE = """
globalThis.runs ??= { modules: 0, initialize: 0, render: 0, heard: [] };
globalThis.runs.modules += 1;
function initialize({ model }) { globalThis.runs.initialize += 1; }
function render({ model, el }) {
  globalThis.runs.render += 1;
  globalThis.model = model;
  const text = new TextDecoder().decode(model.get("_text"));
  el.textContent = `text ${text}, number ${model.get("number")}`;
}
export default { initialize, render };
"""


class Probe(Widget):
    _esm = PROBE
    _css = ".probe { color: rgb(1, 2, 3); }"
    _text = traitlets.Bytes().tag(sync=True)
    number = traitlets.Int().tag(sync=True)
    items = traitlets.List().tag(sync=True)


class Broken(Widget):
    _esm = 'export default { render() { throw new Error("the left hinge is off"); } };'


def probe(number: int = 1, **options) -> Probe:
    return Probe(number=number, _text=json_bytes("ಗೆ </script>"), **options)


def test_a_widget_gets_its_state(open_page):
    page = open_page(probe(3))
    assert page.locator(".afm-mount").inner_text() == 'text "ಗೆ </script>", number 3'


def test_one_module_and_one_style_for_many_widgets_one_model_for_many_views(open_page):
    first, second = probe(1), probe(2)
    page = open_page(first, second, first)
    assert page.evaluate("runs") == {"modules": 1, "initialize": 2, "render": 3, "heard": []}
    styles = page.evaluate("[...document.querySelectorAll('style')].map((s) => s.textContent)")
    assert styles.count(Probe._css) == 1


def test_a_text_may_be_that_of_another_model(plain_page):
    first, second = probe(1), probe(2)
    text = page_html([first, second])
    for name in ("_esm", "_css"):
        own = f'"{name}": {json.dumps(getattr(Probe, name))}'.replace("</script>", r"<\/script>")
        assert text.count(own) == 2
        before, _, after = text.rpartition(own)
        other = min((first, second), key=lambda one: text.index(f'"{one.model_id}": {{'))
        text = f'{before}"{name}": {{"same_as": "{other.model_id}"}}{after}'
    page = plain_page(text)
    mount_all(page)
    assert page.locator(".afm-mount", has_text="number 1").count() == 1
    assert page.locator(".afm-mount", has_text="number 2").count() == 1
    assert page.evaluate("runs.modules") == 1


def test_a_text_may_be_made_of_parts_that_stand_elsewhere(plain_page):
    first, second = probe(1), probe(2)
    held = {first.model_id: 0, second.model_id: 0}
    text = page_html([first, second])
    cut = Probe._esm.index("export default")
    parts = [Probe._esm[:cut], Probe._esm[cut:]]
    own = f'"_esm": {json.dumps(Probe._esm)}'.replace("</script>", r"<\/script>")
    assert text.count(own) == len(held)
    earlier = min(held, key=lambda id_: text.index(f'"{id_}": {{'))
    for value in (parts, [[earlier, "_esm", 0], "/* another */ " + parts[1]]):
        new = f'"_esm": {json.dumps(value)}'.replace("</script>", r"<\/script>")
        text = text.replace(own, new, 1)
    page = plain_page(text)
    mount_all(page)
    assert page.locator(".afm-mount", has_text="number 1").count() == 1
    assert page.locator(".afm-mount", has_text="number 2").count() == 1
    assert page.evaluate("runs.modules") == 2


def test_bytes_inside_lists_are_put_back(open_page):
    page = open_page(probe(items=[1, {"deep": b"\x07\x08"}]))
    assert page.evaluate("model.get('items')[1].deep instanceof DataView")
    assert page.evaluate("model.get('items')[1].deep.getUint8(1)") == 8


def test_the_model_tells_changes_and_only_changes(open_page):
    page = open_page(probe(1, items=[[1, 2]]))
    heard = page.evaluate("""() => {
      const heard = [];
      const any = () => heard.push("change");
      const number = () => heard.push(`number ${model.get("number")}`);
      model.on("change", any);
      model.on("change:number", number);
      model.on("change:items", () => heard.push("items"));
      model.set("number", 2);
      model.set("number", 2);
      model.set("items", [[1, 2]]);
      model.set("items", [[1, 3]]);
      model.off("change:number", number);
      model.off("change", any);
      model.set("number", 4);
      model.save_changes();
      return heard;
    }""")
    assert heard == ["number 2", "change", "items", "change"]
    names = page.evaluate("Object.keys(model).sort()")
    assert names == ["get", "off", "on", "save_changes", "set"]


def test_a_widget_that_fails_says_so_in_its_place_and_in_the_console(open_page):
    page = open_page(probe(1), Broken(), probe(2))
    notes = page.get_by_role("alert").all_inner_texts()
    assert notes == ["This figure could not start: the left hinge is off"]
    assert page.locator(".afm-mount", has_text="number").count() == 2
    wrong = page.context.wrong
    assert len(wrong) == 1
    assert "the left hinge is off" in wrong.pop()


def test_a_control_that_needs_a_kernel_says_so(open_page):
    page = open_page(IntSlider())
    assert "IntSliderModel needs a kernel" in page.get_by_role("alert").inner_text()
    page.context.wrong.clear()


@pytest.fixture
def plain_page(browser, watched, tmp_path):
    """A page with any HTML, with the host and other files beside it."""
    contexts = []

    def open_(html: str, **files: str):
        (tmp_path / "afm-host.js").write_text(HOST.read_text("utf-8"), "utf-8")
        (tmp_path / "page.html").write_text(html, "utf-8")
        (tmp_path / "data").mkdir()
        for name, text in files.items():
            (tmp_path / "data" / f"{name}.js").write_text(text, "utf-8")
        contexts.append(watched(browser.new_context(viewport={"width": 800, "height": 600})))
        page = contexts[-1].new_page()
        page.goto((tmp_path / "page.html").as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()


# A browser that always has something else to do.
BUSY = "<script>window.requestIdleCallback = () => {};</script>"
FAR = "<div style='height: 9000px'></div>"


def test_widgets_far_below_wait_until_they_are_near(plain_page):
    page = plain_page(page_html([probe(1)], before=BUSY + FAR))
    next_frame(page)
    assert page.evaluate("window.runs") is None
    page.locator(".afm-mount").scroll_into_view_if_needed()
    page.wait_for_function("window.runs?.render === 1")


def test_files_beside_the_page_are_loaded_once(plain_page, tmp_path):
    weights = base64.b64encode(bytes([1, 2, 255])).decode()
    page = plain_page(
        page_html([probe(1)]),
        weights=f'afm.provide("data/weights.js", "{weights}");',
        library="globalThis.loaded = (globalThis.loaded ?? 0) + 1;",
    )
    numbers = """async () => {
      const view = await afm.load("data/weights.js");
      return [view instanceof DataView, view.byteLength, view.getUint8(2)];
    }"""
    assert page.evaluate(numbers) == [True, 3, 255]
    twice = "Promise.all([afm.load('data/library.js'), afm.load('data/library.js')])"
    assert page.evaluate(twice) == [None, None]
    assert page.evaluate("loaded") == 1
    message = page.evaluate("afm.load('data/none.js').catch((error) => error.message)")
    assert message == "could not load data/none.js, which belongs beside this page"
    page.context.wrong.clear()
    (tmp_path / "data" / "none.js").write_text("afm.provide('data/none.js', 5)", "utf-8")
    assert page.evaluate("afm.load('data/none.js')") == 5


def test_widgets_far_below_start_when_the_browser_is_idle(plain_page):
    page = plain_page(page_html([probe(1), Broken(), probe(2)], before=FAR))
    page.wait_for_function("window.runs?.render === 2")
    assert page.evaluate("scrollY") == 0
    page.context.wrong.clear()


def test_printing_mounts_everything(plain_page):
    page = plain_page(page_html([probe(1)], before=BUSY + FAR))
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function("window.runs?.render === 1")


class Tall(Widget):
    """First it is higher than in the end, as a figure is until it knows its width."""

    _esm = """export default { async render({ el }) {
      el.style.height = "1200px";
      setTimeout(() => { el.style.height = "1000px"; }, 100);
    } };"""


# As in WebKit, which does not hold the page still by itself.
WEBKIT = """<style>html { overflow-anchor: none; }</style>
<script>const asked = CSS.supports;
CSS.supports = (...all) => all[0] !== "overflow-anchor" && asked.apply(CSS, all);</script>"""


@pytest.mark.parametrize("browser_holds", [True, False], ids=["anchored", "not anchored"])
def test_a_section_that_a_link_names_stays_where_it_is(plain_page, tmp_path, browser_holds):
    below = "<h2 id='there'>There</h2>" + FAR
    html = page_html([Tall(), Tall()], before="" if browser_holds else WEBKIT)
    page = plain_page(html.replace("</main>", f"{below}</main>"))
    page.goto("about:blank")
    page.goto((tmp_path / "page.html").as_uri() + "#there")
    heights = "[...document.querySelectorAll('.afm-mount')].map((one) => one.offsetHeight)"
    page.wait_for_function(f"String({heights}) === '1000,1000'")
    top = "document.querySelector('#there').getBoundingClientRect().top"
    page.wait_for_function(f"Math.abs({top}) < 2")  # the browser corrects it in its next frame
    page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
    assert abs(page.evaluate(top)) < 2
