"""TrainingView, the Python side: columns, steps as they come, and that a page gets all of them."""

import base64
import json
import math

import nbformat
import pytest
import torch
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from programs import PATIENCE

from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import Windows
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import adamw
from transformer_lib.widgets import TrainingView
from transformer_lib.widgets.training_view import widget as training_view

CURVE = {"step": [1, 2, 4], "training_loss": [2.0, 1.5, float("nan")], "rate": [0.1, 0.1, 0.05]}


def sent(view):
    """The columns, by name, as the page has been told."""
    told = json.loads(view._curve)
    return dict(zip(told["names"], told["columns"], strict=True))


def test_a_recorded_run():
    view = TrainingView(CURVE, baselines={"unigram": 1.75}, floor=torch.tensor(0.5), n_steps=9)
    assert repr(view) == "TrainingView(steps=3)"
    assert sent(view) == {**CURVE, "training_loss": [2.0, 1.5, None]}
    assert json.loads(view._curve)["loss"] == "training_loss"
    told = json.loads(view._text)
    assert told == {"baselines": [["unigram", 1.75]], "floor": 0.5, "n_steps": 9, "texts": []}
    assert view.curve["rate"] == CURVE["rate"]
    assert view.smoothing == 1
    assert TrainingView(n_steps=500).smoothing == 10


def test_what_the_model_writes_is_kept_by_its_step():
    view = TrainingView(CURVE, texts={4: "the king", 0: "xq"})
    view.wrote(2, "</script>\n" + "h" * 3000)
    view.wrote(4, "the queen")
    texts = json.loads(view._text)["texts"]
    assert [step for step, _ in texts] == [0, 2, 4]
    assert texts[0][1] == "xq"
    assert texts[1][1] == ("</script>\n" + "h" * 3000)[:2000]
    assert texts[2][1] == "the queen"


@pytest.mark.usefixtures("as_a_reader")
def test_a_text_of_a_step_that_is_no_number_leaves_the_others():
    view = TrainingView(CURVE)
    with pytest.raises(ValueError, match="step is nan"):
        view.wrote(math.nan, "x")
    view.wrote(5, "as before")


def test_numbers_keep_seven_digits():
    view = TrainingView({"step": [1], "loss": [math.pi]})
    assert sent(view)["loss"][0] == pytest.approx(math.pi, rel=1e-6)


