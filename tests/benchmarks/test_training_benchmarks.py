"""The benchmarks of training run, at sizes that a test can afford."""

import dataclasses
import importlib
import sys
from statistics import fmean

import pytest
import torch
from programs import load
from torch.testing import assert_close

from transformer_lib.data.corpora import text_corpus
from transformer_lib.data.kannada import KannadaGrammar, to_script
from transformer_lib.gpt import GPT
from transformer_lib.interpret.handmade import induction_gpt
from transformer_lib.training.optimizers import orthogonalize
from transformer_lib.training.recipes import Recipe
from transformer_lib.training.run_log import REPOSITORY, load_run
from transformer_lib.training.tasks import corpus_of

TEXT = "Mary gave roses to Susan. Now Susan has the roses.\n" * 40
TINY = {"n_layers": 1, "n_heads": 2, "d_model": 12, "batch_size": 2, "warmup": 0, "n_steps": 4}


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """benchmark("three_minutes"): that module, which reads a short text and writes to tmp_path."""
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)

    def load(name):
        module = importlib.import_module(name)
        if hasattr(module, "tiny_shakespeare"):
            monkeypatch.setattr(module, "tiny_shakespeare", lambda: TEXT)
            monkeypatch.setattr(module, "RUNS_FOLDER", tmp_path)
            monkeypatch.setattr(module, "SEEDS", (0, 1))
        return module

    return load


@pytest.mark.slow
def test_the_ladder_compares_every_rung_with_the_peer(benchmark, monkeypatch, tmp_path):
    monkeypatch.setattr(benchmark("peers"), "STEPS", 6)
    module = benchmark("train_gpt")
    monkeypatch.setattr(module, "PARTS", 2)
    few = {name: recipe.with_changes(**TINY) for name, recipe in list(module.RUNGS.items())[-2:]}
    few["+ bfloat16 by AMX"] = few["+ bfloat16 by AMX"].with_changes(n_steps=60)
    monkeypatch.setattr(module, "RUNGS", few)
    monkeypatch.setattr(module, "has_amx", lambda: True)
    module.main()
    log = load_run(tmp_path / "train-gpt-ladder.json")
    assert log.curve["step"] == [3, 2, 30, 6, 4, 60] * 2
    assert log.result["rungs"] == ["peer", "+ smear", "+ bfloat16 by AMX"]
    peer, slow, longer = (log.result[name] for name in log.result["rungs"])
    assert peer["times faster"] == [1, 1]
    assert slow["times faster"][1] == pytest.approx(peer["seconds"][1] / slow["seconds"][1])
    mean = sum(peer["validation_loss"]) / 2
    assert log.result["loss to reach"] == pytest.approx(mean)
    for rung in (peer, slow, longer):
        assert rung["reached"] == [loss <= mean for loss in rung["validation_loss"]]


def test_the_peer_has_our_size_and_the_documented_schedule(benchmark):
    peers, ladder = benchmark("peers"), benchmark("train_gpt")
    theirs = sum(p.numel() for p in peers.Peer(65).parameters())
    with torch.device("meta"):
        for recipe in ladder.RUNGS.values():
            ours = GPT(recipe.model_config(65)).n_parameters
            assert abs(ours / theirs - 1) < 0.02
    rates = [peers.rate(step) for step in (0, 99, 100, 1050, 2000)]
    expected = [1e-3 / 101, 1e-3 * 100 / 101, 1e-3, 5.5e-4, 1e-4]
    assert_close(torch.tensor(rates), torch.tensor(expected))


