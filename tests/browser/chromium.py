"""Make sure that the browser tests have a Chromium: `python tests/browser/chromium.py`.

One that is installed is used. Else Debian's own package is installed, where nobody has to be asked
(as root, in a container for instance), and else the one that Playwright downloads. Best is the one
without windows, the headless shell, which Playwright itself takes: all browser tests take about
half as long with it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SHELL = "chromium-headless-shell"
CHROMIUM_NAMES = (
    SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"
)  # fmt: skip


def on_debian() -> bool:
    """Debian itself: Ubuntu's package of this name only points to a snap."""
    release = Path("/etc/os-release")
    lines = release.read_text(encoding="utf-8").splitlines() if release.exists() else []
    return "ID=debian" in lines and shutil.which("apt-get") is not None


def downloaded() -> bool:
    """Whether Playwright has its own Chromium."""
    with sync_playwright() as playwright:
        return Path(playwright.chromium.executable_path).exists()


def installed() -> bool:
    return os.environ.get("AFM_CHROMIUM") is not None or any(map(shutil.which, CHROMIUM_NAMES))


def commands() -> list[list[str]]:
    """The commands to try, in this order, until there is a Chromium."""
    playwright = [sys.executable, "-m", "playwright", "install", "chromium"]
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return [playwright]
    install = "apt-get install -q -y --no-install-recommends"
    apt = f"apt-get update -q && ({install} {SHELL} || {install} chromium)"
    return [*([["sh", "-c", apt]] if on_debian() else []), [*playwright, "--with-deps"]]


def main() -> int:
    for command in [] if installed() or downloaded() else commands():
        print("There is no Chromium here. Running:", *command, flush=True)
        subprocess.run(command, check=False)
        if installed() or downloaded():
            break
    if installed() or downloaded():
        return 0
    print(
        "No Chromium could be installed. Install Chromium or Chrome yourself, or name one that is "
        "there: AFM_CHROMIUM=/path/to/chrome make test",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
