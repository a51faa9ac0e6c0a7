"""A GPU's rules without a GPU: every wiring in every precision on a fake CUDA device, and what
training does differently there. (Gradients are computed on ``meta``: fake CUDA has no backward.)
"""

import os
import subprocess
import sys
from unittest.mock import patch

import pytest
import torch
from models import CONTEXT, PAIRS, VOCABULARY, WIRINGS, small_gpt, stories
from no_gpu import fake_cuda
from small_runs import RECIPE

from transformer_lib.beam import beam_search
from transformer_lib.data.batches import Batches
from transformer_lib.data.packing import Windows
from transformer_lib.encoder_decoder import END, EncoderDecoder
from transformer_lib.gpt import GPT
from transformer_lib.layers import relu_squared
from transformer_lib.sampling import generate
from transformer_lib.training import device
from transformer_lib.training.device import (
    best_device,
    choose_device,
    choose_precision,
    chosen_kernels,
    has_kernels,
    in_precision,
    precision_here,
)
from transformer_lib.training.distributed import Processes, processes
from transformer_lib.training.evaluation import answer_accuracy, mean_loss
from transformer_lib.training.loop import Trainer
from transformer_lib.training.optimizers import Muon, adamw
from transformer_lib.training.run import Run
from transformer_lib.training.trained import load_shipped

pytestmark = pytest.mark.slow

CUDA = torch.device("cuda", 0)


def on_gpu(config):
    with torch.device("cuda"):
        return GPT(config)


def windows():
    return Windows(torch.arange(60) % VOCABULARY, length=CONTEXT)


def trainer_of(model, *, optimizer=None, **options):
    optimizer = Muon(model, outside=()) if optimizer is None else optimizer
    return Trainer(model, optimizer, Batches(windows(), 6), **{"n_steps": 5} | options)


def in_precisions(wirings):
    """Each under autocast, which treats bfloat16 and float16 alike; one in all precisions."""
    first = next(iter(wirings))
    return [*((name, "float16") for name in wirings), (first, "float32"), (first, "bfloat16")]


def filled(model):
    """In place of the backward pass: a gradient of ones for every parameter."""

    def backward(loss):
        assert loss.device == CUDA
        assert loss.dtype == torch.float32
        for p in model.parameters():
            p.grad = torch.ones_like(p)

    return patch("torch.Tensor.backward", backward)


@pytest.mark.parametrize(("wiring", "precision"), in_precisions(WIRINGS))
def test_every_wiring_trains_and_writes_on_a_gpu(wiring, precision):
    with fake_cuda():
        model = on_gpu(WIRINGS[wiring])
        with filled(model):
            step = trainer_of(model, precision=precision, clip=1.0).take_step()
        assert step.step == 1
        assert {p.device for p in model.parameters()} == {CUDA}
        assert {p.dtype for p in model.parameters()} == {torch.float32}
        ids = torch.ones(2, 3, dtype=torch.int64, device="cuda")
        with in_precision(CUDA, precision):
            logits = model(ids)
            text = generate(model, ids, 2, top_k=5, top_p=0.9)
        assert (logits.device, logits.dtype) == (CUDA, getattr(torch, precision))
        assert (text.device, text.shape) == (CUDA, (2, 5))


class Same:
    """Pairs that are all alike. (Numbers of fake tensors cannot be looked at.)"""

    def __len__(self):
        return 6

    def rows(self, indices):
        return tuple(torch.ones(len(indices), n, dtype=torch.int64) for n in (4, 3, 3))


@pytest.mark.parametrize(("wiring", "precision"), in_precisions(PAIRS))
def test_every_translator_trains_and_writes_on_a_gpu(wiring, precision):
    with fake_cuda():
        with torch.device("cuda"):
            model = EncoderDecoder(PAIRS[wiring])
        with filled(model):
            options = {"n_steps": 2, "precision": precision}
            trainer = Trainer(model, Muon(model), Batches(Same(), 3), **options)
            assert trainer.take_step().step == 1
        source = torch.ones(2, 3, dtype=torch.int64, device="cuda")
        with in_precision(CUDA, precision):
            assert model(source, source).dtype == getattr(torch, precision)
            options = {"width": 3, "length_penalty": 0.6, "end": END}
            texts, _ = beam_search(model.given(source), source[:, :1], 4, **options)
            assert (texts.device, texts.shape[:2]) == (CUDA, (2, 3))


@pytest.mark.parametrize("wiring", PAIRS)
def test_every_translator_has_its_gradients(wiring):
    with torch.device("meta"):
        model = EncoderDecoder(PAIRS[wiring])
        ids = torch.ones(2, 5, dtype=torch.int64)
    model(ids, ids).sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert (p.grad.shape, p.grad.dtype) == (p.shape, p.dtype)


