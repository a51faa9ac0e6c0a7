"""bertviz's own neuron view, from queries and keys to weights, without kernel or network."""

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
import traitlets

from transformer_lib.widgets.base import json_bytes
from transformer_lib.widgets.bertviz import BertvizView, program, require_few, to_layers
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

# bertviz looks for its place in the whole document here, and finds another view's.
ANYWHERE = 'd3.select("#vis")'
OF_ITS_OWN = "d3.select(`#${config.rootDivId} #vis`)"


class NeuronView(BertvizView):
    """One head, number by number: the query, each key, their products, the sums, the weights.

    The drawing is done by the file neuron_view.js of the package bertviz (Vig, 2019, "A Multiscale
    Visualization of Attention in the Transformer Model"). bertviz's own function takes a few models
    of Hugging Face only; this one takes the vectors of any causal model. (In one line of the
    program the place that it draws in is named more exactly, so that a page can hold several.)

    Args:
        attention: as :class:`~transformer_lib.widgets.HeadView` takes it.
        vectors: for each layer its queries and its keys, [batch=1, heads, tokens, d_head] or
            [heads, tokens, d_head]: :func:`~transformer_lib.interpret.maps.queries_and_keys`. They
            are rounded to 3 decimals.
        tokens: at most 16.
        layer, head: shown first, from 0.
        query: the token that asks first, from 0; None: the last.

    Raises as :class:`~transformer_lib.widgets.HeadView` does; ValueError for vectors that are not
    of the same layers, heads and tokens as the weights, and for a place that is not there.

    >>> weights, x = [[[[1.0, 0.0], [0.5, 0.5]]]], np.ones((1, 2, 3))
    >>> NeuronView(weights, [(x, x)], ["mary", "gave"])
    NeuronView(layers=1, heads=1, tokens=2, d_head=3)
    """

    view = "neuron_view"
    _esm = bundle(view)
    _css = stylesheet(view)

    def __init__(
        self,
        attention: object,
        vectors: Sequence[tuple] | Mapping[str, tuple],
        tokens: Sequence[str],
        *,
        layer: int = 0,
        head: int = 0,
        query: int | None = None,
        **settings: Any,
    ) -> None:
        weights = to_layers(attention)
        n_layers, n_heads, n_tokens, _ = weights.shape
        tokens = to_tokens(tokens, n_tokens, "tokens", "rows of the attention")
        require_few(tokens, "neuron view")
        vectors = list(vectors.values()) if isinstance(vectors, Mapping) else vectors
        if not all(hasattr(pair, "__len__") and len(pair) == 2 for pair in vectors):
            raise TypeError(
                f"vectors are {vectors!r:.60}; give (queries, keys) for each layer, as "
                "queries_and_keys(model, ids) does"
            )
        queries = _stacked([q for q, _ in vectors], "queries", weights.shape)
        keys = _stacked([k for _, k in vectors], "keys", weights.shape)
        if queries.shape != keys.shape:
            raise ValueError(
                f"queries have {queries.shape[-1]} numbers and keys {keys.shape[-1]}; a product "
                f"needs the same number of both"
            )
        places = {"layer": (layer, n_layers), "head": (head, n_heads)}
        places["query"] = (n_tokens - 1 if query is None else query, n_tokens)
        for name, (at, end) in places.items():
            if not 0 <= at < end:
                raise ValueError(f"{name} is {at}; choose one from 0 to {end - 1}")
        self._shape = queries.shape
        data = {name: index(at) for name, (at, _) in places.items()} | {"tokens": tokens}
        data["attention"] = weights.round(3).tolist()
        data |= {"queries": queries.round(3).tolist(), "keys": keys.round(3).tolist()}
        super().__init__(_data=json_bytes(data), **settings)

    @traitlets.default("_program")
    def _own_program(self) -> str:
        return program(self.view, "NeuronView").replace(ANYWHERE, OF_ITS_OWN)

    def _sizes(self) -> dict[str, int]:
        return dict(zip(("layers", "heads", "tokens", "d_head"), self._shape, strict=True))


def _stacked(layers: Sequence, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """[layers, heads, tokens, d_head], the batch axis of one sentence taken off."""
    found = [to_numpy(layer, f"{name}[{n}]") for n, layer in enumerate(layers)]
    found = [layer[0] if layer.ndim == 4 and len(layer) == 1 else layer for layer in found]
    shapes = {layer.shape for layer in found}
    if len(shapes) != 1 or (len(found), *min(shapes)[:-1]) != shape[:-1] or found[0].ndim != 3:
        raise ValueError(
            f"{name} are of {len(found)} layers, {sorted(shapes)}; for weights of the shape "
            f"{shape} give {shape[0]} of [{shape[1]}, {shape[2]}, d_head]"
        )
    return np.stack(found)
