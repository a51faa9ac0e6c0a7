"""Texts of the three-minute model: the preset ``cpu``, seed 0, while it learns and afterwards.

    python benchmarks/shakespeare.py        about five minutes on two quiet cores with AMX
    python benchmarks/shakespeare.py --steps 200 --weights _build/shakespeare

Writes transformer_lib/runs/shakespeare.json. Tiny Shakespeare by characters. The model's loss is
exact, over the whole validation split; chance, unigram and bigram come with it. One opening is
continued in many ways, each from three seeds, of which none is chosen; and so that not one text
speaks for a way, 32 passages of the validation split are continued by each, and measured. On a
slow machine, give fewer steps than the preset has. With a folder for the weights, they are kept in
it, and read from it the next time.
"""

import argparse
import math
import statistics
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from transformer_lib.beam import beam_search
from transformer_lib.data.corpora import TRAINING_SHARE, Corpus, text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.gpt import GPT
from transformer_lib.sampling import generate
from transformer_lib.training.distributed import ALONE
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import make_trainer
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

PROMPT, N_TOKENS, SEEDS = "ROMEO:\n", 240, (0, 1, 2)
EARLY = (0, 100, 500)  # steps after which it writes as well, as it does at the end
EVERY = 20
PASSAGES, OPENING, CONTINUED = 32, 24, 200  # how many; characters given; characters written
WAYS = {
    "T = 0.3": {"temperature": 0.3},
    "T = 0.5": {"temperature": 0.5},
    "T = 0.8": {"temperature": 0.8},
    "T = 1": {},
    "T = 1.2": {"temperature": 1.2},
    "T = 1.5": {"temperature": 1.5},
    "top-p 0.9": {"top_p": 0.9},
    "T = 1.5, top-p 0.9": {"temperature": 1.5, "top_p": 0.9},
    "T = 1.5, min-p 0.1": {"temperature": 1.5, "min_p": 0.1},
    "greedy": {"temperature": 0},
    "greedy, penalty 1.2": {"temperature": 0, "repetition_penalty": 1.2},
    "beam of 8": {"width": 8},
}


def learn(recipe: Recipe, corpus: Corpus, curve: dict[str, list]) -> dict[int, dict[str, Tensor]]:
    """The weights after each of the steps in ``EARLY``, and after the last."""
    trainer = make_trainer(recipe, corpus, ALONE, torch.device("cpu"))
    kept, losses, seconds = {0: copied(trainer.model)}, [], 0.0
    for step in trainer:
        losses.append(step.loss)
        seconds += step.seconds
        if step.step % EVERY == 0:
            row = (step.step, statistics.fmean(losses), seconds)
            for name, value in zip(("step", "training_loss", "seconds"), row, strict=True):
                curve[name].append(value)
            losses = []
            print(*row, flush=True)
        if step.step in EARLY or step.step == recipe.n_steps:
            kept[step.step] = copied(trainer.model)
    return kept


def copied(model: GPT) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in model.state_dict().items()}


def write(model: GPT, ids: Tensor, options: dict, seed: int, n_tokens: int) -> Tensor:
    """``ids`` and ``n_tokens`` more; a text longer than the context goes on from its last half."""
    if "width" in options:
        return beam_search(model, ids, n_tokens, **options)[0][:, 0]
    source, half = torch.Generator().manual_seed(seed), model.config.context // 2
    end = ids.shape[1] + n_tokens
    while ids.shape[1] < end:
        known = ids if ids.shape[1] <= half else ids[:, -half:]
        n = min(end - ids.shape[1], model.config.context - known.shape[1])
        text = generate(model, known, n, generator=source, **options)
        ids = torch.cat((ids, text[:, known.shape[1] :]), dim=1)
    return ids


def baselines(text: str, corpus: Corpus) -> dict[str, float]:
    """Losses on the validation split by counts of the training part; one is added to each count."""
    size, held_out = corpus.tokenizer.size, corpus.validation
    ids = torch.tensor(corpus.tokenizer.encode(text[: int(TRAINING_SHARE * len(text))]))
    single = torch.bincount(ids, minlength=size) + 1.0
    pairs = torch.bincount(size * ids[:-1] + ids[1:], minlength=size * size) + 1.0
    pairs = pairs.view(size, size)
    counted = held_out.targets >= 0
    inputs, targets = held_out.inputs[counted].long(), held_out.targets[counted].long()
    return {
        "ln V": math.log(size),
        "unigram": -(single / single.sum()).log()[targets].mean().item(),
        "bigram": -(pairs / pairs.sum(dim=1, keepdim=True)).log()[inputs, targets].mean().item(),
    }


