"""A reader's function in the library's place: if it computes the same, nothing changes."""

import copy

import pytest
import torch
import torch.nn.functional as F
from figures import SHIPPED, make_trained
from models import make_pair
from torch import nn

from transformer_lib.attention import (
    MultiHeadAttention,
    attention_weights,
    merge_heads,
    split_heads,
)
from transformer_lib.classifier import Classifier
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.interpret.patching import logits_without
from transformer_lib.interpret.your_part import using
from transformer_lib.layers import Embedding
from transformer_lib.masks import causal_mask
from transformer_lib.positions import RotaryPositions, apply_rotary
from transformer_lib.sampling import generate
from transformer_lib.training.asking import accuracy, questions
from transformer_lib.training.trained import load_shipped


# What a reader has at the end of a chapter.
def of_chapter_1(q, k):
    scores = [q[0] @ key for key in k]
    total = sum(torch.exp(score / 8**0.5) for score in scores)
    return torch.stack([torch.exp(score / 8**0.5) / total for score in scores])[None]


def of_chapter_3(q, k):
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)


def of_chapter_4(q, k, mask):
    scores = q @ k.T / q.shape[-1] ** 0.5
    scores[~mask] = -torch.inf
    return scores.softmax(dim=-1)


def turn(x, angles):
    even, odd = x[..., 0::2], x[..., 1::2]
    pairs = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    return torch.stack(pairs, dim=-1).flatten(start_dim=-2)


LIKE = {
    "the library's weights": {"attention_weights": attention_weights},
    "chapter 1": {"attention_weights": of_chapter_1},
    "chapter 3": {"attention_weights": of_chapter_3},
    "chapter 4": {"attention_weights": of_chapter_4},
    "a mask": {"causal_mask": lambda queries, keys: torch.ones(queries, keys).tril().bool()},
    "the library's mask": {"causal_mask": causal_mask},
    "heads": {"split_heads": split_heads, "merge_heads": merge_heads},
    "a table": {"embedding": lambda ids, table: F.one_hot(ids, len(table)).float() @ table},
    "positions": {"apply_rotary": turn},
    "the library's positions": {"apply_rotary": apply_rotary},
    "many": {"attention_weights": of_chapter_3, "apply_rotary": turn, "merge_heads": merge_heads},
}


@pytest.fixture(scope="module")
def machine():
    return make_trained(context=90)


@pytest.fixture(scope="module")
def ids():
    return torch.tensor([[0, 19, 6, 24, 7, 20, 1], [0, 20, 3, 25, 4, 5, 1]])


