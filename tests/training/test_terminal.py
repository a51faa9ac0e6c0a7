"""The command line's output: nothing that a terminal obeys, written piece by piece."""

import errno
import io
import os
import shutil
import signal
import sys

import pytest
import torch
from programs import ended

from transformer_lib.data.gifts import Grammar
from transformer_lib.sampling import generate
from transformer_lib.tokenizers import CharacterTokenizer, WordTokenizer
from transformer_lib.training import cli, tasks
from transformer_lib.training.checkpoints import find_checkpoints
from transformer_lib.training.cli import main
from transformer_lib.training.recipes import PRESETS, Recipe
from transformer_lib.training.reports import printable, say, tell
from transformer_lib.training.run import Run
from transformer_lib.training.run_log import load_run

pytestmark = pytest.mark.slow

TINY = [
    "--n-steps=3", "--evaluate-every=3", "--batch-size=8", "--n-layers=1", "--n-heads=2",
    "--d-model=16", "--n-stories=80", "--n-validation=10", "--precision=float32",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", "--folder", str(folder), *TINY]) == 0
    return folder


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;pwned\x07\x1b[2J", r"\x1b]0;pwned\x07\x1b[2J"),
        ("line\r\x08\x9b1A", r"line\r\x08\x9b1A"),
        ("right \u202e to left", r"right \u202e to left"),
        ("\udce9\u2028", r"\udce9\u2028"),
        ("ಗುಲಾಬಿ\u200d ×\u00a0é 🌹\n\t", "ಗುಲಾಬಿ\u200d ×\u00a0é 🌹\n\t"),
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(text, shown):
    assert printable(text) == shown


def test_commands_reach_no_terminal(capsys):
    say("\x1b]0;pwned\x07\x1b[2J roses")
    tell("\x1b]0;pwned\x07")
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert r"\x1b[2J roses" in out


def test_a_folder_s_name_and_an_error_are_spelled_out(tmp_path, capsys):
    assert main(["resume", str(tmp_path / "a\x1b[2Jb")]) == 1
    assert r"a\x1b[2Jb" in capsys.readouterr().err


def test_what_the_encoding_does_not_have_is_spelled_out(monkeypatch):
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    say("ಗು")
    assert narrow.buffer.getvalue() == b"\\u0c97\\u0cc1\n"


def test_a_text_is_shown_while_it_is_written_and_stays_when_it_is_interrupted(
    trained, capsys, monkeypatch
):
    written = []

    def tokens(model, ids, n_tokens, **options):
        while True:
            if len(written) == 3:
                raise KeyboardInterrupt
            written.append(susan)
            yield torch.tensor([susan])
            assert capsys.readouterr().out.endswith(" susan")

    susan = WordTokenizer(Grammar().vocabulary).encode("susan")[0]
    monkeypatch.setattr(tasks, "stream", tokens)
    options = ["--tokens", str(10**30), "--prompt", "<story> mary"]
    assert main(["sample", str(trained), *options]) == 130
    assert capsys.readouterr().err == "\ninterrupted\n"


@pytest.mark.parametrize("n_tokens", [1, 15, 200])
@pytest.mark.parametrize(
    "tokenizer", [CharacterTokenizer("mary gave"), WordTokenizer(["mary", "gave", "roses"])]
)
def test_a_text_written_token_by_token_is_that_of_one_call(n_tokens, tokenizer):
    recipe = Recipe.of(n_layers=1, n_heads=2, d_model=16, block=24, data="mine.txt")
    model, options = tasks.model_of(recipe, tokenizer), {"temperature": 0}
    prompt = tokenizer.encode("mary gave")
    pieces = list(tasks.continuation(model, tokenizer, "mary gave", n_tokens, **options))
    assert pieces[0] == "mary gave"
    assert len(pieces) == 1 + n_tokens
    ids = tokenizer.encode("".join(pieces))
    assert len(ids) == len(prompt) + n_tokens
    first = min(n_tokens, 24 - len(prompt))  # then the context is full
    whole = generate(model, torch.tensor([prompt]), first, **options)[0].tolist()
    assert ids[: len(whole)] == whole
    if n_tokens == 200:  # and the model goes on from the second half of it
        again = generate(model, torch.tensor([whole[-12:]]), 12, **options)[0].tolist()
        assert ids[24:36] == again[12:]


class Full(io.StringIO):
    """A file on a disk without room."""

    def flush(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_terminal_that_fails_does_not_end_a_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Full())
    assert main(["train", f"--folder={tmp_path / 'run'}", "--device=cpu", *TINY]) == 0
    assert load_run(tmp_path / "run" / "run.json").curve["step"] == [3]


def test_a_run_needs_no_stderr(tmp_path, monkeypatch):
    """Python has none where it was started with ``2>&-``."""
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["train", f"--folder={tmp_path / 'run'}", *TINY]) == 0
    assert load_run(tmp_path / "run" / "run.json").curve["step"] == [3]


def test_a_result_that_cannot_be_written_is_an_error(trained, monkeypatch, capsys):
    command = ["sample", str(trained), "--tokens", "40", "--device=cpu"]
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(command) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "No space left on device" in said
    reading, writing = os.pipe()
    os.close(reading)
    done = ended(sys.executable, "-m", "transformer_lib.training", *command, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_progress_bar_whose_terminal_closes_is_given_up(trained, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        written = 0

        def isatty(self):
            return True

        def write(self, text):
            self.written += 1
            if self.written > 3:
                raise OSError(5, "Input/output error")
            return len(text)

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["train", "--folder", str(tmp_path / "run"), *TINY]) == 0
    assert terminal.written > 3


# --- Messages that name what there is on the command line ----------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", '{"bogus": 1}'], "GPTConfig does not have. There are: context, n_layers,"),
        (["--grammar", '{"bogus": 1}'], "Grammar does not have. There are: people, gifts,"),
        (["--model", '{"n_layers": 5}'], "(--n-layers) and leave it out of model"),
        (["--model", '{"vocabulary": 100000}'], "vocabulary, which follows from the data"),
        (["--model", "[" * 100_000], "--model cannot be read: it is nested too deeply"),
        (["--model", '{"smear": 1, "smear": 2}'], "it names 'smear' twice"),
        (["--model", "{'smear': 1}"], """Write it as JSON, such as '{"smear": 3}'"""),
        (["--model", "smear"], """names with values, such as {"smear": 3}"""),
        (["--model", '{"smear": 85}'], "choose a smear below that"),
        (["--d-model", "10000000001"], "d_model is 10,000,000,001; choose at most"),
        (["--n-iterations", "1000000000"], "n_iterations is 1,000,000,000; choose at most 100"),
        (["--data", ""], "data is an empty text"),
        (["--data", r"\\host\share"], "a file on another machine"),
        (["--grammar", '{"n_sentences": 90}', "--block", "1000", "--n-stories", "1000000"],
         "words; choose at most 67,108,864"),
    ],
)  # fmt: skip
def test_wishes_that_cannot_be_meant(tmp_path, options, message, capsys, as_a_reader):
    assert main(["train", "--folder", str(tmp_path / "run"), *TINY, *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error) < 600
    assert not (tmp_path / "run").exists()


def test_folders_that_would_be_taken_for_something_else(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--folder", "", *TINY]) == 1
    assert "the folder's name is an empty text" in capsys.readouterr().err
    assert main(["train", "--folder", "step-00000100", *TINY]) == 1
    assert "has the name of a checkpoint" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_numbers_may_be_written_as_python_writes_them():
    for text, value in [(".5", 0.5), ("1_000", 1000), ("1e-3", 0.001), ("True", True)]:
        assert cli._value("lr", text) == value


def test_only_what_differs_is_told(trained, tmp_path, capsys):
    command = ["train", "--continue", "--folder", str(trained), *TINY]
    assert main([*command, "--lr", "0.5", "--model", '{"smear": 2}']) == 1
    error = capsys.readouterr().err
    assert "lr is 0.006 there and 0.5 here; model.smear is 3 there and 2 here" in error
    assert len(error) < 500


def test_changed_data_is_called_that_and_not_shown(tmp_path, capsys):
    text, folder = tmp_path / "mine.txt", str(tmp_path / "run")
    text.write_text("to be or not to be " * 40)
    tiny = [each for each in TINY if "stories" not in each and "validation" not in each]
    assert main(["train", "--folder", folder, *tiny, "--data", str(text), "--block", "16"]) == 0
    text.write_text("root:x:0:0 " * 80)
    for command in ("resume", "evaluate"):
        capsys.readouterr()
        assert main([command, folder]) == 1
        error = capsys.readouterr().err
        assert "its text has changed. Restore it" in error
        assert len(error) < 500
        assert "x" not in error.replace("text", "").split("Restore")[1]


def test_the_checkpoint_before_is_offered_as_a_command(trained, tmp_path, capsys):
    folder = shutil.copytree(trained, tmp_path / "a run")
    newest = find_checkpoints(folder)[-1]
    (newest / "state.json").write_bytes(b"")
    assert main(["sample", str(folder)]) == 1
    before = find_checkpoints(folder)[0]
    assert f"is intact: {cli.PROGRAM} sample '{before}'" in capsys.readouterr().err
    assert main(["resume", str(before)]) == 0


def test_an_exported_model_is_sampled_and_evaluated_and_not_resumed(trained, tmp_path, capsys):
    exported = str(tmp_path / "exported")
    assert main(["export", str(trained), exported]) == 0
    assert main(["evaluate", str(trained)]) == 0
    assert main(["evaluate", exported]) == 0
    _, first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert main(["sample", exported, "--tokens", "3"]) == 0
    assert main(["resume", exported]) == 1
    assert "is an exported model" in capsys.readouterr().err


def test_an_unfinished_run_or_the_log_of_another_is_not_exported(trained, tmp_path, capsys):
    """The folder of one run with the log of another, and a checkpoint before the end."""
    folder = shutil.copytree(trained, tmp_path / "run")
    for path in find_checkpoints(folder):
        shutil.rmtree(path)
    other = tmp_path / "other"
    assert main(["train", "--folder", str(other), *TINY, "--seed", "1"]) == 0
    for path in find_checkpoints(other):
        shutil.copytree(path, folder / path.name)
    capsys.readouterr()
    assert main(["export", str(folder), str(tmp_path / "out")]) == 1
    assert "no run log in" in capsys.readouterr().err
    assert main(["resume", str(folder)]) == 0  # it writes its own
    assert main(["export", str(folder), str(tmp_path / "out")]) == 0
    recipe = PRESETS["gifts"].with_changes(**cli.changes_of(cli.parser().parse_args(
        ["train", "--folder=x", *TINY, "--n-steps=10", "--save-every=2"])))  # fmt: skip
    steps = Run(recipe).steps(tmp_path / "short")
    next(steps), next(steps)
    capsys.readouterr()
    assert main(["export", str(tmp_path / "short"), str(tmp_path / "out-2")]) == 1
    assert "has not finished: it was saved at step 2 of 10. Resume" in capsys.readouterr().err
