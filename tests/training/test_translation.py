"""Translators by recipes, runs and commands: Kannada, a reader's own pairs, what is refused."""

import pytest
import torch
from small_runs import differences, end_of

from transformer_lib.data.corpora import describe_tokenizer, tokenizer_of
from transformer_lib.data.kannada import KannadaGrammar, to_latin
from transformer_lib.training.checkpoints import find_checkpoints
from transformer_lib.training.cli import main
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import Run, trained_run
from transformer_lib.training.tasks import corpus_of, model_of, translated
from transformer_lib.training.trained import load_trained

SMALL = PRESETS["kannada"].with_changes(
    n_layers=1, n_heads=2, d_model=16, n_steps=6, n_stories=60, n_validation=20, batch_size=12,
    evaluate_every=3, save_every=2, dropout=0.1,
)  # fmt: skip
OPTIONS = [
    *("--n-steps", "4", "--n-layers", "1", "--n-heads", "2", "--d-model", "16"),
    *("--evaluate-every", "4", "--save-every", "4", "--precision", "float32"),
]


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory):
    """Numbers in German and English."""
    ones = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five"}
    lines = [f"{a} und {b}\t{ones[a]} and {ones[b]}\n" for a in ones for b in ones]
    path = tmp_path_factory.mktemp("pairs") / "numbers.tsv"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.usefixtures("as_a_reader")  # beartype draws random numbers
def test_a_run_that_is_stopped_and_resumed_ends_in_the_same_bits(tmp_path):
    whole = trained_run(SMALL, tmp_path / "whole")
    begun = Run(SMALL)
    for step in begun.steps(tmp_path / "run"):
        if step.step == 4:
            break
    resumed = trained_run(SMALL, tmp_path / "run", resume=find_checkpoints(tmp_path / "run")[-1])
    assert differences(end_of(resumed), end_of(whole)) == []
    assert whole.curve["validation_loss"][-1] < whole.curve["validation_loss"][0]


@pytest.mark.usefixtures("as_a_reader")
def test_kannada_on_the_command_line(tmp_path, capsys):
    run, out = str(tmp_path / "run"), str(tmp_path / "out")
    sizes = ["--n-stories", "60", "--n-validation", "20"]
    assert main(["train", "--preset", "kannada", "--folder", run, *OPTIONS, *sizes]) == 0
    assert "0.00% of the sentences translated exactly" in capsys.readouterr().out
    assert main(["evaluate", run]) == 0
    assert main(["export", run, out]) == 0
    assert load_trained(out).grammar == KannadaGrammar()
    capsys.readouterr()
    text = KannadaGrammar().held_out(1)[0].source
    assert main(["translate", run, text, to_latin(text)]) == 0
    assert main(["translate", out, "--width", "3", text]) == 0
    first, second, by_beam = capsys.readouterr().out.splitlines()
    assert first == second
    assert {*first.split(), *by_beam.split()} <= {*KannadaGrammar().target_words, *["<s>", "<pad>"]}
    for arguments, message in [
        (["translate", run, "mēri"], "verb"),
        (["translate", run, "mēri kata kottalu"], "kata"),
        (["sample", run], "is a translator, which does not go on with a text"),
        (["translate", run, text, "--width", "0"], "width is 0"),
    ]:
        assert main(arguments) == 1
        assert message in capsys.readouterr().err


@pytest.mark.usefixtures("as_a_reader")
def test_a_readers_own_pairs(pairs_file, tmp_path, capsys):
    run = str(tmp_path / "run")
    mine = ["--data", str(pairs_file), "--vocabulary", "270", "--batch-tokens", "200"]
    mine += ["--warmup", "0"]
    assert main(["train", "--preset", "multi30k", "--folder", run, *OPTIONS, *mine]) == 0
    trained = load_trained(run)
    assert trained.tokenizer.shared
    assert trained.model.target_embedding is None
    texts = ["eins und zwei", "ನಮಸ್ಕಾರ </s>"]  # no text is unknown to byte pairs
    found = translated(trained.model, trained.tokenizer, texts, n_tokens=5)
    assert found[:1] == translated(trained.model, trained.tokenizer, texts[:1], n_tokens=5)
    capsys.readouterr()
    pairs_file.with_name("other.tsv").write_text("nur Rosen\n", encoding="utf-8")
    mine[1] = str(pairs_file.with_name("other.tsv"))
    assert main(["train", "--preset", "multi30k", "--folder", run + "2", *OPTIONS, *mine]) == 1
    assert "line 1 of" in capsys.readouterr().err


