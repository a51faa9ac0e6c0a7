"""Stand-alone pages out of widgets, as Jupyter Book would write them, for the browser tests.

    write_page(folder, AttentionMap(weights, tokens), theme="dark")  ->  folder / "page.html"

The page holds one state tag and, for each widget, a view tag, which book/assets/afm-host.js mounts.
Also here: what every widget's test needs (HOSTILE tokens, axe, downloads).
`@each_look` runs a test, which takes `theme` and `width`, in each theme and at each width once.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import python_files
from ipywidgets import DOMWidget
from ipywidgets.embed import dependency_state, embed_data
from playwright.sync_api import Page

HOST = Path(__file__).parents[2] / "book" / "assets" / "afm-host.js"
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
# The grounds and text colors of the book's theme.
THEMES = {"light": ("#ffffff", "#222832"), "dark": ("#14181e", "#ced6dd")}

# Contrast depends on the theme, and what fits on the width: their product would find no more.
each_look = pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])


def page_html(
    widgets: Sequence[DOMWidget],
    *,
    theme: str = "light",
    before: str = "",
    folder: Path | None = None,
) -> str:
    """One page with the widgets below one another; `before` is HTML above them.

    What figures load when they are first used is written into the folder, if there is one.
    """
    # Only these widgets: without `state`, every widget that the process has ever made is written.
    state = dependency_state(list(widgets), drop_defaults=False)
    data = embed_data(list(widgets), drop_defaults=False, state=state)
    return html_of(
        data["manager_state"], data["view_specs"], theme=theme, before=before, folder=folder
    )


def html_of(
    manager_state: dict,
    view_specs: Sequence[dict],
    *,
    theme: str = "light",
    before: str = "",
    folder: Path | None = None,
) -> str:
    """The page of widgets whose state is given, as a notebook that has run holds it."""
    if folder:
        for name, text in python_files.named(manager_state["state"]).items():
            (folder / name).write_text(text, encoding="utf-8")
    ground, ink = THEMES[theme]
    views = "\n".join(
        f'<div class="cell_output docutils container">{_tag(VIEW, view)}</div>'
        for view in view_specs
    )
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="{theme}" data-mode="{theme}">
<head>
<meta charset="utf-8"><title>Widgets</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ margin: 0 auto; padding: 12px; max-width: 860px; background: {ground}; color: {ink};
  font: 16px/1.6 system-ui, sans-serif; }}
html[data-theme="dark"] body {{ background: {THEMES["dark"][0]}; color: {THEMES["dark"][1]}; }}
</style>
<script defer src="afm-host.js"></script>
</head>
<body><main><h1>Widgets</h1>
{before}
{views}
</main>
{_tag(STATE, manager_state)}
</body></html>"""


def write_page(folder: Path, *widgets: DOMWidget, name: str = "page.html", **options: str) -> Path:
    """Write the page and the host beside it; return the page's path."""
    shutil.copy(HOST, folder / HOST.name)
    page = folder / name
    html = page_html(widgets, folder=folder, **options)
    page.write_text(html, encoding="utf-8", errors="surrogatepass")
    return page


def _tag(kind: str, content: object) -> str:
    """A script tag as myst-nb writes it, which knows only the literal `</script>` to be harmful."""
    text = json.dumps(content).replace("</script>", r"<\/script>")
    return f'<script type="{kind}">{text}</script>'


# Tokens that try to leave the text: they must be shown as they are and break nothing.
HOSTILE = [
    "</SCRIPT><img src=x onerror=alert(1)>",
    "<!--<script>",
    "</script><b>bold</b>",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "x" * 10_000,
    "\ud800 \x00 \n \t",
    "&lt;&quot;' \\u0041 ${1+1}",
]


def check_hostile(page: Page) -> None:
    """Nothing of HOSTILE has become an element, and the page is not wider than the window."""
    widgets = page.locator(".afm")
    assert widgets.count() > 0
    assert page.locator(".afm img, .afm b, .afm script").count() == 0
    said = page.locator(".afm [aria-label]").evaluate_all(
        "(nodes) => nodes.map((node) => node.getAttribute('aria-label')).join()"
    )
    shown = "".join(widgets.all_text_contents()) + said
    assert "</SCRIPT><img" in shown
    assert "<!--<script>" in shown
    check_fits(page)


def check_fits(page: Page) -> None:
    """There is nothing to scroll to sideways."""
    wide, window = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window, f"the page is {wide} px wide in a window of {window} px"


AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The rules that see colors and sizes. To all others a page is the same in any theme at any width.
AXE_LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]


