"""What every test shares: checked shapes, one thread, one seed."""

import random

import hypothesis
import jaxtyping
import pytest
import torch

# Shapes and types in the library's signatures are checked in the tests, and only there. This has
# to stand before anything imports the library. (An int is good where a float is asked for.)
jaxtyping.install_import_hook(
    "transformer_lib",
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

torch.set_num_threads(1)

# The same examples in every run: a failure must be there again when one looks for it.
hypothesis.settings.register_profile("book", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.register_profile(
    "soak", parent=hypothesis.settings.get_profile("book"), max_examples=1000
)
hypothesis.settings.load_profile("book")  # pytest --hypothesis-profile=soak: the other one


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
    random.seed(0)  # beartype draws from it which item of a sequence it checks


@pytest.fixture
def as_a_reader():
    """Without the checked signatures: what a reader sees who passes a wrong argument."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
