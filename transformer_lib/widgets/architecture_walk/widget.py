"""The drawing of an encoder-decoder: each part opens, with the numbers of a sentence."""

import ast
import inspect
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import traitlets

from transformer_lib.widgets.base import Widget, json_bytes
from transformer_lib.widgets.driving import Number, Setting, Token
from transformer_lib.widgets.inputs import to_tokens
from transformer_lib.widgets.joining import bundle, stylesheet
from transformer_lib.widgets.weights import pack_weights

MOST_LAYERS, WIDEST = 3, 64  # more nobody can read
LANGUAGES = ("source", "target")


class ArchitectureWalk(Widget):
    """A whole encoder-decoder as a drawing, of which each part can be opened.

    A part that is open shows what goes in and what comes out for one sentence, number by number,
    its shapes, its parameters, what it is for, and its code. The model itself computes in the page:
    it translates the sentence, the most probable word at each step, and keeps what each part gives
    for the words that have been written so far. A row of the decoder is called by what it has read
    and what it is about to write: "Mary → gave".

    What comes back and can be observed and set: `widget.sentence`, `widget.part` and `widget.row`,
    all counted from 0, and `widget.written`.

    Args:
        model: an :class:`~transformer_lib.encoder_decoder.EncoderDecoder` wired as in the paper: a
            norm after each sum, at most 3 blocks in each stack, at most 64 numbers a token.
        tokenizer: its :class:`~transformer_lib.tokenizers.PairTokenizer`.
        sources: sentences to choose from, as the tokenizer reads them.
        names: how the figure writes them, with as many words; None: as they are.
        languages: what the two sides are called.
        part: which part is open first, by its name (`widget.parts` lists them).
        written: how many words have been written at first, the end being one; None: all.
        bits: 8 or 32 for each number of the weights' matrices.

    Raises ValueError where sentences are none, unknown or too long, where names do not fit them,
    where the model is wired otherwise or too large, or where a setting is out of range.
    """

    _esm = bundle("architecture_walk")
    _css = stylesheet("architecture_walk")
    _packed = traitlets.Bytes().tag(sync=True)
    _config = traitlets.Bytes().tag(sync=True)
    _text = traitlets.Bytes().tag(sync=True)
    sentence = Setting(0, Token("sentences", "as the figure writes it, or its number"))
    part = Setting(0, Token("parts", "which is open, such as `decoder.0.cross_attention`"))
    row = Setting(0, Number(0, "rows", "which row of it is outlined"))
    written = Setting(0, Number(0, None, "words written, the end being one; too many: all"))
    _facts: ClassVar = {
        "ended": "1 if the end has been written",
        "block": "its number from 1, 0 outside of the stacks",
        "cross": "1: the part that is open is a cross-attention",
        "masked": "1: it is the decoder's own attention",
        "choices": "how many words the row may attend to; 0 if the part is not an attention",
        "parameters": "of the part",
    }

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        sources: Sequence[str],
        names: Sequence[str] | None = None,
        *,
        languages: Sequence[str] = LANGUAGES,
        part: str = "source_embedding",
        written: int | None = None,
        bits: int = 32,
        **settings: Any,
    ) -> None:
        config = model.config
        _require_size(config)
        sources = to_tokens(sources, len(sources), "sources", "sentences")
        names = to_tokens(sources if names is None else names, len(sources), "names", "sentences")
        if not sources:
            raise ValueError("sources is empty: give at least one sentence")
        ids = [tokenizer.source.encode(source) for source in sources]
        words = [shown.split() for shown in names]
        for source, tokens, shown in zip(sources, ids, words, strict=True):
            if not len(tokens) == len(shown) <= config.context:
                raise ValueError(
                    f"{source!r} is {len(tokens)} tokens and {len(shown)} words in the figure; "
                    f"there must be the same number of both, at most {config.context}"
                )
        self.parts = _parts_of(config.n_layers)
        if part not in self.parts:
            raise ValueError(f"part is {part!r}; choose one of {', '.join(self.parts)}")
        self._counts = {"sentences": len(sources), "parts": len(self.parts), "rows": config.context}
        super().__init__(
            _packed=pack_weights(model.state_dict(), bits=bits),
            _config=json_bytes(asdict(config)),
            _text=json_bytes(
                {
                    "sentences": names,
                    "parts": self.parts,
                    "ids": ids,
                    "words": words,
                    "target": tokenizer.target.vocabulary,
                    "languages": to_tokens(languages, 2, "languages", "sides"),
                    "code": _code_of(model),
                }
            ),
            part=self.parts.index(part),
            written=config.context if written is None else written,
            **settings,
        )

    def _sizes(self) -> dict[str, object]:
        return dict(self._counts)


def _parts_of(n_layers: int) -> list[str]:
    """The names of all parts, in the order in which they compute."""
    sides = {
        "encoder": ("attention", "norm_1", "feed_forward", "norm_2"),
        "decoder": (
            "attention", "norm_1", "cross_attention", "norm_2", "feed_forward", "norm_3",
        ),
    }  # fmt: skip
    encoder, decoder = (
        [f"{side}.{layer}.{part}" for layer in range(n_layers) for part in parts]
        for side, parts in sides.items()
    )
    return ["source_embedding", *encoder, "target_embedding", *decoder, "output"]


def _require_size(config: Any) -> None:
    """A model that the figure can draw."""
    if config.norm != "post":
        raise ValueError(
            f"norm is {config.norm!r}; the figure draws the paper's wiring, norm='post'"
        )
    if config.n_layers > MOST_LAYERS or config.d_model > WIDEST:
        raise ValueError(
            f"the model has n_layers={config.n_layers} and d_model={config.d_model}; the figure "
            f"shows at most {MOST_LAYERS} and {WIDEST}"
        )


def _code_of(model: Any) -> dict[str, str]:
    """The library's own lines for each kind of part, without docstrings and checks."""
    of_encoder, of_decoder = model.encoder[0], model.decoder[0]
    attention = _body(type(of_encoder.attention).forward)
    thinking = _body(type(of_encoder.feed_forward).forward)
    encoder, decoder = (_body(type(block).wire) for block in (of_encoder, of_decoder))
    return {
        "embedding": _body(type(model.source_embedding).forward),
        "encoder": encoder,
        "decoder": decoder,
        "attention": attention,
        "feed_forward": thinking,
        "output": _body(type(model).decode),
    }


def _body(function: Any) -> str:
    """The statements of a function, as they are written."""
    code = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    [definition] = ast.parse(code).body
    lines = code.splitlines()
    first = definition.body[0].lineno - 1
    for node in reversed([node for node in definition.body if _is_aside(node)]):
        del lines[node.lineno - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines[first:])).strip()


def _is_aside(node: ast.stmt) -> bool:
    """A docstring, or a check of the arguments."""
    if not isinstance(node, ast.Expr):
        return False
    if isinstance(node.value, ast.Constant):
        return True
    called = node.value.func if isinstance(node.value, ast.Call) else None
    return getattr(called, "id", getattr(called, "attr", "")).startswith("require_")
