"""The benchmarks run, at sizes that a test can afford; a run log names a command that exists."""

import ast
import re
import shlex
import sys

import pytest
import torch
import torch.nn.functional as F
from programs import BENCHMARKS, load

from transformer_lib.data.pairs import Pair
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.handmade import induction_gpt
from transformer_lib.training import recipes, run_log
from transformer_lib.training.recipes import PRESETS
from transformer_lib.training.run_log import REPOSITORY, RUNS_FOLDER, load_run
from transformer_lib.training.timeline import load_timeline

pytestmark = pytest.mark.slow

LOGS = sorted(path.stem for path in run_log.RUNS_FOLDER.glob("*.json"))
NAMES = sorted(path.stem for path in BENCHMARKS.glob("*.py") if "\ndef main(" in path.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_says_how_to_run_it_and_what_it_writes(name):
    said = ast.get_docstring(ast.parse((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8")))
    assert re.search(rf"^    python benchmarks/{name}\.py  .* minute", said, re.M)
    [log] = re.findall(r"Writes transformer_lib/runs/([\w-]+)\.json", said)
    if log in LOGS:
        assert load_run(log).command.startswith(f"python benchmarks/{name}.py")


@pytest.mark.parametrize("name", LOGS)
def test_a_run_log_names_a_command_that_exists(name):
    log = load_run(name)
    script = next(word for word in shlex.split(log.command) if word.startswith("benchmarks/"))
    assert (REPOSITORY / script).is_file(), log.command
    assert f"transformer_lib/runs/{name}.json" in (REPOSITORY / script).read_text(encoding="utf-8")


def test_the_lookups_of_the_retrieval(tiny, tmp_path):
    rates = {"gradient descent": (1e-9, 0.1)}
    options = {"WIDTHS": (3, 5), "STEPS": (2, 3), "LAST": 1, "SEEDS": 2, "LOOKUPS": (4, 8)}
    tiny("retrieval_scaling", RATES=rates, LEARNED=9.0, **options).lookups()
    result = load_run(tmp_path / "retrieval-lookups.json").result
    assert list(result) == [f"{kind}, {n} lookups" for n in (4, 8) for kind in ("raw", "scaled")]
    assert all(found == [1e-9, 0.1] for found in result.values())
    real = {name: len(rates) for name, rates in load_run("retrieval-lookups").result.items()}
    # As chapter 03 says.
    assert real == {
        "raw, 12 lookups": 1,
        "scaled, 12 lookups": 6,
        "raw, 64 lookups": 4,
        "scaled, 64 lookups": 7,
    }
    assert 3 < max(load_run("retrieval-lookups").result["raw, 64 lookups"]) < 3.2


def test_retrieval_scaling_runs(tiny, tmp_path):
    rates = {"gradient descent": (0.1, 1.0), "adam": (0.01, 0.1)}
    module = tiny("retrieval_scaling", WIDTHS=(3, 5), RATES=rates, STEPS=(1, 3), LAST=1, SEEDS=2)
    module.main()
    log = load_run(tmp_path / "retrieval-scaling.json")
    assert log.curve["d_k"] == ([3] * 12 + [5] * 12) * 2
    assert log.curve["rate"] == [0.1, 0.1, 1.0, 1.0] * 6 + [0.01, 0.01, 0.1, 0.1] * 6
    kinds = [
        [
            [row[1] for row in zip(log.curve["kind"], log.curve[after], strict=True) if row[0] == n]
            for n in range(3)
        ]
        for after in ("after 1", "after 3")
    ]
    (raw, scaled, small), later = kinds
    assert scaled == small != raw  # the smaller start has the first scores of the division,
    assert later[1] != later[2]  # and takes other steps from there


def test_gpt_ablations_runs(tiny, tmp_path, monkeypatch):
    sizes = {"STEPS": 26, "BATCH": 2, "EVERY": 13, "SEEDS": (0,)}
    sizes["SIZES"] = {"n_layers": 1, "n_heads": 2, "d_model": 8}
    module = tiny("gpt_ablations", TRAINED=4, HELD_OUT=2, WRITTEN=1, **sizes)
    few = {name: module.VARIANTS[name] for name in ("GPT", "no positions", "no mask")}
    monkeypatch.setattr(module, "VARIANTS", few)
    module.main()
    log = load_run(tmp_path / "gpt-ablations.json")
    assert log.curve["step"] == [13, 26] * 3
    for name in few:  # only without the mask is a prediction in one pass another one
        [loss], [prefix] = log.result[f"{name}: loss"], log.result[f"{name}: prefix loss"]
        assert (loss == pytest.approx(prefix, abs=1e-5)) == (name != "no mask")


def test_owner_keeps_a_ledger(tiny, tmp_path):
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 8, "context": 85}
    module = tiny("owner", TRAINED=6, HELD_OUT=3, BATCH=2, EVERY=2, SIZES=sizes)
    names = ["smear", "primer, two layers"]
    module.main(["--seeds", "0", "1", "--steps", "3", *names])
    first = load_run(tmp_path / "owner.json")
    assert first.curve["attempt"] == [0] * 4 + [1] * 32
    assert first.curve["stage"][4:20] == [stage for stage in range(8) for _ in range(2)]
    assert first.curve["step"] == [2, 3] * 18
    assert len(first.result["smear"]) == len(first.result["primer, two layers"]) == 2
    module.main(["--seeds", "0", "--steps", "2", "smear"])
    second = load_run(tmp_path / "owner.json")
    assert list(second.config["attempts"]) == ["primer, two layers", "smear"]
    assert second.curve["attempt"] == [0] * 32 + [1]
    assert second.curve["loss"][:32] == first.curve["loss"][4:]
    assert second.config["attempts"]["smear"]["seeds"] == [0]


def test_some_owner_by_hand():
    module = load("owner")
    story = "<story> mary has the roses at first . mary has pens at first . who has pens ? mary . "
    story += "mary kindly gave it to susan . so who has pens now ? susan ."
    assert module.some_owner([story]) == pytest.approx((1 + 1 / 2) / 2)


def test_byte_pairs_runs(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # the benchmark sets it; restored after
    text = "Mary gave roses to Susan.\n\nNow Susan has the roses. "
    tiny("byte_pairs", MERGES=20, CHARACTERS=300, ROUNDS=2, python_docs=lambda: text).main()
    log = load_run(tmp_path / "byte-pairs.json")
    assert log.config["characters"] == 300
    assert {len(times) for times in log.curve.values()} == {2}
    assert 0 < log.result["tokens"] < 300


def test_depth_measures_every_block_and_trains_every_arrangement(tiny, monkeypatch, tmp_path):
    sizes = {"DEPTHS": (1, 2), "LAYERS": 1, "STEPS": 26, "BATCH": 2, "SEEDS": (0, 1)}
    sizes |= {
        "SIZES": {"n_heads": 2, "d_model": 8},
        "TRAINED": 4,
        "HELD_OUT": 2,
        "RATES": (0.01, 0.1),
        "MORE_SEEDS": (0, 1, 2),
        "MORE_DEPTHS": (2,),
        "LONGER": 2,
        "WITH_ADAMW": ("pre-norm",),
    }
    module = tiny("depth", **sizes)
    last = {arrangement: starts[-1:] for arrangement, starts in module.STARTS_OF.items()}
    monkeypatch.setattr(module, "STARTS_OF", last)
    module.main()
    log = load_run(tmp_path / "depth.json")
    plain, of_more_seeds = [1, 1, 1, 2, 1, 2], [1, 1, 1, 1, 2, 1, 2, 1, 2]
    assert log.curve["layer"] == plain * 5 + of_more_seeds + plain * 9  # post-norm, all large
    assert min(log.curve["gradient"]) > 0
    names = [f"{a}, {start}" for a, starts in module.STARTS_OF.items() for start in starts]
    assert list(log.config["best rates"]) == [*names, "pre-norm, all large, AdamW"]
    for name, rate in log.config["best rates"].items():
        losses, tried = log.result[name], log.result[f"{name}: rates"]
        assert losses[0] == tried[module.RATES.index(rate)]
        assert (len(losses), len(tried)) == (2, 2)
        assert 0 < min(losses) < 4
    assert log.result["pre-norm, all large"] != log.result["pre-norm, all large, AdamW"]
    for start in ("large tables", "all large"):
        ratios = log.result[f"first to last: post-norm, {start}, 2"]
        assert len(set(ratios)) == 3
        assert min(ratios) > 0
    for arrangement, start in module.LONGER_FOR:
        longer = log.result[f"longer: {arrangement}, {start}"]
        assert len(longer) == 2
        assert longer != log.result[f"{arrangement}, {start}"]
    module.main("losses")
    again = load_run(tmp_path / "depth.json")
    assert (again.curve, again.result) == (log.curve, log.result)


def test_depth_arranges_the_same_parameters_in_different_ways(tiny):
    module = tiny("depth", SIZES={"n_heads": 2, "d_model": 8})
    ids = torch.arange(6).reshape(1, 6)
    outputs = {}
    for arrangement in module.ARRANGEMENTS:
        outputs[arrangement] = module.make(arrangement, "all large", 2, seed=0)(ids)
    for name, one in outputs.items():
        others = [other for key, other in outputs.items() if key != name]
        assert not any(torch.allclose(one, other) for other in others), name


def test_depth_starts_as_large_as_it_says(tiny):
    module = tiny("depth")
    ids = torch.arange(8).reshape(1, 8)
    for start, (table, matrices) in module.STARTS.items():
        model = module.make("pre-norm", start, 2, seed=0)
        assert 0.8 < model.embedding(ids).std() / (2**0.5 * table) < 1.2, start
        spread = {"GPT-2": 0.02, "Xavier": (2 / 96) ** 0.5}[matrices]
        assert 0.9 < model.blocks[1].attention.key.weight.std() / spread < 1.1, start


def test_block_counts_what_each_part_is_worth(tiny, tmp_path):
    module = tiny("block", SEEDS=(0, 1), STEPS=2)
    module.main()
    result = load_run(tmp_path / "block.json").result
    assert {len(found) for found in result.values()} == {2}
    assert {0 <= n <= 96 for found in result.values() for n in found} == {True}


def test_block_switches_off_what_it_says(tiny):
    module = tiny("block")
    model = module.make(0, vocabulary=9)
    [block] = model.blocks
    x = torch.randn(2, 11, 8)
    whole = block(x)
    one, two = block.norm_1, block.norm_2
    middle = x + block.attention(one(x))
    torch.testing.assert_close(whole, middle + block.feed_forward(two(middle)))
    outputs = [whole]
    for parts in module.PARTS.values():
        block.off = parts
        outputs.append(block(x))
    block.off = {"residual_1", "residual_2"}
    torch.testing.assert_close(block(x), block.feed_forward(two(block.attention(one(x)))))
    block.off = {"norm_1", "norm_2", "attention", "feed_forward"}
    torch.testing.assert_close(block(x), x)
    for n, one in enumerate(outputs):
        assert not any(torch.allclose(one, other) for other in outputs[:n])


def test_since_gpt2_runs(tiny, tmp_path):
    text = "Mary gave roses to Susan. Now Susan has the roses.\n" * 30
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 12}
    counts = {"LENGTH": 6, "BATCH": 2, "STEPS": 15, "SEEDS": (0, 1)}
    module = tiny("since_gpt2", SIZES=sizes, python_docs=lambda: text, **counts)
    module.main()
    log = load_run(tmp_path / "since-gpt2.json")
    assert log.config["changes"][0] == "GPT-2"
    for change in module.CHANGES:
        assert len(log.result[f"{change}: loss"]) == 2
    assert log.result["no biases: parameters"] < log.result["GPT-2: parameters"]
    assert log.result["untied output: parameters"] > log.result["GPT-2: parameters"]


@pytest.fixture
def few_pairs(monkeypatch):
    """A handful of pairs in place of Multi30k, and a recipe for them."""
    ones = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five"}
    pairs = [Pair(f"{a} und {b}.", f"{ones[a]} and {ones[b]}.") for a in ones for b in ones]
    monkeypatch.setattr(recipes, "multi30k", lambda split: pairs)
    small = {"n_layers": 1, "n_heads": 2, "d_model": 16, "vocabulary": 270, "warmup": 0}
    steps = {"n_steps": 4, "evaluate_every": 2, "save_every": 2, "batch_tokens": 200}
    monkeypatch.setitem(PRESETS, "multi30k", PRESETS["multi30k"].with_changes(**small, **steps))
    return pairs


def test_translate_runs_and_keeps_a_ledger(tiny, tmp_path, monkeypatch, few_pairs):
    options = {"multi30k": lambda split: few_pairs, "SEARCHES": [(1, 0.0), (2, 0.6)]}
    module = tiny("translate", FOLDER=tmp_path / "runs", SAMPLES=20, **options)
    module.benchmark([0])
    log = load_run(tmp_path / "multi30k.json")
    assert log.curve["step"] == [2, 4]
    assert 0 <= log.result["bleu"][0] <= 100
    assert len(log.result["validation_bleu"][0]) == 2
    assert "|tok:13a|" in log.result["signature"][0]
    assert len(log.result["own"][0]) == len(log.config["own"])
    assert log.config["described"]["new_words"] == 0
    module.benchmark([1, 0])  # once more, from its checkpoint
    both = load_run(tmp_path / "multi30k.json")
    assert both.config["seeds"] == [1, 0]
    assert both.curve["seed"] == [1, 1, 0, 0]
    assert both.result["own"][1] == log.result["own"][0]
    assert {len(values) for values in both.result.values()} == {2}
    for name in ("first", "second"):
        module.trial(name, {"dropout": 0.1}, 2)
    ledger = load_run(tmp_path / "multi30k-ledger.json")
    assert ledger.result["name"] == ["first", "second"]
    assert ledger.result["changes"] == ['{"dropout": 0.1}'] * 2
    monkeypatch.setattr(module, "now", lambda: {"commit": "later", "date": "2030-01-02"})
    module.benchmark([2])
    later = load_run(tmp_path / "multi30k.json")
    assert later.result["commit"] == [*both.result["commit"], "later"]
    module.trial("third", {}, 2)
    rows = load_run(tmp_path / "multi30k-ledger.json").result
    assert rows["commit"] == [*ledger.result["commit"], "later"]


def test_the_logs_that_are_here_have_a_commit_for_each_of_their_rows(tiny, tmp_path):
    module = tiny("translate")
    for name in ("multi30k", "multi30k-ledger"):
        (tmp_path / f"{name}.json").write_bytes((RUNS_FOLDER / f"{name}.json").read_bytes())
    log = load_run("multi30k")
    seeds, result, _ = module.kept(PRESETS["multi30k"], without=1)
    assert len(result["commit"]) == len(seeds) == len(log.config["seeds"]) - 1
    rows = module.rows_of_ledger()
    assert {len(column) for column in rows.values()} == {len(rows["name"])}
    assert set(rows) == set(module.COLUMNS)


def test_bleu_is_that_of_a_known_pair(tiny):
    module = tiny("translate")
    pairs = [Pair("x", "the cat sat on the mat")]
    assert module.bleu(["the cat sat on the mat"], pairs) == pytest.approx(100)
    judged = module.judged(["The cat sat on the mat"], ["a dog"], pairs)
    assert judged["bleu"] < judged["bleu_lower"] == pytest.approx(100)


def test_data_is_described_by_its_words(tiny):
    train, others = (
        [Pair("Ein Hund.", "x"), Pair("Ein Mann", "x")],
        [Pair("Ein Esel, ein Hund", "x")],
    )
    assert tiny("translate").described(train, others) == {
        "pairs": 2,
        "source_words": 3,
        "words_a_sentence": 2,
        "new_words": 0.5,
        "with_new_words": 1,
    }


def test_translator_runs(tiny, tmp_path, monkeypatch):
    sizes = {"context": 32, "n_layers": 1, "n_heads": 2, "d_model": 12, "d_ff": 17}
    module = tiny("translator", SIZES=sizes, VOCABULARY=31, BATCH=3)
    monkeypatch.setattr(sys, "argv", ["translator.py", "--rounds", "2", "--tokens", "5"])
    module.main()
    log = load_run(tmp_path / "translator.json")
    assert {len(times) for times in log.curve.values()} == {2}
    for name in ("step_times", "step_times_counted", "greedy_times"):
        assert log.result[name] > 0


@pytest.fixture
def positions(tiny):
    text = "Mary gave roses to Susan. Now Susan has the roses.\n" * 30
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 12, "smear": 0}
    counts = {"LENGTH": 6, "REACH": 3, "BIN": 2, "BATCH": 2, "STEPS": 2, "SEEDS": 2}
    return tiny("positions", SIZES=sizes, python_docs=lambda: text, **counts)


def test_positions_measures_each_method_where_it_can(positions, tmp_path):
    positions.main()
    log = load_run(tmp_path / "positions.json")
    rows = list(zip(log.curve["method"], log.curve["seed"], log.curve["position"], strict=True))
    points = {"sinusoidal": 9, "learned": 3, "rotary": 9, "alibi": 9}
    expected = [
        (number, seed, 2 * i)
        for number, method in enumerate(log.config["methods"])
        for seed in range(2)
        for i in range(points[method])
    ]
    assert rows == expected
    assert "only positions 0 to 5 were learned" in log.result["beyond_the_table"]


@pytest.mark.parametrize("reach", [1, 3])
def test_positions_compares_the_same_targets_everywhere(positions, reach):
    ids = torch.randint(7, (100,), generator=torch.Generator().manual_seed(1))
    sizes = {"vocabulary": 7, "context": 6 * reach, "positions": "alibi"}
    model = GPT(GPTConfig.fast(**positions.SIZES | sizes)).eval()
    torch.nn.init.normal_(model.head.weight)
    measured = positions.loss_by_position(model, ids)
    assert measured.shape == (6 * reach,)
    for k in range(reach):  # block by block, each behind k blocks of context
        expected = []
        for block in range(2, 14):  # 16 whole blocks, without two on either side
            start, end = (block - k) * 6, (block + 1) * 6
            logits = model(ids[None, start:end])[0, -6:]
            expected.append(F.cross_entropy(logits, ids[end - 5 : end + 1], reduction="none"))
        mean = torch.stack(expected).double().mean(dim=0)
        torch.testing.assert_close(measured[6 * k : 6 * k + 6], mean, rtol=1e-5, atol=1e-6)


def test_markov_keeps_moments_of_its_first_model(tiny, tmp_path):
    counts = {"STEPS": 4, "BATCH": 2, "SEEDS": 1, "EVERY": 2, "KEPT": [0, 4], "TEST": 4}
    module = tiny("markov", TRAINED_FOLDER=tmp_path, LENGTH=16, **counts)
    module.main()
    log = load_run(tmp_path / "markov.json")
    assert log.curve["step"] == [0, 2, 4] * 3
    assert log.result["uniform"] > log.result["bigram"]
    [found] = log.result["trace"]
    assert list(found) == ["its own", "flat", "without the one before"]
    timeline = load_timeline(tmp_path / "markov.safetensors")
    assert timeline.steps == [0, 4]
    assert timeline.config.n_layers == 2


def test_markov_knows_what_the_second_head_reads():
    """In a circuit that is written by hand, it reads the state before and nothing else."""
    module = load("markov")
    machine = induction_gpt(vocabulary=3, context=12)
    ids = torch.tensor([[0, 1, 2] * 4])
    found = module.trace(machine, ids)
    assert found["its own"] > 0.99
    assert found["without the one before"] < found["flat"] < found["its own"]


def test_markov_finds_the_moment_at_which_the_second_head_is_halfway(tiny):
    module = tiny("markov", STEPS=4)
    rows = [(0, 0, 1.0, 0.1), (0, 2, 1.0, 0.6), (0, 4, 1.0, 0.7)]  # the last: its share
    assert module.halfway(rows, [0, 2, 4]) == 2
    assert module.halfway(rows, [0, 4]) == 4


def test_rounds_are_rounds_and_every_model_is_tried_on_every_length(tiny, tmp_path):
    module = tiny("rounds", STEPS=2, BATCH=2, SEEDS=2, TEXTS=3, TRIED=range(3, 5))
    ids = module.rounds(50, [3, 5], torch.Generator().manual_seed(0))
    lengths = [next(n for n in (3, 5) if torch.equal(text[n:], text[:-n])) for text in ids]
    assert set(lengths) == {3, 5}
    assert all(len(set(text.tolist())) == n for text, n in zip(ids, lengths, strict=True))
    module.main()
    log = load_run(tmp_path / "rounds.json")
    assert log.curve["length"] == [3, 4] * 8
    assert log.curve["seed"] == [0, 0, 1, 1] * 4
    worst = log.result["two layers, random: worst"]
    assert worst == [min(log.curve["right"][12:14]), min(log.curve["right"][14:])]
