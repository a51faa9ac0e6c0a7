"""Figures of models that know nothing: a machine, a translator, a training that never was."""

from types import SimpleNamespace

import torch

from transformer_lib.classifier import Classifier
from transformer_lib.data.gifts import Grammar
from transformer_lib.data.kannada import KannadaGrammar
from transformer_lib.data.kannada.tables import tables
from transformer_lib.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.your_part import using
from transformer_lib.tokenizers import SPECIALS, PairTokenizer, WordTokenizer
from transformer_lib.training.asking import Examined, examine, questions
from transformer_lib.training.timeline import Timeline
from transformer_lib.widgets import (
    ArchitectureWalk,
    BlockLab,
    DepthView,
    Machine,
    TimeLapse,
    Translator,
    VectorPlayground,
)

# --- a small GPT of the gift stories, as Machine takes it

SHIPPED = "gifts-v3"
STORIES = [
    "<story> mary has roses at first . susan has books at first . john has cups at first .",
    "<story> mary has roses at first .",
]


def make_trained(seed: int = 0, **changes) -> SimpleNamespace:
    grammar = Grammar()
    tokenizer = WordTokenizer(grammar.vocabulary)
    sizes = {"n_layers": 2, "n_heads": 2, "d_model": 16, "context": 40, "smear": 2}
    sizes |= {"projections": "normal"} | changes
    config = GPTConfig.fast(vocabulary=tokenizer.size, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = GPT(config).eval()
        torch.nn.init.normal_(model.head.weight)  # so that it says something
    return SimpleNamespace(model=model, tokenizer=tokenizer, grammar=grammar)


def make_machine(**options) -> tuple[SimpleNamespace, Machine]:
    trained = make_trained()
    stories = options.pop("stories", STORIES)
    return trained, Machine(trained, stories, **options)


def not_at_all(x, angles):
    return x


def make_examined(seed: int = 0) -> tuple[Examined, Examined]:
    """A head as it is, and without positions."""
    trained = make_trained(seed, context=90)
    asked = questions(trained, 8)
    story = f"{STORIES[0]} who has roses ?"
    before = examine(trained, story, "block-2-head-1", asked)
    with using(trained.model, apply_rotary=not_at_all):
        return before, examine(trained, story, "block-2-head-1", asked)


# --- random weights at four moments, and made-up curves

READERS = {"uniform": 1.1, "unigram": 1.0, "bigram": 0.9}
CURVE = {"step": [0, 20, 40], "loss": [1.2, 1.0, 0.9], "share": [0.1, 0.2, 0.8]}


def make_timeline(**changes) -> Timeline:
    sizes = {"vocabulary": 3, "context": 16, "n_layers": 2, "n_heads": 1, "d_model": 8}
    config = GPTConfig.fast(**sizes | {"smear": 0, "projections": "normal"} | changes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        weights = {step: GPT(config).state_dict() for step in (0, 10, 20, 40)}
    return Timeline(config, weights)


def make_lapse(**options) -> TimeLapse:
    return TimeLapse(make_timeline(), CURVE, READERS, **{"length": 12} | options)


# --- a translator of Kannada

EXAMPLES = ["mēri sūsan\u200cge gulābigaḷannu koṭṭaḷu", "hūvannu koṭṭaḷu"]


def make_translating(seed: int = 0, **wiring) -> tuple[EncoderDecoder, PairTokenizer]:
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
    model, tokenizer = make_translating(seed)
    options = {"examples": EXAMPLES} | options
    return model, tokenizer, Translator(model, tokenizer, tables(), **options)


def make_walk(seed: int = 0, **options) -> tuple[EncoderDecoder, PairTokenizer, ArchitectureWalk]:
    """The same, wired as in the paper, and the figure in which each part can be opened."""
    model, tokenizer = make_translating(
        seed, norm="post", positions="sinusoidal", activation="relu", bias=True
    )
    sources = [KannadaGrammar().parse(text).source for text in EXAMPLES]
    widget = ArchitectureWalk(model, tokenizer, sources, EXAMPLES, **options)
    return model, tokenizer, widget


# --- figures of no model, or of one with a single block

WORDS = ["mary", "gave", "roses", "to", "susan"]
X = torch.tensor([[1.2, 0.3], [-0.4, 1.1], [0.9, 1.0], [-0.2, -0.4], [1.0, -0.6]])
CHOICES = {"who": ["mary", "susan"], "they": ["swapped", "talked", "waited"]}
TEXTS = [f"{who} and they {they} ?" for who in CHOICES["who"] for they in CHOICES["they"]]
ARRANGEMENTS = ["pre-norm", "post-norm", "no norm", "no residual"]


def playground(**options) -> VectorPlayground:
    return VectorPlayground(WORDS, X, **({"name": "plane"} | options))


def make_lab(**options):
    torch.manual_seed(3)
    model = Classifier(9, 5, 8, 1, 2, d_ff=24)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    ids = torch.tensor([[w, 2, 3, 4 + t, 8] for w in range(2) for t in range(3)])
    answers = model(ids).argmax(dim=-1).tolist()
    groups = [text.split()[0] for text in TEXTS]
    lab = BlockLab(model, CHOICES, TEXTS, ids, answers, ["mary", "susan"], groups, **options)
    return lab, model, ids


def make_view(**options):
    rows = [
        (at, start, depth, layer, 2.0 ** (at * layer - start), float(layer))
        for at in range(4)
        for start in range(2)
        for depth in (6, 12, 24)
        for layer in range(1, depth + 1)
    ]
    columns = ("arrangement", "start", "depth", "layer", "gradient", "stream")
    curve = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    return DepthView(curve, ARRANGEMENTS, ["GPT-2", "Xavier"], **{"depth": 6} | options)
