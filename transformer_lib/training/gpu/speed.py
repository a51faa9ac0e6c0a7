"""How fast is a step, and why; what does a whole run cost, and which loss does it reach?

Each function measures one of these and returns an entry for the log.
"""

import itertools
from typing import Any

import torch

from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import Corpus
from transformer_lib.data.packing import Windows
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.sampling import generate
from transformer_lib.training.device import chosen_kernels
from transformer_lib.training.distributed import ALONE
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.gpu.timing import Measurements, spread, wait_for
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon, NorMuon, adamw
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run import make_trainer

# Trillions of operations a second in 16 bits, dense, by NVIDIA's data sheets.
DATA_SHEETS = {"T4": 65, "L4": 121, "A100": 312, "H100 80GB HBM3": 989, "H200": 989}
# Milliseconds of a step of GPT-2, by its README, which names neither the card nor the rows.
NANOGPT = {"plain": 250.0, "compiled": 135.0}


def products(m: Measurements, precisions: list[str], size: int) -> dict[str, Any]:
    """Operations a second of one large product in each precision: what there is to use."""
    found: dict[str, Any] = {}
    for precision in precisions:
        dtype = getattr(torch, precision, torch.float32)
        a = torch.randn(size, size, device=m.device).to(dtype)
        with chosen_kernels(m.device, tf32=precision == "tf32"):
            times = [m.seconds(lambda a=a: a @ a) for _ in range(12)][2:]
        found[precision] = 2 * size**3 / min(times)
    return {"operations a second": found, "rows and columns": size}


def operations(config: GPTConfig, model: GPT) -> int:
    """Operations a token, forward and backward: six for each number that is multiplied, and the
    scores and averages of attention (without the half that a causal mask could save).
    """
    matrices = [p for p in model.blocks.parameters() if p.ndim == 2]
    head = model.embedding.weight if model.head is None else model.head.weight
    scores = 2 * config.n_layers * config.context * config.d_model
    return 6 * (sum(p.numel() for p in [*matrices, head]) + scores)


def utilization(m: Measurements, trainer: Trainer, tokens: int, ms: float) -> dict[str, float]:
    """Operations a second; what share that is of the data sheet's and of the large product's."""
    a_second = operations(trainer.model.config, trainer.model) * tokens / ms * 1000
    found = {"tokens a second": tokens / ms * 1000, "operations a second": a_second}
    large = m.result.get("large products", {}).get("operations a second", {})
    if trainer.precision in large:
        found["share of the large product's"] = a_second / large[trainer.precision]
    name = torch.cuda.get_device_name(m.device) if m.device.type == "cuda" else ""
    words = f" {name.replace('-', ' ')} "  # an L40 is no L4
    sheet = [peak for known, peak in DATA_SHEETS.items() if f" {known} " in words]
    if sheet and trainer.precision in ("bfloat16", "float16"):
        found["share of the data sheet's"] = a_second / (sheet[0] * 1e12)
    return found


def step_times(
    m: Measurements, corpus: Corpus, recipes: dict[str, Recipe], rounds: int, warm: int
) -> dict[str, Any]:
    """A training step by each recipe, in turns; what it uses of the machine."""
    memory: dict[str, Any] = {}
    with m.memory(memory):
        trainers = {
            n: make_trainer(recipe, corpus, ALONE, m.device) for n, recipe in recipes.items()
        }
        for trainer in trainers.values():
            trainer.n_steps = warm + rounds + 1
        calls = {name: trainer.take_step for name, trainer in trainers.items()}
        found: dict[str, Any] = m.take_turns(calls, rounds=rounds, warm=warm)
    for name, trainer in trainers.items():
        tokens = recipes[name].data.batch_size * recipes[name].data.block
        found[name] |= utilization(m, trainer, tokens, found[name]["median"])
    return {"milliseconds a step": found} | memory


def optimizers(
    m: Measurements, corpus: Corpus, recipe: Recipe, rounds: int, warm: int
) -> dict[str, Any]:
    """Whole steps with each optimizer, and the optimizer's part of them alone, in turns."""
    steps, parts = {}, {}
    low = {"dtype": torch.bfloat16 if recipe.precision == "bfloat16" else None}
    for name in ("AdamW", "AdamW, fused", "Muon", "NorMuon"):
        trainer = make_trainer(recipe, corpus, ALONE, m.device)
        trainer.n_steps = 2 * (warm + rounds) + 2
        trainer.optimizer = {
            "AdamW": lambda model: adamw(model, 1e-3),
            "AdamW, fused": lambda model: adamw(model, 1e-3, fused=True),
            "Muon": lambda model: Muon(model, **low),
            "NorMuon": lambda model: NorMuon(model, **low),
        }[name](trainer.model)
        trainer.take_step()  # its gradients stay, for the optimizer alone
        steps[name], parts[f"{name}, its own part"] = trainer.take_step, trainer.optimizer.step
    found = m.take_turns(steps | parts, rounds=rounds, warm=warm)
    for name in steps:
        own = found[f"{name}, its own part"]["median"]
        found[name]["share of the optimizer"] = own / found[name]["median"]
    return {"milliseconds": found, "precision": recipe.precision}