@pytest.mark.parametrize("parts", LIKE.values(), ids=LIKE)
def test_what_computes_alike_changes_nothing(parts, machine, ids):
    expected, maps = machine.model(ids), attention_maps(machine.model, ids)
    with using(machine.model, **parts):
        torch.testing.assert_close(machine.model(ids), expected, rtol=0, atol=1e-6)
        for name, weights in attention_maps(machine.model, ids).items():
            torch.testing.assert_close(weights, maps[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("parts", LIKE.values(), ids=LIKE)
def test_it_writes_the_same_text_too(parts, machine, ids):
    """With a cache, one word at a time."""
    expected = generate(machine.model, ids, 4, temperature=0)
    with using(machine.model, **parts):
        assert generate(machine.model, ids, 4, temperature=0).equal(expected)


def test_afterward_the_model_is_as_before_whatever_happened(machine, ids):
    expected, attention = machine.model(ids), machine.model.blocks[0].attention
    with pytest.raises(ZeroDivisionError), using(machine.model, causal_mask=lambda q, k: 1 / 0):
        machine.model(ids)
    with using(machine.model, embedding=lambda ids, table: table[0 * ids]):
        assert list(machine.model.state_dict()) == list(make_trained(context=90).model.state_dict())
        assert not machine.model(ids).allclose(expected)
    assert machine.model.blocks[0].attention is attention
    assert machine.model(ids).equal(expected)


def test_contexts_can_be_nested(machine, ids):
    def flat(q, k):
        return torch.full((len(q), len(k)), 1 / len(k))

    with using(machine.model, attention_weights=flat):
        expected = machine.model(ids)
        with using(machine.model, apply_rotary=lambda x, angles: x):
            assert machine.model(ids).equal(expected)  # who looks at all alike needs no positions
        with using(machine.model, attention_weights=of_chapter_3):
            assert not machine.model(ids).allclose(expected)
        assert machine.model(ids).equal(expected)


def test_a_block_that_stands_twice_in_a_model_takes_a_function_once(ids):
    model = copy.deepcopy(make_trained(context=90).model)
    model.blocks[1] = model.blocks[0]
    expected = model(ids)
    with using(model, attention_weights=attention_weights):
        torch.testing.assert_close(model(ids), expected, rtol=0, atol=1e-6)
    assert model(ids).equal(expected)


def test_contexts_that_overlap_are_refused_and_leave_nothing(machine):
    attention = machine.model.blocks[0].attention
    contexts = [
        using(machine.model, attention_weights=of_chapter_3),
        using(machine.model, at="block-1", split_heads=split_heads),
    ]
    for context in contexts:
        context.__enter__()
    for context in contexts:
        with pytest.raises(RuntimeError, match=r"overlap.*copy\.deepcopy\(model\)"):
            context.__exit__(None, None, None)
    assert machine.model.blocks[0].attention is attention


def test_a_function_may_draw_numbers(machine, ids):
    with using(machine.model, attention_weights=lambda q, k: F.dropout(torch.rand(1, len(k)))):
        drawn = attention_maps(machine.model, ids)["blocks.0.attention"][..., -1, :]
    assert len(drawn.flatten(0, 1).unique(dim=0)) == 4  # of two texts, two heads each


def test_one_head_alone_by_hand(machine, ids):
    """A head without weights brings nothing: that is the ablation of this head."""
    with using(machine.model, at="block-2-head-1", attention_weights=lambda q, k: 0 * (q @ k.mT)):
        found = machine.model(ids)
        maps = attention_maps(machine.model, ids)["blocks.1.attention"]
    expected = logits_without(machine.model, ids, ["blocks.1.attention.0"])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert maps[:, 0].eq(0).all()
    assert maps[:, 1].sum(dim=-1).allclose(torch.ones(2, 7))
    kept = attention_maps(machine.model, ids)
    with using(machine.model, at="block-1-head-2", causal_mask=lambda q, k: torch.eye(q).bool()):
        found = attention_maps(machine.model, ids)["blocks.0.attention"]
    assert found[:, 1].equal(torch.eye(7).expand(2, 7, 7))
    torch.testing.assert_close(found[:, 0], kept["blocks.0.attention"][:, 0])
    with using(machine.model, at="block-1-head-2", apply_rotary=lambda x, angles: x):
        found = attention_maps(machine.model, ids)["blocks.0.attention"]
    torch.testing.assert_close(found[:, 0], kept["blocks.0.attention"][:, 0])
    assert not found[:, 1].allclose(kept["blocks.0.attention"][:, 1])


def test_one_block_alone(machine, ids):
    kept = attention_maps(machine.model, ids)
    with using(machine.model, at="block-2", causal_mask=lambda q, k: torch.eye(q).bool()):
        found = attention_maps(machine.model, ids)
    assert found["blocks.0.attention"].allclose(kept["blocks.0.attention"])
    assert found["blocks.1.attention"].equal(torch.eye(7).expand(2, 2, 7, 7))


def test_a_word_sees_the_words_up_to_it(machine, ids):
    sizes = []

    def noted(q, k):
        sizes.append((tuple(q.shape), tuple(k.shape)))
        return of_chapter_3(q, k)

    with using(machine.model, attention_weights=noted):
        machine.model(ids)
    d_head = machine.model.config.d_head
    layers = machine.model.config.n_layers
    assert sizes == [((1, d_head), (n, d_head)) for n in range(1, 8)] * layers


def test_all_columns_as_one_head(machine, ids):
    """Other heads than the model's own, with their own width and angles."""
    with using(machine.model, split_heads=lambda x, n: x[:, None], merge_heads=lambda z: z[:, 0]):
        maps = attention_maps(machine.model, ids)
        assert machine.model(ids).isfinite().all()
    assert maps["blocks.0.attention"].shape == (2, 1, 7, 7)


def in_place(q, k):
    q *= 2
    return of_chapter_3(q, k)


def by_single_numbers(q, k):
    return torch.tensor([[(q[0] @ key).item() for key in k]])


def without_a_maximum(q, k):
    powers = torch.exp(1e4 * (q @ k.mT).abs() + 1e4)
    return powers / powers.sum(dim=-1, keepdim=True)


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ({"attention_weights": in_place}, ValueError, r"changed what it was given.*x\.clone\(\)"),
        ({"apply_rotary": lambda x, angles: x.mul_(2)}, ValueError, "changed what it was given"),
        ({"embedding": lambda ids, table: table.zero_()[ids]}, ValueError, "changed what it was"),
        ({"attention_weights": by_single_numbers}, ValueError, r"single numbers \(item\(\)"),
        ({"attention_weights": without_a_maximum}, ValueError, "NaN or infinite"),
        ({"attention_weights": lambda q, k: None}, TypeError, "returned NoneType.*a return"),
        (
            {"attention_weights": lambda q, k: k @ q.mT},
            ValueError,
            r"the shape \(2, 1\) for \(1, 8\) and \(2, 8\); it must be \(1, 2\)",
        ),
        ({"attention_weights": lambda q, k: q @ k}, RuntimeError, r"1x8 and 1x8"),
        (
            {"attention_weights": lambda q, k, mask: q @ k.mT @ k},
            ValueError,
            r"the shape \(7, 8\) for \(7, 8\) and \(7, 8\) and \(7, 7\); it must be \(7, 7\)",
        ),
        ({"causal_mask": lambda q, k: torch.ones(q, k)}, TypeError, "torch.float32.*boolean"),
        ({"causal_mask": lambda q, k: torch.ones(k).bool()}, ValueError, r"\(7,\).*be \(7, 7\)"),
        ({"split_heads": lambda x, n: x}, ValueError, r"\(2, any, 7, any\), with as many numbers"),
        ({"split_heads": lambda x, n: x[:, None, :, 1:]}, ValueError, "with as many numbers"),
        ({"merge_heads": lambda z: z}, ValueError, r"\(2, 2, 7, 8\).*must be \(2, 7, 16\)"),
        ({"embedding": lambda ids, table: table}, ValueError, r"it must be \(7, 16\)"),
        ({"apply_rotary": lambda x, angles: angles}, ValueError, r"\(7, 4\).*must be \(7, 8\)"),
    ],
)
def test_a_part_that_cannot_be_used_is_told_why(parts, error, said, machine, ids, as_a_reader):
    with using(machine.model, **parts), pytest.raises(error, match=said):
        machine.model(ids)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"atention_weights": turn}, TypeError, "Did you mean attention_weights"),
        ({"softmax": turn}, TypeError, "no part 'softmax'; there are attention_weights, causal"),
        ({"apply_rotary": 3}, TypeError, "apply_rotary is 3, of type int; give a function"),
        ({"at": "block-3", "apply_rotary": turn}, ValueError, "block-1 to block-2.*head-2: write"),
        ({"at": "head-1", "apply_rotary": turn}, ValueError, "at is 'head-1'"),
        ({"at": "block-1", "embedding": turn}, ValueError, "before all blocks"),
        ({"at": "block-1-head-1", "merge_heads": turn}, ValueError, "the same for all heads"),
        (
            {"attention_weights": of_chapter_3, "causal_mask": causal_mask},
            ValueError,
            "would not be used",
        ),
    ],
)
def test_what_is_not_a_part_is_refused_at_once(options, error, said, machine, as_a_reader):
    with pytest.raises(error, match=said), using(machine.model, **options):
        pass


