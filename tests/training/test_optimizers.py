"""Optimizers against PyTorch's own and exact decompositions; nothing changes on bad gradients."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_lib.training import optimizers
from transformer_lib.training.optimizers import (
    Muon,
    NorMuon,
    adamw,
    orthogonalize,
    require_finite_gradients,
    set_rates,
)


class Tiny(nn.Module):
    """An embedding, matrices of several shapes, a norm, and a head: tied, or of its own."""

    def __init__(self, tied=False):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.first, self.twin = nn.Linear(6, 6), nn.Linear(6, 6)
        self.wide, self.tall = nn.Linear(6, 13), nn.Linear(13, 6, bias=False)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 11, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.twin(self.first(self.embedding(ids)).relu())
        return self.head(self.norm(x + self.tall(self.wide(x).relu())))


HIDDEN = ["first.weight", "twin.weight", "wide.weight", "tall.weight"]

MAKERS = {
    "adamw": lambda model: adamw(model, 1e-2),
    "muon": lambda model: Muon(model, adamw_lr=1e-2),
    "normuon": lambda model: NorMuon(model, adamw_lr=1e-2),
}


def backward(model, seed=0):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(11, (3, 5), generator=generator)
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(ids).flatten(end_dim=1), ids.flatten())
    loss.backward()
    return loss.item()


def names_by(optimizer, key):
    return {tuple(group["param_names"]): group[key] for group in optimizer.param_groups}


def test_matrices_decay_and_vectors_do_not():
    vectors = ("first.bias", "twin.bias", "wide.bias", "norm.weight", "norm.bias")
    assert names_by(adamw(Tiny(), 1e-3, weight_decay=0.3), "weight_decay") == {
        ("embedding.weight", *HIDDEN, "head.weight"): 0.3,
        vectors: 0.0,
    }
    assert names_by(Muon(Tiny(), weight_decay=0.2), "weight_decay") == {
        tuple(HIDDEN): 0.2,
        ("embedding.weight", "head.weight"): 0.2,
        vectors: 0.0,
    }


@pytest.mark.parametrize("outside", [(), ("head",)])
def test_a_tied_head_is_a_table_and_no_hidden_matrix(outside):
    optimizer = Muon(Tiny(tied=True), outside=outside)
    assert optimizer.param_groups[0]["param_names"] == HIDDEN
    assert optimizer.param_groups[1]["param_names"] == ["embedding.weight"]


def test_every_parameter_is_trained_once_but_the_frozen():
    model = Tiny()
    model.first.requires_grad_(False)
    trained = [p for p in model.parameters() if p.requires_grad]
    for optimizer in (adamw(model, 1e-3), Muon(model)):
        found = [p for group in optimizer.param_groups for p in group["params"]]
        assert sorted(map(id, found)) == sorted(map(id, trained))


@pytest.mark.parametrize("shape", [(7, 7), (5, 11), (11, 5), (2, 3, 5, 7), (3, 1)])
def test_singular_values_become_about_one(shape):
    matrices = torch.randn(shape, dtype=torch.float64)
    result = orthogonalize(matrices)
    values = torch.linalg.svdvals(result)
    assert 0.65 < values.min() <= values.max() < 1.25
    # The same directions: between the exact singular vectors the result is diagonal.
    u, _, vh = torch.linalg.svd(matrices, full_matrices=False)
    between = u.mT @ result @ vh.mT
    assert_close(between, torch.diag_embed(between.diagonal(dim1=-2, dim2=-1)))


def test_the_iteration_by_hand():
    """On a diagonal matrix it acts on each number alone: x -> ax + bx³ + cx⁵."""
    x = torch.tensor([3.0, 4.0], dtype=torch.float64) / 5
    for _ in range(3):
        x = 3.4445 * x - 4.7750 * x**3 + 2.0315 * x**5
    diagonal = torch.diag(torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert_close(orthogonalize(diagonal, 3), torch.diag(x))


def test_orthogonalize_in_16_bits_and_of_zeros():
    matrix = torch.randn(5, 7)
    half = orthogonalize(matrix, dtype=torch.bfloat16)
    assert half.dtype == torch.bfloat16
    assert_close(half.float(), orthogonalize(matrix), atol=0.06, rtol=0)
    assert orthogonalize(torch.zeros(2, 3)).eq(0).all()
    with pytest.raises(TypeError, match=r"dtype is torch\.int8"):
        orthogonalize(matrix, dtype=torch.int8)
    # The norm is taken before the numbers are rounded: 1e5 is beyond float16.
    assert orthogonalize(matrix * 1e5, dtype=torch.float16).isfinite().all()


@pytest.mark.parametrize(("size", "dtype"), [(1e38, torch.float32), (20_000, torch.float16)])
def test_orthogonalize_of_numbers_whose_squares_overflow(size, dtype):
    """A matrix of them, beside one that has none."""
    plain = torch.stack([torch.eye(40), torch.eye(40) / 8]).to(dtype)
    large = torch.stack([plain[0] * size, plain[1]])
    assert torch.equal(orthogonalize(large), orthogonalize(plain))
    assert (orthogonalize(plain)[0].diag() > 0.65).all()
    with pytest.raises(ValueError, match="n_iterations is -1"):
        orthogonalize(plain, -1)


def test_what_is_multiplied_lies_row_by_row():
    """Of a tall matrix its transpose is taken, which no product should have to copy each time."""
    lies = []

    class Watched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function is torch.ops.aten.bmm.default:
                lies.append(args[0].is_contiguous())
            return function(*args, **kwargs or {})

    tall = torch.randn(2, 11, 5)
    with Watched():
        orthogonalize(tall, 3)
    assert lies == 3 * [True]


def test_muon_is_pytorchs_muon(monkeypatch):
    """And AdamW within it is PyTorch's. (Its Muon is kept from rounding to bfloat16.)"""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)  # PyTorch 2.13
    monkeypatch.setattr(torch, "bfloat16", torch.float64)  # PyTorch 2.15
    mine, theirs = Tiny().double(), Tiny().double()
    theirs.load_state_dict(mine.state_dict())
    rates = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1}
    optimizer = Muon(mine, adamw_lr=1e-3, betas=(0.8, 0.9), **rates)
    named = dict(theirs.named_parameters())
    hidden = [named.pop(name) for name in HIDDEN]
    decay = [p for p in named.values() if p.ndim == 2]
    rest = [p for p in named.values() if p.ndim == 1]
    others = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    muon = torch.optim.Muon(hidden, ns_steps=5, **rates)
    adam = torch.optim.AdamW(others, lr=1e-3, betas=(0.8, 0.9))
    for step in range(7):
        backward(mine, seed=step)
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            b.grad = a.grad.clone()  # the same gradients, so that differences do not grow
        for each in (optimizer, muon, adam):
            each.step()
    assert_close(mine.state_dict(), theirs.state_dict(), rtol=1e-9, atol=1e-9)


