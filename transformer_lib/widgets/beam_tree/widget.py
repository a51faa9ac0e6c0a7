"""A beam search, step by step: what each beginning could become, what is kept and what is cut."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import traitlets

from transformer_lib import checks
from transformer_lib.widgets.base import Widget, double_bytes, json_bytes
from transformer_lib.widgets.driving import Number, Setting
from transformer_lib.widgets.inputs import to_numpy, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet

WIDEST = 5
STRONGEST = 2.0  # exponent of the length penalty
MOST_TOKENS = 24
_TRIED = WIDEST + 4  # next tokens of each beginning: enough for every width, and some to cut

Row = list[tuple[int, float]]  # (token, log-probability), the most probable first


class BeamTree(Widget):
    """A tree of what a beam search tries, keeps and cuts, for widths from 1 (greedy) to 5.

    The search itself runs in the reader's browser, equal to
    :func:`transformer_lib.beam.beam_search`, on log-probabilities that are recorded here: of every
    beginning from which a search of some width goes on. The reader sets the width and the length
    penalty, lets the search take one step after another, and points at a beginning to see its way.
    What it finds is listed, ranked as the penalty judges it.

    What the reader sets comes back and can be observed and set: `widget.width`,
    `widget.length_penalty` and `widget.step` (None: all steps).

    Args:
        score: a function from texts (lists of ids, all equally long) to the logits of the next
            token after each, [texts, vocabulary]; log-probabilities are logits, too. Of a GPT:
            `lambda texts: next_logits(model, texts)`; of a translator: with `model.given(source)`.
        prompt: the ids that all texts begin with.
        vocabulary: the tokens as text, in the order of their ids.
        end: the id of the token that ends a text.
        n_tokens: at most, the end included, 1 to 24.

    Raises ValueError if a size does not fit, a setting is out of range, a logit is not finite or an
    id is not in the vocabulary; TypeError if `score` is not a function or tokens are not text.

    >>> table = [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [1.0, 1.5, 0.0]]  # logits after each token
    >>> BeamTree(lambda texts: [table[ids[-1]] for ids in texts], [0], [".", "a", "b"], end=0)
    BeamTree(vocabulary=3, steps=10)
    """

    _esm = bundle("beam_tree")
    _css = stylesheet("beam_tree")
    _text = traitlets.Bytes().tag(sync=True)
    _logs = traitlets.Bytes().tag(sync=True)
    width = Setting(1, Number(1, WIDEST, "how many beams; 1 is greedy"))
    length_penalty = Setting(
        0.0,
        Number(
            0,
            STRONGEST,
            "an exponent: a text is judged by the logarithm of its probability over "
            "((5 + length) / 6) to this power",
            whole=False,
        ),
    )
    step = Setting(None, Number(0, "steps", "how many are shown; None: all", none="last"))
    _facts: ClassVar = {
        "steps": "that the search takes",
        "sentences": "finished, as far as shown",
        "probability": "of the best of them; 0: none",
        "greedy": "the probability of the greedy text",
        "narrower": "that of what a beam narrower by one finds; 0 for width 1",
        "words": "of the best text",
        "rank": "of the best text, among those that are shown, by its probability alone",
    }

    def __init__(
        self,
        score: Any,
        prompt: Sequence[int],
        vocabulary: Sequence[str],
        *,
        end: int,
        n_tokens: int = 10,
        **settings: Any,
    ) -> None:
        if not callable(score):
            raise TypeError(
                f"score is of type {type(score).__name__}, but must be a function from texts to "
                "logits, such as lambda texts: next_logits(model, texts)"
            )
        vocabulary = to_tokens(vocabulary, len(vocabulary), "vocabulary", "tokens")
        prompt = [int(i) for i in checks.require_listed(prompt, "prompt")]
        for what, i in [("end is", end), *(("prompt holds", i) for i in prompt)]:
            if not 0 <= i < len(vocabulary):
                raise ValueError(
                    f"{what} {i}, but there are {len(vocabulary)} tokens in the vocabulary: ids "
                    f"are 0 to {len(vocabulary) - 1}"
                )
        checks.require_count(n_tokens, "n_tokens")
        if not prompt or n_tokens > MOST_TOKENS:
            raise ValueError(
                f"the prompt has {len(prompt)} tokens and n_tokens is {n_tokens}; give at least "
                f"one token, and n_tokens from 1 to {MOST_TOKENS}"
            )
        self._vocabulary, self._n_tokens = len(vocabulary), n_tokens
        rows = _record(score, prompt, end, n_tokens, len(vocabulary))
        used = sorted({token for row in rows.values() for token, _ in row})  # of many, a few
        place = {token: at for at, token in enumerate(used)}
        number = {ids: at for at, ids in enumerate(rows)}
        text = {
            "prompt": [vocabulary[i] for i in prompt],
            "words": [vocabulary[i] for i in used],
            "end": place[end],
            "limit": n_tokens,
            "size": len(vocabulary),
            "rows": [[place[token] for token, _ in row] for row in rows.values()],
            "next": [
                [number.get((*ids, token), -1) for token, _ in row] for ids, row in rows.items()
            ],
        }
        super().__init__(
            _text=json_bytes(text),
            _logs=double_bytes([[log for _, log in row] for row in rows.values()]),
            **settings,
        )

    def _sizes(self) -> dict[str, object]:
        return {"vocabulary": self._vocabulary, "steps": self._n_tokens}


def _record(
    score: Any, prompt: list[int], end: int, n_tokens: int, size: int
) -> dict[tuple[int, ...], Row]:
    """What may follow each beginning from which a search of some width goes on.

    No length penalty changes the beams, only when the search stops; so none stops here.
    """
    rows: dict[tuple[int, ...], Row] = {}
    beams: dict[int, list[tuple[tuple[int, ...], float]]]
    beams = {width: [((), 0.0)] for width in range(1, WIDEST + 1)}
    for _ in range(n_tokens):
        new = dict.fromkeys(ids for kept in beams.values() for ids, _ in kept if ids not in rows)
        logits = to_numpy(score([[*prompt, *ids] for ids in new]), "logits") if new else None
        if new and logits.shape != (len(new), size):
            raise ValueError(
                f"score gave logits of shape {logits.shape} for {len(new)} texts; "
                f"{(len(new), size)} is right: a row for each text, a column for each token"
            )
        for ids, row in zip(new, () if logits is None else logits, strict=True):
            rows[ids] = _best(row, end)
        for width, kept in beams.items():
            candidates = [
                ((*ids, token), total + log)
                for ids, total in kept
                for token, log in rows[ids]
                if token != end
            ]
            beams[width] = sorted(candidates, key=lambda each: -each[1])[:width]
    return rows


def _best(logits: np.ndarray, end: int) -> Row:
    """The most probable next tokens, the end in any case, with their log-probabilities."""
    shifted = logits - logits.max()
    logs = shifted - np.log(np.exp(shifted).sum())
    order = np.argsort(-logs, kind="stable").tolist()
    best = order[:_TRIED]
    if end not in best:
        best[-1] = end
    return [(token, float(logs[token])) for token in best]