@pytest.mark.parametrize("wiring", WIRINGS)
def test_every_wiring_has_its_gradients(wiring):
    with torch.device("meta"):
        model = GPT(WIRINGS[wiring])
        ids = torch.ones(2, CONTEXT, dtype=torch.int64)
    model(ids).sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert (p.grad.shape, p.grad.dtype) == (p.shape, p.dtype)


@pytest.mark.parametrize("make", [lambda m: Muon(m), lambda m: adamw(m, 0.1)])
def test_a_step_waits_once_and_copies_ahead(make):
    with fake_cuda() as watched:
        model = on_gpu(WIRINGS["gpt2"])
        options = {"precision": "float32", "n_steps": 2, "accumulation": 3, "clip": 1.0}
        trainer = trainer_of(model, optimizer=make(model), **options)
        with filled(model):
            watched.reads, watched.waited = 0, []
            trainer.take_step()
            assert watched.reads == 3  # one copy, of the loss, the norm, and whether to stop
            assert watched.pinned == 2 * (3 * 2)  # this step's batch and the next one's
            assert watched.waited == 12 * [False]
            assert watched.scattered == 0
            assert trainer.batches.state_dict()["drawn"] == 2
            assert trainer.feed.state_dict()["drawn"] == 1
            trainer.take_step()
        assert watched.reads == 6
        assert watched.pinned == 12  # after the last step there is no next batch
        assert trainer.feed.state_dict()["drawn"] == 2


@pytest.mark.parametrize("make", [lambda m: Muon(m), lambda m: adamw(m, 0.1)])
def test_in_float16_a_step_waits_once_more(make):
    with fake_cuda() as watched:
        model = on_gpu(WIRINGS["gpt2"])
        trainer = trainer_of(model, optimizer=make(model), precision="float16", n_steps=2)
        with filled(model):
            watched.reads = 0
            trainer.take_step()
    assert watched.reads == 3 + 1  # and whether a gradient is infinite


@pytest.mark.usefixtures("as_a_reader")
def test_the_tests_do_not_take_the_gpu_that_is_there():
    with fake_cuda(), patch("torch.cuda.is_available", lambda: True):
        assert device.best_device() == torch.device("cpu")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ""


def test_evaluation_on_a_gpu():
    with fake_cuda() as watched:
        model, rows = on_gpu(WIRINGS["gpt2"]), windows()
        marked = torch.ones(len(rows), CONTEXT, dtype=torch.bool)
        watched.reads = 0
        mean_loss(model, rows, batch_size=7, precision="float16")
        answer_accuracy(model, rows, marked, batch_size=7)
        assert watched.reads == 0  # it is added up on the CPU, all batches at once


def test_a_run_is_saved_where_its_next_batch_has_not_been_used():
    """On a CPU, told to draw early, as on CUDA."""

    def trainer(seed):
        torch.manual_seed(seed)
        model = small_gpt()
        trainer = Trainer(model, adamw(model, 0.01), Batches(stories(), 7), n_steps=6)
        trainer.feed.early = True
        return trainer

    whole, begun, resumed = trainer(1), trainer(1), trainer(2)
    losses = [step.loss for step in whole]
    first = [begun.take_step().loss for _ in range(4)]
    assert begun.batches.state_dict()["drawn"] == 5
    state = begun.state_dict()
    assert state["batches"]["drawn"] == 4
    resumed.take_step()  # it has drawn a batch of its own, which it must forget
    resumed.load_state_dict(state)
    assert first + [step.loss for step in resumed] == losses


def test_precision_is_that_of_the_device_that_is_asked_about():
    current = [0]

    class Device:
        def __init__(self, device):
            self.index = device.index

        def __enter__(self):
            current.append(self.index)

        def __exit__(self, *error):
            current.pop()

    def supported(including_emulation=True):
        return including_emulation or current[-1] == 1

    with patch("torch.cuda.device", Device), patch("torch.cuda.is_bf16_supported", supported):
        assert choose_precision("cuda:1") == "bfloat16"
        assert choose_precision(torch.device("cuda", 0)) == "float16"
        assert current == [0]


def test_a_precision_that_the_device_lacks_is_refused(as_a_reader):
    with fake_cuda(bfloat16=False):
        model = on_gpu(WIRINGS["gpt2"])
        assert trainer_of(model).precision == "float16"
        with pytest.raises(ValueError, match=r"which a fake GPU has no units for.*'float16'"):
            trainer_of(model, precision="bfloat16")
        with pytest.raises(ValueError, match=r"'tf32', which a fake GPU has no units for"):
            trainer_of(model, precision="tf32")
        for asked in ("bfloat16", "tf32"):
            assert precision_here(asked, CUDA) == "float16"
        assert precision_here("float32", CUDA) == "float32"
    with pytest.raises(ValueError, match="'tf32', a format of NVIDIA's GPUs, and the model is on"):
        trainer_of(GPT(WIRINGS["gpt2"]), precision="tf32")
    with torch.device("meta"):
        model = GPT(WIRINGS["gpt2"])
    with pytest.raises(ValueError, match="PyTorch has no autocast for meta"):
        trainer_of(model, precision="float16")


