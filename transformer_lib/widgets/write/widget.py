"""A cell of Python that runs in the reader's browser."""

from collections.abc import Sequence
from typing import ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant, json_bytes
from transformer_lib.widgets.driving import Action
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.joining import bundle, stylesheet

SECONDS = 20


class Write(Widget):
    """Python with PyTorch's names, written and run on the page, without a kernel.

    MicroPython and the tensors of `widgets/math/tensor/` run in a worker. What is printed, the
    value of the last expression and errors are shown as a notebook shows them; what the reader has
    written is kept in the browser until *Start over*. In a notebook the figure says that any cell
    does this there.

    Args:
        code: the text at first.
        setup: what is run before it, unseen: imports, and the values that the code uses.
        name: what is written is kept under it, and figures of one name share their Python names.

    `widget.ran` is the number of runs without an error.

    Raises TypeError if the code is not text.

    >>> Write("torch.arange(3) ** 2", setup="import torch")
    Write(lines=1)
    """

    _esm = bundle("write")
    _css = stylesheet("write")
    _python = traitlets.Dict(read_only=True).tag(
        sync=True
    )  # the page's files: book/extensions/figures.py
    _limits = constant({"seconds": SECONDS})
    _text = traitlets.Bytes().tag(sync=True)
    ran = traitlets.Int(0).tag(sync=True)
    _keys_of_text: ClassVar = {"run": Action("run what is written")}
    _facts: ClassVar = {"ran": "runs without an error", "failed": "runs with one"}

    def __init__(
        self, code: str, *, setup: str = "", name: str = "", goals: Sequence[Goal] = ()
    ) -> None:
        for what, text in (("code", code), ("setup", setup)):
            if not isinstance(text, str):
                raise TypeError(f"{what} is {text!r}, but must be text: the lines of a cell")
        super().__init__(_text=json_bytes({"code": code, "setup": setup}), name=name, goals=goals)

    def _sizes(self) -> dict[str, object]:
        return {"lines": self._texts()["code"].count("\n") + 1}