def test_steps_as_they_come(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(training_view.time, "monotonic", lambda: clock[0])
    view = TrainingView(baselines={"unigram": 1.75}, floor=0.5)
    messages = []
    view.observe(messages.append, "_curve")
    for step in range(1, 101):
        view.append(step, torch.tensor(1.0 / step), rate=0.1)
        clock[0] += 0.01  # a fast loop: a second in all
    assert len(messages) == pytest.approx(4, abs=1), "as often as a few times a second"
    assert len(sent(view)["step"]) < 100
    view.flush()
    assert sent(view)["step"] == list(range(1, 101))
    view.flush()
    assert len(messages) <= 6, "nothing new, but a message"


def test_a_loss_measured_after_the_step_fills_its_row():
    view = TrainingView()
    view.append(1, 2.0)
    view.append(2, 1.5, gradient_norm=3)
    view.append(2, validation_loss=1.75)
    view.append(5, validation_loss=1.25)
    nan = pytest.approx(math.nan, nan_ok=True)
    assert view.curve == {
        "step": [1, 2, 5],
        "loss": [2.0, 1.5, nan],
        "gradient_norm": [nan, 3.0, nan],
        "validation_loss": [nan, 1.75, 1.25],
    }


def test_whoever_asks_for_the_state_gets_all_steps(monkeypatch):
    monkeypatch.setattr(training_view.time, "monotonic", lambda: 5.0)  # never time to send
    view = TrainingView()
    for step in (1, 2, 3):
        view.append(step, 1.0)
    assert sent(view)["step"] == [1]
    assert json.loads(view.get_state()["_curve"])["columns"][0] == [1, 2, 3]


def test_follow_a_real_training():
    model = GPT(GPTConfig(vocabulary=7, context=8, n_layers=1, n_heads=2, d_model=12))
    batches = Batches(Windows(torch.arange(50) % 7, length=8), batch_size=4)
    trainer = Trainer(model, adamw(model, lr=0.01), batches, n_steps=5)
    view = TrainingView()
    losses = [step.loss for step in view.follow(trainer)]
    assert len(losses) == 5
    assert view.curve["loss"] == losses
    assert sent(view)["step"] == [1, 2, 3, 4, 5]
    assert set(view.curve) == {"step", "loss", "rate", "gradient_norm"}
    assert json.loads(view._text)["n_steps"] == 5


def test_a_loop_that_breaks_off_has_sent_its_steps():
    class Step:
        def __init__(self, step):
            self.step, self.loss = step, 1.0

    view = TrainingView()
    following = view.follow(map(Step, range(1, 50)))
    for step in following:
        if step.step == 20:
            break
    following.close()
    assert sent(view)["step"] == list(range(1, 21))


@pytest.mark.slow
def test_an_executed_notebook_holds_the_whole_curve(tmp_path):
    """With a bare loop: what the throttle has held back is sent when the cell is done."""
    code = (
        "from transformer_lib.widgets import TrainingView\nview = TrainingView(n_steps=200)\nview",
        "for step in range(1, 201): view.append(step, 3 / step)",
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
    sockets = {"transport": "ipc", "connection_file": str(tmp_path / "kernel.json")}
    kernel = AsyncKernelManager(kernel_name="python3", **sockets)
    NotebookClient(notebook, km=kernel, timeout=PATIENCE, startup_timeout=PATIENCE).execute()
    states = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    view = next(state for state in states.values() if "_curve" in str(state.get("buffers")))
    data = next(buffer["data"] for buffer in view["buffers"] if buffer["path"] == ["_curve"])
    names_and_columns = json.loads(base64.b64decode(data))
    assert names_and_columns["columns"][0] == list(range(1, 201))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"curve": {"step": [1]}}, ValueError, "columns step; it needs `step` and one with `loss`"),
        ({"curve": "gifts"}, TypeError, "curve is of type str, but must be a dict"),
        ({"curve": {}}, ValueError, "columns none"),
        ({"curve": {"step": [1, 2], "loss": [1.0]}}, ValueError, "equally long"),
        ({"curve": {"step": [2, 1], "loss": [1.0, 1.0]}}, ValueError, r"\[1\] is 1, after 2"),
        ({"curve": {"step": [1.5], "loss": [1.0]}}, ValueError, r"step'\]\[0\] is 1.5"),
        ({"curve": {"step": [1], "loss": ["a"]}}, TypeError, r"curve\['loss'\] is 'a'"),
        ({"baselines": {"unigram": math.nan}}, ValueError, "baseline 'unigram' is nan"),
        ({"baselines": {"unigram": None}}, TypeError, "baseline 'unigram' is None"),
        ({"baselines": [1]}, TypeError, "baselines is of type list, but must be a dict"),
        ({"floor": math.inf}, ValueError, "floor is inf"),
        ({"n_steps": 0}, ValueError, "n_steps is 0"),
        ({"smoothing": 0}, ValueError, "smoothing is 0"),
        ({"above_floor": True}, ValueError, "above_floor needs the floor"),
        ({"texts": {3: [1, 2]}}, TypeError, r"text of step 3 is \[1, 2\], which is not text"),
        ({"texts": {1.5: "a"}}, ValueError, "step is 1.5, which is not a step"),
        ({"texts": {"first": "a"}}, TypeError, "step is 'first', which is not a number"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_bad_input_gets_a_clear_error(options, error, message):
    with pytest.raises(error, match=message):
        TrainingView(**options)


@pytest.mark.usefixtures("as_a_reader")
def test_steps_that_make_no_sense_change_nothing():
    view = TrainingView(CURVE)
    with pytest.raises(ValueError, match="step 3 after step 4: steps do not go back"):
        view.append(3, 1.0)
    with pytest.raises(ValueError, match="step is nan"):
        view.append(math.nan, 1.0)
    with pytest.raises(ValueError, match=r"step is 4\.5, which is not a step"):
        view.append(4.5, 1.0)
    with pytest.raises(TypeError, match="accuracy is 'high', which is not a number"):
        view.append(5, 1.0, accuracy="high")
    view.append(4, 2.0)
    with pytest.raises(ValueError, match=r"step 4 has a training_loss already, 2: a step that"):
        view.append(4, 3.0)
    assert view.curve["training_loss"] == [2.0, 1.5, 2.0]
    assert view.curve["step"] == [1, 2, 4]
    assert "accuracy" not in view.curve