def settings():
    return (
        torch.backends.cuda.matmul.fp32_precision,
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.mkldnn.matmul.fp32_precision,  # set_float32_matmul_precision sets it, too
    )


def test_the_workspace_is_chosen_before_anything_is_multiplied():
    """PyTorch looks once, at the first product on a GPU, and no fake GPU would show it."""
    words = """
import importlib, os
from transformer_lib.training import device
print(os.environ["CUBLAS_WORKSPACE_CONFIG"])
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"  # a user's choice stays
importlib.reload(device)
print(os.environ["CUBLAS_WORKSPACE_CONFIG"])
"""
    environment = {k: v for k, v in os.environ.items() if k != "CUBLAS_WORKSPACE_CONFIG"}
    command = [sys.executable, "-c", words]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert said.stdout.split() == [":4096:8", ":16:8"]


def test_a_workspace_that_came_too_late_is_told(as_a_reader):
    theirs = (
        "Deterministic behavior was enabled with either `torch.use_deterministic_algorithms(True)` "
        "..., but this operation is not deterministic because it uses CuBLAS and you have CUDA >= "
        "10.2. To enable deterministic behavior in this case, you must set an environment variable "
        "before running your PyTorch application: CUBLAS_WORKSPACE_CONFIG=:4096:8"
    )
    with (
        pytest.raises(ValueError, match="Set it before Python starts: CUBLAS_WORKSPACE_CONFIG=:40"),
        chosen_kernels(CUDA, deterministic=True),
    ):
        raise RuntimeError(theirs)


def test_kernels_are_chosen_within_and_put_back():
    before = settings()
    with chosen_kernels(CUDA):
        assert settings() == ("ieee", "highest", *before[2:4], "ieee")
    assert settings() == before
    with chosen_kernels(CUDA, tf32=True, deterministic=True):
        assert settings() == ("tf32", "high", True, False, "tf32")
    assert settings() == before
    with pytest.raises(RuntimeError, match="shapes"), chosen_kernels(CUDA, tf32=True):
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert settings() == before
    try:
        for chosen in ("high", "medium"):  # whatever the program chose
            torch.set_float32_matmul_precision(chosen)
            theirs = settings()
            with chosen_kernels(CUDA):
                assert settings()[:2] == ("ieee", "highest")
            assert settings() == theirs
            assert theirs[:2] == ("tf32", chosen)
        torch.backends.cuda.matmul.fp32_precision = "ieee"  # by backend: it has no name now
        with chosen_kernels(CUDA, tf32=True):
            assert settings()[:2] == ("tf32", "high")
        assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    finally:
        torch.set_float32_matmul_precision(before[1])
        torch.backends.cuda.matmul.fp32_precision = before[0]
        torch.backends.mkldnn.matmul.fp32_precision = before[-1]
    with chosen_kernels(torch.device("cpu"), deterministic=True):
        assert settings() == before


def test_a_trainer_chooses_its_kernels_for_the_whole_step():
    with fake_cuda():
        model, found = on_gpu(WIRINGS["fast"]), []
        trainer = trainer_of(model, precision="tf32", deterministic=True)
        note = lambda *arguments: found.append(settings())  # noqa: E731
        model.register_forward_hook(note)
        trainer.optimizer.register_step_post_hook(note)
        before = settings()
        with filled(model):
            trainer.take_step()
        assert found == 2 * [("tf32", "high", True, False, "tf32")]
        assert settings() == before


def test_a_recipe_can_ask_for_it():
    for asked in (True, False):
        run = Run(RECIPE.with_changes(deterministic=asked), device=torch.device("cpu"))
        assert run.trainer.deterministic == asked


@pytest.fixture
def machine(monkeypatch):
    """machine("cuda", "mps"): a machine with these, its GPU a T4 or of another capability."""

    def pretend(*there, capability=(7, 5), n_gpus=1):
        monkeypatch.setattr("torch.cuda.get_device_capability", lambda device=None: capability)
        monkeypatch.setattr("torch.cuda.get_arch_list", lambda: ["sm_75", "sm_80", "sm_90a"])
        monkeypatch.setattr("torch.cuda.get_device_name", lambda device=None: "a GPU")
        for name, backend in [
            ("cuda", torch.cuda), ("mps", torch.backends.mps), ("xpu", torch.xpu),
        ]:  # fmt: skip
            monkeypatch.setattr(backend, "is_available", lambda name=name: name in there)
            module = getattr(torch, name)
            count = n_gpus if name == "cuda" else 1
            count = count if name in there else 0
            monkeypatch.setattr(module, "device_count", lambda count=count: count)
        monkeypatch.setattr(device, "best_device", best_device)  # which tests/conftest.py replaces

    return pretend


