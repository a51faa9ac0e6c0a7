"""A trained translator that runs in the page: the reader puts a sentence together from words."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.driving import Flag, Number, Setting, Token
from transformer_lib.widgets.inputs import to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet, worker
from transformer_lib.widgets.weights import pack_weights


class Translator(Widget):
    """A translator of the book's Kannada into English, as a scene: two sentences, and between them
    ribbons as thick as the cross-attention of each word that is written.

    The model itself computes in the reader's browser, in a worker. A click on a Kannada word puts
    another in its place; one on an English word shows its ribbons, and the three most probable
    words there. All other controls are folded: sentences can be written, in Kannada script or in
    Latin letters, and shuffled. A sentence that does not belong to the grammar is translated all
    the same, and the figure says what is wrong with it.

    What comes back and can be observed: `widget.words` (places in the tables of words) and
    `widget.written` (ids of the translation); `widget.translation` is its text.

    Args:
        model: an :class:`~transformer_lib.encoder_decoder.EncoderDecoder`.
        tokenizer: its :class:`~transformer_lib.tokenizers.PairTokenizer`.
        tables: of the grammar, :func:`transformer_lib.data.kannada.tables.tables`.
        examples: sentences to begin with, in Latin letters; the first is shown.
        example: which of them is shown first.
        bits: 8 or 32 for each number of the weights' matrices.

    Raises ValueError where examples are none or hold unknown words, where the model's sizes are not
    the tokenizer's, or where a setting is out of range.
    """

    _esm = bundle("translator")
    _css = stylesheet("translator")
    _worker = traitlets.Unicode(worker("translator"), read_only=True).tag(sync=True)
    _packed = traitlets.Bytes().tag(sync=True)
    _config = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    words = traitlets.List(traitlets.Int()).tag(sync=True)
    width = Setting(1, Number(1, 8, "of the beam search; 1 is greedy"))
    layer = Setting(0, Number(0, "layers", "whose attention is shown"))
    head = Setting(-1, Number(0, "heads", "of that layer, or their mean", none="all", none_is=-1))
    more = Setting(False, Flag("the folded controls are open"))
    written = traitlets.List(traitlets.Int()).tag(sync=True)
    _keys_of_text: ClassVar = {
        "example": Token("examples", "its text or number"),
        "word": Number(0, 30, "show the ribbons of this one"),
    }
    _facts: ClassVar = {
        "known": "1: it is a sentence of the grammar",
        "right": "1: it is translated exactly",
        "words": "of the translation",
        "probability": "of all of its words",
    }

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        tables: Mapping[str, Any],
        examples: Sequence[str],
        *,
        example: int = 0,
        bits: int = 8,
        **settings: Any,
    ) -> None:
        places = {word["latin"]: i for i, word in enumerate(tables.get("words", ()))}
        examples = to_tokens(examples, len(examples), "examples", "sentences")
        if not examples or not 0 <= example < len(examples):
            raise ValueError(
                f"example is {example} of {len(examples)} examples; give at least one sentence, "
                f"and count them from 0"
            )
        for sentence in examples:
            for word in sentence.split():
                if word not in places:
                    raise ValueError(f"{word!r} in the example {sentence!r} is not in the tables")
        self._target = tokenizer.target
        self._model = {"layers": model.config.n_layers, "heads": model.config.n_heads}
        sides = tokenizer.source.vocabulary, tokenizer.target.vocabulary
        sizes = model.config.source_vocabulary, model.config.target_vocabulary
        if tuple(map(len, sides)) != sizes:
            raise ValueError(
                f"the model has {sizes[0]} and {sizes[1]} tokens, and its tokenizer "
                f"{len(sides[0])} and {len(sides[1])}; give the tokenizer that it was trained with"
            )
        super().__init__(
            _packed=pack_weights(model.state_dict(), bits=bits),
            _config=json_bytes(asdict(model.config)),
            _text=json_bytes(
                {"tables": tables, "source": sides[0], "target": sides[1], "examples": examples}
            ),
            **{"words": [places[word] for word in examples[example].split()]} | settings,
        )

    @property
    def translation(self) -> str:
        """What the model has written, in English; empty before a figure has been shown."""
        return self._target.decode(self.written)

    @traitlets.validate("words", "written")
    def _check_ids(self, proposal: dict) -> list[int]:
        name, ids, texts = proposal["trait"].name, proposal["value"], self._texts()
        known = len(texts["tables"]["words"] if name == "words" else texts["target"])
        if not all(0 <= i < known for i in ids):
            raise ValueError(f"{name} is {ids}; it must be ids from 0 to {known - 1}")
        return ids

    def _sizes(self) -> dict[str, object]:
        return dict(self._model)
