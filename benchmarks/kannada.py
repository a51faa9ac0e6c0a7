"""A translator of the book's Kannada: how soon it learns, by what training, and with what parts.

    python benchmarks/kannada.py        about 15 minutes on one core

Writes transformer_lib/runs/kannada.json, which chapter 10 reads. All runs see the same sentences
and are measured on sentences whose subject, verb and object never meet in training:

- preset: the recipe ``kannada``;
- Adam: the same model by the paper's optimizer and rate (Vaswani et al. 2017, section 5.3), its
  warm-up shortened as its run is;
- the paper's model: post-norm, sinusoidal positions, ReLU and feed-forward layers of 2,048 as well;
- its model, no warm-up: at the largest rate of that run from the first step to the last;
- no positions, in the encoder or in both halves; no cross-attention: the decoder gets zeros for
  what the encoder read. With the training of the preset.

``accuracy`` is the share of 2,000 held-out sentences that a greedy search translates exactly, and
``alignment error`` that of each head of each layer of the preset, at the query that predicts a word
(``late``: at the query that reads it).
"""

from collections.abc import Callable

import torch
from torch import nn

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.data.bitext import encoded
from transformer_lib.data.corpora import Corpus
from transformer_lib.data.kannada import KannadaGrammar, Sentence
from transformer_lib.data.pairs import Pair
from transformer_lib.encoder_decoder import EncoderDecoder
from transformer_lib.interpret.alignment import alignment_error_rate
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run
from transformer_lib.training.schedules import inverse_square_root
from transformer_lib.training.tasks import corpus_of, translated

SEEDS, FEWER, HELD_OUT, EVERY = (0, 1, 2, 3, 4), 2, 2000, 100  # the preset from all seeds
LONGER, WARMUP = 2, 200  # the paper's training: so many times the steps, with this warm-up
PRESET = PRESETS["kannada"]
ADAM = PRESET.with_changes(
    optimizer="adamw", betas=(0.9, 0.98), eps=1e-9, lr=1.0, schedule="inverse_square_root",
    warmup=WARMUP, n_steps=LONGER * PRESET.n_steps,
)  # fmt: skip
PAPER = ADAM.with_changes(wiring="paper", model={})
LARGEST = inverse_square_root(WARMUP, PRESET.d_model, warmup=WARMUP)


class NoPositions:
    """Takes the positions out of the attentions of some parts of a model."""

    def __init__(self, *parts: str):
        self.parts = parts

    def __call__(self, model: EncoderDecoder) -> None:
        for part in self.parts:
            for module in getattr(model, part).modules():
                if isinstance(module, MultiHeadAttention):
                    module.positions = None


def no_cross_attention(model: EncoderDecoder) -> None:
    """The memory is zero, whatever the source says."""
    encode = model.encode
    model.encode = lambda source: 0 * encode(source)


RUNS: dict[str, tuple[Recipe, Callable[[EncoderDecoder], None] | None]] = {
    "preset": (PRESET, None),
    "Adam": (ADAM, None),
    "the paper's model": (PAPER, None),
    "its model, no warm-up": (
        PAPER.with_changes(schedule="trapezoid", decay=0.0, warmup=0, lr=LARGEST),
        None,
    ),
    "no positions in the encoder": (PRESET, NoPositions("encoder")),
    "no positions": (PRESET, NoPositions("encoder", "decoder")),
    "no cross-attention": (PRESET, no_cross_attention),
}
COLUMNS = ("run", "seed", "step", "training_loss", "validation_loss", "accuracy", "seconds")


def accuracy(model: nn.Module, corpus: Corpus, sentences: list[Sentence]) -> float:
    """The share of exact translations."""
    found = translated(model, corpus.tokenizer, [s.source for s in sentences])
    return sum(text == s.target for text, s in zip(found, sentences, strict=True)) / len(sentences)


@torch.no_grad()
def alignment_errors(model: nn.Module, corpus: Corpus, sentences: list[Sentence], late: int):
    """For each layer, of each head."""
    pairs = [Pair(s.source, s.target) for s in sentences]
    source, inputs, _ = encoded(pairs, corpus.tokenizer).rows(torch.arange(len(pairs)))
    maps = attention_maps(model.eval(), source, inputs)
    true = [s.alignment for s in sentences]
    return [
        alignment_error_rate(weights[:, :, late:], true).tolist()
        for name, weights in maps.items()
        if name.endswith("cross_attention")
    ]


def main() -> None:
    corpus = corpus_of(PRESET)
    grammar = KannadaGrammar(**PRESET.grammar)
    sentences = grammar.held_out(HELD_OUT)
    curve: dict[str, list] = {name: [] for name in COLUMNS}
    result: dict = {"grammar": grammar.hash, "runs": list(RUNS), "sentences": HELD_OUT}
    for number, (name, (recipe, change)) in enumerate(RUNS.items()):
        found = result[name] = {"accuracy": [], "seconds": [], "parameters": 0}
        for seed in SEEDS if name == "preset" else SEEDS[:FEWER]:
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
            found["seconds"].append(run.seconds)
            if name == "preset":
                for key, late in (("alignment error", 0), ("late", 1)):
                    errors = alignment_errors(model, corpus, sentences[:1000], late)
                    found.setdefault(key, []).append(errors)
            print(f"{name}, seed {seed}: {found['accuracy'][-1]:.2%} ", end="")
            print(f"after {run.seconds:.0f} s", flush=True)
    config = {name: recipe.as_json() for name, (recipe, _) in RUNS.items()}
    log = new_run("kannada", config=config | {"seeds": list(SEEDS)}, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
