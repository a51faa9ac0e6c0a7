"""Stand-alone pages out of widgets, as Jupyter Book would write them, for the browser tests.

    write_page(folder, AttentionMap(weights, tokens), theme="dark")  ->  folder / "page.html"

The page holds one state tag and, for each widget, a view tag, which book/assets/afm-host.js mounts.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from ipywidgets import DOMWidget
from ipywidgets.embed import embed_data

HOST = Path(__file__).parents[2] / "book" / "assets" / "afm-host.js"
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
# The grounds and text colors of the book's theme.
THEMES = {"light": ("#ffffff", "#222832"), "dark": ("#14181e", "#ced6dd")}


def page_html(widgets: Sequence[DOMWidget], *, theme: str = "light", before: str = "") -> str:
    """One page with the widgets below one another; `before` is HTML that stands above them."""
    data = embed_data(list(widgets), drop_defaults=False)
    ground, ink = THEMES[theme]
    views = "\n".join(
        f'<div class="cell_output docutils container">{_tag(VIEW, view)}</div>'
        for view in data["view_specs"]
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
{_tag(STATE, data["manager_state"])}
</body></html>"""


def write_page(folder: Path, *widgets: DOMWidget, name: str = "page.html", **options: str) -> Path:
    """Write the page and the host beside it; return the page's path."""
    shutil.copy(HOST, folder / HOST.name)
    page = folder / name
    page.write_text(page_html(widgets, **options), encoding="utf-8", errors="surrogatepass")
    return page


def _tag(kind: str, content: object) -> str:
    """A script tag as myst-nb writes it, which knows only the literal `</script>` to be harmful."""
    text = json.dumps(content).replace("</script>", r"<\/script>")
    return f'<script type="{kind}">{text}</script>'