def test_muon_against_arithmetic_in_double_precision():
    model = nn.Sequential(nn.Linear(3, 7, bias=False)).double()
    weight, momentum = model[0].weight.detach().clone(), torch.zeros(7, 3).double()
    rates = {"lr": 0.1, "momentum": 0.75, "weight_decay": 0.5}
    optimizer = Muon(model, n_iterations=4, outside=(), **rates)
    for _ in range(3):
        gradient = torch.randn(7, 3, dtype=torch.float64)
        model[0].weight.grad = gradient.clone()
        optimizer.step()
        assert model[0].weight.grad.equal(gradient)  # not written to
        momentum = 0.75 * momentum + 0.25 * gradient
        update = orthogonalize(0.25 * gradient + 0.75 * momentum, 4)
        weight = weight * (1 - 0.1 * 0.5) - 0.1 * (7 / 3) ** 0.5 * update
    assert_close(model[0].weight.detach(), weight)


def test_normuon_against_arithmetic_in_double_precision():
    model = nn.Sequential(nn.Linear(3, 7, bias=False), nn.Linear(7, 3, bias=False)).double()
    weights = [layer.weight.detach().clone() for layer in model]
    momenta, squares = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    optimizer = NorMuon(model, 0.1, momentum=0.75, row_beta=0.5, n_iterations=4, outside=())
    for step in (1, 2, 3):
        for i, layer in enumerate(model):
            gradient = layer.weight.grad = torch.randn_like(weights[i])
            momenta[i] = 0.75 * momenta[i] + 0.25 * gradient
            update = orthogonalize(0.25 * gradient + 0.75 * momenta[i], 4)
            squares[i] = 0.5 * squares[i] + 0.5 * update.square().mean(dim=1, keepdim=True)
            even = update / (squares[i] / (1 - 0.5**step)).sqrt()
            even *= update.norm() / even.norm()
            rows, columns = update.shape
            weights[i] -= 0.1 * max(1, rows / columns) ** 0.5 * even
        optimizer.step()
    assert_close([layer.weight.detach() for layer in model], weights)


