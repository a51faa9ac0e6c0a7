"""Each stored chapter is a test of its own."""

import nbformat
import pytest
from links import CHAPTERS


def pytest_generate_tests(metafunc):
    if "chapter" in metafunc.fixturenames:
        metafunc.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


@pytest.fixture
def notebook(chapter):
    return nbformat.read(chapter, as_version=4)
