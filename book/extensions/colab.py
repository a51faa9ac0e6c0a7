"""Sphinx extension: the Colab button, if the repository has an address.

Colab opens a notebook from its place on GitHub. Without an address in `_config.yml`
(`repository: url:`) there is no such place, and so no button.
"""

import re

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

COLAB = "https://colab.research.google.com"


def add_button(app: Sphinx, config: Config) -> None:
    options = config.html_theme_options
    url = (options.get("repository_url") or "").rstrip("/")
    options["repository_url"] = url
    options["launch_buttons"] = {"colab_url": COLAB} if url else {}
    if url and not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", url):
        raise ConfigError(
            f"_config.yml: repository: url: is {url!r}. Colab opens notebooks from GitHub: "
            "write https://github.com/OWNER/NAME, or leave it empty until the book is published."
        )


def setup(app: Sphinx) -> dict[str, object]:
    # Before the theme reads its options at 500.
    app.connect("config-inited", add_button, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