@pytest.mark.slow
def test_the_ledger_of_the_ladder_resumes(benchmark, monkeypatch, tmp_path):
    module = benchmark("ladder")
    small = module._BASELINE.with_changes(**TINY)
    trials = {name: module.TRIALS[name] for name in ("NorMuon", "mean of the last weights")}
    trials = {name: dataclasses.replace(trial, lengths=(3,)) for name, trial in trials.items()}
    trials |= {"baseline": module.Trial(lengths=(2, 3)), "peer": module.Trial(lengths=(4,))}
    for name, value in {"_BASELINE": small, "TRIALS": trials, "STEPS": 3}.items():
        monkeypatch.setattr(module, name, value)
    module.main(["baseline", "NorMuon", "--seeds", "0"])
    first = load_run(tmp_path / "ladder.json")
    assert (first.curve["trial"], first.curve["steps"]) == ([0, 0, 1], [2, 3, 3])
    module.main(["--seeds", "0"])
    log = load_run(tmp_path / "ladder.json")
    assert list(log.config["trials"]) == ["baseline", "NorMuon", "mean of the last weights", "peer"]
    assert log.curve["loss"][:3] == first.curve["loss"]
    assert len(log.curve["loss"]) == 5
    assert log.curve["commit"] == [0] * 5
    assert log.config["commits"] == [log.commit]
    assert all(1 < loss < 5 for loss in log.curve["loss"])
    assert log.result["NorMuon"]["seeds"] == [0]
    assert log.result["NorMuon"]["losses"] == log.curve["loss"][2:3]
    with pytest.raises(SystemExit):
        module.main(["nonsense"])


def test_a_row_of_the_ledger_keeps_its_commit(benchmark, monkeypatch, tmp_path):
    module = benchmark("ladder")
    for commit in ("first", "second", "first"):
        monkeypatch.setattr(module, "commit", lambda name=commit: name)
        rows = module.kept()[0]
        module.add("NorMuon", [len(rows), 3, 1.5, 6.0, 6.0, 9])
    log = load_run(tmp_path / "ladder.json")
    assert [log.config["commits"][i] for i in log.curve["commit"]] == ["first", "second", "first"]


@pytest.mark.slow
def test_each_optimizer_trains_each_wiring(benchmark, monkeypatch, tmp_path):
    module = benchmark("optimizer_rungs")
    ways = {
        name: module.Way(way.recipe.with_changes(**TINY), way.rates[:2])
        for name, way in module.WAYS.items()
    }
    monkeypatch.setattr(module, "WAYS", ways)
    module.main()
    log = load_run(tmp_path / "optimizer-rungs.json")
    assert list(log.result) == list(ways)
    for number, (name, found) in enumerate(log.result.items()):
        assert found["rates"][str(found["rate"])] == min(found["rates"].values())
        assert len(found["losses"]) == 2
        assert log.curve["way"].count(number) == len(ways[name].rates) + 1
    adamw, muon = (ways[f"{name}, fast wiring"].recipe for name in ("AdamW", "Muon"))
    assert adamw.model_config(5) == muon.model_config(5)
    assert adamw.optimizer != muon.optimizer


@pytest.mark.slow
def test_directions_are_of_what_muon_orthogonalizes(benchmark, monkeypatch, tmp_path):
    module = benchmark("directions")
    small = {"n_layers": 1, "n_heads": 2, "d_model": 12}
    for name, value in {"SEEDS": (0,), "STEPS": (2, 3), "STORIES": 60, "BATCH": 4}.items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "SIZES", small)
    monkeypatch.setattr(module, "RUNS_FOLDER", tmp_path)
    module.main()
    log = load_run(tmp_path / "directions.json")
    assert len(log.curve["low"]) == 2 * 1 * 2 * 3 * 4
    linear = torch.nn.Linear(5, 3, bias=False)
    optimizer = module.Muon(torch.nn.Sequential(linear), lr=0.1, outside=())
    before = linear.weight.detach().clone()
    linear.weight.grad = torch.randn(3, 5)
    optimizer.step()
    moved = orthogonalize(module.ahead(optimizer, linear.weight), 5)
    assert_close(before - linear.weight, 0.1 * moved)
    values = module.counts(torch.diag(torch.tensor([1.0, 0.6, 0.4, 0.05])))
    assert values["before"] == (1, 2)
    assert values["signs"] == (0, 4)


def test_a_trial_is_worth_the_steps_that_the_baseline_needs(benchmark, monkeypatch):
    module = benchmark("ladder")
    monkeypatch.setattr(module, "STEPS", 200)
    rows = [[0, 0, steps, loss, 6.0, 6.0, 9] for steps, loss in ((100, 2.0), (400, 1.0))]
    rows += [[1, seed, 200, loss, 3.0, 6.0, 9] for seed, loss in ((0, 1.4), (1, 1.6))]
    found = module.ledger([*rows, [2, 0, 200, 0.9, 3.0, 6.0, 9]], ["baseline", "half", "beyond"])
    assert found["half"]["worth in steps"] == pytest.approx(200)
    assert found["half"]["times faster"] == pytest.approx(2)
    assert found["beyond"]["worth in steps"] is None