def test_normuon_evens_out_rows_and_keeps_the_length():
    layer, other = (nn.Linear(6, 4, bias=False) for _ in range(2))
    other.load_state_dict(layer.state_dict())
    start, steps = layer.weight.detach().clone(), []
    for kind, each in ((NorMuon, layer), (Muon, other)):
        optimizer = kind(nn.Sequential(each), outside=(), n_iterations=1)
        each.weight.grad = torch.arange(24.0).view(4, 6).square()
        optimizer.step()
        steps.append(start - each.weight)
    assert_close(steps[0].norm(), steps[1].norm())
    rows = steps[0].norm(dim=1)
    assert_close(rows, rows.mean().expand(4))
    assert steps[1].norm(dim=1).std() > 0.001


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_nothing_changes_on_a_gradient_that_is_not_finite(make, bad):
    model = Tiny()
    optimizer = make(model)
    backward(model)
    optimizer.step()
    backward(model, seed=1)
    model.norm.bias.grad[3] = bad  # in the last group
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))
    with pytest.raises(FloatingPointError, match=r"gradient of norm.bias holds NaN or infinity\. "):
        optimizer.step()
    after = (model.state_dict(), optimizer.state_dict()["state"])
    assert_close(after, before, rtol=0, atol=0)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_gradient_whose_square_overflows_is_refused(make):
    """Adam's mean of squares would be infinite for good, and the parameters frozen in silence."""
    model = Tiny()
    optimizer = make(model)
    backward(model)
    model.norm.bias.grad[3] = -1e30
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()["state"]))
    with pytest.raises(FloatingPointError, match=r"norm.bias has numbers of up to 1e\+30, whose"):
        optimizer.step()
    assert_close((model.state_dict(), optimizer.state_dict()["state"]), before, rtol=0, atol=0)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_step_takes_a_closure_as_pytorchs_do(make):
    """It computes the gradients, though none are recorded around it, and its loss comes back."""
    model, other = Tiny(), Tiny()
    other.load_state_dict(model.state_dict())
    optimizer, plain = make(model), make(other)
    for seed in range(3):
        with torch.no_grad():
            loss = optimizer.step(lambda seed=seed: backward(model, seed))
        assert loss == backward(other, seed)
        plain.step()
    assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)

    def diverged():
        backward(model)
        model.norm.bias.grad[3] = torch.nan

    with pytest.raises(FloatingPointError, match=r"norm.bias holds NaN"):
        optimizer.step(diverged)
    assert_close(model.state_dict(), other.state_dict(), rtol=0, atol=0)


def test_a_state_of_normuon_says_how_long_rows_are_remembered():
    saved = NorMuon(Tiny(), row_beta=0.5).state_dict()
    optimizer = NorMuon(Tiny())
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["row_beta"] == 0.5
    del saved["param_groups"][0]["row_beta"]  # as checkpoints were before
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["row_beta"] == 0.95


def test_an_optimizer_does_not_look_twice(monkeypatch):
    looks, norm = [], optimizers.gradient_norm
    monkeypatch.setattr(optimizers, "gradient_norm", lambda o: looks.append(o) or norm(o))
    model = Tiny()
    optimizer = adamw(model, 1e-2)
    backward(model)
    with optimizers.gradients_checked(optimizer):
        optimizer.step()
    assert not looks
    optimizer.step()
    assert looks == [optimizer]


def test_how_far_three_and_five_iterations_reach():
    """The numbers of Muon's docstring, for singular values as shares of the matrix's norm."""
    shares = torch.logspace(-6, -0.1, 2000, dtype=torch.float64)
    for n, least, most in [(3, 0.018, 41), (5, 0.0015, 485)]:
        reached = shares.clone()
        for _ in range(n):
            reached = 3.4445 * reached - 4.7750 * reached**3 + 2.0315 * reached**5
        near = reached[shares >= least]
        assert 0.68 < near.min() <= near.max() < 1.21
        assert not (reached[shares < 0.95 * least] > 0.68).any()
        assert most - 1 < (reached / shares).max() < most


def test_many_bad_gradients_are_counted():
    model = Tiny()
    optimizer = adamw(model, 1e-2)
    for p in model.parameters():
        p.grad = torch.full_like(p, torch.nan)
    with pytest.raises(FloatingPointError, match=r"first.weight, twin.weight and 8 others hold"):
        require_finite_gradients(optimizer)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_loss_falls_and_a_parameter_without_gradient_stays(make):
    model = Tiny()
    model.unused = nn.Linear(3, 3)
    unused = model.unused.weight.detach().clone()
    optimizer = make(model)
    first = backward(model)
    for _ in range(60):
        optimizer.step()
        last = backward(model)
    assert last < first / 3
    assert model.unused.weight.equal(unused)


