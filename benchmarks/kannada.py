"""A translator of the book's Kannada: how soon it learns, by what training, and with what parts.

    python benchmarks/kannada.py                     about 12 minutes on one core
    python benchmarks/kannada.py "large tables"      this run alone, into the log that is there

Writes transformer_lib/runs/kannada.json, which chapters 10 and 10b read. All runs see the same
sentences and are measured on sentences whose subject, verb and object never meet in training:

- machine: the one that chapter 10 builds, wired as in the paper, by AdamW at one rate, but with
  matrices that start as the library draws them (Xavier);
- the page's start: the machine with matrices that start as PyTorch draws them, as in chapter 10;
- no positions, in the encoder or in both halves; no cross-attention: the decoder gets zeros for
  what the encoder read. All else as in the machine;
- large tables: the machine, whose tables of words start with a spread of 1 and not of 1/√d; large
  scores: the machine, whose scores alone are √d times as large;
- the paper's rate: the machine by the paper's optimizer and rate (Vaswani et al. 2017, section
  5.3), its warm-up shortened as its run is;
- its largest rate: the same, at the largest rate of that run from the first step to the last;
- preset: the recipe ``kannada``, the fastest that the book has.

``accuracy`` is the share of 2,000 held-out sentences that a greedy search translates exactly,
``any order`` that of the same sentences with their Kannada words in a random order, and ``alignment
error`` that of each head of each layer of the machine, and of its heads' mean, at the query that
predicts a word (``late``: at the query that reads it). ``gap`` is about the machine, from either
start, and the preset, and the same sentences without their object (or place), which the grammar
cannot say: ``gap, 0.9`` is the share of them whose translation has no word, the end included, below
90 % of the probability (``whole, 0.9``: of the whole sentences), and ``gap, invented`` that of
those that become a sentence of the grammar, with an object that nobody has named.
"""

import random
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import compress

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from transformer_lib.data.bitext import encoded
from transformer_lib.data.corpora import Corpus
from transformer_lib.data.kannada import KannadaGrammar, Sentence
from transformer_lib.data.packing import IGNORED
from transformer_lib.data.pairs import Pair
from transformer_lib.encoder_decoder import EncoderDecoder
from transformer_lib.interpret.alignment import alignment_error_rate
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.tokenizers import BEGIN, END, PADDING
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.run_log import RUNS_FOLDER, load_run, new_run, save_run
from transformer_lib.training.schedules import inverse_square_root
from transformer_lib.training.tasks import corpus_of, translated

SEEDS, FEWER, HELD_OUT, EVERY = (0, 1, 2, 3, 4), 3, 2000, 100
FROM_ALL_SEEDS = ("machine", "the page's start")  # the other runs from FEWER
WITH_GAPS = (*FROM_ALL_SEEDS, "preset")
SURE = (0.5, 0.9)
LONGER, WARMUP = 2, 200  # the paper's training: so many times the steps, with this warm-up
PRESET = PRESETS["kannada"]
MACHINE = PRESET.with_changes(
    wiring="paper", model={"d_ff": 4 * PRESET.model.d_model}, optimizer="adamw", betas=(0.9, 0.999),
    lr=3e-3, weight_decay=0.01, schedule="trapezoid", decay=0.0, n_steps=300,
)  # fmt: skip
PAPER = MACHINE.with_changes(
    betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, lr=1.0, schedule="inverse_square_root",
    warmup=WARMUP, n_steps=LONGER * MACHINE.n_steps,
)  # fmt: skip
LARGEST = inverse_square_root(WARMUP, MACHINE.model.d_model, warmup=WARMUP)


class NoPositions:
    """Takes the positions out of the embeddings of some sides of a model."""

    def __init__(self, *sides: str):
        self.sides = sides

    def __call__(self, model: EncoderDecoder) -> None:
        for side in self.sides:
            getattr(model, f"{side}_embedding").positions = None


def no_cross_attention(model: EncoderDecoder) -> None:
    """The memory is zero, whatever the source says."""
    encode = model.encode
    model.encode = lambda source: 0 * encode(source)


def large_tables(model: EncoderDecoder) -> None:
    """Each table of words starts with a spread of 1, as PyTorch draws an `nn.Embedding`."""
    for table in (model.source_embedding, model.target_embedding):
        table.reset_parameters()


def large_scores(model: EncoderDecoder) -> None:
    """Only what the output gives is as many times as large as `large_tables` makes the table."""
    logits = model.target_embedding.logits
    model.target_embedding.logits = lambda y: model.config.d_model**0.5 * logits(y)


def the_pages_start(model: EncoderDecoder) -> None:
    """Each matrix starts as PyTorch draws an `nn.Linear`; the tables stay as they are."""
    for part in model.modules():
        if isinstance(part, nn.Linear):
            part.reset_parameters()


RUNS: dict[str, tuple[Recipe, Callable[[EncoderDecoder], None] | None]] = {
    "machine": (MACHINE, None),
    "no positions in the encoder": (MACHINE, NoPositions("source")),
    "no positions": (MACHINE, NoPositions("source", "target")),
    "no cross-attention": (MACHINE, no_cross_attention),
    "the paper's rate": (PAPER, None),
    "its largest rate": (PAPER.with_changes(schedule="trapezoid", warmup=0, lr=LARGEST), None),
    "preset": (PRESET, None),
    "large tables": (MACHINE, large_tables),
    "the page's start": (MACHINE, the_pages_start),
    "large scores": (MACHINE, large_scores),
}
COLUMNS = ("run", "seed", "step", "training_loss", "validation_loss", "accuracy", "seconds")


