"""A training run as a figure: its loss, what it has to beat, and the floor that it cannot pass."""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, SupportsFloat, TypeVar, runtime_checkable

import traitlets
from IPython import get_ipython

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Setting
from transformer_lib.widgets.inputs import require_mapping
from transformer_lib.widgets.joining import bundle, stylesheet

_PAUSE = 0.25  # seconds between two messages to the page, at least
_SHARE = 20  # sending takes at most 1/20 of the time
_MOST_CHARACTERS = 2_000  # of a text
_ALSO_FOLLOWED = ("rate", "gradient_norm")


@runtime_checkable
class TrainingStep(Protocol):
    """The part of a step that `follow` reads, as a `Trainer` yields it."""

    step: int
    loss: float


Steps = TypeVar("Steps", bound=TrainingStep)


class TrainingView(Widget):
    """The loss of a training run over its steps, with baselines and the floor.

    On the page the recorded run; in a kernel also live, while a loop trains:

        view = TrainingView(baselines={"bigram": 1.2}, floor=0.35, n_steps=400)   # a cell's result
        for step in view.follow(trainer): ...                                     # another cell

    `view.append(step, loss)` does it by hand, and `view.wrote(step, text)` adds what the model
    writes after a step. Steps are sent a few times a second, and whatever is left at the end of the
    cell. `view.curve` are all columns so far, as a run log wants them;
    `view.step` is the step that the reader looks at (None: the last one).

    Args:
        curve: columns of equal length: `step`, rising, a loss (the first column with "loss" in its
            name), and others; NaN where nothing was measured. `load_run(name).curve`, for example.
        baselines: name and loss of what the model should beat, drawn as lines.
        floor: the loss that nothing can beat on average, such as the entropy of the text.
        n_steps: where the axis of steps ends; None: at the last step.
        smoothing: None: 10 if there are more than 100 rows, else 1.
        above_floor: needs the floor.
        texts: by step, what the model wrote then; the newest up to the chosen step is shown.

    Raises ValueError if columns do not fit, steps do not rise, or a baseline or the floor is not
    finite; TypeError for values that are not numbers, or texts that are not text.

    >>> view = TrainingView({"step": [1, 2, 3], "loss": [2.0, 1.5, 1.25]}, floor=1.0)
    >>> view
    TrainingView(steps=3)
    >>> view.append(4, 1.125, validation_loss=1.25)
    >>> view.curve["loss"], view.curve["validation_loss"]
    ([2.0, 1.5, 1.25, 1.125], [nan, nan, nan, 1.25])
    """

    _esm = bundle("training_view")
    _css = stylesheet("training_view")
    _text = traitlets.Bytes().tag(sync=True)
    _curve = traitlets.Bytes().tag(sync=True)
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    smoothing = Setting(1, Number(1, None, "rows of which the mean is taken"))
    log_steps = Setting(False, Flag("a logarithmic axis of steps"))
    above_floor = Setting(False, Flag("the loss minus the floor, on a logarithmic axis"))
    _keys_of_text: ClassVar = {"step": Number(0, None, "the nearest one", none="last")}
    _facts: ClassVar = {
        "step": "",
        "loss": "as it is drawn at this step, smoothed",
        "above floor": "that loss minus the floor",
    }

    _unsent = False  # whether there are rows that the page does not know
    _waiting = False  # whether the end of the cell will send them
    _next_message = 0.0

    def __init__(
        self,
        curve: Mapping[str, Iterable[SupportsFloat]] | None = None,
        *,
        baselines: Mapping[str, SupportsFloat] | None = None,
        floor: SupportsFloat | None = None,
        n_steps: int | None = None,
        smoothing: int | None = None,
        above_floor: bool = False,
        texts: Mapping[int, str] | None = None,
        **settings: Any,
    ) -> None:
        self._columns = _checked({"step": [], "loss": []} if curve is None else curve)
        self._loss = next(name for name in self._columns if "loss" in name)
        named = {} if baselines is None else baselines
        require_mapping(named, "baselines", "{name: loss}")
        lines = [[name, _finite(loss, f"baseline {name!r}")] for name, loss in named.items()]
        floor = None if floor is None else _finite(floor, "floor")
        if above_floor and floor is None:
            raise ValueError("above_floor needs the floor: TrainingView(..., floor=...)")
        if n_steps is not None and n_steps < 1:
            raise ValueError(f"n_steps is {n_steps}; it is where the axis ends: choose 1 or more")
        self._described = {"baselines": lines, "floor": floor, "n_steps": n_steps, "texts": []}
        for step, text in ({} if texts is None else texts).items():
            self._keep(step, text)
        if smoothing is None:
            smoothing = 10 if max(len(self._columns["step"]), n_steps or 0) > 100 else 1
        super().__init__(
            _text=json_bytes(self._described),
            _curve=self._encoded(),
            smoothing=smoothing,
            above_floor=above_floor,
            **settings,
        )

    @property
    def curve(self) -> dict[str, list[float]]:
        """All columns so far, NaN where nothing was measured: what a run log keeps."""
        return {name: list(column) for name, column in self._columns.items()}

    def append(self, step: int, loss: SupportsFloat | None = None, **others: SupportsFloat) -> None:
        """Add a step; or, of the last step once more, other columns (a loss measured after it).

        A column whose name holds "loss" is drawn beside the loss, others can be chosen below it.

        Raises ValueError for a step before the last one or between two, and for a column that this
        step has already, TypeError for values that are not numbers.
        """
        step = _step(step)
        row = {name: _number(value, name) for name, value in others.items()}
        if loss is not None:
            row[self._loss] = _number(loss, "loss")
        steps = self._columns["step"]
        if steps and step < steps[-1]:
            raise ValueError(
                f"step {step} after step {steps[-1]}: steps do not go back; "
                "of a new run make a new TrainingView"
            )
        again = [name for name in row if steps and step == steps[-1] and name in self._columns]
        if taken := [name for name in again if not math.isnan(self._columns[name][-1])]:
            raise ValueError(
                f"step {step} has a {taken[0]} already, {self._columns[taken[0]][-1]:g}: a step "
                "that is added again may only bring other columns"
            )
        for name in row:
            self._columns.setdefault(name, [math.nan] * len(steps))
        if not steps or step > steps[-1]:
            for column in self._columns.values():
                column.append(math.nan)
            steps[-1] = step
        for name, value in row.items():
            self._columns[name][-1] = value
        self._unsent = True
        if time.monotonic() >= self._next_message:
            self.flush()
        else:
            self._flush_after_the_cell()

    def wrote(self, step: int, text: str) -> None:
        """Show ``text`` below the curve, as what the model wrote after this step.

        A text of the same step is replaced. At most 2,000 characters of it are kept.

        Raises TypeError for what is not text, or a step that is not a number; ValueError for a step
        that is not whole.
        """
        self._keep(step, text)
        self._text = json_bytes(self._described)

    def _keep(self, step: int, text: str) -> None:
        step = _step(step)
        if not isinstance(text, str):
            raise TypeError(
                f"the text of step {step} is {text!r:.60}, which is not text; decode the ids"
            )
        others = [one for one in self._described["texts"] if one[0] != step]
        self._described["texts"] = sorted([*others, [step, text[:_MOST_CHARACTERS]]])

    def follow(self, steps: Iterable[Steps]) -> Iterator[Steps]:
        """The same steps, drawn as they come: `for step in view.follow(trainer): ...`."""
        planned = getattr(steps, "n_steps", None)
        if planned and self._described["n_steps"] is None:
            self._described["n_steps"] = planned
            self._text = json_bytes(self._described)
        try:
            for step in steps:
                also = {name: getattr(step, name) for name in _ALSO_FOLLOWED if hasattr(step, name)}
                self.append(step.step, step.loss, **also)
                yield step
        finally:
            self.flush()

    def flush(self) -> None:
        """Send what is not sent yet. (`follow`, and the end of a cell, do so by themselves.)"""
        if not self._unsent:
            return
        self._unsent = False
        start = time.monotonic()
        self._curve = self._encoded()
        end = time.monotonic()
        self._next_message = end + max(_PAUSE, _SHARE * (end - start))

    def _flush_after_the_cell(self) -> None:
        """In a notebook, send once when the running cell is done."""
        shell = get_ipython()
        if shell is None or self._waiting:
            return

        def once() -> None:
            shell.events.unregister("post_execute", once)
            self._waiting = False
            self.flush()

        shell.events.register("post_execute", once)
        self._waiting = True

    def get_state(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        """The state for a page or a new view: whoever asks for it gets all steps."""
        self.flush()
        return super().get_state(*arguments, **options)

    def _encoded(self) -> bytes:
        columns = [
            [float(f"{value:.7g}") if math.isfinite(value) else None for value in column]
            for column in self._columns.values()
        ]
        columns[list(self._columns).index("step")] = self._columns["step"]
        return json_bytes({"names": list(self._columns), "loss": self._loss, "columns": columns})

    def _sizes(self) -> dict[str, object]:
        return {"steps": len(self._columns["step"])}


def _checked(curve: Mapping[str, Iterable[SupportsFloat]]) -> dict[str, list[float]]:
    """The columns as lists of numbers, equally long, of rising steps."""
    columns = {}
    require_mapping(curve, "curve", "{'step': ..., 'loss': ...}, as a run log's `curve`")
    for name, values in curve.items():
        columns[name] = [_number(value, f"curve[{name!r}]") for value in values]
    if "step" not in columns or not any("loss" in name for name in columns):
        raise ValueError(
            f"the curve has the columns {', '.join(columns) or 'none'}; it needs `step` and one "
            "with `loss` in its name"
        )
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the curve's columns must be equally long; they have {lengths} values")
    steps = [_step(step, f"curve['step'][{i}]") for i, step in enumerate(columns["step"])]
    for i in range(1, len(steps)):
        if steps[i] <= steps[i - 1]:
            raise ValueError(
                f"curve['step'][{i}] is {steps[i]}, after {steps[i - 1]}; steps must rise: sort "
                "the rows, and give each run a view of its own"
            )
    columns["step"] = steps
    return columns


def _step(value: object, name: str = "step") -> int:
    step = _number(value, name)
    if not step.is_integer():
        raise ValueError(f"{name} is {step:g}, which is not a step: steps are whole numbers")
    return int(step)


def _number(value: object, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is {value!r}, which is not a number") from error


def _finite(value: object, name: str) -> float:
    number = _number(value, name)
    if not math.isfinite(number):
        raise ValueError(f"{name} is {number}; it is drawn as a line: give a finite loss in nats")
    return number