def words_of(text: str) -> list[str]:
    """The whole words of a text that may begin and end within one, in small letters."""
    letters = "".join(c if c.isalpha() or c == "'" else " " for c in text.lower())
    inner = letters[letters.find(" ") : letters.rfind(" ")]
    return inner.split()


@torch.no_grad()
def measured(model: GPT, texts: Tensor, given: int, corpus: Corpus, known: set[str]) -> dict:
    """Of what follows the first ``given`` characters: surprise, known words, different words."""
    surprise = -model(texts[:, :-1]).log_softmax(dim=-1).gather(-1, texts[:, 1:, None])[..., 0]
    words = [words_of(corpus.tokenizer.decode(row)) for row in texts[:, given:]]
    total = max(1, sum(map(len, words)))  # a text without a word has no known one
    return {
        "nats a character": surprise[:, given - 1 :].mean().item(),
        "known words": sum(word in known for each in words for word in each) / total,
        "different words": sum(len(set(each)) for each in words) / total,
    }


def passages(text: str, corpus: Corpus) -> Tensor:
    """Evenly spaced speeches of the validation split, each from its first character: ids."""
    text = text[int(TRAINING_SHARE * len(text)) :]
    length, starts = OPENING + CONTINUED, []
    for i in range(PASSAGES):
        place = i * (len(text) - 2 * length) // PASSAGES
        starts.append(text.index("\n\n", place) + 2)
    return torch.tensor([corpus.tokenizer.encode(text[s : s + length]) for s in starts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=PRESETS["cpu"].n_steps)
    parser.add_argument("--weights", type=Path)
    arguments = parser.parse_args()
    text, folder = tiny_shakespeare(), arguments.weights
    recipe = PRESETS["cpu"].with_changes(n_steps=arguments.steps)
    corpus = text_corpus(text, recipe.data.block, recipe.data.window)
    model = GPT(recipe.model_config(corpus.tokenizer.size)).eval()
    curve: dict[str, list] = {"step": [], "training_loss": [], "seconds": []}
    steps = [*(step for step in EARLY if step < recipe.n_steps), recipe.n_steps]
    files = {} if folder is None else {step: folder / f"{step}.safetensors" for step in steps}
    if files and all(file.exists() for file in files.values()):
        weights = {step: load_file(file) for step, file in files.items()}
        numbers = load_file(folder / "curve.safetensors")
        curve = {name: values.tolist() for name, values in numbers.items()}
    else:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        weights = learn(recipe, corpus, curve)
        for step, file in files.items():
            save_file(weights[step], file)
        if files:
            numbers = {name: torch.tensor(values) for name, values in curve.items()}
            save_file(numbers, folder / "curve.safetensors")

    opening = torch.tensor([corpus.tokenizer.encode(PROMPT)])
    samples, losses = {}, {}
    for step in steps:
        model.load_state_dict(weights[step])
        losses[str(step)] = mean_loss(model, corpus.validation, batch_size=64)
        n_tokens = N_TOKENS if step < recipe.n_steps else 2 * N_TOKENS
        written = write(model, opening, {"temperature": 0.8}, SEEDS[0], n_tokens)[0]
        samples[str(step)] = corpus.tokenizer.decode(written)
        print(f"after {step} steps, loss {losses[str(step)]:.3f}:\n{samples[str(step)]}\n")

    known = set(words_of(text[: int(TRAINING_SHARE * len(text))]))
    held_out = passages(text, corpus)
    measures = {"Shakespeare": measured(model, held_out, OPENING, corpus, known)}
    texts = {}
    for way, options in WAYS.items():
        chance = options.get("temperature", 1) > 0 and "width" not in options
        seeds = SEEDS if chance else SEEDS[:1]
        found = [write(model, opening, options, seed, N_TOKENS)[0] for seed in seeds]
        texts[way] = [corpus.tokenizer.decode(ids) for ids in found]
        written = write(model, held_out[:, :OPENING], options, SEEDS[0], CONTINUED)
        measures[way] = measured(model, written, OPENING, corpus, known)
        print(way, measures[way], texts[way][0], sep="\n", end="\n\n")

    config = recipe.as_json() | {
        "prompt": PROMPT, "tokens": N_TOKENS, "seeds": list(SEEDS), "samples": "T = 0.8, seed 0",
        "ways": WAYS, "passages": PASSAGES, "opening": OPENING, "continued": CONTINUED,
        "parameters": model.n_parameters,
    }  # fmt: skip
    result = {"loss": losses[str(recipe.n_steps)], "losses": losses}
    result |= {"baselines": baselines(text, corpus), "samples": samples, "texts": texts}
    log = new_run("shakespeare", config=config, curve=curve, result=result | {"measures": measures})
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
