"""The matrix between query and key, A = W_Q W_Kᵀ, on a sentence: move an entry and see the map."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
import traitlets
from jaxtyping import Float
from torch import Tensor

from transformer_lib.widgets.base import Widget, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Option, Setting, Token
from transformer_lib.widgets.inputs import first_largest, require_few, to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

_MOST_TOKENS, _MOST_FEATURES = 12, 8
_LARGEST = 100.0  # entries and components: the scores stay numbers that a reader can compare


class MatrixInTheMiddle(Widget):
    """Scores X A Xᵀ and their softmax for a sentence, beside the matrix A that the reader changes.

    Row f, column g of A says how strongly feature f of the word that asks is drawn to feature g of
    the word that answers. The reader chooses an entry and moves it; the cells of the map that it
    reaches are marked. Choosing a cell of the map marks the entries that its score is made of.
    There is no scaling.

    Args:
        tokens: the words, s texts, at most 12.
        vectors: a row for each word, [s, d], at most 8 wide.
        matrix: A at the start, [d, d].
        features: what to call the components, d texts.
        presets: other matrices to choose from, by name; the first one of the choices is `matrix`,
            by the name `start`.
        start: what to call the first matrix.
        entry: the entry that is chosen at the start, as two names of features.

    `widget.A` is the matrix as it is now, and can be set; `widget.scores` and `widget.weights`
    follow it. Traits to observe: `matrix`, `entry` and `cell`.

    Raises ValueError if sizes do not fit, numbers are not finite or beyond 100, or a name is not a
    feature; TypeError if names are not text.

    >>> X = [[1.0, 0.0], [0.0, 1.0]]
    >>> middle = MatrixInTheMiddle(["gave", "roses"], X, [[0, 3], [0, 0]], ["giving", "thing"])
    >>> middle
    MatrixInTheMiddle(tokens=2, features=2)
    >>> middle.scores
    tensor([[0., 3.],
            [0., 0.]])
    """

    _esm = bundle("matrix_in_the_middle")
    _css = stylesheet("matrix_in_the_middle")
    _text = traitlets.Bytes().tag(sync=True)
    _vectors = traitlets.Bytes().tag(sync=True)
    _presets = traitlets.List().tag(sync=True)
    matrix = traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)
    entry = traitlets.Tuple(traitlets.Int(), traitlets.Int()).tag(sync=True)
    cell = traitlets.Tuple(traitlets.Int(), traitlets.Int()).tag(sync=True)
    show = Setting("weights", Option(["weights", "scores"], "on the map"))
    _keys_of_text: ClassVar = {
        "matrix": Token("presets", "the name of a preset, or `start`"),
        "asking": Token("features", "of the chosen entry"),
        "answering": Token("features", "of the chosen entry"),
        "value": Number(-_LARGEST, _LARGEST, "of that entry", whole=False),
    }
    _facts: ClassVar = {
        "weight {tokens} {tokens}": "",
        "score {tokens} {tokens}": "",
        "moved": "how many entries differ from the first matrix",
        "asymmetry": "the largest difference between a score and the one in the other direction",
    }

    def __init__(
        self,
        tokens: Sequence[str],
        vectors: object,
        matrix: object,
        features: Sequence[str],
        *,
        presets: Mapping[str, object] | None = None,
        start: str = "as built",
        entry: Sequence[str] | None = None,
        **settings: Any,
    ) -> None:
        array = to_numpy(vectors, "vectors", largest=_LARGEST)
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(
                f"vectors have shape {array.shape}, but must be [words, features], a row for each "
                "word"
            )
        require_few(array.shape[0], _MOST_TOKENS, "tokens", f"vectors[:{_MOST_TOKENS}]")
        if array.shape[1] > _MOST_FEATURES:
            raise ValueError(
                f"{array.shape[1]} features, but this figure shows at most {_MOST_FEATURES}: each "
                f"pair of them is a cell; give it a part, such as vectors[:, :{_MOST_FEATURES}]"
            )
        self._X = array
        features = to_tokens(features, array.shape[1], "features", "columns of the vectors")
        names = [start, *(presets or {})]
        if start in names[1:]:
            raise ValueError(
                f"presets have {start!r}, which is what `matrix` is called: give another start"
            )
        matrices = [self._square(matrix, "matrix")]
        matrices += [self._square(one, f"presets[{n!r}]") for n, one in (presets or {}).items()]
        text = {
            "tokens": to_tokens(tokens, array.shape[0], "tokens", "rows of the vectors"),
            "features": features,
            "presets": to_tokens(names, len(names), "presets", "matrices"),
        }
        super().__init__(
            _text=json_bytes(text),
            _vectors=float_bytes(array),
            _presets=matrices,
            matrix=matrices[0],
            entry=_chosen(entry, features, matrices[0]),
            **{"cell": _telling(self._weights(matrices[0]))} | settings,
        )

    @property
    def A(self) -> Float[Tensor, "features features"]:
        """The matrix as it is now."""
        return torch.tensor(self.matrix)

    @A.setter
    def A(self, matrix: object) -> None:
        self.matrix = self._square(matrix, "A")

    @property
    def scores(self) -> Float[Tensor, "tokens tokens"]:
        """X A Xᵀ, rows asking, columns answering."""
        X = torch.tensor(self._X)
        return (X @ torch.tensor(self.matrix, dtype=torch.float64) @ X.T).float()

    @property
    def weights(self) -> Float[Tensor, "tokens tokens"]:
        """The softmax of the scores, row by row."""
        return torch.softmax(self.scores, dim=-1)

    def _weights(self, matrix: list[list[float]]) -> Tensor:
        X = torch.tensor(self._X)
        return torch.softmax(X @ torch.tensor(matrix, dtype=torch.float64) @ X.T, dim=-1)

    def _square(self, matrix: object, name: str) -> list[list[float]]:
        array = to_numpy(matrix, name, largest=_LARGEST)
        d = self._X.shape[1]
        if array.shape != (d, d):
            raise ValueError(
                f"{name} has shape {array.shape}, but must be {(d, d)}: a row and a column for "
                "each feature"
            )
        return np.round(array, 6).tolist()

    def _sizes(self) -> dict[str, object]:
        return {"tokens": self._X.shape[0], "features": self._X.shape[1]}

    @traitlets.validate("matrix")
    def _check_matrix(self, proposal: dict) -> list[list[float]]:
        return self._square(proposal["value"], "matrix")

    @traitlets.validate("entry")
    def _check_entry(self, proposal: dict) -> tuple[int, int]:
        return _inside(proposal["value"], self._X.shape[1], "entry")

    @traitlets.validate("cell")
    def _check_cell(self, proposal: dict) -> tuple[int, int]:
        return _inside(proposal["value"], self._X.shape[0], "cell")


def _inside(pair: tuple[int, int], size: int, name: str) -> tuple[int, int]:
    if not all(0 <= index < size for index in pair):
        raise ValueError(f"{name} is {pair}, but both must be in 0 .. {size - 1}")
    return pair


def _chosen(
    entry: Sequence[str] | None, features: list[str], matrix: list[list[float]]
) -> tuple[int, int]:
    """The entry by its names; without any, the largest of the matrix."""
    if entry is None:
        return first_largest(np.array(matrix))
    if isinstance(entry, str) or len(entry) != 2 or not set(entry) <= set(features):
        raise ValueError(
            f"entry is {entry!r}, but must be two of the features {features}: who asks, and who "
            "answers"
        )
    return features.index(entry[0]), features.index(entry[1])


def _telling(weights: Tensor) -> tuple[int, int]:
    """The largest weight on another word."""
    return first_largest(weights.clone().fill_diagonal_(-1.0).numpy())
