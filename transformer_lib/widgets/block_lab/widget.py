"""A trained block whose parts switch off by a click, and what it then answers."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np
import traitlets

from transformer_lib.widgets.base import Widget, constant, float_bytes, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Setting
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

PARTS = ("norm_1", "attention", "residual_1", "norm_2", "feed_forward", "residual_2")
MOST_STORIES, WIDEST = 512, 32  # each click asks all of them; wider vectors nobody can read


class BlockLab(Widget):
    """One block at the last token of a story: what each part gives, and the answer.

    The page computes: every change asks all stories again. A norm that is off passes what it gets;
    attention or a feed-forward layer that is off gives zeros; a residual that is off lets the
    part's result replace the stream.

    Args:
        model: a :class:`~transformer_lib.classifier.Classifier` with one block, or a module with
            the same parts.
        choices: what makes a story: names, each with its options; one story for each combination,
            the last choice turning fastest.
        texts: the stories, n texts of equally many words.
        ids: their token ids, [n, tokens].
        answers: the right class of each, n ints.
        classes: the names of the classes.
        groups: the case that each story belongs to, n texts: how many are right is said for each.

    Raises ValueError for sizes that do not fit, ids without a row, more than 512 stories or vectors
    wider than 32; TypeError for a module without these parts, texts that are not text.
    """

    _esm = bundle("block_lab")
    _css = stylesheet("block_lab")
    _arrays = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    _limits = constant({"parts": PARTS})
    story = Setting(0, Number(0, "stories", "which is shown, by its index"))
    norm_1 = Setting(True, Flag())
    attention = Setting(True, Flag())
    residual_1 = Setting(True, Flag())
    norm_2 = Setting(True, Flag())
    feed_forward = Setting(True, Flag())
    residual_2 = Setting(True, Flag())
    _facts: ClassVar = {"off": "how many parts are", "right": "stories"}

    def __init__(
        self,
        model: object,
        choices: Mapping[str, Sequence[str]],
        texts: Sequence[str],
        ids: object,
        answers: Sequence[int],
        classes: Sequence[str],
        groups: Sequence[str],
        **settings: Any,
    ) -> None:
        arrays, heads, eps = _arrays_of(model)
        ids = _whole(to_numpy(ids, "ids"), "ids")
        _require_stories(ids, arrays)
        sizes = [len(options) for options in choices.values()]
        if prod(sizes) != len(ids):
            raise ValueError(
                f"the choices {sizes} make {prod(sizes)} stories, but there are {len(ids)} rows of "
                f"ids; there must be one for each combination"
            )
        answers = _whole(to_numpy(answers, "answers"), "answers").tolist()
        classes = to_tokens(classes, len(arrays["head"]), "classes", "scores")
        if len(answers) != len(ids) or not set(answers) <= set(range(len(classes))):
            raise ValueError(
                f"{len(answers)} answers for {len(ids)} stories and {len(classes)} classes; each "
                f"story needs the index of its class"
            )
        text = {
            "choices": [[name, list(options)] for name, options in choices.items()],
            "texts": to_tokens(texts, len(ids), "texts", "stories"),
            "groups": to_tokens(groups, len(ids), "groups", "stories"),
            "classes": classes,
            "ids": ids.tolist(),
            "answers": answers,
            "shapes": [[key, *(*value.shape, 0)[:2]] for key, value in arrays.items()],
            "heads": heads,
            "eps": eps,
        }
        self._count = len(ids)
        super().__init__(
            _arrays=float_bytes(np.concatenate([value.ravel() for value in arrays.values()])),
            _text=json_bytes(text),
            **settings,
        )

    def _sizes(self) -> dict[str, object]:
        return {"stories": self._count}


def _arrays_of(model: object) -> tuple[dict[str, np.ndarray], int, float]:
    """The model's arrays by name, its heads, and the norms' eps."""
    try:
        [block] = model.blocks
        attention, think = block.attention, block.feed_forward
        tensors = {
            "embedding": model.embedding.weight,
            "positions": model.embedding.positions.table.weight,
            "gain_1": block.norm_1.weight,
            "bias_1": block.norm_1.bias,
            "gain_2": block.norm_2.weight,
            "bias_2": block.norm_2.bias,
        }
        for name in ("query", "key", "value", "output"):
            layer = getattr(attention, name)
            tensors |= {name: layer.weight, f"{name}_bias": layer.bias}
        for name, layer in (
            ("expand", think.expand), ("contract", think.contract), ("head", model.head),
        ):  # fmt: skip
            tensors |= {name: layer.weight, f"{name}_bias": layer.bias}
        heads, eps, activation = attention.n_heads, block.norm_1.eps, think.activation
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(
            f"{type(model).__name__} is not a classifier with one block, as "
            f"transformer_lib.classifier.Classifier makes it: {error}"
        ) from error
    if activation != "gelu_tanh":
        raise ValueError(f"the activation is {activation!r}; this figure computes gelu_tanh only")
    arrays = {name: to_numpy(tensor, name) for name, tensor in tensors.items()}
    width = arrays["embedding"].shape[1]
    if width > WIDEST:
        raise ValueError(f"the vectors are {width} wide; this figure shows at most {WIDEST}")
    return arrays, heads, float(eps)


def _whole(numbers: np.ndarray, name: str) -> np.ndarray:
    """``numbers`` as integers, if they are."""
    broken = numbers[numbers != numbers.round()]
    if broken.size:
        raise ValueError(f"{name} holds {broken[0]}; give whole numbers")
    return numbers.astype(np.int64)


def _require_stories(ids: np.ndarray, arrays: Mapping[str, np.ndarray]) -> None:
    """``ids`` are rows of both tables."""
    if ids.ndim != 2 or 0 in ids.shape or len(ids) > MOST_STORIES:
        raise ValueError(
            f"ids have shape {ids.shape}; they must be [stories, tokens] of 1 to {MOST_STORIES} "
            f"stories"
        )
    tokens, rows = len(arrays["positions"]), len(arrays["embedding"])
    if ids.shape[1] > tokens or ids.min() < 0 or ids.max() >= rows:
        raise ValueError(
            f"ids of shape {ids.shape} from {ids.min()} to {ids.max()} do not fit a model of "
            f"{rows} tokens and at most {tokens} places"
        )
