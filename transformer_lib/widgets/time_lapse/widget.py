"""A small GPT at many moments of its training, with a slider over time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.driving import Number, Setting
from transformer_lib.widgets.inputs import require_parts
from transformer_lib.widgets.joining import bundle, stylesheet
from transformer_lib.widgets.weights import pack_weights

LETTERS = "abcdefgh"
READERS = ("uniform", "unigram", "bigram")  # of data/markov.py
LEAST_LENGTH = 8


class TimeLapse(Widget):
    """One model through its training: loss, where its heads look, what it expects, moved together.

    The model is a GPT of two layers, one head in each, that has learned to read Markov chains
    (:mod:`transformer_lib.data.markov`). It computes in the reader's browser, with the weights of
    the moment that the slider is at. The chain is drawn in the page, or written by the reader.

    Args:
        timeline: a :class:`~transformer_lib.training.timeline.Timeline`.
        curve: columns of equal length: ``step`` and ``loss``, and any number of others, by the
            name that the figure gives their line, with shares from 0 to 1.
        readers: the losses of ``uniform``, ``unigram`` and ``bigram`` on the same chains.
        length: how many states the chain in the figure has.
        step: of the timeline, shown first; None: the first.
        bits: 8 or 32 for each number of the weights' matrices.

    The chain comes back as `widget.ids`, and can be set.

    Raises ValueError for a step that was not kept, columns of unequal length, a length outside of
    the model's context, or a model of other than two layers with one head each.
    """

    _esm = bundle("time_lapse")
    _css = stylesheet("time_lapse")
    _packed = traitlets.Bytes().tag(sync=True)
    _config = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    step = Setting(0, Number(0, None, "of those that were kept; a link: the nearest one"))
    position = Setting(
        -1,
        Number(0, "length", "after which state its expectation is shown", none="last", none_is=-1),
    )
    ids = traitlets.List(traitlets.Int()).tag(sync=True)
    seed = Setting(1, Number(1, 2**31 - 1, "of the chain that is drawn"))
    _facts: ClassVar = {
        "loss": "of the curve, at that step",
        "position": "the state after which the expectation is shown",
        **{
            f"off {reader}": "how far the model's expectation is from this reader's: half of the "
            "sum of all differences, from 0 to 1"
            for reader in READERS
        },
        "looks": "the share of the last layer's attention on states that followed an earlier one "
        "like the present",
    }

    def __init__(
        self,
        timeline: Any,
        curve: Mapping[str, Sequence[float]],
        readers: Mapping[str, float],
        *,
        length: int = 24,
        step: int | None = None,
        bits: int = 8,
        **settings: Any,
    ) -> None:
        require_parts(timeline, ("config", "weights"), "timeline", "load_timeline(name)")
        config = timeline.config
        self._steps, self._length, self._states = timeline.steps, length, config.vocabulary
        if (
            config.n_heads != 1
            or config.n_layers != 2
            or not 2 <= config.vocabulary <= len(LETTERS)
        ):
            raise ValueError(
                f"the model has {config.n_layers} layers of {config.n_heads} heads and "
                f"{config.vocabulary} states; the figure shows two layers of one head, and 2 to "
                f"{len(LETTERS)} states"
            )
        if not LEAST_LENGTH <= length <= config.context:
            raise ValueError(
                f"length is {length}; choose {LEAST_LENGTH} to {config.context} (the context)"
            )
        if missing := [reader for reader in READERS if reader not in readers]:
            raise ValueError(f"readers lacks {missing[0]!r}; give the loss of {', '.join(READERS)}")
        weights = {
            f"{step}/{name}": tensor
            for step, kept in timeline.weights.items()
            for name, tensor in kept.items()
        }
        text = {
            "steps": self._steps,
            "letters": LETTERS[: config.vocabulary],
            "length": length,
            "curve": _columns(curve),
            "readers": {reader: float(readers[reader]) for reader in READERS},
        }
        super().__init__(
            _packed=pack_weights(weights, bits=bits), _config=json_bytes(asdict(config)),
            _text=json_bytes(text), step=self._steps[0] if step is None else step,
            **settings,
        )  # fmt: skip

    @traitlets.validate("step")
    def _check_step(self, proposal: dict) -> int:
        if proposal["value"] not in self._steps:
            kept = ", ".join(map(str, self._steps))
            raise ValueError(f"step is {proposal['value']}; the steps that were kept are {kept}")
        return proposal["value"]

    @traitlets.validate("ids")
    def _check_ids(self, proposal: dict) -> list[int]:
        ids = proposal["value"]
        if ids and (len(ids) > self._length or not set(ids) <= set(range(self._states))):
            raise ValueError(
                f"ids is {ids}; give at most {self._length} states, each 0 to {self._states - 1}"
            )
        return ids

    def _sizes(self) -> dict[str, object]:
        return {"steps": len(self._steps), "length": self._length}


def _columns(curve: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    lengths = {name: len(column) for name, column in curve.items()}
    if not {"step", "loss"} <= set(lengths) or len(set(lengths.values())) > 1:
        raise ValueError(f"the columns must be step, loss and others of the same length: {lengths}")
    for name, column in curve.items():
        if not all(map(math.isfinite, column)):
            raise ValueError(f"the column {name!r} holds a number that is NaN or infinite")
        if name not in ("step", "loss") and not all(0 <= share <= 1 for share in column):
            raise ValueError(f"the column {name!r} holds a number outside of 0 to 1, so no share")
    return {
        name: [float(x if name == "step" else f"{x:.4g}") for x in column]
        for name, column in curve.items()
    }