def test_counted_tables_are_shares_of_the_text(benchmark):
    module = benchmark("ladder")
    text = torch.tensor([0, 1, 0, 1, 1])
    pairs = module.counted(text, 2, 2).exp()
    assert_close(pairs, torch.tensor([[1 / 4, 3 / 4], [2 / 4, 2 / 4]]))
    triples = module.counted(text, 2, 3).exp()
    after_01 = (torch.tensor([1.0, 1.0]) + 8 * pairs[1]) / 10
    assert_close(triples[0 * 2 + 1], after_01)
    assert_close(triples[2 * 2 :], pairs)  # nothing before
    assert module.contexts(text[None, :3], 2, 3).tolist() == [[4, 1, 2]]


def test_trials_begin_as_the_baseline_but_for_what_they_change(benchmark):
    module = benchmark("ladder")
    config = module.RUNGS["+ smear"].with_changes(**TINY).model_config(5)
    text, logits = torch.randint(5, (300,)), {}
    for change in (None, *{c for trial in module.TRIALS.values() for c in trial.changes}):
        torch.manual_seed(0)
        model, reading = GPT(config), module.Reading()
        model.embedding.register_forward_hook(reading.begin)
        if change is not None:
            change(model, text, reading)
        logits[change] = model(text[None, :9])
    nothing = logits.pop(None)
    alike = {c for c, result in logits.items() if torch.equal(result, nothing)}
    assert alike == {
        module.bigrams, module.bigram_embedding, module.value_embeddings, module.skips,
        module.smears, module.value_residual,  # as the blocks write nothing at first
    }  # fmt: skip
    assert_close(logits[module.COUNTED] - nothing, module.counted(text, 5, 2)[text[None, :9]])


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 8, 32), (2, 32, 8)])
def test_the_ladders_iterations_are_the_librarys(benchmark, shape):
    module = benchmark("ladder")
    x, numbers = torch.randn(shape), (module.COEFFICIENTS,) * 3
    for gram in (False, True):
        found = module.orthogonalize(x, numbers, None, gram=gram)
        assert_close(found, orthogonalize(x, 3), atol=1e-5, rtol=1e-4)


def test_polar_express_takes_its_interval_nearest_to_1(benchmark):
    module = benchmark("ladder")
    values, errors = torch.logspace(-3, 0, 500, dtype=torch.float64), []
    for a, b, c in module.polar_coefficients(1e-3, 4):
        values = a * values + b * values**3 + c * values**5
        errors.append((values - 1).abs().max().item())
        assert values.max().item() - 1 == pytest.approx(1 - values.min().item(), abs=0.01)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.6


@pytest.mark.parametrize(
    ("name", "optimizer"), [("shakespeare", "muon"), ("normuon", "normuon"), ("smears", "normuon")]
)
def test_three_minutes_measures_every_seed_and_window(
    benchmark, monkeypatch, tmp_path, name, optimizer
):
    module = benchmark("three_minutes")
    recipe = Recipe.of(**TINY | {"block": 8, "window": 16})
    monkeypatch.setattr(module, "PRESETS", {"cpu": recipe})
    for options in ("NORMUON", "SMEARS"):
        monkeypatch.setattr(module, options, {"optimizer": "normuon"})
    monkeypatch.setattr(module, "WINDOWS", (16, 8))
    monkeypatch.setattr(module, "EVERY", 3)
    module.main([] if name == "shakespeare" else [f"--{name}"])
    log = load_run(tmp_path / f"{name}-three-minutes.json")
    assert log.config["optimizer"] == optimizer
    assert (log.curve["seed"], log.curve["step"]) == ([0, 0, 1, 1], [3, 4, 3, 4])
    losses = log.result["loss in windows of 16"]
    assert len(set(losses)) == 2
    assert all(1 < loss < 4 for loss in losses)
    assert log.result["tokens per second"][1] == pytest.approx(64 / log.result["seconds"][1])
    plain = GPT(recipe.model_config(text_corpus(TEXT, 8, 8).tokenizer.size))
    more = 2 * log.config["d_model"] if name == "smears" else 0
    assert log.config["parameters"] == plain.n_parameters + more
    assert ("cost of a step" in log.result) == (name == "smears")


