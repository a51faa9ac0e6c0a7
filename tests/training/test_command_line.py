"""The command line: nothing of the reader's is lost, and a mistake is told with its remedy."""

import json
import os
import shutil
from dataclasses import replace

import pytest
from models import small_gpt

from transformer_lib import storage
from transformer_lib.data.corpora import text_corpus
from transformer_lib.tokenizers import SPECIALS, PairTokenizer, WordTokenizer
from transformer_lib.training import checkpoints, cli, recipes
from transformer_lib.training.checkpoints import find_checkpoints, load_checkpoint, save_checkpoint
from transformer_lib.training.cli import main
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.run import Run
from transformer_lib.training.run_log import load_run
from transformer_lib.training.tasks import TASKS, corpus_of, translated

SMALL = {"n_steps": 3, "n_layers": 1, "n_heads": 2, "d_model": 16, "block": 8, "batch_size": 2}
TINY = [x for name, value in SMALL.items() for x in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("to be or not to be " * 20)


def train(folder, *options):
    return main(
        ["train", "--data", "a.txt", "--device", "cpu", *TINY, "--folder", folder, *options]
    )


def test_the_log_takes_another_name_where_its_own_is_somebody_else_s(tmp_path):
    (tmp_path / "config").mkdir()
    mine = tmp_path / "config" / "config.json"
    mine.write_text('{"my": "settings"}')
    assert train("config") == 0
    assert mine.read_text() == '{"my": "settings"}'
    assert load_run(tmp_path / "config" / "config-run.json").name == "config-run"
    assert main(["resume", "config"]) == 0
    assert sorted(p.name for p in mine.parent.glob("*.json")) == ["config-run.json", "config.json"]


def test_nothing_is_trained_or_exported_where_an_exported_model_is(tmp_path, capsys):
    assert train("run") == 0
    assert main(["export", "run", "out"]) == 0
    for command in (["train"], ["train", "--continue"]):
        assert main([*command, "--folder", "out", "--data", "a.txt", *TINY]) == 1
        assert "out is an exported model" in capsys.readouterr().err
    assert main(["export", "out", "again"]) == 1
    assert "out is an exported model" in capsys.readouterr().err
    assert not find_checkpoints("out")
    assert main(["export", "run", "a.txt/out"]) == 1
    assert "the model was not written there (Not a directory)" in capsys.readouterr().err


def test_a_report_is_not_written_onto_another_file(tmp_path, capsys):
    assert train("one", "--report", "file=b.jsonl") == train("two", "--report", "file=b.jsonl") == 0
    for file in (tmp_path / "a.txt", find_checkpoints("one")[-1] / "state.json"):
        before = file.read_text()
        assert train("run", "--report", f"file={file}") == 1
        assert "its line 1 is not one of a report's" in capsys.readouterr().err
        assert file.read_text() == before
    lines = (tmp_path / "b.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 1, 2, 3]
    if os.path.exists("/dev/full"):
        assert train("three", "--report", "file=/dev/full") == 1
        assert "the report cannot be written there (No space left" in capsys.readouterr().err
    for cut, kept in ((lines[0][:20], []), (lines[0][:4], []), (lines[0], [1])):
        (tmp_path / "c.jsonl").write_text(f"{lines[0]}\n{cut}")
        assert train(f"after {len(cut)}", "--report", "file=c.jsonl") == 0
        found = (tmp_path / "c.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in found] == [1, *kept, 1, 2, 3]


def test_a_run_whose_folder_was_deleted_holds_the_one_that_it_makes(tmp_path):
    folder = tmp_path / "run"
    steps = Run(Recipe.of(data="a.txt", save_every=1, **SMALL)).steps(folder)
    next(steps)
    shutil.rmtree(folder)
    next(steps)
    with pytest.raises(storage.InUseError), storage.locked(folder):
        pass
    assert [load_checkpoint(path).step for path in find_checkpoints(folder)] == [2]
    steps.close()


def test_a_checkpoint_that_a_run_deletes_while_it_is_read_gives_way_to_the_newest(
    tmp_path, monkeypatch
):
    about = {"configuration": {}, "vocabulary": "ab"}
    save_checkpoint(tmp_path / "run", 1, {"at": 1}, **about)
    read, wrote = storage.read_regular, []

    def and_save_meanwhile(path, most):
        if not wrote:
            wrote.append(path)
            for step in (2, 3, 4):
                save_checkpoint(tmp_path / "run", step, {"at": step}, **about)
        return read(path, most)

    monkeypatch.setattr(checkpoints.storage, "read_regular", and_save_meanwhile)
    assert load_checkpoint(tmp_path / "run").state["at"] == 4
    (tmp_path / "step-00000009").symlink_to(tmp_path / "nowhere")
    with pytest.raises(checkpoints.CheckpointError, match="is a symbolic link"):
        load_checkpoint(tmp_path / "step-00000009")


def test_an_ending_of_records_can_have_a_task_of_its_own(monkeypatch):
    monkeypatch.setitem(recipes.ENDINGS, ".jsonl", "dialogues")
    monkeypatch.setitem(TASKS, "dialogues", replace(TASKS["text"]))
    assert Recipe.of(data="talk.jsonl").data.task == "dialogues"
    with pytest.raises(ValueError, match=r"batch_tokens = 300 .* 'talk.jsonl'. Leave it out"):
        cli.recipe_from("cpu", {"data": "talk.jsonl", "batch_tokens": 300})
    for name in ("gifts", "kannada"):
        with pytest.raises(ValueError, match=r"vocabulary = 300 .* the words of its grammar"):
            cli.recipe_from(name, {"vocabulary": 300})


def test_a_preset_is_blamed_for_the_data_only_if_it_does_not_fit_them():
    with pytest.raises(ValueError, match=r"^warmup is 100, of 6 steps"):
        cli.recipe_from("multi30k", {"n_steps": 6})
    with pytest.raises(ValueError, match=r"^the preset 'multi30k' is not for .* --preset cpu, t4"):
        cli.recipe_from("multi30k", {"data": "mine.txt"})


def test_what_is_changed_in_a_preset_is_joined_to_it():
    gifts = cli.recipe_from("gifts-small", {"model": {"d_ff": 256}, "grammar": {"n_gifts": 3}})
    before = PRESETS["gifts-small"]
    assert gifts.model.options == {**before.model.options, "d_ff": 256}
    assert gifts.data.grammar == {**before.data.grammar, "n_gifts": 3}
    rows = cli.recipe_from("multi30k", {"batch_size": 7}).data
    assert (rows.batch_size, rows.batch_tokens) == (7, None)
    assert (
        cli.recipe_from("multi30k", {"batch_size": 7, "batch_tokens": 99}).data.batch_tokens == 99
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "multi30k"], "--preset cpu, t4, h200. ("),
        (["--data", "a.tsv"], "--preset kannada, multi30k. ("),
        (["--n-stories", "5"], "n_stories belongs to data of a grammar, and data is 'a.txt'"),
        (["--data", "gift"], "Data sets with a name: gifts, kannada"),
        (["--betas", "0.9,0.95"], "--betas '[0.9, 0.95]'"),
        (["--data", "a.ndjson"], "whose ending says records"),
    ],
)
def test_a_mistake_is_told_with_what_the_command_line_has(options, message, capsys, as_a_reader):
    assert train("run", *options) == 1
    assert message in capsys.readouterr().err