def accuracy(
    model: nn.Module, corpus: Corpus, sentences: list[Sentence], mixed: random.Random | None = None
) -> float:
    """The share of exact translations, of sentences whose words ``mixed`` puts in any order."""
    sources = [s.source.split() for s in sentences]
    if mixed is not None:
        sources = [mixed.sample(words, len(words)) for words in sources]
    found = translated(model, corpus.tokenizer, [" ".join(words) for words in sources])
    return sum(text == s.target for text, s in zip(found, sentences, strict=True)) / len(sentences)


def without_object(sentence: Sentence) -> str:
    """The Kannada without the word before the verb: its object, or its place."""
    *before, _, verb = sentence.source.split()
    return " ".join([*before, verb])


@torch.no_grad()
def least_sure(model: nn.Module, corpus: Corpus, sources: list[str]) -> tuple[list[str], Tensor]:
    """The greedy translations, and the probability of the least probable word of each."""
    written = translated(model, corpus.tokenizer, sources)
    said = [corpus.tokenizer.target.encode(text) for text in written]
    source = padded(map(corpus.tokenizer.source.encode, sources), PADDING)
    inputs = padded(([BEGIN, *ids] for ids in said), PADDING)
    targets = padded(([*ids, END] for ids in said), IGNORED)
    chances = model.eval()(source, inputs).softmax(dim=-1)
    chances = chances.gather(2, targets.clamp(min=0)[..., None])[..., 0]
    return written, chances.masked_fill(targets < 0, 1).amin(dim=1)


def padded(rows: Iterable[list[int]], fill: int) -> Tensor:
    return pad_sequence(list(map(torch.tensor, rows)), batch_first=True, padding_value=fill)


@torch.no_grad()
def alignment_errors(model: nn.Module, corpus: Corpus, sentences: list[Sentence], late: int):
    """For each layer, of each head, and of their mean."""
    pairs = [Pair(s.source, s.target) for s in sentences]
    source, inputs, _ = encoded(pairs, corpus.tokenizer).rows(torch.arange(len(pairs)))
    maps = attention_maps(model.eval(), source, inputs)
    true = [s.alignment for s in sentences]
    return [
        alignment_error_rate(with_mean(weights[:, :, late:]), true).tolist()
        for name, weights in maps.items()
        if name.endswith("cross_attention")
    ]


def with_mean(weights: Tensor) -> Tensor:
    """[batch, heads, rows, keys], and the heads' mean as one head more."""
    return torch.cat([weights, weights.mean(dim=1, keepdim=True)], dim=1)


def main(only: Sequence[str] = ()) -> None:
    corpus = corpus_of(PRESET)
    grammar = KannadaGrammar(**PRESET.data.grammar)
    sentences = grammar.held_out(HELD_OUT)
    sayable = {sentence.target for sentence in grammar.all_sentences}
    curve: dict[str, list] = {name: [] for name in COLUMNS}
    result: dict = {}
    if only:  # all other runs stay as they are
        log = load_run(RUNS_FOLDER / "kannada.json")
        result = dict(log.result)
        again = [list(RUNS).index(name) for name in only]
        kept = [run not in again for run in log.curve["run"]]
        curve = {column: [*compress(log.curve[column], kept)] for column in COLUMNS}
    result |= {"grammar": grammar.hash, "runs": list(RUNS), "sentences": HELD_OUT}
    for number, (name, (recipe, change)) in enumerate(RUNS.items()):
        if only and name not in only:
            continue
        found = result[name] = {"accuracy": [], "any order": [], "seconds": [], "parameters": 0}
        for seed in SEEDS if name in FROM_ALL_SEEDS else SEEDS[:FEWER]:
            run = Run(recipe.with_changes(seed=seed, evaluate_every=EVERY), corpus)
            model = run.trainer.model
            if change is not None:
                change(model)
            for _ in run.steps():
                pass
            for column in COLUMNS[2:]:
                curve[column] += run.curve[column]
            curve["run"] += [number] * len(run.curve["step"])
            curve["seed"] += [seed] * len(run.curve["step"])
            found["parameters"] = model.n_parameters
            found["accuracy"].append(accuracy(model, corpus, sentences))
            mixed = random.Random(seed)
            found["any order"].append(accuracy(model, corpus, sentences, mixed))
            found["seconds"].append(run.seconds)
            if name == "machine":
                for key, late in (("alignment error", 0), ("late", 1)):
                    errors = alignment_errors(model, corpus, sentences[:1000], late)
                    found.setdefault(key, []).append(errors)
            if name in WITH_GAPS:
                for key, sources in (
                    ("whole", [s.source for s in sentences]),
                    ("gap", [without_object(s) for s in sentences]),
                ):
                    written, least = least_sure(model, corpus, sources)
                    for sure in SURE:
                        share = (least >= sure).double().mean().item()
                        found.setdefault(f"{key}, {sure}", []).append(share)
                said = sum(text in sayable for text in written)  # of those with a gap
                found.setdefault("gap, invented", []).append(said / len(written))
            print(f"{name}, seed {seed}: {found['accuracy'][-1]:.2%} ", end="")
            print(f"(any order: {found['any order'][-1]:.2%}) ", end="")
            print(f"after {run.seconds:.0f} s", flush=True)
    config = {name: recipe.as_json() for name, (recipe, _) in RUNS.items()}
    log = new_run("kannada", config=config | {"seeds": list(SEEDS)}, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main(sys.argv[1:])