@pytest.mark.slow
def test_smear_trains_each_smear_from_each_seed(benchmark, monkeypatch, tmp_path):
    module = benchmark("smear")
    recipe = module.RECIPE.with_changes(**TINY | {"n_stories": 9, "n_validation": 3})
    for name, value in {
        "RECIPE": recipe,
        "EVERY": 2,
        "SEEDS": (0, 1),
        "RUNS_FOLDER": tmp_path,
    }.items():
        monkeypatch.setattr(module, name, value)
    module.main()
    log = load_run(tmp_path / "smear.json")
    assert log.curve["step"] == [2, 4] * 14
    rows = zip(*(log.curve[name] for name in ("reach", "start", "seed")), strict=True)
    tried = [(reach, start, seed) for reach, start in module.SMEARS for seed in (0, 1)]
    assert list(rows) == [each for each in tried for _ in range(2)]
    assert len(set(log.curve["loss"])) == 28
    assert all(0 <= share <= 1 for share in log.curve["accuracy"])
    assert log.result["floor"] == corpus_of(recipe).floor


@pytest.mark.slow
def test_positions_are_matched_and_stretched(benchmark, monkeypatch, tmp_path):
    counts = {"LENGTH": 6, "REACH": 3, "SEEDS": 2}
    more = {"BIN": 2, "BATCH": 2, "STEPS": 2, "python_docs": lambda: TEXT}
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 12, "smear": 0}
    plain, module = benchmark("positions"), benchmark("positions_matched")
    for one, constants in ((plain, counts | more | {"SIZES": sizes}), (module, counts)):
        for name, value in (constants | {"RUNS_FOLDER": tmp_path}).items():
            monkeypatch.setattr(one, name, value)
    module.main()
    log = load_run(tmp_path / "positions-matched.json")
    rows = list(zip(log.curve["method"], log.curve["seed"], log.curve["position"], strict=True))
    points = [9, 3, 9, 9]
    assert sorted(rows) == [
        (n, seed, 2 * i) for n in range(4) for seed in range(2) for i in range(points[n])
    ]
    for name, apart in log.result["lengths"].items():
        alike = log.result["lengths matched"][name]
        assert max(apart.values()) > 1.5 * min(apart.values())
        assert alike["word"] == pytest.approx(alike["address"])
        assert alike["word"] == pytest.approx(max(apart.values()), rel=0.5)  # another seed


def test_stretched_rotary_positions_turn_more_slowly(benchmark, monkeypatch):
    plain, module = benchmark("positions"), benchmark("positions_matched")
    for one in (plain, module):
        monkeypatch.setattr(one, "REACH", 3)
    model = plain.new_model("rotary", 0, 7)
    q = torch.randn(32).expand(1, 4, 6, 32)
    given = model.blocks[0].attention.positions.rotate(q, 0)
    for name, pairs in (("rotary, larger base", slice(30, 32)), ("rotary, squeezed", slice(32))):
        module.stretch(model, name)
        turned = model.blocks[0].attention.positions.rotate(q, 0)
        assert_close(turned[..., 3, pairs], given[..., 1, pairs])  # three times slower
        same = torch.allclose(turned[..., 5, :2], given[..., 5, :2])
        assert same == (name == "rotary, larger base")  # the fastest hand is as fast as before


@pytest.mark.slow
def test_positions_of_another_base_are_measured(benchmark, monkeypatch, tmp_path):
    counts = {"LENGTH": 6, "REACH": 3, "SEEDS": 2}
    more = {"BIN": 2, "BATCH": 2, "STEPS": 2, "python_docs": lambda: TEXT}
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 12, "smear": 0}
    plain, module = benchmark("positions"), benchmark("positions_base")
    for one, constants in ((plain, counts | more | {"SIZES": sizes}), (module, {"SEEDS": 2})):
        for name, value in (constants | {"RUNS_FOLDER": tmp_path}).items():
            monkeypatch.setattr(one, name, value)
    module.main()
    log = load_run(tmp_path / "positions-base.json")
    rows = list(zip(log.curve["method"], log.curve["seed"], log.curve["position"], strict=True))
    assert sorted(rows) == [
        (n, seed, 2 * i) for n in range(2) for seed in range(2) for i in range(9)
    ]


