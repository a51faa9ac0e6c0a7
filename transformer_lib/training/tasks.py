"""Tasks: the data, the model, the measures and the way of writing that a recipe asks for.

This is the one place that tells kinds of training apart. Loop, run, checkpoints and command line
serve any task: to add one, write a :class:`Task`, and let an entry of ``recipes.DATA`` name it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from transformer_lib import checks
from transformer_lib.beam import translate
from transformer_lib.bpe import train_bpe
from transformer_lib.data import texts
from transformer_lib.data.bitext import translation_corpus
from transformer_lib.data.corpora import (
    Corpus,
    Tokenizer,
    stories_corpus,
    text_corpus,
    with_lessons,
)
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.pairs import Pair, pairs_from_tsv
from transformer_lib.encoder_decoder import EncoderDecoder
from transformer_lib.gpt import GPT, current_names
from transformer_lib.sampling import stream
from transformer_lib.tokenizers import SPECIALS, PairTokenizer, WordTokenizer
from transformer_lib.training.distributed import ALONE, Processes
from transformer_lib.training.evaluation import loss_and_accuracy, mean_loss
from transformer_lib.training.losses import Loss, cross_entropy
from transformer_lib.training.recipes import DATA, Recipe

VALIDATION_EVERY = 10  # of a reader's own pairs, one in so many measures
VOCABULARY = 4000  # byte pairs, if a recipe names no number
TRANSLATED = 500  # pairs of which the exact translations are counted


def corpus_of(recipe: Recipe) -> Corpus:
    """The data that ``recipe`` names.

    A path may come from a stranger's checkpoint. It is opened as any text is: a regular file,
    for reading; and nothing of it is shown before its sha256 is that of the checkpoint.

    Raises:
        FileNotFoundError, OSError, ValueError: the file is not there, cannot be downloaded, is not
            a text, or is too short for a block; see :mod:`transformer_lib.data.texts`.
    """
    try:
        return TASKS[recipe.data.task].corpus(recipe)
    except FileNotFoundError as error:
        known = ", ".join(DATA)
        raise FileNotFoundError(
            f"{error} (Data sets with a name: {known}. One that a script of yours has put into "
            f"DATA is there if that script calls cli.main().)"
        ) from error


def model_of(recipe: Recipe, tokenizer: Tokenizer) -> nn.Module:
    """A new model, as ``recipe`` says, for these tokens: in float32, whatever PyTorch's default is.

    Raises:
        ValueError, TypeError: sizes that do not fit.
    """
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        return TASKS[recipe.data.task].model(recipe, tokenizer)
    finally:
        torch.set_default_dtype(default)


def stories(recipe: Recipe) -> Corpus:
    """Stories of the grammar of gifts, and the lessons before them."""
    data = recipe.data
    grammar = (data.grammar_class or Grammar)(**data.grammar)
    corpus = stories_corpus(grammar, data.n_stories, data.n_validation, data.block)
    left, lessons = recipe.n_steps, {}
    for name, steps in data.lessons.items():
        if left > 0:
            lessons[name] = min(steps, left)
        left -= steps
    return with_lessons(corpus, grammar, lessons, data.batch_size)


def text(recipe: Recipe) -> Corpus:
    """A text, by characters or by byte pairs."""
    data = recipe.data
    content = DATA[data.name].read() if data.name in DATA else texts.from_file(data.name)
    return text_corpus(content, data.block, data.window, data.vocabulary)


def translations(recipe: Recipe) -> Corpus:
    """Pairs of sentences: of a grammar by words, others by the byte pairs of both languages."""
    data, grammar = recipe.data, None
    if data.grammar_class:
        grammar = data.grammar_class(**data.grammar)
        training, validation = (
            [Pair(s.source, s.target) for s in sentences]
            for sentences in (grammar.training(data.n_stories), grammar.held_out(data.n_validation))
        )
        sides = grammar.source_words, grammar.target_words
        tokenizer = PairTokenizer(*(WordTokenizer([*SPECIALS, *words]) for words in sides))
    else:
        if data.name in DATA:
            training, validation = DATA[data.name].read()
        else:
            training, validation = divided(pairs_from_tsv(data.name))
        sides = [side for pair in training for side in pair]
        tokenizer = PairTokenizer(train_bpe(sides, data.vocabulary or VOCABULARY, SPECIALS))
    corpus = translation_corpus(
        training, validation, tokenizer, context=data.block, batch_tokens=data.batch_tokens
    )
    return replace(corpus, grammar=grammar)


def divided(pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Pairs to train on, and to measure by: every tenth, if its source is not trained on.

    Raises:
        ValueError: nothing is left to measure by.

    >>> training, validation = divided([Pair(f"{i}", "x") for i in range(20)])
    >>> len(training), validation
    (18, [Pair(source='9', target='x'), Pair(source='19', target='x')])
    """
    tenth = VALIDATION_EVERY - 1
    training = [pair for i, pair in enumerate(pairs) if i % VALIDATION_EVERY != tenth]
    known = {pair.source for pair in training}
    validation = [pair for pair in pairs[tenth::VALIDATION_EVERY] if pair.source not in known]
    if not validation:
        raise ValueError(
            f"of {len(pairs)} pairs none is left to measure by: every tenth is, unless its source "
            f"is trained on. Give at least {VALIDATION_EVERY} pairs with different sources."
        )
    return training, validation


