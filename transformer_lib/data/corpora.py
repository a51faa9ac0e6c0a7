"""Corpora: stories or a text as token ids, one part to train on, another to measure by."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from transformer_lib import checks, storage
from transformer_lib.bpe import BytePairTokenizer, _require_texts, train_bpe
from transformer_lib.data.batches import Source
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.gifts.lessons import after_marks, lesson, require_lessons
from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.data.packing import IGNORED, Packed, Windows, cover, pack
from transformer_lib.data.pairs import Pair
from transformer_lib.tokenizers import CharacterTokenizer, PairTokenizer, WordTokenizer

Tokenizer = CharacterTokenizer | WordTokenizer | BytePairTokenizer | PairTokenizer
KINDS = {
    "characters": CharacterTokenizer,
    "words": WordTokenizer,
    "byte pairs": BytePairTokenizer,
    "pair": PairTokenizer,
}
USED = ("vocabulary", "size", "hash")  # of every tokenizer, by what trains and stores a model
TRAINING_SHARE = 0.9
VALIDATION_SEED = 1_000_003  # of stories that measure: none is trained on
LESSONS_SEED = 1
MOST_WORDS = 2**26  # of stories: a minute or two to make, and a gigabyte


@dataclass(frozen=True, kw_only=True, eq=False)
class Corpus:
    """Data for one run.

    Attributes:
        tokenizer: between text and ids.
        training: rows to draw batches from.
        validation: all that the loss is measured on.
        signature: sha256 of the text, or of the grammar and the numbers of stories.
        floor: the grammar's own loss on the validation stories, in nats a word; of texts None.
        answers: where the validation stories ask who has something; None if nobody asks, and of
            texts.
        seen: how many validation stories were left out, as they are trained on.
        pairs: the validation pairs of a translator, as texts; else None.
        lessons: what is read before ``training``, and for how many steps each.
        grammar: of the stories, or of the sentences in a grammar's pairs; else None.
    """

    tokenizer: Tokenizer
    training: Source
    validation: Source
    signature: str
    floor: float | None = None
    answers: Bool[Tensor, "blocks tokens"] | None = None
    seen: int = 0
    pairs: tuple[Pair, ...] | None = None
    lessons: tuple[tuple[Source, int], ...] = ()
    grammar: Grammar | KannadaGrammar | None = None


def text_corpus(
    text: str,
    block: int,
    window: int | None = None,
    vocabulary: int | None = None,
    *,
    tokenizer: Tokenizer | None = None,
) -> Corpus:
    """The first nine tenths of ``text`` to train on, the last to measure: by characters, by
    ``vocabulary`` byte pairs, learned from what is trained on, or by a tokenizer of your own.

    A loss is of a token: what is measured with one vocabulary does not compare with another's.

    Raises:
        ValueError: a part is shorter than a block; a block or a window below 1; a vocabulary that
            :func:`~transformer_lib.bpe.train_bpe` refuses, or besides a tokenizer.

    >>> corpus = text_corpus("to be or not to be " * 20, block=8)
    >>> corpus.tokenizer.size, len(corpus.training), corpus.validation
    (7, 334, Packed(rows=5, tokens=8, sequences=0))
    >>> text_corpus("to be or not to be " * 20, block=8, vocabulary=260).tokenizer.tokens("to be")
    ['to', ' be']
    """
    window = block if window is None else window
    checks.require_count(block, "block")
    checks.require_count(window, "window")
    _require_texts([text])
    end = int(TRAINING_SHARE * len(text))
    parts = text[:end], text[end:]
    if tokenizer is not None and vocabulary is not None:
        raise ValueError(
            f"vocabulary is {vocabulary}, and a tokenizer is given, which has one. Give only one."
        )
    if tokenizer is not None and not (hasattr(tokenizer, "size") and hasattr(tokenizer, "encode")):
        raise TypeError(
            f"tokenizer is of type {type(tokenizer).__name__}, which lacks size or encode; give "
            f"one of transformer_lib.tokenizers, or a Tokenizer of your own."
        )
    by_characters = tokenizer is None and vocabulary is None
    if tokenizer is None:
        tokenizer = CharacterTokenizer(text) if by_characters else train_bpe(parts[0], vocabulary)
    dtype = torch.uint8 if tokenizer.size < 256 else torch.int32
    trained_on, measured = (torch.tensor(tokenizer.encode(part), dtype=dtype) for part in parts)
    unit = "characters" if by_characters else "tokens"
    count = f"the text has {len(trained_on) + len(measured)} {unit}"
    if len(measured) < 2:
        raise ValueError(
            f"{count}; its last {len(measured)} are to measure, and 2 are the least. Give a longer "
            f"text."
        )
    if len(trained_on) < block + 1:
        raise ValueError(
            f"{count}; its first {len(trained_on)} are to train on, and a block needs {block} + 1 "
            f"of them. Give a longer text, or choose a block of at most "
            f"{max(len(trained_on) - 1, 0)}."
        )
    return Corpus(
        tokenizer=tokenizer,
        training=Windows(trained_on, block),
        validation=cover(measured, window),
        signature=storage.sha256(text.encode("utf-8")),
    )


def stories_corpus(grammar: Grammar, n_stories: int, n_validation: int, block: int) -> Corpus:
    """Stories of ``grammar``, packed whole into blocks; those that measure were never trained on.

    Raises:
        ValueError: a story may be longer than a block; all validation stories occur in training;
            more words than anybody means.

    >>> grammar = Grammar(n_gifts=1, n_sentences=2)
    >>> corpus = stories_corpus(grammar, 50, 20, block=grammar.max_words)
    >>> corpus.training, corpus.seen, round(corpus.floor, 1)
    (Packed(rows=50, tokens=26, sequences=50), 0, 0.5)
    """
    checks.require_count(n_stories, "n_stories")
    checks.require_count(n_validation, "n_validation")
    if grammar.max_words > block:
        raise ValueError(
            f"a story of this grammar has up to {grammar.max_words} words, and a block has "
            f"{block}: stories are packed whole. Choose block={grammar.max_words} or more."
        )
    require_words(grammar, n_stories + n_validation, "stories", "fewer stories, or shorter ones")
    tokenizer = WordTokenizer(grammar.vocabulary)
    training = grammar.stories(n_stories)
    known = set(training)
    drawn = grammar.stories(n_validation, seed=VALIDATION_SEED)
    fresh = [story for story in drawn if story not in known]
    if not fresh:
        raise ValueError(
            f"all {n_validation} validation stories occur among the {n_stories} of training: this "
            f"grammar has too few stories. Give it more people, gifts or sentences."
        )
    described = [grammar.hash, n_stories, n_validation]
    validation = pack([tokenizer.encode(story) for story in fresh], block)
    marked = validation.mark([after_marks(story) for story in fresh])
    return Corpus(
        tokenizer=tokenizer,
        training=pack([tokenizer.encode(story) for story in training], block),
        validation=validation,
        signature=storage.sha256(json.dumps(described).encode("ascii")),
        floor=grammar.floor(fresh),
        answers=marked if marked.any() else None,
        seen=len(drawn) - len(fresh),
        grammar=grammar,
    )


def with_lessons(
    corpus: Corpus, grammar: Grammar, lessons: Mapping[str, int], batch_size: int
) -> Corpus:
    """``corpus`` with lessons before it: of each as many texts as its steps read, each once.

    Only the answers are targets there.

    Raises:
        ValueError: a lesson that there is not, or a number of steps below 1; too few names; more
            words than anybody means.
    """
    require_lessons(lessons, grammar)
    if not lessons:
        return corpus
    n_texts = sum(lessons.values()) * batch_size
    require_words(
        grammar, n_texts, "texts of lessons", "fewer steps of lessons, or smaller batches"
    )
    told = []
    for name, steps in lessons.items():
        texts, places = lesson(name, steps * batch_size, seed=LESSONS_SEED, grammar=grammar)
        ids = [corpus.tokenizer.encode(text) for text in texts]
        blocks = pack(ids, max(map(len, ids)))
        targets = blocks.targets.where(blocks.mark(places), IGNORED)
        told.append((Packed(blocks.inputs, targets, blocks.spans), steps))
    described = [corpus.signature, dict(lessons), batch_size]
    signature = storage.sha256(json.dumps(described).encode("ascii"))
    return replace(corpus, lessons=tuple(told), signature=signature)


def require_words(grammar: Grammar, count: int, what: str, fix: str) -> None:
    """So many stories or lessons can be made: they do not take hours, or all memory."""
    n_words = grammar.max_words * count
    if n_words > MOST_WORDS:
        raise ValueError(
            f"{count:,} {what} of up to {grammar.max_words:,} words are {n_words:,} words; choose "
            f"at most {MOST_WORDS:,}: {fix}."
        )


def describe_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """For JSON; :func:`tokenizer_of` reads it. The bytes of a merge are written as hexadecimals.

    Raises:
        TypeError: a tokenizer of another kind (a subclass, too: it cuts in its own way), or one
            without its ``vocabulary``, ``size`` or ``hash``.

    >>> describe_tokenizer(WordTokenizer(["has", "roses"]))
    {'kind': 'words', 'vocabulary': ['has', 'roses']}
    >>> describe_tokenizer(BytePairTokenizer([(b"a", b"r")], ["</s>"]))
    {'kind': 'byte pairs', 'merges': ['61 72'], 'specials': ['</s>']}
    """
    kind = next((name for name, known in KINDS.items() if type(tokenizer) is known), None)
    if kind is None:
        raise TypeError(
            f"the tokenizer is of type {type(tokenizer).__name__}, and a run can store only those "
            f"of the library: {', '.join(each.__name__ for each in KINDS.values())}."
        )
    missing = [name for name in USED if not hasattr(tokenizer, name)]
    if missing:
        raise TypeError(
            f"{type(tokenizer).__name__} has no {', '.join(missing)}; a run uses {', '.join(USED)} "
            f"of its tokenizer, as those in transformer_lib/tokenizers.py have them."
        )
    if isinstance(tokenizer, PairTokenizer):
        target = None if tokenizer.shared else describe_tokenizer(tokenizer.target)
        return {"kind": kind, "source": describe_tokenizer(tokenizer.source), "target": target}
    if isinstance(tokenizer, BytePairTokenizer):
        merges = [f"{left.hex()} {right.hex()}" for left, right in tokenizer.merges]
        return {"kind": kind, "merges": merges, "specials": list(tokenizer.specials)}
    return {"kind": kind, "vocabulary": list(tokenizer.vocabulary)}


def tokenizer_of(described: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that :func:`describe_tokenizer` was given.

    Raises:
        ValueError: an unknown kind; an entry that is missing; merges that are not pairs of
            hexadecimals.
    """
    try:
        return _tokenizer_of(described)
    except KeyError as error:
        raise ValueError(f"the tokenizer's description has no entry {error}.") from error


def _tokenizer_of(described: Mapping[str, Any]) -> Tokenizer:
    kind = described.get("kind")
    if kind not in list(KINDS):
        raise ValueError(f"the tokenizer is of kind {kind!r}; there are {', '.join(KINDS)}.")
    if kind == "pair":
        target = described["target"]
        sides = (tokenizer_of(described["source"]), target and tokenizer_of(target))
        return PairTokenizer(*sides)
    if kind == "byte pairs":
        pairs = [tuple(map(bytes.fromhex, merge.split(" "))) for merge in described["merges"]]
        return BytePairTokenizer(pairs, described["specials"])
    return KINDS[kind](described["vocabulary"])


def grammar_json(grammar: Grammar | KannadaGrammar) -> dict[str, Any]:
    """The grammar's fields, for JSON: ``Grammar(**grammar_json(grammar)) == grammar``."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(grammar).items()}