def test_a_mask_that_nested_weights_do_not_take_is_refused(machine):
    parts = {"attention_weights": of_chapter_3}, {"causal_mask": causal_mask}
    for outer, inner in (parts, parts[::-1]):
        with (
            using(machine.model, **outer),
            pytest.raises(ValueError, match="would not be used"),
            using(machine.model, **inner),
        ):
            pass
    with (
        using(machine.model, at="block-1", **parts[0]),
        using(machine.model, at="block-2", **parts[1]),
    ):
        pass


def test_a_second_head_of_a_block_is_refused(machine):
    heads = [{"at": f"block-1-head-{n}", "attention_weights": of_chapter_3} for n in (1, 2)]
    with (
        using(machine.model, **heads[0]),
        pytest.raises(ValueError, match="a block takes one of a name"),
        using(machine.model, **heads[1]),
    ):
        pass


def test_a_model_with_more_in_between_is_refused(as_a_reader):
    sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    for changes, said in [
        ({"positions": "alibi"}, "positions = 'alibi'"),
        ({"n_kv_heads": 1}, "n_kv_heads = 1"),
        ({"qk_norm": True}, "qk_norm = True"),
    ]:
        model = GPT(GPTConfig(**sizes, **changes))
        with pytest.raises(ValueError, match=said), using(model, split_heads=split_heads):
            pass
    model = GPT(GPTConfig(**sizes))
    holder = type("Trained", (), {"model": model})()
    with (
        pytest.raises(TypeError, match=r"give its \.model"),
        using(holder, split_heads=split_heads),
    ):
        pass
    with pytest.raises(ValueError, match="are 'learned'"), using(model, apply_rotary=turn):
        pass
    ids = torch.tensor([[3, 1, 4]])
    expected = model(ids)
    with using(model, attention_weights=of_chapter_3):
        torch.testing.assert_close(model(ids), expected)