# Of the tokens of a page's code, half of its elements, the first of each kind is left; the others
# become their text. What axe says of the first it would say of all. Of a formula, all that is drawn
# (a quarter to half of a page's elements) is hidden from screen readers, and so from axe; what they
# read is left of the first in a line and of the first by itself, and of the others its text. So axe
# takes a third of the time.
THIN = """() => {
  const seen = new Set(), again = [];
  for (const token of document.querySelectorAll("pre span[class]:not(:has(*))")) {
    const place = token.closest("div.highlight, pre");
    const [look, ground] = [token, place].map(getComputedStyle);
    const { color, fontWeight, fontSize, opacity } = look;
    const shown = [color, fontWeight, fontSize, opacity, ground.backgroundColor];
    // By their classes, too: two that look alike in one theme may differ in the other.
    const kind = [token.className, place.className, place.parentElement.className, shown];
    const unseen = !token.textContent.trim() || !token.checkVisibility();
    if (unseen || seen.has(`${kind}`)) again.push(token);
    else seen.add(`${kind}`);
  }
  // Only now: a style that is asked for after each change is computed again each time.
  for (const token of again) token.replaceWith(token.textContent);
  const drawn = [...document.querySelectorAll(".katex-html[aria-hidden=true]")];
  const sizes = drawn.map((one) => one.getBoundingClientRect());
  drawn.forEach((one, at) => {
    one.replaceChildren();
    one.style.display = "inline-block";
    for (const side of ["width", "height"]) one.style[side] = `${sizes[at][side]}px`;
  });
  for (const read of document.querySelectorAll(".katex-mathml")) {
    const kind = read.closest(".katex-display") ? "by itself" : "in a line";
    if (seen.has(kind)) read.replaceChildren(read.textContent);
    seen.add(kind);
  }
  return document.querySelectorAll("pre span").length;
}"""


def axe(
    page: Page, inside: str = "html", rules: Sequence[str] | None = None
) -> tuple[list[str], int]:
    """Violations of WCAG 2.2 AA and axe's best practices, and the number of rules that passed.

    `rules` names those to try; without it, all are tried.
    """
    script = python_files.NPM / "axe-core" / "axe.min.js"
    assert script.exists(), f"there is no {script}: `make test` gets it (or set AFM_NPM)"
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(script.read_text(encoding="utf-8"))
    # Without preload: axe would fetch the style sheets, which file:// refuses. With all nodes of
    # all results it takes four times as long on a page full of formulas.
    only = {"type": "rule", "values": list(rules)} if rules else {"type": "tag", "values": AXE_TAGS}
    options = {"runOnly": only, "preload": False, "resultTypes": ["violations"]}
    found = page.evaluate("([inside, options]) => axe.run(inside, options)", [inside, options])
    wrong = [f"{v['id']}: {[n['html'][:200] for n in v['nodes'][:3]]}" for v in found["violations"]]
    return wrong, len(found["passes"])


def check_axe(page: Page) -> None:
    """axe finds nothing wrong in the widgets."""
    wrong, passed = axe(page, ".afm")
    assert passed, "axe has checked nothing"
    assert not wrong, "\n".join(wrong)


def arrive(page: Page) -> None:
    """Wait until all blocks of a page have had their turn (book/assets/afm-page.js)."""
    page.locator("html:not(.afm-arriving)").wait_for()


def mount_all(page: Page) -> None:
    """All figures of the page, mounted and laid out.

    A figure learns in the next frame how wide the others have left it. On a busy machine a frame is
    long: what a test has measured before it is elsewhere when the pointer comes.
    """
    arrive(page)
    page.evaluate("() => window.afm?.mountAll()")
    next_frame(page)


def phrase(target: str, text: str = "set it") -> str:
    """As book/extensions/links.py writes it."""
    return f'<p>Then <span class="afm-set" data-afm-set="{target}">{text}</span>.</p>'


def reading(page: Page) -> str:
    """What the page's first figure says of itself."""
    return page.locator(".afm-reading").first.inner_text()


def facts_of(page: Page, name: str = "here") -> dict[str, float]:
    """What the figure of this name knows of itself."""
    return page.evaluate("(name) => window.afmFigures.get(name)[0].facts()", name)


def next_frame(page: Page) -> None:
    """Wait until the page has painted a frame: what has changed its size is laid out anew."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def pass_time(page: Page, milliseconds: int) -> None:
    """Wait by the page's own clock: its timers that are due earlier have been called."""
    page.evaluate("(time) => new Promise((done) => setTimeout(done, time))", milliseconds)


def finger(page: Page, *points: tuple[float, float], held: int = 0) -> None:
    """A finger that comes down at the first point, stays for milliseconds, moves, and lifts."""
    client = page.context.new_cdp_session(page)
    for i, (x, y) in enumerate(points):
        touch = {"type": "touchMove" if i else "touchStart", "touchPoints": [{"x": x, "y": y}]}
        client.send("Input.dispatchTouchEvent", touch)
        if not i and held:
            pass_time(page, held)
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def swipe(page: Page, *points: tuple[float, float]) -> None:
    """A finger that moves at once: by the page's clock no time passes, however busy the machine."""
    page.clock.install(time=0)
    page.clock.pause_at(3600)
    finger(page, *points)
    page.clock.resume()


def download(page: Page, name: str) -> bytes:
    """The file that the button SVG, PNG or CSV gives."""
    with page.expect_download() as info:
        page.get_by_role("button", name=name, exact=True).first.click()
    return Path(info.value.path()).read_bytes()
