"""How fast byte pairs are learned and used: our Python beside the `tokenizers` library.

    python benchmarks/byte_pairs.py        about a minute

Writes transformer_lib/runs/byte-pairs.json. MERGES merges are learned from a text of a megabyte:
Python's documentation, repeated with numbered words until it is that long (a repetition alone
would not add a single new word). Then the text is encoded: by ours with nothing remembered, by
ours again, by the library as one text and as a batch of paragraphs. The library runs on one thread
(TOKENIZERS_PARALLELISM=false), as ours does. Merges and ids must be equal.

Times are those of the processor (process_time), so that other programs count little; the best of
ROUNDS, one after the other.
"""

import json
import os
import time
from collections.abc import Callable

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # before the library is imported

import tokenizers
from tokenizers import pre_tokenizers, trainers

from transformer_lib.bpe import BytePairTokenizer, train_bpe
from transformer_lib.data.texts import python_docs
from transformer_lib.training.run_log import RUNS_FOLDER, new_run, save_run

MERGES, CHARACTERS, ROUNDS = 2000, 1_000_000, 3


def long_text(n_characters: int) -> str:
    """Python's documentation, again and again; in each copy other words carry its number."""
    docs, parts, length = python_docs(), [], 0
    while length < n_characters:
        number = len(parts)
        words = docs.split(" ")
        words[number::7] = [f"{word}{number}" if number else word for word in words[number::7]]
        parts.append(" ".join(words))
        length += len(parts[-1])
    return "".join(parts)[:n_characters]


def train_theirs(text: str, vocabulary: int) -> list:
    """The library's merges, learned from the same words."""
    theirs = BytePairTokenizer([]).as_fast()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"initial_alphabet": alphabet, "show_progress": False}
    theirs.train_from_iterator([text], trainers.BpeTrainer(vocab_size=vocabulary, **options))
    return json.loads(theirs.to_str())["model"]["merges"]


def seconds(run: Callable) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> None:
    text = long_text(CHARACTERS)
    paragraphs = text.split("\n\n")
    ours = train_bpe(text, 256 + MERGES)
    fast = ours.as_fast()
    if json.loads(fast.to_str())["model"]["merges"] != train_theirs(text, 256 + MERGES):
        raise RuntimeError("the library has learned other merges.")
    ids = ours.encode(text)
    if fast.encode(text).ids != ids:
        raise RuntimeError("the library gives other ids.")
    named = {
        "train_ours": lambda: train_bpe(text, 256 + MERGES),
        "train_theirs": lambda: train_theirs(text, 256 + MERGES),
        "encode_ours_first": lambda: BytePairTokenizer(ours.merges).encode(text),
        "encode_ours": lambda: ours.encode(text),
        "encode_theirs": lambda: fast.encode(text),
        "encode_theirs_batch": lambda: fast.encode_batch_fast(paragraphs),
    }
    curve = {name: [] for name in named}
    for number in range(ROUNDS):
        for name, run in named.items():
            curve[name].append(seconds(run))
        print(f"round {number + 1}:", *(f"{name} {times[-1]:.2f}" for name, times in curve.items()))
    best = {name: min(times) for name, times in curve.items()}
    result = {"tokens": len(ids), "train_over_theirs": best["train_ours"] / best["train_theirs"]}
    result |= {f"{name}_seconds": best[name] for name in ("train_ours", "train_theirs")}
    for name in named:
        if name.startswith("encode"):
            result[f"{name}_characters_per_second"] = len(text) / best[name]
    for name, value in result.items():
        print(f"{name:48} {value:.4g}")
    config = {
        "merges": MERGES, "characters": len(text), "words": len(set(text.split())),
        "rounds": ROUNDS, "text": "python_docs, repeated with numbered words",
        "tokenizers": tokenizers.__version__, "threads_of_the_library": 1,
        "curve": "seconds of the processor, by round", "same": "merges and ids",
    }  # fmt: skip
    log = new_run("byte-pairs", config=config, curve=curve, result=result)
    print("written:", save_run(log, RUNS_FOLDER).name)


if __name__ == "__main__":
    main()