class Doubling(MultiHeadAttention):
    def forward(self, x, memory=None, mask=None, **options):
        return 2 * super().forward(x, memory, mask, **options)


class Halving(Embedding):
    def rows(self, ids):
        return super().rows(ids) / 2


def with_forward(model):
    model.blocks[0].attention.forward = lambda x, **options: x


class Later(RotaryPositions):
    def rotate(self, x, start):
        return super().rotate(x, start + 1)


OTHERS = {
    "a window": ({"attention": "window", "attention_options": {"window": 2}}, lambda model: None),
    "a latent": ({"attention": "latent", "attention_options": {"d_latent": 2}}, lambda model: None),
    "a class": ({}, lambda model: setattr(model.blocks[0], "attention", Doubling(8, 2))),
    "a forward": ({}, with_forward),
    "positions": ({}, lambda model: setattr(model.blocks[0].attention, "positions", Later(4))),
    "positions that learn": (
        {},
        lambda model: setattr(model.blocks[0].attention, "positions", nn.Embedding(5, 2)),
    ),
    "a table": ({}, lambda model: setattr(model, "embedding", Halving(7, 8))),
}


@pytest.mark.parametrize(("options", "change"), OTHERS.values(), ids=OTHERS)
def test_parts_of_another_kind_are_not_lost(options, change):
    """They computed what the reader's functions would not: so these are refused."""
    model = GPT(GPTConfig(vocabulary=7, context=5, n_layers=1, n_heads=2, d_model=8, **options))
    change(model)
    parts = {"split_heads": split_heads, "embedding": lambda ids, table: table[ids]}
    with pytest.raises(ValueError, match="computes would be lost"), using(model, **parts):
        pass


def test_dropout_of_the_weights_stays_while_training():
    sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    model = GPT(GPTConfig(**sizes))
    model.blocks[0].attention.dropout = 0.5
    ids = torch.tensor([[3, 1, 4]])
    with using(model, split_heads=split_heads):
        assert not model(ids).equal(model(ids))
        assert model.eval()(ids).equal(model(ids))
    assert model(ids).equal(model(ids))  # afterward, too
    assert not any(part.training for part in model.modules())


@pytest.mark.usefixtures("as_a_reader")
def test_what_is_no_gpt_is_refused():
    classifier = Classifier(vocabulary=7, tokens=5, d_model=8, n_heads=2, n_classes=3)
    for model, lacks in ((make_pair(), "blocks"), (classifier, "config")):
        said = f"of type {type(model).__name__}, which has no {lacks}: give a GPT"
        with pytest.raises(TypeError, match=said), using(model, split_heads=split_heads):
            pass


def test_nan_that_a_function_is_given_is_not_its_doing(machine, ids):
    large = {"attention_weights": lambda q, k: torch.full((1, len(k)), 3e38)}
    with using(machine.model, **large):
        assert machine.model(ids).isnan().any()


def test_a_mask_of_each_text_is_for_all_heads(machine):
    block, x = machine.model.blocks[0], torch.randn(3, 5, machine.model.config.d_model)
    mask = torch.rand(3, 1, 5) < 0.7
    expected = block(x, mask, causal=True)
    with using(machine.model, attention_weights=attention_weights):
        torch.testing.assert_close(block(x, mask, causal=True), expected)


@pytest.mark.slow
def test_what_becomes_of_the_shipped_machine():
    machine = load_shipped(SHIPPED, device=torch.device("cpu"))
    asked = questions(machine)[::4]

    def share(**parts):
        with machine.using(**parts):
            return accuracy(machine, asked)

    assert accuracy(machine, asked) >= 0.99
    assert share(attention_weights=of_chapter_3) == accuracy(machine, asked)
    assert share(apply_rotary=turn) == accuracy(machine, asked)
    assert share(attention_weights=lambda q, k: of_chapter_3(q, k).flip(-1)) < 0.3
    assert share(causal_mask=lambda q, k: torch.eye(q).bool()) < 0.5
    assert share(split_heads=lambda x, n: x.reshape(len(x), n, x.shape[1], -1)) < 0.5
    assert share(embedding=lambda ids, table: table.flip(0)[ids]) < 0.3