@pytest.mark.parametrize("there", [("cuda", "mps"), ("mps", "xpu"), ("xpu",), ()])
def test_the_best_device(there, machine):
    machine(*there)
    assert choose_device().type == best_device().type == (*there, "cpu")[0]


def test_a_gpu_that_pytorch_has_no_kernels_for_is_passed_over(machine):
    """As Kaggle's P100 is: it is there, and the first kernel would end the program."""
    machine("cuda", capability=(6, 0))
    with pytest.warns(UserWarning, match="a GPU is left out: .* built for sm_75, sm_80, sm_90a"):
        assert best_device().type == "cpu"


@pytest.mark.parametrize(
    ("capability", "built_for", "runs"),
    [
        ((7, 5), ["sm_75", "sm_80"], True),
        ((8, 9), ["sm_75", "sm_80"], True),  # of one generation, older code runs
        ((8, 0), ["sm_86", "sm_90"], False),
        ((9, 0), ["sm_80"], False),
        ((9, 0), ["sm_80", "compute_80"], True),
        ((7, 0), ["sm_75", "compute_90"], False),
        ((10, 3), ["sm_100a"], True),
        ((9, 4), ["gfx90a", "gfx942"], True),  # AMD's
        ((8, 0), [], True),
    ],
)
def test_which_gpus_a_build_serves(capability, built_for, runs):
    assert has_kernels(capability, built_for) == runs


def test_a_device_is_chosen_by_its_name(machine, as_a_reader):
    machine("cuda", n_gpus=2)
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("cuda:1") == choose_device(torch.device("cuda", 1))
    for name, message in {
        "cuda:2": "device is 'cuda:2', and PyTorch finds 2 of this kind here. .* 'cuda', the best",
        "mps": "device is 'mps', and PyTorch finds 0 of this kind here",
        "gpu": "device is 'gpu'; choose one of cpu, cuda, mps, xpu, or such as cuda:1",
        "meta": "device is 'meta'; choose one of",
        "cuda:": "device is 'cuda:'; choose one of",
    }.items():
        with pytest.raises(ValueError, match=message):
            choose_device(name)


def test_relu_squared_stays_in_16_bits_on_a_gpu():
    """CUDA's autocast computes ``pow``, which ``square`` is, in float32, and would keep that."""
    with fake_cuda(), in_precision(CUDA, "bfloat16"):
        x = torch.ones(2, 3, device="cuda", dtype=torch.bfloat16)
        assert x.square().dtype == torch.float32
        assert relu_squared(x).dtype == torch.bfloat16


def test_models_and_runs_are_on_the_cpu_unless_they_are_put_elsewhere(monkeypatch):
    """Whatever the best device is: the cells of a chapter make their ids on the CPU."""
    monkeypatch.setattr(device, "best_device", lambda: torch.device("meta"))
    assert choose_device().type == "meta"
    models = [load_shipped("gifts-v3").model, Run(RECIPE).trainer.model]
    assert {p.device.type for model in models for p in model.parameters()} == {"cpu"}
    on_meta = load_shipped("gifts-v3", device=torch.device("meta")).model
    assert {p.device.type for p in on_meta.parameters()} == {"meta"}


def test_gradients_of_several_processes_are_kept_once(as_a_reader):
    """DDP's own copy of them is the gradient itself: sixteen bytes a parameter, not twenty."""
    with patch("torch.nn.parallel.DistributedDataParallel") as joined:
        Processes(size=2).join(small_gpt())
    assert joined.call_args.kwargs == {"gradient_as_bucket_view": True}


def test_a_process_of_several_takes_its_own_gpu(machine, monkeypatch, as_a_reader):
    machine("cuda", n_gpus=2)
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setattr("torch.cuda.set_device", lambda chosen: None)
    begun = []

    def begin(**options):
        begun.append(options)
        raise InterruptedError  # this is far enough

    monkeypatch.setattr("torch.distributed.init_process_group", begin)
    with pytest.raises(InterruptedError), processes():
        pass
    assert (begun[0]["backend"], begun[0]["device_id"]) == ("nccl", torch.device("cuda", 1))
    with pytest.raises(InterruptedError), processes(device="cpu"):
        pass
    assert begun[1]["backend"] == "gloo"
    message = "device is 'cuda:1', and each process needs a GPU of its own"
    with pytest.raises(ValueError, match=message), processes(device="cuda:1"):
        pass
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="this is process 2 on a machine with 2 GPUs"), processes():
        pass
