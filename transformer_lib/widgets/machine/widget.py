"""A trained GPT that runs in the page: the reader writes the story, and sees into every part."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.driving import Action, Number, Numbers, Option, Pair, Setting, Token
from transformer_lib.widgets.inputs import require_parts, to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet, worker
from transformer_lib.widgets.machine.parts import is_switch, parts_of, places
from transformer_lib.widgets.weights import pack_weights

VIEWS = ("story", "drawing", "comparison", "laboratory")
CLICKS = {"shows": False, "switches": True}


class Machine(Widget):
    """The GPT of the gift stories: next words, every part with its numbers, and switches.

    The model computes in the reader's browser, in a worker. The reader chooses the next word from
    those that the grammar allows, or writes words; asks who has what; lets the machine write.

    Every part of the drawing says what goes in and what comes out for the word that is chosen, and
    can be switched off by a click. The *other story* is the reader's own with two names exchanged:
    the figure shows how far apart the vectors of the two are, and can put one of the other story
    into the reader's.

    What comes back and can be observed: `widget.text` (ids), `widget.off`, `widget.patches` and
    `widget.chances` (of the next word, all switches as they are); `widget.story` is the text.

    Args:
        trained: :func:`~transformer_lib.training.trained.load_shipped`, or another object with a
            `model` (a GPT), its `tokenizer` and the `grammar` of its stories.
        stories: beginnings to choose from, in words of the tokenizer; the first is shown.
        view: ``"story"`` (the text and the next word), ``"drawing"`` (and the parts),
            ``"comparison"`` (and the other story), or ``"laboratory"`` (all, with temperature).
        story: which of them is shown first.
        exchange: two words; the other story has one in place of the other.
        part: the part of the drawing that is shown first, such as ``"block-2-head-1"``.
        word: the word that is shown first, counted from 0; -1: the newest one.
        off: parts that are switched off.
        switches: whether a click on a part switches it, too.
        bits: 8 or 32 for each number of the weights' matrices.

    Raises ValueError where a story is empty, unknown, or too long for the model, where the model's
    vocabulary is not the tokenizer's, or where a setting is out of range.
    """

    _esm = bundle("machine")
    _css = stylesheet("machine")
    _worker = traitlets.Unicode(worker("machine"), read_only=True).tag(sync=True)
    _packed = traitlets.Bytes().tag(sync=True)
    _config = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    view = traitlets.Enum(VIEWS, "laboratory").tag(sync=True)
    text = traitlets.List(traitlets.Int()).tag(sync=True)
    word = Setting(-1, Number(0, "context", "which is shown", none="last", none_is=-1))
    part = Setting(0, Token("parts", "of the drawing, such as `block-2-head-1`"))
    off = traitlets.List(traitlets.Unicode()).tag(sync=True)
    switches = Setting(False, Option(CLICKS, "whether a click on a part switches it"), "clicks")
    exchange = Setting((0, 0), Pair("vocabulary", "vocabulary", "the words of the other story"))
    level = Setting(  # one more, by a click only: what it says
        0,
        Number(0, "levels", "0: the table, 1: the stream's beginning, then the blocks"),
        beyond=True,
    )
    patches = traitlets.List(traitlets.List(traitlets.Int())).tag(sync=True)
    temperature = Setting(1.0, Number(0, 2, whole=False))
    top_p = Setting(1.0, Number(0.01, 1, whole=False))
    draws = traitlets.Int(0).tag(sync=True)  # words drawn so far: each has its own random number
    chances = traitlets.List(traitlets.Float()).tag(sync=True)
    _keys_of_text: ClassVar = {
        "story": Token("stories"),
        "ask": Token("vocabulary", "who has it?"),
        "say": Token("vocabulary", "put at the end"),
        "off": Token("parts"),
        "on": Token("parts"),
        "all_on": Action(),
        "patch": Numbers(2, "a block from 1, a word from 0", whole=True, low=0),
        "unpatch": Action(),
    }
    _facts: ClassVar = {
        "words": "of the text",
        "known": "1: it belongs to the grammar",
        "asked": "1: it ends in a question",
        "moves": "how often what it asks for was given",
        "off": "parts",
        "off heads": "those of them that are single heads",
        "patched": "vectors",
        "right": "the probability of the right answer, 0 where nothing is asked",
        "probability {vocabulary}": "of the next word",
        "whole {vocabulary}": "the same with nothing switched off or put in",
    }

    def __init__(
        self,
        trained: Any,
        stories: Sequence[str],
        *,
        view: str = "laboratory",
        story: int = 0,
        exchange: Sequence[str] = ("mary", "susan"),
        part: str = "token",
        word: int = -1,
        off: Sequence[str] = (),
        switches: bool = False,
        bits: int = 8,
        **settings: Any,
    ) -> None:
        require_parts(trained, ("model", "tokenizer"), "trained", "load_shipped(name)")
        config, tokenizer = trained.model.config, trained.tokenizer
        vocabulary = list(tokenizer.vocabulary)
        if len(vocabulary) != config.vocabulary:
            raise ValueError(
                f"the model has {config.vocabulary} tokens, and its tokenizer {len(vocabulary)}; "
                f"give the tokenizer that it was trained with"
            )
        stories = to_tokens(stories, len(stories), "stories", "stories")
        if not stories or not 0 <= story < len(stories):
            raise ValueError(
                f"story is {story} of {len(stories)} stories; give at least one story, and count "
                f"them from 0"
            )
        texts = [_ids(one, vocabulary, config.context) for one in stories]
        parts = places(config.n_layers, config.n_heads, smear=bool(config.smear))
        if part not in parts:
            raise ValueError(f"part is {part!r}; choose one of {', '.join(parts)}")
        self._vocabulary, self._parts = vocabulary, parts
        self._model = {
            "layers": config.n_layers, "heads": config.n_heads, "context": config.context,
        }  # fmt: skip
        super().__init__(
            _packed=pack_weights(trained.model.state_dict(), bits=bits),
            _config=json_bytes(asdict(config)),
            _text=json_bytes(
                {
                    "vocabulary": vocabulary,
                    "stories": stories,
                    "texts": texts,
                    "parts": parts,
                    "about": parts_of(config.positions),
                    "grammar": asdict(trained.grammar),
                }
            ),
            view=view,
            word=word,
            part=parts.index(part),
            off=to_tokens(off, len(off), "off", "parts"),
            switches=switches,
            exchange=[self._id(one) for one in exchange],
            **{"text": texts[story], "level": config.n_layers + 1} | settings,
        )

    @property
    def story(self) -> str:
        """The text as it is now."""
        return " ".join(self._vocabulary[i] for i in self.text)

    def _id(self, word: str) -> int:
        if word not in self._vocabulary:
            raise ValueError(
                f"{word!r} is not a word of the model; it knows {', '.join(self._vocabulary)}"
            )
        return self._vocabulary.index(word)

    @traitlets.validate("text")
    def _check_text(self, proposal: dict) -> list[int]:
        ids, most = proposal["value"], self._model["context"]
        if not 1 <= len(ids) <= most or not all(0 <= i < len(self._vocabulary) for i in ids):
            raise ValueError(
                f"text is {ids}; it must be 1 to {most} ids from 0 to {len(self._vocabulary) - 1}"
            )
        return ids

    @traitlets.validate("off")
    def _check_off(self, proposal: dict) -> list[str]:
        for one in proposal["value"]:
            if one not in self._parts or not is_switch(one):
                raise ValueError(
                    f"{one!r} cannot be switched off; choose among "
                    f"{', '.join(filter(is_switch, self._parts))}"
                )
        return proposal["value"]

    @traitlets.validate("patches")
    def _check_patches(self, proposal: dict) -> list[list[int]]:
        blocks, words = self._model["layers"], self._model["context"]
        for one in proposal["value"]:
            if len(one) != 2 or not 1 <= one[0] <= blocks or not 0 <= one[1] < words:
                raise ValueError(
                    f"patches hold {one}; each must be [block, word], a block from 1 to {blocks} "
                    f"and a word from 0 to {words - 1}"
                )
        return proposal["value"]

    def _sizes(self) -> dict[str, object]:
        levels = {"levels": self._model["layers"] + 2}
        return {"view": self.view, **self._model, **levels}


def _ids(story: str, vocabulary: Sequence[str], context: int) -> list[int]:
    words = story.split()
    if not 1 <= len(words) <= context:
        raise ValueError(
            f"the story {story[:60]!r} has {len(words)} words; the model reads 1 to {context}"
        )
    for word in words:
        if word not in vocabulary:
            raise ValueError(
                f"{word!r} in the story {story[:60]!r} is not a word of the model; it knows "
                f"{', '.join(vocabulary)}"
            )
    return [vocabulary.index(word) for word in words]
