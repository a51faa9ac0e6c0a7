"""Fixtures for tests that download."""

import pytest
from misbehaving import serving


@pytest.fixture
def server():
    with serving() as server:
        yield server


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """An empty cache in ``tmp_path``, no folder of the reader's, no proxy."""
    monkeypatch.delenv("TRANSFORMER_LIB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