def test_names_of_folders_are_what_a_shell_would_make_of_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    chosen = cli.parser().parse_args(["train", "--folder=-y", "--data=~/a", "--traceback"])
    assert (chosen.folder, chosen.traceback) == ("./-y", True)
    assert cli.changes_of(chosen) == {"data": f"{tmp_path}/home/a"}
    assert cli.parser().parse_args(["sample", "~/a"]).folder == f"{tmp_path}/home/a"
    for command in (["sample", ""], ["resume", ""], ["export", "a", ""]):
        assert main(command) == 1
        assert "name is an empty text" in capsys.readouterr().err


def test_a_run_that_goes_on_from_another_folder_says_where_its_data_are(
    tmp_path, capsys, monkeypatch
):
    assert train("run") == 0
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert main(["resume", "../run"]) == 1
    assert "from the folder in which it was started" in capsys.readouterr().err


def test_pairs_that_do_not_fit_are_named_by_their_text(tmp_path):
    """Every tenth pair measures, so a number would count another way than the lines do."""
    lines = [f"a{i} {'word ' * 90 * (i == 15)}\tb\n" for i in range(30)]
    (tmp_path / "a.tsv").write_text("".join(lines))
    for sizes, fix in [({"block": 64}, "block=183"), ({"block": 999, "batch_tokens": 32}, "s=183")]:
        with pytest.raises(ValueError, match=rf"a pair \('a15 word .* Choose .*{fix}"):
            corpus_of(Recipe.of(data="a.tsv", vocabulary=262, **sizes))


def test_there_is_something_to_translate(as_a_reader):
    tokenizer = PairTokenizer(WordTokenizer([*SPECIALS, "mary"]))
    for texts, kind, message in [
        (["mary", ""], ValueError, "text 2 of 2 is empty"),
        ([" "], ValueError, "text 1 of 1 is empty"),
        ("mary", TypeError, "texts are one text, 'mary'"),
    ]:
        with pytest.raises(kind, match=message):
            translated(small_gpt(), tokenizer, texts)


def test_a_run_with_a_tokenizer_of_one_s_own_is_refused(as_a_reader):
    class Mine:
        size, vocabulary, hash = 10, tuple("abcdefghij"), "h"

    corpus = text_corpus("to be or not to be " * 20, 8)
    object.__setattr__(corpus, "tokenizer", Mine())
    with pytest.raises(TypeError, match="the tokenizer is of type Mine"):
        Run(Recipe.of(**SMALL), corpus)