@pytest.mark.parametrize("method", ["sinusoidal", "rotary"])
def test_with_a_base_of_ten_every_hand_goes_round_in_training(benchmark, method):
    plain, module = benchmark("positions"), benchmark("positions_base")
    model = module.with_base(plain.new_model(method, 0, 7), module.BASE)
    if method == "sinusoidal":
        where, width = model.embedding.positions, model.config.d_model
    else:
        where, *others = (block.attention.positions for block in model.blocks)
        width = model.config.d_head
        assert all(other.base == where.base for other in others)
    slowest = where.base ** ((width - 2) / width)
    assert 0.8 * plain.LENGTH < 2 * torch.pi * slowest < plain.LENGTH
    model(torch.zeros(1, plain.REACH * plain.LENGTH, dtype=torch.long))


@pytest.mark.soak
def test_a_leak_is_found_through_a_weight_of_zero(benchmark, monkeypatch, tmp_path):
    module = benchmark("leaks")
    for name, value in {"RUNS_FOLDER": tmp_path, "STEPS": 300, "SEEDS": 1, "RATE": 0.003}.items():
        monkeypatch.setattr(module, name, value)
    module.main()
    log = load_run(tmp_path / "leaks.json")
    assert log.curve["step"] == [*range(50, 301, 50)] * 2
    zeros, infinity = log.result["new texts, by position"].values()
    guessing = log.result["guessing"]
    assert min(zeros[0][:-1]) < 0.8 * guessing  # within 300 steps it has begun
    assert zeros[0][-1] > 0.9 * guessing  # nothing to see
    assert min(infinity[0]) > 0.95 * guessing


def test_kannada_measures_every_run_and_head(benchmark, monkeypatch, tmp_path):
    module = benchmark("kannada")
    few = ("machine", "no positions", "no cross-attention")
    small = {"n_steps": 3, "d_model": 12, "n_stories": 200, "n_validation": 5, "batch_size": 2}
    recipes = {name: (module.RUNS[name][0].with_changes(**small), module.RUNS[name][1])
               for name in few}  # fmt: skip
    small = {"n_stories": 200, "n_validation": 5}
    names = {"RUNS": recipes, "RUNS_FOLDER": tmp_path}
    names["PRESET"] = module.PRESET.with_changes(**small)
    names |= {"SEEDS": (0, 1), "FEWER": 1, "HELD_OUT": 4, "EVERY": 2}
    for name, value in names.items():
        monkeypatch.setattr(module, name, value)
    module.main()
    log = load_run(tmp_path / "kannada.json")
    assert log.curve["step"] == [2, 3] * 4
    assert log.curve["run"] == [0] * 4 + [1] * 2 + [2] * 2
    rates = torch.tensor(log.result["machine"]["alignment error"])
    assert rates.shape == (2, 1, 3)  # seeds, layers, heads and their mean
    assert ((rates >= 0) & (rates <= 1)).all()
    for name in ("whole, 0.5", "whole, 0.9", "gap, 0.5", "gap, 0.9", "gap, invented"):
        shares = log.result["machine"][name]
        assert len(shares) == 2
        assert all(0 <= share <= 1 for share in shares)
    assert module.without_object(KannadaGrammar().parse("ninne mērige hūvannu koṭṭaḷu")) == (
        to_script("ninne mērige koṭṭaḷu")
    )

    with monkeypatch.context() as patched:
        patched.setattr(module, "accuracy", lambda *_: 2.0)  # what no run measures
        module.main(["no positions"])
    again = load_run(tmp_path / "kannada.json")
    assert again.curve["run"] == [0] * 4 + [2] * 2 + [1] * 2  # this run alone
    assert again.result["no positions"]["accuracy"] == [2.0]
    for name in ("machine", "no cross-attention"):
        assert again.result[name] == log.result[name]


