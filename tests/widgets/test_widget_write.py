"""Write, the Python side: what it takes and what comes back."""

import json

import pytest

from transformer_lib.widgets import Write


def test_the_text_and_what_comes_before_it_travel_as_bytes():
    widget = Write("x\ny", setup="import torch", name="mine")
    assert json.loads(widget._text) == {"code": "x\ny", "setup": "import torch"}
    assert repr(widget) == "Write(lines=2)"
    assert widget.ran == 0


def test_links_run_it_and_set_it_back():
    widget = Write("x")
    assert widget.accepts("run")
    assert widget.accepts("reset")
    assert not widget.accepts("run", "now")


@pytest.mark.parametrize(("code", "setup", "name"), [(3, "", "code"), ("x", None, "setup")])
def test_code_must_be_text(as_a_reader, code, setup, name):
    with pytest.raises(TypeError, match=rf"{name} is .*, but must be text"):
        Write(code, setup=setup)