def gpt2(m: Measurements, precision: str, sizes: dict[str, Any], steps: int, compiled: bool):
    """GPT-2 small on rows of random ids, AdamW: beside nanoGPT's times."""
    config = GPTConfig.gpt2(**{"vocabulary": 50_304, "dropout": 0.0} | sizes)
    for rows in (12, 6, 3):
        entry: dict[str, Any] = {"rows": rows, "tokens of a row": config.context}
        try:
            with m.memory(entry):
                times = gpt2_steps(m, config, rows, precision, steps, compiled)
        except torch.OutOfMemoryError:
            m.free()
            continue
        entry["seconds of the first step"], trainer = times[0][0], times[1]
        ms = spread([1000 * seconds for seconds in times[0][3:]])
        known = {"nanoGPT's README, card not named": NANOGPT["compiled" if compiled else "plain"]}
        entry |= {"milliseconds a step": ms, "precision": precision, "compiled": compiled}
        entry |= utilization(m, trainer, rows * config.context, ms["median"])
        return entry | (known if rows == 12 and not sizes else {})
    raise torch.OutOfMemoryError("three rows do not fit")


def gpt2_steps(m, config, rows, precision, steps, compiled) -> tuple[list[float], Trainer]:
    """Seconds of the first steps, and the trainer."""
    torch.manual_seed(0)
    model = GPT(config).to(m.device)
    ids = torch.randint(config.vocabulary, (rows * config.context * 4,))
    batches = Batches(Windows(ids, config.context), rows)
    optimizer = adamw(model, 6e-4, fused=m.device.type == "cuda" or None)  # as nanoGPT does
    options = {"n_steps": steps, "precision": precision, "compiled": compiled, "clip": 1.0}
    trainer = Trainer(model, optimizer, batches, **options)
    times = []
    while trainer.step < steps and not (trainer.step > 5 and m.left < 20):
        times.append(m.seconds(trainer.take_step))
    return times, trainer


@torch.no_grad()
def writing_times(m: Measurements, recipe: Recipe, vocabulary: int, tokens: int) -> dict[str, Any]:
    """Milliseconds a token of the preset's model, in float32."""
    torch.manual_seed(0)
    model = GPT(recipe.model_config(vocabulary)).to(m.device).eval()

    def write(batch: int, cache: bool):
        ids = torch.zeros(batch, 1, dtype=torch.int64, device=m.device)
        return lambda: generate(model, ids, tokens, cache=cache)

    calls = {
        f"{batch} at once, {'cached' if cache else 'without a cache'}": write(batch, cache)
        for batch, cache in itertools.product((1, 64), (True, False))
    }
    return {f"milliseconds for {tokens} tokens": m.take_turns(calls, rounds=3, warm=1)}


def losses(
    m: Measurements, corpus: Corpus, recipe: Recipe, seeds: tuple[int, ...]
) -> dict[str, Any]:
    """The whole recipe from each seed: the exact validation loss on the way and at the end."""
    found: dict[str, Any] = {"recipe": recipe.as_json(), "seeds": [], "curve": {}}
    found |= {"validation loss": [], "seconds": [], "seconds of the steps": []}
    for seed in seeds:
        needed = 1.1 * max(found["seconds"], default=0)
        if m.left < needed:
            found["left out"] = f"seed {seed}: {needed:.0f} s are needed, {m.left:.0f} are left"
            break
        curve: dict[str, list[float]] = {"step": [], "training loss": [], "validation loss": []}
        steps: list[float] = []
        with m.memory(found):
            wait_for(m.device)
            begun = m.left
            trainer = make_trainer(recipe.with_changes(seed=seed), corpus, ALONE, m.device)
            for step in trainer:
                steps.append(step.seconds)
                if step.step % recipe.evaluate_every == 0 or step.step == recipe.n_steps:
                    loss = mean_loss(trainer.model, corpus.validation, precision=trainer.precision)
                    for name, value in zip(curve, (step.step, step.loss, loss), strict=True):
                        curve[name].append(value)
            wait_for(m.device)
        found["seeds"].append(seed)
        found["curve"][f"seed {seed}"] = curve
        found["validation loss"].append(curve["validation loss"][-1])
        found["seconds"].append(begun - m.left)
        found["seconds of the steps"].append(sum(steps))
    return found