def test_what_is_taken_out_of_a_translator_is_gone(benchmark):
    module = benchmark("kannada")
    recipe = module.MACHINE.with_changes(n_stories=20, n_validation=5, d_model=12)
    corpus = corpus_of(recipe)
    large = module.Run(recipe, corpus).trainer.model
    assert large.source_embedding.weight.std() < 0.5
    module.large_tables(large)
    for table in (large.source_embedding, large.target_embedding):
        assert 0.9 < table.weight.std() < 1.1
    expand = large.encoder[0].feed_forward.expand
    assert not expand.bias.any()
    module.the_pages_start(large)
    for drawn in (expand.weight, expand.bias):
        assert 0.2 < drawn.abs().max() <= 12**-0.5  # PyTorch's bound; Xavier's is 0.32
    assert large.source_embedding.weight.std() > 0.9  # no table is drawn again
    source, inputs, _ = corpus.validation.rows(torch.arange(2))
    model, loud = (module.Run(recipe, corpus).trainer.model.eval() for _ in range(2))
    module.large_scores(loud)
    assert_close(loud(source, inputs), 12**0.5 * model(source, inputs))
    swapped = source.clone()
    swapped[:, [0, 1]] = source[:, [1, 0]]
    with torch.no_grad():
        assert not torch.allclose(model(source, inputs), model(swapped, inputs), atol=1e-4)
        module.NoPositions("source")(model)
        assert_close(model(source, inputs), model(swapped, inputs), atol=1e-4, rtol=1e-4)
        other = source.flip(0)
        assert not torch.allclose(model(source, inputs), model(other, inputs), atol=1e-4)
        module.no_cross_attention(model)
        assert_close(model(source, inputs)[:, 0], model(other, inputs)[:, 0])


@pytest.fixture
def shakespeare(benchmark, monkeypatch):
    """benchmarks/shakespeare.py on a short text of speeches, with ways of each kind."""
    module = benchmark("shakespeare")
    sizes = {"PROMPT": "Mary", "N_TOKENS": 9, "EARLY": (0, 2), "EVERY": 2}
    sizes |= {"PASSAGES": 3, "OPENING": 3, "CONTINUED": 11}
    sizes["tiny_shakespeare"] = lambda: TEXT.replace("\n", "\n\n") * 2
    sizes["PRESETS"] = {"cpu": Recipe.of(**TINY | {"block": 8, "window": 16, "lr": 0.01})}
    few = {"T = 1": {}, "top-p 0.9": {"top_p": 0.9}, "greedy": {"temperature": 0}}
    sizes["WAYS"] = few | {"beam of 8": {"width": 2}}
    for name, value in sizes.items():
        monkeypatch.setattr(module, name, value)
    return module


@pytest.mark.slow
def test_shakespeare_writes_while_it_learns_and_keeps_its_weights(
    shakespeare, monkeypatch, tmp_path
):
    weights = tmp_path / "kept" / "weights"
    monkeypatch.setattr("sys.argv", ["shakespeare.py", "--steps", "4", "--weights", str(weights)])
    shakespeare.main()
    first = load_run(tmp_path / "shakespeare.json")
    assert first.curve["step"] == [2, 4]
    assert list(first.result["samples"]) == list(first.result["losses"]) == ["0", "2", "4"]
    assert [len(text) for text in first.result["samples"].values()] == [4 + 9, 4 + 9, 4 + 18]
    assert first.result["loss"] == first.result["losses"]["4"] < first.result["losses"]["0"]
    assert first.result["baselines"]["bigram"] < first.result["baselines"]["unigram"]
    texts = first.result["texts"]
    assert {way: len(found) for way, found in texts.items()} == {
        "T = 1": 2, "top-p 0.9": 2, "greedy": 1, "beam of 8": 1,
    }  # fmt: skip
    assert all(text[:4] == "Mary" and len(text) == 13 for found in texts.values() for text in found)
    assert list(first.result["measures"]) == ["Shakespeare", *texts]
    assert first.result["measures"]["Shakespeare"]["known words"] == 1
    # with the weights that are there, no step is taken, and all is the same
    monkeypatch.setattr(shakespeare, "learn", None)
    shakespeare.main()
    second = load_run(tmp_path / "shakespeare.json")
    assert second.result == first.result
    assert second.curve["step"] == first.curve["step"]


def test_shakespeare_counts_whole_words_of_whole_speeches(shakespeare):
    assert shakespeare.words_of("ng Mary's, roses 2 o") == ["mary's", "roses"]
    text = shakespeare.tiny_shakespeare()
    corpus = shakespeare.text_corpus(text, 8, 16)
    found = shakespeare.passages(text, corpus)
    begin = {corpus.tokenizer.decode(row).split()[0] for row in found}
    assert begin <= {"Mary", "Now"}
    assert found.shape == (3, 3 + 11)


