"""A model's distribution over the next token under temperature, top-k, top-p and min-p."""

import math
from collections.abc import Sequence
from typing import ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, constant, float_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Token
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

HOTTEST = 3.0
SLIDERS = ("temperature", "top_k", "top_p", "min_p")
_MOST_DRAWS = 100_000


class SamplingLab(Widget):
    """A model's own distribution over the next token, and what sampling leaves of it.

    Each token's bar shows what it gets after temperature, top-k, top-p and min-p (in this order, as
    in :func:`transformer_lib.sampling.filter_logits`), its outline the model's own probability;
    what is cut is hatched. The reader chooses the context and the settings, and draws.

    What the reader sets comes back and can be observed and set: `widget.context`, `temperature`,
    `top_k`, `top_p`, `min_p`; `widget.settings` are the options to call `generate` with.
    `widget.draws` are the ids of the tokens drawn with these settings; another setting or context
    empties it.

    Args:
        logits: of the token after each context, [contexts, vocabulary]. From a model of this
            library: `next_logits(model, [tokenizer.encode(text) for text in contexts])`.
        vocabulary: the tokens as text, in the order of their ids (`tokenizer.vocabulary`).
        contexts: the texts that the model has read.
        temperature: from 0 (greedy) to 3.
        top_k: how many tokens may remain; None: all.
        top_p: the share of the probability that must remain, above 0; None: all.
        min_p: the share of the largest probability that a token must have; None: all.
        context: which context comes first, counted from 0.
        sliders: which of temperature, top_k, top_p and min_p the reader is offered.
        seed: of the draws.
        name: what links in the prose call the figure.
        goals: challenges.

    State (what `[text](#set:name;key=value)` sets): `context` (its text, or its number from 0),
    `temperature`, `top_k`, `top_p` and `min_p` (a number, or `all`), `draw` (so many tokens),
    `reset`.

    Facts (what goals read): `context`, `temperature`, `top_k` (the vocabulary's size for all),
    `top_p` (1 for all), `min_p` (0 for all), `remaining` (tokens), `entropy` (nats),
    `largest probability`, `probability TOKEN`, `draws`, `drawn TOKEN`.

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
    _limits = constant({"hottest": HOTTEST, "draws": _MOST_DRAWS})
    _seed = traitlets.Int().tag(sync=True)
    _clicks = traitlets.Int().tag(sync=True)  # on "draw": each has random numbers of its own
    context = traitlets.Int().tag(sync=True)
    temperature = traitlets.Float().tag(sync=True)
    top_k = traitlets.Int(None, allow_none=True).tag(sync=True)
    top_p = traitlets.Float(None, allow_none=True).tag(sync=True)
    min_p = traitlets.Float(None, allow_none=True).tag(sync=True)
    draws = traitlets.List(traitlets.Int()).tag(sync=True)
    _keys_of_text: ClassVar = {
        "context": Token("contexts", "context"),
        "temperature": Number(0, HOTTEST, "temperature", whole=False),
        "top_k": Number(1, trait="top_k", none="all"),
        "top_p": Number(0.01, 1, "top_p", whole=False, none="all"),
        "min_p": Number(0, 1, "min_p", whole=False, none="all"),
        "draw": Number(1, 1000),
    }
    _facts = (
        "context",
        "temperature",
        "top_k",
        "top_p",
        "min_p",
        "remaining",
        "entropy",
        "largest probability",
        "probability {vocabulary}",
        "draws",
        "drawn {vocabulary}",
    )
    _also_reset = ("_clicks",)

    def __init__(
        self,
        logits: object,
        vocabulary: Sequence[str],
        contexts: Sequence[str],
        *,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float | None = 0.9,
        min_p: float | None = None,
        context: int = 0,
        sliders: Sequence[str] = SLIDERS,
        seed: int = 0,
        name: str = "",
        goals: Sequence[Goal] = (),
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
        if not 0 <= seed < 2**31:
            raise ValueError(f"seed is {seed}; choose one from 0 to 2**31 - 1")
        for one in sliders:
            if one not in SLIDERS:
                raise ValueError(f"sliders has {one!r:.60}; choose among {', '.join(SLIDERS)}")
        self._contexts, self._vocabulary = array.shape
        super().__init__(
            _logits=float_bytes(array),
            _text=json_bytes(
                {"vocabulary": vocabulary, "contexts": contexts, "sliders": list(sliders)}
            ),
            _seed=seed,
            context=context,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            name=name,
            goals=goals,
        )

    @property
    def settings(self) -> dict[str, float | int | None]:
        """Options of `generate` and `filter_logits`: temperature, top_k, top_p, min_p."""
        return {name: getattr(self, name) for name in SLIDERS}

    @traitlets.validate("context")
    def _check_context(self, proposal: dict) -> int:
        if not 0 <= proposal["value"] < self._contexts:
            raise ValueError(
                f"context is {proposal['value']}, but must be in 0 .. {self._contexts - 1}"
            )
        return proposal["value"]

    @traitlets.validate("temperature")
    def _check_temperature(self, proposal: dict) -> float:
        if not 0 <= proposal["value"] <= HOTTEST:
            raise ValueError(
                f"temperature is {proposal['value']}; choose one from 0 (greedy) to {HOTTEST}"
            )
        return proposal["value"]

    @traitlets.validate("top_k")
    def _check_top_k(self, proposal: dict) -> int | None:
        if proposal["value"] is not None and proposal["value"] < 1:
            raise ValueError(
                f"top_k is {proposal['value']}; at least one token must remain: choose 1 or more, "
                "or None for all"
            )
        return proposal["value"]

    @traitlets.validate("top_p")
    def _check_top_p(self, proposal: dict) -> float | None:
        top_p = proposal["value"]
        if top_p is not None and (math.isnan(top_p) or not 0 < top_p <= 1):
            raise ValueError(
                f"top_p is {top_p}; it is the share of the probability to keep: choose "
                "0 < top_p <= 1, or None for all"
            )
        return top_p

    @traitlets.validate("min_p")
    def _check_min_p(self, proposal: dict) -> float | None:
        min_p = proposal["value"]
        if min_p is not None and not 0 <= min_p <= 1:
            raise ValueError(
                f"min_p is {min_p}; it is the least share of the largest probability that a token "
                "must have: choose 0 <= min_p <= 1, or None for all"
            )
        return min_p

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
        self.draws = []

    def _sizes(self) -> dict[str, object]:
        return {"contexts": self._contexts, "vocabulary": self._vocabulary}
