"""A model's distribution over the next token under temperature, top-k, top-p and min-p."""

from collections.abc import Sequence
from typing import Any, ClassVar

import traitlets

from transformer_lib import checks
from transformer_lib.widgets.base import Widget, constant, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Setting, Token
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

SLIDERS = ("temperature", "top_k", "top_p", "min_p")
_MOST_DRAWS = 100_000


class SamplingLab(Widget):
    """A model's own distribution over the next token, and what sampling leaves of it.

    Each token's bar shows what it gets after temperature, top-k, top-p and min-p (in this order, as
    in :func:`transformer_lib.sampling.filter_logits`), its outline the model's own probability;
    what is cut is hatched. The reader chooses the context and the settings, and draws.

    `widget.settings` are the options to call `generate` with.
    `widget.draws` are the ids of the tokens drawn with these settings; another setting or context
    empties it.

    Args:
        logits: of the token after each context, [contexts, vocabulary]. From a model of this
            library: `next_logits(model, [tokenizer.encode(text) for text in contexts])`.
        vocabulary: the tokens as text, in the order of their ids (`tokenizer.vocabulary`).
        contexts: the texts that the model has read.
        sliders: which of temperature, top_k, top_p and min_p the reader is offered.
        seed: of the draws.

    Raises ValueError if sizes do not fit, logits are not finite in float32, or a setting is out of
    range; TypeError if tokens or contexts are not text.

    >>> lab = SamplingLab([[2.0, 1.0, 0.0]], ["roses", "books", "a"], ["mary gave"])
    >>> lab
    SamplingLab(contexts=1, vocabulary=3)
    >>> lab.settings
    {'temperature': 0.8, 'top_k': None, 'top_p': 0.9, 'min_p': None}
    """

    _esm = bundle("sampling_lab")
    _css = stylesheet("sampling_lab")
    _logits = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    _limits = constant({"draws": _MOST_DRAWS})
    _seed = traitlets.Int().tag(sync=True)
    _clicks = traitlets.Int().tag(sync=True)  # on "draw": each has random numbers of its own
    context = Setting(0, Token("contexts", "which has been read"))
    temperature = Setting(0.8, Number(0, 3, "0 is greedy", whole=False))
    top_k = Setting(None, Number(1, None, "how many tokens may remain", none="all"))
    top_p = Setting(
        0.9,
        Number(0.01, 1, "the share of the probability that must remain", whole=False, none="all"),
    )
    min_p = Setting(
        None,
        Number(
            0,
            1,
            "the share of the largest probability that a token must have",
            whole=False,
            none="all",
        ),
    )
    draws = traitlets.List(traitlets.Int()).tag(sync=True)
    _keys_of_text: ClassVar = {"draw": Number(1, 1000, "so many tokens")}
    _facts: ClassVar = {
        "remaining": "tokens",
        "entropy": "nats",
        "largest probability": "",
        "probability {vocabulary}": "",
        "draws": "",
        "drawn {vocabulary}": "",
    }
    _also_reset = ("_clicks",)

    def __init__(
        self,
        logits: object,
        vocabulary: Sequence[str],
        contexts: Sequence[str],
        *,
        sliders: Sequence[str] = SLIDERS,
        seed: int = 0,
        **settings: Any,
    ) -> None:
        array = to_numpy(logits, "logits")
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(
                f"logits have shape {array.shape}, but must be [contexts, vocabulary], at least "
                "one of each; of a model's output [batch, tokens, vocabulary] take output[:, -1]"
            )
        contexts = to_tokens(contexts, len(array), "contexts", "rows of the logits")
        vocabulary = to_tokens(
            vocabulary, array.shape[1], "vocabulary tokens", "columns of the logits"
        )
        checks.require_whole(seed, "seed")
        if not 0 <= seed < 2**31:
            raise ValueError(f"seed is {seed}; choose one from 0 to 2**31 - 1")
        for one in to_tokens(sliders, len(sliders), "sliders", "controls"):
            if one not in SLIDERS:
                raise ValueError(f"sliders has {one!r:.60}; choose among {', '.join(SLIDERS)}")
        self._contexts, self._vocabulary = array.shape
        super().__init__(
            _logits=float_bytes(array),
            _text=json_bytes(
                {"vocabulary": vocabulary, "contexts": contexts, "sliders": list(sliders)}
            ),
            _seed=seed,
            **settings,
        )

    @property
    def settings(self) -> dict[str, float | int | None]:
        """Options of `generate` and `filter_logits`: temperature, top_k, top_p, min_p."""
        return {name: getattr(self, name) for name in SLIDERS}

    @traitlets.validate("draws")
    def _check_draws(self, proposal: dict) -> list[int]:
        draws = proposal["value"]
        if len(draws) > _MOST_DRAWS or any(not 0 <= i < self._vocabulary for i in draws):
            raise ValueError(
                f"draws are at most {_MOST_DRAWS} ids of tokens, from 0 to {self._vocabulary - 1}"
            )
        return draws

    @traitlets.observe("context", "temperature", "top_k", "top_p", "min_p")
    def _forget_draws(self, change: dict) -> None:
        if "draws" not in self._property_lock:  # the page sends its own, here with what came after
            self.draws = []

    def _sizes(self) -> dict[str, object]:
        return {"contexts": self._contexts, "vocabulary": self._vocabulary}