def gpt(recipe: Recipe, tokenizer: Tokenizer) -> GPT:
    """A GPT."""
    return GPT(recipe.model_config(tokenizer.size))


def encoder_decoder(recipe: Recipe, tokenizer: PairTokenizer) -> EncoderDecoder:
    """A translator."""
    return EncoderDecoder(recipe.pair_config(tokenizer))


def measures(
    model: nn.Module, corpus: Corpus, *, precision: str = "float32", processes: Processes = ALONE
) -> dict[str, float]:
    """The exact loss on the validation data, and the share of right answers (NaN if none)."""
    # Logits take the most memory: at most 128 MB of them at a time, whatever the vocabulary.
    tokens = min(2**14, 2**25 // corpus.tokenizer.size)
    rows = max(1, tokens // corpus.validation.inputs.shape[1])
    options = {"batch_size": rows, "precision": precision, "processes": processes}
    if corpus.answers is None:
        loss, accuracy = mean_loss(model, corpus.validation, **options), float("nan")
    else:
        loss, accuracy = loss_and_accuracy(model, corpus.validation, corpus.answers, **options)
    return {"validation_loss": loss, "accuracy": accuracy}


def measures_of_translation(
    model: nn.Module, corpus: Corpus, *, precision: str = "float32", processes: Processes = ALONE
) -> dict[str, float]:
    """The exact loss on the validation pairs, without smoothing, and the share of the first 500
    that a greedy search translates exactly.
    """
    options = {"precision": precision, "processes": processes}
    loss = mean_loss(model, corpus.validation, **options)
    pairs = corpus.pairs[:TRANSLATED]
    found = translated(model, corpus.tokenizer, [pair.source for pair in pairs])
    right = sum(text == pair.target for text, pair in zip(found, pairs, strict=True))
    return {"validation_loss": loss, "accuracy": right / len(pairs)}


def translated(
    model: EncoderDecoder,
    tokenizer: PairTokenizer,
    texts: Sequence[str],
    *,
    batch_size: int = 64,
    **options: Any,
) -> list[str]:
    """The translation of each text.

    Args:
        batch_size: texts at a time, sorted by their length.
        options: of :func:`~transformer_lib.beam.translate`.

    Raises:
        ValueError: unknown words, an empty text, a text longer than the context.
        TypeError: one text in place of several.
    """
    checks.require_count(batch_size, "batch_size")
    if isinstance(texts, str):
        raise TypeError(f"texts are one text, {texts!r:.60}; give a list of them.")
    device = next(model.parameters()).device
    ids = [torch.tensor(tokenizer.source.encode(text)) for text in texts]
    for number, tokens in enumerate(ids, start=1):
        if len(tokens) == 0:
            raise ValueError(
                f"text {number} of {len(ids)} is empty, so there is nothing to translate. Give a "
                f"sentence, or leave it out."
            )
    found, order = [""] * len(ids), sorted(range(len(ids)), key=lambda i: len(ids[i]))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        source = pad_sequence([ids[i] for i in chosen], batch_first=True).to(device)
        for i, target in zip(chosen, translate(model, source, **options), strict=True):
            found[i] = tokenizer.target.decode(target)
    return found


def continuation(
    model: GPT, tokenizer: Tokenizer, prompt: str, n_tokens: int, **options: Any
) -> Iterator[str]:
    """``prompt`` and what the model writes after it, token by token, as long as you like.

    When the context is full, the model goes on from the second half of it, read anew. Of a
    character whose bytes are several tokens nothing is shown before the last of them.

    Args:
        options: of :func:`~transformer_lib.sampling.stream`. After the token ``end`` nothing more
            is written.

    Raises:
        ValueError: an empty prompt, unknown characters or words, options out of range.
    """
    checks.require_count(n_tokens, "n_tokens")
    context, device = model.config.context, next(model.parameters()).device
    ids, begun, end = tokenizer.encode(prompt), False, options.get("end")
    if not ids:
        raise ValueError("the prompt is empty, so there is nothing to go on from. Give some text.")
    while n_tokens > 0:
        kept = ids if len(ids) < context else ids[-max(1, context // 2) :]
        read = torch.tensor([kept], dtype=torch.int64, device=device)
        tokens = stream(model, read, min(n_tokens, context - len(kept)), **options)
        if not begun:
            yield tokenizer.decode(ids)
            # The token before goes along, so that the blank between two words is not lost.
            begun, recent = True, ids[-1:]
            shown = len(tokenizer.decode(recent))
        ids = kept
        for token in tokens:
            ids.append(int(token))
            recent.append(int(token))
            n_tokens -= 1
            text, done = tokenizer.decode(recent), n_tokens == 0 or int(token) == end
            whole = text if done else text.removesuffix("\ufffd")  # bytes of half a character
            yield whole[shown:]
            shown = len(whole)
            if whole == text:
                recent = recent[-1:]
                shown = len(tokenizer.decode(recent))
            if int(token) == end:
                return


@dataclass(frozen=True, kw_only=True)
class Task:
    """One kind of training.

    Attributes:
        corpus: of a recipe, its data.
        model: of a recipe and a tokenizer, a new model.
        loss: that it is trained by.
        measures: of a model and a corpus, numbers by name, which the run's curve and its reports
            keep: ``"validation_loss"``, ``"accuracy"`` (NaN for what does not apply) and any
            others. (With the options of :func:`measures`.)
        names: of a model's ``state_dict``, maybe an old one: the same under the names of today.
        write: of a trained model, a tokenizer, a prompt and a number of tokens: text, in pieces.
            None: it does not go on with texts.
        translate: of a trained model, a tokenizer and texts: their translations; or None.
        answers: what the measured ``"accuracy"`` is a share of.
    """

    corpus: Callable[[Recipe], Corpus]
    model: Callable[[Recipe, Tokenizer], nn.Module] = gpt
    loss: Loss = cross_entropy
    measures: Callable[..., dict[str, float]] = measures
    names: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] = current_names
    write: Callable[..., Iterator[str]] | None = continuation
    translate: Callable[..., list[str]] | None = None
    answers: str = "of the answers right"


TASKS = {
    "stories": Task(corpus=stories),
    "text": Task(corpus=text),
    "translation": Task(
        corpus=translations,
        model=encoder_decoder,
        measures=measures_of_translation,
        names=dict,
        write=None,
        translate=translated,
        answers="of the sentences translated exactly",
    ),
}