def test_each_part_of_the_recipe_is_taken_away_once(tiny, monkeypatch, tmp_path):
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 12, "positions": "rotary"}
    module = tiny(
        "recipe_parts", N_STEPS=4, SEEDS=(0, 1), EVERY=2, BLOCK=8, BATCH=2, DESCENT=(0.1, 0.3),
        STRANGE={"step": 2, "times": 1000.0}, SIZES=sizes,
    )  # fmt: skip
    monkeypatch.setitem(module.RECIPE, "warmup", 1)
    monkeypatch.setitem(module.RECIPE, "clip", 0.01)  # shorter than any of these gradients
    monkeypatch.setattr(module, "python_docs", lambda: TEXT)
    module.main()
    log = load_run(tmp_path / "recipe-parts.json")
    ways, ends = log.result["ways"], log.result["loss"]
    assert ways == [*module.WAYS, *module.DESCENTS] == list(ends)
    assert log.curve["step"] == [2, 4] * 2 * len(ways)
    assert log.curve["way"] == [n for n in range(len(ways)) for _ in range(4)]
    assert all(len(losses) == 2 for losses in ends.values())
    # clipped to one length, a gradient may be as long as it likes; not clipped, it may not
    assert ends["one gradient 1,000 times as long"] == pytest.approx(ends["all of it"], rel=1e-4)
    assert ends["no clipping"] != pytest.approx(ends["the same, no clipping"], rel=1e-4)
    assert log.result["clipped"]["all of it"] == [1.0, 1.0]
    assert log.result["clipped"]["no clipping"] == [0.0, 0.0]
    for way in module.DESCENTS:
        assert min(log.result[f"rates of {way}"].values()) == ends[way][0]
    assert ends["gradient descent"] != ends["gradient descent with momentum"]
    real = {way: fmean(losses) for way, losses in load_run("recipe-parts").result["loss"].items()}
    # As chapter 12 says.
    assert 0.35 < real["gradient descent with momentum"] - real["twice the rate"] < 0.45


@pytest.mark.soak
def test_rates_and_a_longer_run_of_the_recipe(tiny, monkeypatch, tmp_path):
    sizes = {"n_layers": 1, "n_heads": 2, "d_model": 12, "positions": "rotary"}
    parts = tiny("recipe_parts", N_STEPS=4, EVERY=2, BLOCK=8, BATCH=2, SIZES=sizes)
    monkeypatch.setitem(parts.RECIPE, "warmup", 1)
    monkeypatch.setattr(parts, "python_docs", lambda: TEXT)
    monkeypatch.setitem(sys.modules, "recipe_parts", parts)  # as if run from its folder
    module = tiny(
        "recipe_rates", RATES=(0.001, 0.01), LONG=8, EVERY=2, learn=parts.learn,
        trained=parts.trained, LARGER={"sizes": {"n_layers": 2}, "n_steps": 4}, ROUNDS=2, LETTERS=3,
        N_STORIES=40, N_HELD_OUT=8, WORLD_STEPS=70, WORLD_SEEDS=(0, 1),
    )  # fmt: skip
    module.main()
    log = load_run(tmp_path / "recipe-rates.json")
    rates, ends = log.result["rates"], log.result["long"]
    assert list(rates) == ["0.001", "0.01"] == list(log.result["clipped"])
    assert rates["0.001"] != rates["0.01"]
    assert all(0 <= share <= 1 for share in log.result["clipped"].values())
    assert log.curve["step"] == [2, 4, 6, 8] * 4  # two seeds, two ways
    assert all(a != b for a, b in zip(ends["falling"], ends["no fall"], strict=True))
    assert list(log.result["larger"]) == list(module.LARGER_WAYS)
    assert len(set(log.result["larger"].values())) == 3
    shares = log.result["world"]
    assert {name: len(found) for name, found in shares.items()} == {
        "all three": 2, "none": 2, "no tied": 1, "no embedding_std": 1, "no qk_norm": 1,
    }  # fmt: skip


def test_rounds_are_completed_by_a_circuit_written_by_hand(monkeypatch):
    monkeypatch.setitem(sys.modules, "recipe_parts", load("recipe_parts"))
    module = load("recipe_rates")
    monkeypatch.setattr(module, "LETTERS", 5)
    found = module.completes(induction_gpt(vocabulary=9, context=12), 9)
    assert found["second round"] < 0.01 < 1 < found["first round"]
    assert found["best head"] > 0.99