def test_rates_follow_a_factor():
    optimizer = Muon(Tiny(), lr=0.4, adamw_lr=0.2)
    for factor in (0.5, 0.25, 1.0):
        set_rates(optimizer, factor)
        rates = [group["lr"] for group in optimizer.param_groups]
        assert rates == [0.4 * factor, 0.2 * factor, 0.2 * factor]


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lr": 0.0}, ValueError, "lr is 0.0; it must be a finite number above 0"),
        ({"lr": 10**400}, ValueError, "lr is 10*; it must be a finite number above 0"),
        ({"adamw_lr": float("nan")}, ValueError, "adamw_lr is nan"),
        ({"momentum": 1.0}, ValueError, "momentum is 1.0; it is a share"),
        ({"row_beta": 1.0}, ValueError, "row_beta is 1.0; it is a share"),
        ({"betas": (0.9, 1.5)}, ValueError, r"betas\[1\] is 1.5"),
        ({"weight_decay": -1.0}, ValueError, "weight_decay is -1.0; it must be finite"),
        ({"n_iterations": 0}, ValueError, "n_iterations is 0"),
        ({"dtype": torch.int64}, TypeError, "dtype is torch.int64; choose a floating point type"),
        ({"outside": "lm_head"}, ValueError, "outside names 'lm_head', which this Tiny does"),
        ({"outside": ("lm_head",)}, ValueError, "outside names 'lm_head', which this Tiny does"),
    ],
)
def test_what_makes_no_optimizer(options, error, message):
    with pytest.raises(error, match=message):
        NorMuon(Tiny(), **options)


@pytest.mark.parametrize(
    ("lr", "error"),
    [(float("inf"), ValueError), (float("nan"), ValueError), (0.0, ValueError), ("0.1", TypeError)],
)
def test_a_rate_that_makes_no_adamw(lr, error, as_a_reader):
    with pytest.raises(error, match=f"lr is {lr!r}"):
        adamw(Tiny(), lr)


def test_what_adamw_takes(as_a_reader):
    with pytest.raises(TypeError, match=r"model is of type generator; it must be an nn\.Module"):
        adamw(Tiny().parameters(), 0.1)
    with pytest.raises(ValueError, match=r"betas\[1\] is 1\.5; it is a share"):
        adamw(Tiny(), 0.1, betas=(0.9, 1.5))
    with pytest.raises(ValueError, match=r"eps is -1\.0; it must be a finite number above 0"):
        adamw(Tiny(), 0.1, eps=-1.0)


def test_models_with_nothing_to_train():
    with pytest.raises(ValueError, match=r"no nn\.Linear between its layers"):
        Muon(nn.Sequential(nn.Embedding(3, 4)), outside=())
    with pytest.raises(ValueError, match="has no parameter that needs a gradient"):
        adamw(Tiny().requires_grad_(False), 1e-3)


def test_a_parameter_without_a_shape_is_refused():
    model = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 2))
    with pytest.raises(ValueError, match=r"0\.weight has no shape before the first batch"):
        adamw(model, lr=1e-3)
    model(torch.ones(2, 3))
    assert adamw(model, lr=1e-3).param_groups[0]["params"][0].shape == (4, 3)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"method": "sgd"}, "method is 'sgd'"),
        ({"method": "muon"}, r"has shape \(3,\); Muon is for matrices"),
    ],
)
def test_a_group_that_muon_cannot_train_is_refused(group, message):
    optimizer = Muon(Tiny())
    before = len(optimizer.param_groups)
    with pytest.raises(ValueError, match=message):
        optimizer.add_param_group({"params": [("bias", nn.Parameter(torch.ones(3)))]} | group)
    assert len(optimizer.param_groups) == before


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("make", [lambda m: adamw(m, lr=0.1), Muon, NorMuon])
def test_a_copy_looks_at_its_gradients_too(make, copied):
    model = Tiny()
    model, optimizer = copied((model, make(model)))
    optimizer.load_state_dict(optimizer.state_dict())
    before = copy.deepcopy(model.state_dict())
    for p in model.parameters():
        p.grad = torch.full_like(p, torch.nan)
    with pytest.raises(FloatingPointError):
        optimizer.step()
    assert all(before[name].equal(p) for name, p in model.state_dict().items())
    assert len(optimizer._optimizer_step_pre_hooks) == 1


@pytest.mark.parametrize("make", [Muon, NorMuon])
def test_what_is_added_to_muon_is_trained_with_its_numbers(make):
    model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 4))
    late, square = nn.Parameter(torch.ones(3)), nn.Parameter(torch.eye(4))
    optimizer = copy.deepcopy(make(model, outside=(), adamw_lr=0.5, momentum=0.5))
    optimizer.add_param_group({"params": [("late", late)]})
    optimizer.add_param_group({"params": [("square", square)], "method": "muon", "lr": 0.25})
    *_, adam, muon = optimizer.param_groups
    assert (adam["method"], adam["lr"], adam["eps"]) == ("adamw", 0.5, 1e-8)
    assert (muon["lr"], muon["momentum"]) == (0.25, 0.5)
    for parameter in (late, square):
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert (late < 1).all()
    assert not square.equal(torch.eye(4))
