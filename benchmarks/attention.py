"""Time and peak memory of attention from 64 to 8,192 tokens: the two products, the fused kernel.

    python benchmarks/attention.py        about 2 minutes on 2 cores; needs 2 GB of memory

Writes transformer_lib/runs/attention.json. Every point computes causal attention for 8,192 tokens
in one head that is 64 wide, cut into sequences of n tokens: so n alone changes how much work there
is. ``taught`` is ``attention_weights(q, k) @ v``, which stores all weights; ``fused`` is
``attention(q, k, v)``, which leaves them to PyTorch's kernel. Where ``attention`` prefers the two
products itself (16 bits, short sequences, with gradients, on a CPU), ``kernel`` is the one that it
declines.

Times: the paths take turns, and medians count; a ratio is the median of the ratios of the turns.
Memory: each point runs in a process of its own (forked from one that has only imported torch), and
what counts is by how much the call raises the peak of the memory that the process holds. A call
that needs next to nothing is measured, too: that much of a number is noise.
"""

import itertools
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from transformer_lib.attention import (
    attention,
    attention_weights,
    explicit_is_faster,
    fused_attention,
)
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

TOKENS, LENGTHS, WIDTH = 8192, tuple(2**power for power in range(6, 14)), 64
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
PATHS = ("taught", "fused", "kernel")
TURNS, SECONDS = (7, 25), 4.0  # at least, at most; no new turn after so many seconds
MEBIBYTE = 2**20 if sys.platform == "darwin" else 2**10  # in the unit of ru_maxrss


def inputs(dtype: torch.dtype, length: int, backward: bool, tokens: int) -> list[Tensor]:
    """Queries, keys and values, ``[sequences, 1 head, length, WIDTH]``."""
    source = torch.Generator().manual_seed(0)
    shape = (tokens // length, 1, length, WIDTH)
    made = [torch.randn(shape, generator=source, dtype=dtype) for _ in range(3)]
    return [x.requires_grad_(backward) for x in made]


def output(path: str, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    if path == "taught":
        return attention_weights(q, k, causal=True) @ v
    if path == "fused":
        return attention(q, k, v, causal=True)
    return fused_attention(q, k, v, None, True, None, None, 0.0)


def call(path: str, qkv: list[Tensor], backward: bool) -> None:
    """One pass forward and, if asked for, the gradient of all three."""
    with torch.set_grad_enabled(backward):
        result = output(path, *qkv)
    if backward:
        torch.autograd.grad(result.sum(), qkv)


def paths_for(qkv: list[Tensor]) -> tuple[str, ...]:
    return PATHS if explicit_is_faster(*qkv) else PATHS[:2]


def seconds(calls: dict[str, Callable[[], None]]) -> dict[str, list[float]]:
    """The time of each call in each turn; the first turn warms up and does not count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    start = time.perf_counter()
    for turn in range(TURNS[1] + 1):
        if turn > TURNS[0] and time.perf_counter() - start > SECONDS:
            break
        for name, run in calls.items():
            before = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - before)
    return {name: values[1:] for name, values in times.items()}


def mebibytes(path: str, dtype: str, length: int, backward: bool, tokens: int) -> float:
    """By how much one call raises this process's peak; to be run in a fresh process."""
    call(path, inputs(DTYPES[dtype], 16, backward, 64), backward)  # loads what is loaded once
    qkv = inputs(DTYPES[dtype], length, backward, tokens)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call(path, qkv, backward)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / MEBIBYTE


def in_a_fresh_process(function: Callable, *arguments):
    """``function(*arguments)``, computed where nothing has been before, with as many threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "transformer_lib.attention"])
    threads = (torch.get_num_threads(),)
    with context.Pool(1, initializer=torch.set_num_threads, initargs=threads) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    curve: dict[str, list[float]] = {
        name: [] for name in ("tokens", "bits", "backward", "path", "seconds", "mebibytes")
    }
    times_faster: dict[str, list[float]] = {}
    for dtype, backward, length in itertools.product(DTYPES, (False, True), LENGTHS):
        qkv = inputs(DTYPES[dtype], length, backward, TOKENS)
        calls = {path: partial(call, path, qkv, backward) for path in paths_for(qkv)}
        times = seconds(calls)
        memory = {
            path: in_a_fresh_process(mebibytes, path, dtype, length, backward, TOKENS)
            for path in calls
        }
        for path, values in times.items():
            row = (length, DTYPES[dtype].itemsize * 8, int(backward), PATHS.index(path))
            row += (statistics.median(values), memory[path])
            for column, value in zip(curve.values(), row, strict=True):
                column.append(value)
        ratios = [t / f for t, f in zip(times["taught"], times["fused"], strict=True)]
        kind = f"{dtype} {'forward and backward' if backward else 'forward'}"
        times_faster.setdefault(kind, []).append(statistics.median(ratios))
        print(
            f"{kind}, {length:4} tokens: fused {times_faster[kind][-1]:.2f} times faster;",
            *(f"{path} {1000 * statistics.median(times[path]):.1f} ms," for path in calls),
            *(f"{path} {memory[path]:.1f} MiB" for path in calls),
        )
    config = {
        "tokens": TOKENS, "lengths": list(LENGTHS), "width": WIDTH, "heads": 1, "causal": True,
        "paths": list(PATHS), "turns": list(TURNS), "seconds": SECONDS,
    }  # fmt: skip
    noise = [in_a_fresh_process(mebibytes, path, "float32", 64, True, 64) for path in PATHS[:2]]
    result = {"times_faster": times_faster, "noise_mebibytes": max(noise)}
    log = new_run("attention", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