def test_what_is_measured_was_not_trained_on(pairs_file):
    corpus = corpus_of(Recipe.of(data=str(pairs_file), wiring="paper", vocabulary=262))
    assert (len(corpus.training), len(corpus.validation), len(corpus.pairs)) == (23, 2, 2)
    held = corpus_of(SMALL).pairs
    grammar = KannadaGrammar()
    known = {grammar.triple(s) for s in grammar.training(SMALL.data.n_stories)}
    assert not {grammar.triple(grammar.parse(pair.source)) for pair in held} & known


@pytest.mark.parametrize("name", ["kannada", "multi30k"])
def test_presets_make_models_whose_tokenizers_survive_json(name, pairs_file):
    recipe = PRESETS[name]
    if name == "multi30k":
        recipe = recipe.with_changes(data=str(pairs_file), vocabulary=262)
    tokenizer = corpus_of(recipe.with_changes(n_stories=10, n_validation=5)).tokenizer
    assert tokenizer_of(describe_tokenizer(tokenizer)).hash == tokenizer.hash
    with torch.device("meta"):
        assert model_of(recipe, tokenizer).n_parameters > 100_000


def test_the_papers_schedule_and_optimizer():
    recipe = Recipe.of(
        data="kannada", wiring="paper", optimizer="adamw", lr=1.0, betas=(0.9, 0.98), eps=1e-9,
        schedule="inverse_square_root", warmup=400, d_model=64,
    )  # fmt: skip
    rates = [recipe.factor(step, 1000) for step in (1, 400, 1000)]
    assert rates == [64**-0.5 * x for x in (400**-1.5, 400**-0.5, 1000**-0.5)]
    model = torch.nn.Linear(3, 2)
    assert recipe.make_optimizer(model).param_groups[0]["eps"] == 1e-9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": "kannada", "wiring": "gpt2"}, "wiring is 'gpt2'; choose one of 'paper', 'fast'"),
        ({"data": "gifts", "vocabulary": 500}, "vocabulary = 500 .* the words of its grammar"),
        ({"data": "kannada", "model": {"shared": True}}, "model holds shared, which follows"),
        ({"data": "kannada", "grammar": {"people": []}}, "grammar holds 'people', which Kannada"),
        ({"data": "a.tsv", "label_smoothing": 1.0}, "label_smoothing is 1.0; it is a share"),
        ({"data": "a.tsv", "schedule": "inverse_square_root"}, "warmup is 0"),
    ],
)
def test_recipes_that_make_no_sense(changes, message):
    with pytest.raises(ValueError, match=message):
        Recipe.of(**changes)


def test_bundles_with_fewer_pairs_than_parts_are_refused_before_the_first_step(tmp_path, capsys):
    lines = [f"{i}\t{i}" for i in range(30)] + [f"{'1 ' * 30}\t1", "2\t2"]
    (tmp_path / "long.tsv").write_text("\n".join(lines))
    data = ["--data", str(tmp_path / "long.tsv"), "--vocabulary", "270", "--batch-tokens", "100"]
    options = ["train", "--preset", "multi30k", *OPTIONS, *data, "--warmup", "1"]
    assert main([*options, "--folder", str(tmp_path / "run"), "--accumulation", "4"]) == 1
    error = capsys.readouterr().err
    assert "makes a batch of 1 pairs, for processes × accumulation = 4 parts" in error
    assert main([*options, "--folder", str(tmp_path / "run")]) == 0
