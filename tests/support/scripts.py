"""The benchmarks as modules."""

import importlib.util

from transformer_lib.training.run_log import REPOSITORY

FOLDER = REPOSITORY / "benchmarks"


def load(name):
    """The module benchmarks/NAME.py; scripts are not a package."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
