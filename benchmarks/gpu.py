"""A real GPU: every wiring in every precision, what each option gains, and which bits repeat.

    python benchmarks/gpu.py        some minutes on one GPU of CUDA

Writes transformer_lib/runs/gpu.json. Tiny Shakespeare by characters; the model of the preset
``h200``. Times are medians of steps that take turns with one another, after the first ones; they
include the wait for the GPU. What must hold ends the program where it does not.
"""

import dataclasses
import itertools
import statistics
import time

import torch
import torch.nn.functional as F

from transformer_lib.beam import beam_search
from transformer_lib.data.corpora import text_corpus
from transformer_lib.data.texts import tiny_shakespeare
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.sampling import generate
from transformer_lib.training.device import in_precision
from transformer_lib.training.distributed import ALONE
from transformer_lib.training.evaluation import mean_loss
from transformer_lib.training.optimizers import Muon, adamw
from transformer_lib.training.recipes import PRESETS
from transformer_lib.training.run import make_trainer
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

DEVICE = torch.device("cuda")
PRECISIONS = ("float32", "tf32", "bfloat16", "float16")
SIZES = {"vocabulary": 23, "context": 32, "n_layers": 2, "n_heads": 4, "d_model": 48}
WIRINGS = {
    "gpt1": GPTConfig.gpt1(**SIZES, dropout=0.1),
    "gpt2": GPTConfig.gpt2(**SIZES, dropout=0.1),
    "fast": GPTConfig.fast(**SIZES),
    "fast, qk_norm, smear 3": GPTConfig.fast(**SIZES, qk_norm=True, rms_norm=True, smear=3),
    "sinusoidal": GPTConfig(**SIZES, positions="sinusoidal", rms_norm=True),
    "alibi": GPTConfig(**SIZES, positions="alibi", tied=False, bias=False),
    "llama": GPTConfig(
        **SIZES, positions="rotary", activation="swiglu", rms_norm=True, bias=False, n_kv_heads=2
    ),
}
RECIPE = PRESETS["h200"].with_changes(compiled=False)
WARM, TIMED, REPEATED = 8, 40, 12


def every_wiring_in_every_precision() -> dict[str, float]:
    """Train, prefill, step, draw and search; the largest distance of each precision's loss."""
    largest = dict.fromkeys(PRECISIONS, 0.0)
    ids = torch.randint(23, (3, 32), device=DEVICE)
    for name, config in WIRINGS.items():
        torch.manual_seed(0)
        model = GPT(dataclasses.replace(config, dropout=0.0)).to(DEVICE)
        exact = loss_of(model, ids, "float32").item()
        for precision in PRECISIONS:
            loss = loss_of(model, ids, precision)
            largest[precision] = max(largest[precision], abs(loss.item() - exact))
            train(GPT(config).to(DEVICE), ids, precision)
            check_writing(model, ids, precision, name)
    return largest


def loss_of(model, ids, precision):
    with in_precision(DEVICE, precision):
        logits = model(ids[:, :-1]).float()
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def train(model, ids, precision) -> None:
    """Three steps of each optimizer; the loss falls."""
    for optimizer in (adamw(model, 3e-3), Muon(model, 3e-3, outside=())):
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = loss_of(model, ids, precision)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0], (precision, losses)


def check_writing(model, ids, precision, name) -> None:
    """Cached, uncached and by a beam of one: the same text; and a draw that fits."""
    model.eval()
    with torch.no_grad(), in_precision(DEVICE, precision):
        texts = [generate(model, ids[:, :9], 20, temperature=0, cache=c) for c in (True, False)]
        beam = beam_search(model, ids[:, :9], 20, width=1)[0][:, 0]
        drawn = generate(
            model, ids[:1, :9], 20, top_k=7, top_p=0.9,
            generator=torch.Generator(DEVICE).manual_seed(0),
        )  # fmt: skip
    assert drawn.shape == (1, 29)
    if precision == "float32":  # in fewer bits, near ties may go another way
        assert texts[0].equal(texts[1]), name
        assert texts[0].equal(beam), name


