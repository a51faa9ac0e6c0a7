"""A small GPT that is trained in the reader's browser, on the reader's own text."""

from collections.abc import Mapping
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant, json_bytes
from transformer_lib.widgets.driving import Action, Number, Setting, Token
from transformer_lib.widgets.inputs import require_mapping
from transformer_lib.widgets.joining import bundle, stylesheet, worker

LEAST, MOST, MOST_SAMPLES = 1_000, 200_000, 8
SIZES = {
    "tokens": 64, "batch": 16, "heads": 4, "width": 64, "hidden": 256,
    "optimizer": "muon", "rate": 0.02, "decay": 1.0, "level": 200, "written": 240,
}  # fmt: skip
# Characters: of a text, of an alphabet, and of the held-out part that is judged.
LIMITS = {"least": LEAST, "most": MOST, "alphabet": 160, "judged": 4096}
PASSAGE = 20


class TrainText(Widget):
    """A model that learns to write like a text, character by character, while the reader watches.

    The reader presses start, or pastes a text first; a GPT of ``layers`` blocks learns from it in a
    worker of the page, and at any moment of its training that the reader points at shows what it
    writes, what its heads look at, and its loss on a held-out tenth of the text, beside the losses
    of readers who count characters, and pairs of them. Nothing leaves the page.

    The model (one setting each, in ``SIZES``): vectors of ``width`` numbers, ``heads`` heads with
    rotary positions, feed-forward layers of ``hidden`` numbers; a step reads ``batch`` pieces of
    ``tokens`` characters. ``optimizer``, its ``rate``, which rises for 20 steps, stays for
    ``level`` and then falls as 1 / √step, and its weight ``decay`` were chosen on 20,000 characters
    of Shakespeare.

    Args:
        samples: texts to begin with, by the names that the figure offers them under: of at least
            1,000 characters and at most 200,000.
        sample: the position of the one that is shown first, from 0.

    What comes back is also `widget.sample` (the number of samples for the reader's own text, which
    stays in the page), `widget.trained` (how many steps the model has made), `widget.step` (the one
    looked at; None: the newest) and `widget.texts` (how many texts it has written).

    Raises ValueError for a sample of another length or position, for no sample or too many, or
    layers, a temperature or a seed outside of the above; TypeError for samples that are not texts
    by name.

    >>> TrainText({"rhyme": "Mary gave roses to Susan.\\n" * 80}, layers=1)
    TrainText(samples=1, layers=1, heads=4, seed=1)
    """

    _esm = bundle("train_text")
    _css = stylesheet("train_text")
    _worker = traitlets.Unicode(worker("train_text"), read_only=True).tag(sync=True)
    _limits = constant({"sizes": SIZES, "limits": LIMITS, "passage": PASSAGE})
    _text = traitlets.Bytes().tag(sync=True)
    sample = Setting(0, Token("samples", "by name"), beyond=True)  # the reader's own text
    layers = Setting(2, Number(1, 4, "blocks"), link="")
    temperature = Setting(0.8, Number(0, 1.5, "of what it writes", whole=False))
    seed = Setting(1, Number(1, 2**31 - 1, "of the first weights, the pieces, and the drawing"))
    step = traitlets.Int(None, allow_none=True).tag(sync=True)
    head = Setting(0, Number(0, "heads", "counted through all layers"))
    trained = traitlets.Int(0).tag(sync=True)
    texts = traitlets.Int(0).tag(sync=True)
    _keys_of_text: ClassVar = {
        "run": Action("start training"),
        "step": Number(0, None, "look at a step made already", none="last"),
        "lowest": Action("look at the lowest loss on held-out text"),
    }
    _facts: ClassVar = {
        "own": "1: the text is the reader's",
        "steps": "",
        "seconds": "of training",
        "loss": "mean of the newest 20 steps",
        "held out": "the loss on held-out text at the newest moment that is kept",
        "lowest": "of these so far",
        "excess": "how far the newest is above it",
        "unigram": "loss on the same text",
        "bigram": "loss on the same text",
        "words": "of what is shown: the share of its words that stand in the text",
        "copied": "characters of its longest piece that stands in what was learned from",
    }

    def __init__(
        self,
        samples: Mapping[str, str],
        *,
        sample: int = 0,
        **settings: Any,
    ) -> None:
        require_samples(samples)
        self._count = len(samples)
        text = {"samples": list(samples), "texts": list(samples.values())}
        super().__init__(_text=json_bytes(text), sample=sample, **settings)

    def _sizes(self) -> dict[str, object]:
        heads = self.layers * SIZES["heads"]
        return {"samples": self._count, "layers": self.layers, "heads": heads, "seed": self.seed}


def require_samples(samples: object) -> None:
    require_mapping(samples, "samples", '{"Shakespeare": "First Citizen: ...", ...}')
    if not 1 <= len(samples) <= MOST_SAMPLES:
        raise ValueError(f"samples has {len(samples)} texts; give 1 to {MOST_SAMPLES}")
    for name, text in samples.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise TypeError(f"samples[{name!r}] is {type(text).__name__}; give texts, by name")
        if not LEAST <= len(text) <= MOST:
            raise ValueError(
                f"samples[{name!r}] has {len(text):,} characters; give {LEAST:,} to {MOST:,}"
            )
