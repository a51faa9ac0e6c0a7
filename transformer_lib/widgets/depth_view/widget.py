"""The size of each block's gradient, from the first block to the last, as a run log has it."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Option, Setting
from transformer_lib.widgets.joining import bundle, stylesheet

# A trait for each arrangement; its name in the log.
ARRANGEMENTS = {
    "pre": "pre-norm",
    "post": "post-norm",
    "no_norm": "no norm",
    "no_residual": "no residual",
}
QUANTITIES = ("gradient", "stream")
COLUMNS = ("arrangement", "start", "depth", "layer", *QUANTITIES)


class DepthView(Widget):
    """Gradients, or sizes of the stream, by depth: a line for each way to put a block together.

    Args:
        curve: columns of equal length (``arrangement`` and ``start`` as indices, ``depth``,
            ``layer`` from 1, ``gradient`` and ``stream``), as benchmarks/depth.py writes them.
            Rows that differ in nothing else (seeds) are averaged, as logarithms.
        arrangements, starts: the names that the indices stand for.
        shown: the arrangements that are shown first, of ``pre``, ``post``, ``no_norm`` and
            ``no_residual``.

    Raises ValueError for a missing column, columns of unequal length, numbers that are not above 0,
    or a depth, start or arrangement that is not there.
    """

    _esm = bundle("depth_view")
    _css = stylesheet("depth_view")
    _text = traitlets.Bytes().tag(sync=True)
    _limits = constant({"arrangements": ARRANGEMENTS, "quantities": QUANTITIES})
    depth = Setting(24, Option({"6": 6, "12": 12, "24": 24}, "of the models"))
    start = Setting(0, Number(0, "starts", "the index of how they were started"))
    quantity = Setting("gradient", Option(QUANTITIES, "what is drawn"))
    pre = Setting(False, Flag())
    post = Setting(False, Flag())
    no_norm = Setting(False, Flag())
    no_residual = Setting(False, Flag())
    _facts: ClassVar = {
        **{
            f"ratio {arrangement}": "the first block's, as shown, divided by the last block's"
            for arrangement in ARRANGEMENTS
        },
        "gradient": "1, or 0 for the stream",
        "lines": "how many are shown",
    }

    def __init__(
        self,
        curve: Mapping[str, Sequence[float]],
        arrangements: Sequence[str],
        starts: Sequence[str],
        *,
        shown: Sequence[str] = ("pre", "post"),
        **settings: Any,
    ) -> None:
        lines = _lines(curve, arrangements, starts)
        self._depths = sorted({line["depth"] for line in lines})
        self._starts = len(starts)
        if unknown := set(shown) - set(ARRANGEMENTS):
            raise ValueError(f"shown holds {unknown}; choose of {', '.join(ARRANGEMENTS)}")
        text = {"lines": lines, "depths": self._depths, "starts": list(starts)}
        first = dict.fromkeys(shown, True) | {"depth": self._depths[-1]}
        super().__init__(_text=json_bytes(text), **first | settings)

    @traitlets.validate("depth")
    def _check_depth(self, proposal: dict) -> int:
        if proposal["value"] not in self._depths:
            raise ValueError(f"depth is {proposal['value']}; there are {self._depths}")
        return proposal["value"]

    def _sizes(self) -> dict[str, object]:
        return {"depths": len(self._depths), "starts": self._starts}


def _lines(
    curve: Mapping[str, Sequence[float]], arrangements: Sequence[str], starts: Sequence[str]
) -> list[dict]:
    """One entry for each arrangement that the figure knows, start and depth: means over seeds."""
    if missing := [column for column in COLUMNS if column not in curve]:
        raise ValueError(f"the curve has no column {missing[0]!r}; it needs {', '.join(COLUMNS)}")
    lengths = {column: len(curve[column]) for column in COLUMNS}
    if len(set(lengths.values())) > 1 or not lengths["layer"]:
        raise ValueError(f"the columns must be equally long and not empty; they have {lengths}")
    keys = {name: key for key, name in ARRANGEMENTS.items()}
    logs: dict[tuple, list[tuple[float, ...]]] = defaultdict(list)
    for at, start, depth, layer, *values in zip(*(curve[c] for c in COLUMNS), strict=True):
        if not (0 <= at < len(arrangements) and 0 <= start < len(starts)):
            raise ValueError(
                f"a row has arrangement {at} and start {start}, as indices, but there are "
                f"{len(arrangements)} arrangements and {len(starts)} starts"
            )
        if min(values) <= 0 or not all(map(math.isfinite, values)):
            raise ValueError(
                f"block {layer} of {depth} has {dict(zip(QUANTITIES, values, strict=True))}; the "
                f"axis is logarithmic and shows finite numbers above 0 only"
            )
        if arrangements[at] in keys:
            logs[keys[arrangements[at]], start, depth, layer].append(tuple(map(math.log, values)))
    if not logs:
        raise ValueError(
            f"arrangements are {list(arrangements)}, of which none is known; this figure shows "
            f"{', '.join(keys)}"
        )
    lines: dict[tuple, dict] = {}
    for (key, start, depth, _), seeds in sorted(logs.items(), key=lambda item: item[0][2:]):
        line = lines.setdefault(
            (key, start, depth),
            {"key": key, "start": start, "depth": depth} | {name: [] for name in QUANTITIES},
        )
        for name, found in zip(QUANTITIES, zip(*seeds, strict=True), strict=True):
            line[name].append(float(f"{math.exp(sum(found) / len(found)):.4g}"))
    return list(lines.values())
