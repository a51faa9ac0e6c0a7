"""A translator of Kannada that knows nothing yet, as figures take it."""

import torch

from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.data.kannada.tables import tables
from transformer_lib.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from transformer_lib.tokenizers import SPECIALS, PairTokenizer, WordTokenizer
from transformer_lib.widgets import ArchitectureWalk, Translator

EXAMPLES = ["mēri sūsan\u200cge gulābigaḷannu koṭṭaḷu", "hūvannu koṭṭaḷu"]


def make_model(seed: int = 0, **wiring) -> tuple[EncoderDecoder, PairTokenizer]:
    grammar = KannadaGrammar()
    sides = grammar.source_words, grammar.target_words
    tokenizer = PairTokenizer(*(WordTokenizer([*SPECIALS, *words]) for words in sides))
    config = EncoderDecoderConfig.fast(
        source_vocabulary=tokenizer.source.size,
        target_vocabulary=tokenizer.target.size,
        context=16, n_layers=2, n_heads=2, d_model=16, projections="normal", **wiring,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = EncoderDecoder(config).eval()
        torch.nn.init.normal_(model.target_embedding.weight)  # so that it says something
    return model, tokenizer


def make_translator(seed: int = 0, **options) -> tuple[EncoderDecoder, PairTokenizer, Translator]:
    model, tokenizer = make_model(seed)
    options = {"examples": EXAMPLES} | options
    return model, tokenizer, Translator(model, tokenizer, tables(), **options)


def make_walk(seed: int = 0, **options) -> tuple[EncoderDecoder, PairTokenizer, ArchitectureWalk]:
    """The same, wired as in the paper, and the figure in which each part can be opened."""
    model, tokenizer = make_model(
        seed, norm="post", positions="sinusoidal", activation="relu", bias=True
    )
    sources = [KannadaGrammar().parse(text).source for text in EXAMPLES]
    widget = ArchitectureWalk(model, tokenizer, sources, EXAMPLES, **options)
    return model, tokenizer, widget