def step_times(corpus) -> dict[str, float]:
    """Milliseconds of a training step by precision, compiled and not, deterministic and not."""
    variants = {name: RECIPE.with_changes(precision=name) for name in PRECISIONS}
    variants["bfloat16, deterministic"] = variants["bfloat16"].with_changes(deterministic=True)
    variants["bfloat16, compiled"] = variants["bfloat16"].with_changes(compiled=True)
    variants["float32, compiled"] = variants["float32"].with_changes(compiled=True)
    trainers = {n: make_trainer(recipe, corpus, ALONE, DEVICE) for n, recipe in variants.items()}
    times: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(WARM + TIMED):
        for name, trainer in trainers.items():
            start = time.perf_counter()
            trainer.take_step()
            if number >= WARM:
                times[name].append(1000 * (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in times.items()}


def repeated(corpus, **changes) -> bool:
    """Whether two runs of a few steps from one seed end in the same bits."""
    recipe = RECIPE.with_changes(n_steps=REPEATED, **changes)
    ends = []
    for _ in range(2):
        trainer = make_trainer(recipe, corpus, ALONE, DEVICE)
        for _ in trainer:
            pass
        ends.append([p.detach().clone() for p in trainer.model.parameters()])
    return all(a.equal(b) for a, b in zip(*ends, strict=True))


def resumed(corpus) -> bool:
    """Whether a deterministic run, stopped and resumed, ends in the bits of one that was not."""
    recipe = RECIPE.with_changes(n_steps=REPEATED, deterministic=True)
    whole = make_trainer(recipe, corpus, ALONE, DEVICE)
    for step in whole:
        if step.step == REPEATED // 2:
            state = clone(whole.state_dict())
    other = make_trainer(recipe, corpus, ALONE, DEVICE)
    other.load_state_dict(state)
    for _ in other:
        pass
    pairs = zip(whole.model.parameters(), other.model.parameters(), strict=True)
    return all(a.equal(b) for a, b in pairs)


def clone(value):
    """A copy of a state: its tensors are the trainer's own."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(clone(item) for item in value)
    return value


@torch.no_grad()
def writing_times(vocabulary: int) -> dict[str, float]:
    """Milliseconds a token of the preset's model, in float32."""
    torch.manual_seed(0)
    model = GPT(RECIPE.model_config(vocabulary)).to(DEVICE).eval()
    cases = {
        f"{batch} at once, {'cached' if cache else 'without a cache'}": (batch, cache)
        for batch, cache in itertools.product((1, 64), (True, False))
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(4):
        for name, (batch, cache) in cases.items():
            ids = torch.zeros(batch, 1, dtype=torch.int64, device=DEVICE)
            torch.cuda.synchronize()
            start = time.perf_counter()
            generate(model, ids, 200, cache=cache)
            torch.cuda.synchronize()
            if turn:
                times[name].append(1000 * (time.perf_counter() - start) / 200)
    return {name: statistics.median(values) for name, values in times.items()}


def full_run(corpus) -> dict[str, float]:
    """The preset ``h200`` from its start to its end, compiling included."""
    start = time.perf_counter()
    trainer = make_trainer(PRESETS["h200"], corpus, ALONE, DEVICE)
    seconds = [step.seconds for step in trainer]
    wall = time.perf_counter() - start
    loss = mean_loss(trainer.model, corpus.validation, batch_size=64)
    tokens = RECIPE.batch_size * RECIPE.block
    return {
        "validation loss": loss,
        "steps": len(seconds),
        "seconds of the steps, the first left out": sum(seconds[1:]),
        "seconds of the first step, with compiling": seconds[0],
        "seconds in all": wall,
        "tokens a second": tokens / statistics.median(seconds),
        "parameters": trainer.model.n_parameters,
        "gigabytes at most": torch.cuda.max_memory_allocated() / 2**30,
    }


def main() -> None:
    corpus = text_corpus(tiny_shakespeare(), RECIPE.block, RECIPE.window)
    result: dict[str, object] = {}

    def note(name: str, value: object) -> None:
        result[name] = value
        print(name, value, flush=True)

    note("largest distance of the loss from float32's", every_wiring_in_every_precision())
    note("the preset h200", full_run(corpus))
    note("milliseconds a step", step_times(corpus))
    note("milliseconds a token", writing_times(corpus.tokenizer.size))
    note(
        "two runs end in the same bits",
        {
            "as it is": repeated(corpus),
            "deterministic": repeated(corpus, deterministic=True),
            "deterministic, resumed": resumed(corpus),
        },
    )
    assert result["two runs end in the same bits"]["deterministic"]
    assert result["two runs end in the same bits"]["deterministic, resumed"]
    config = RECIPE.as_json() | {"wirings": list(WIRINGS), "precisions": list(PRECISIONS)}
    log = new_run("gpu", config=config, curve={}, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
