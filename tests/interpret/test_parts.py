"""Parts, lens, attribution and patching on models of every wiring, against the model itself."""

import pytest
import signatures
import torch
from models import VOCABULARY, WIRINGS, make

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.interpret.handmade import induction_gpt
from transformer_lib.interpret.lens import direct_logits, logit_lens
from transformer_lib.interpret.parts import logits_with, part_names, parts_of
from transformer_lib.interpret.patching import logits_without, patched_logits
from transformer_lib.interpret.scores import induction_score, previous_token_score

ADDITIVE = {name: config for name, config in WIRINGS.items() if config.norm == "pre"}


def made(config):
    torch.manual_seed(0)
    model = make(config, torch.float64).eval()
    return model, torch.randint(VOCABULARY, (2, 7)), torch.randint(VOCABULARY, (2, 7))


@pytest.mark.parametrize("name", ADDITIVE)
def test_the_parts_add_up(name):
    model, ids, other = made(ADDITIVE[name])
    parts, logits = parts_of(model, ids), model(ids)
    last = f"blocks.{len(model.blocks) - 1}"
    torch.testing.assert_close(sum(parts[part] for part in part_names(model)), parts[last])
    torch.testing.assert_close(sum(direct_logits(model, ids).values()), logits)
    torch.testing.assert_close(logit_lens(model, ids)[-1], logits)
    torch.testing.assert_close(patched_logits(model, ids, ids, "blocks.0.attention.1"), logits)
    # Who replaces the whole stream behind a block has the other text's answer.
    torch.testing.assert_close(patched_logits(model, ids, other, "blocks.0"), model(other))


@pytest.mark.parametrize("name", ADDITIVE)
def test_a_head_taken_out_is_a_head_without_output(name):
    model, ids, _ = made(ADDITIVE[name])
    found = logits_without(model, ids, ["blocks.1.attention.1"])
    untouched = model(ids)
    attention = model.blocks[1].attention
    with torch.no_grad():
        attention.output.weight[:, attention.d_head : 2 * attention.d_head] = 0
    torch.testing.assert_close(found, model(ids))
    assert not torch.allclose(found, untouched)


def test_a_patch_at_a_token_leaves_those_before_as_they_are():
    model, ids, other = made(next(iter(ADDITIVE.values())))
    found = patched_logits(model, ids, other, "blocks.0.feed_forward", position=4)
    torch.testing.assert_close(found[:, :4], model(ids)[:, :4])
    assert not torch.allclose(found[:, 4:], model(ids)[:, 4:])


def test_the_scores_by_hand():
    weights = torch.tensor(
        [[1, 0, 0, 0], [0.3, 0.7, 0, 0], [0.2, 0.5, 0.3, 0], [0.1, 0.2, 0.3, 0.4]]
    )
    weights = torch.stack((weights, weights.tril().square()))[None]
    assert previous_token_score(weights)[0] == pytest.approx((0.3 + 0.5 + 0.3) / 3)
    # 8 8 8 9: token 1 came at 0, and 1 is after it; token 2 came at 0 and 1.
    found = induction_score(weights, torch.tensor([[8, 8, 8, 9]]))
    assert found.tolist() == pytest.approx([(0.7 + 0.5 + 0.3) / 2, (0.49 + 0.25 + 0.09) / 2])


def test_a_failing_change_leaves_no_hook():
    model, ids = induction_gpt(), torch.tensor([[1, 2]])
    before = model(ids)
    with pytest.raises(TypeError, match="change returned NoneType for blocks"):
        logits_with(model, ids, lambda name, written: None if "attention" in name else written)
    assert torch.equal(model(ids), before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("part", ["embedding", "blocks.0.attention.0", "blocks.0.attention.bias"])
def test_a_change_in_place_counts_and_leaves_the_model_as_it_was(part):
    model, ids, _ = made(next(iter(ADDITIVE.values())))
    before = model(ids)
    with torch.no_grad():
        model.blocks[0].attention.output.bias.normal_()
    numbers = {name: one.clone() for name, one in model.state_dict().items()}
    found = logits_with(model, ids, lambda name, w: w.zero_() if name == part else w)
    torch.testing.assert_close(found, logits_without(model, ids, [part]))
    assert not torch.allclose(found, before)
    assert all(torch.equal(one, numbers[name]) for name, one in model.state_dict().items())


def test_an_output_that_adds_a_term_is_one_part():
    class LowRank(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + x.mean(-1, keepdim=True)

    model, ids, _ = made(next(iter(ADDITIVE.values())))
    output = model.blocks[0].attention.output
    model.blocks[0].attention.output = changed = LowRank(*output.weight.shape).double()
    changed.load_state_dict(output.state_dict())
    assert part_names(model)[1] == "blocks.0.attention"
    torch.testing.assert_close(sum(direct_logits(model, ids).values()), model(ids))


@pytest.mark.parametrize("place", ["attention", "feed_forward", ""])
def test_a_hook_of_a_readers_own_adds_up_or_is_told(place):
    model, ids, _ = made(next(iter(ADDITIVE.values())))
    part = model.blocks[0].get_submodule(place)
    hook = part.register_forward_hook(lambda module, given, output: output + 1)
    try:
        if place == "feed_forward":
            torch.testing.assert_close(sum(direct_logits(model, ids).values()), model(ids))
        else:
            with pytest.raises(ValueError, match=r"differ from .* by .* hook\.remove"):
                direct_logits(model, ids)
    finally:
        hook.remove()


def test_heads_that_are_not_what_their_attention_writes_are_told():
    class Twice(MultiHeadAttention):
        def forward(self, *args, **kwargs):
            return 2 * super().forward(*args, **kwargs)

    model, ids, _ = made(ADDITIVE["gpt2"])
    model.blocks[1].attention.__class__ = Twice
    with pytest.raises(ValueError, match=r"the heads of blocks\.1\.attention differ from what it"):
        logits_without(model, ids, ["blocks.1.attention.0"])


def test_under_autocast_the_parts_are_its_own():
    model, ids, _ = made(ADDITIVE["gpt2"])
    exact = parts_of(model.float(), ids)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        parts = parts_of(model, ids)
        assert logit_lens(model, ids).isfinite().all()
    torch.testing.assert_close(parts["blocks.1"], exact["blocks.1"], atol=0.1, rtol=0.1)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda m, x: logits_without(m, x, ["blocks.2.feed_forward"]), "no part 'blocks.2.feed_f"),
        (lambda m, x: logits_without(m, x, "blocks.0"), "no part 'blocks.0'; its parts are emb"),
        (lambda m, x: patched_logits(m, x, x[:, 1:], "embedding"), "must be equally long"),
        (lambda m, x: patched_logits(m, x, x, "embedding", 4), "position is 4, .* tokens 0 to 3"),
        (lambda m, x: patched_logits(m, x, x, "embedding", -1), "position is -1"),
        (
            lambda m, x: logits_with(m, x, lambda n, w: w[:1, :1]),
            "for embedding, .* keep the shape",
        ),
        (lambda m, x: parts_of(m, x + 9), "vocabulary"),
        (lambda m, x: previous_token_score(torch.ones(1, 2, 3, 4)), "of at least two tokens"),
        (lambda m, x: previous_token_score(-torch.ones(1, 2, 3, 3)), "hold -1, .* may be scores"),
        (lambda m, x: previous_token_score(torch.full((1, 1, 2, 2), torch.nan)), "that are NaN"),
        (
            lambda m, x: induction_score(torch.ones(1, 1, 4, 4), x[:, :3]),
            "but the weights are of 1",
        ),
        (lambda m, x: induction_score(torch.ones(1, 1, 4, 4), x), "no token of these texts comes"),
        (lambda m, x: induction_gpt(1, 5), "at least 2 of each"),
    ],
)
def test_what_is_refused(call, problem):
    with signatures.unchecked(), pytest.raises(ValueError, match=problem):
        call(induction_gpt(), torch.tensor([[1, 2, 3, 4]]))


def test_models_whose_parts_do_not_add_up():
    sizes = {"vocabulary": 7, "context": 5, "n_layers": 1, "n_heads": 2, "d_model": 8}
    ids = torch.tensor([[1, 2]])
    with pytest.raises(ValueError, match="wired 'post'"):
        parts_of(GPT(GPTConfig(**sizes, norm="post")), ids)
    with pytest.raises(ValueError, match=r"dropout of 0\.1, .* model\.eval\(\)"):
        parts_of(GPT(GPTConfig(**sizes, dropout=0.1)), ids)
    model = GPT(GPTConfig(**sizes))
    with (
        signatures.unchecked(),
        pytest.raises(TypeError, match="of type Linear, which has no blocks: give a GPT"),
    ):
        logits_without(torch.nn.Linear(2, 2), ids, ["embedding"])
    with (
        signatures.unchecked(),
        pytest.raises(TypeError, match="of type Linear, which has no blocks: give a GPT"),
    ):
        patched_logits(torch.nn.Linear(2, 2), ids, ids, "embedding")
    with pytest.raises(TypeError, match=r"result = result\.to\(torch\.float32\)"):
        logits_with(model, ids, lambda name, written: written.double())
    with pytest.raises(TypeError, match=r"position is 0\.0, of type float"), signatures.unchecked():
        patched_logits(model, ids, ids, "embedding", 0.0)
    model.final_norm = torch.nn.Tanh()
    with pytest.raises(TypeError, match="the last norm is Tanh"):
        direct_logits(model, ids)
    model = GPT(GPTConfig(**sizes, tied=False))
    model.head = torch.nn.Linear(8, 7)
    with pytest.raises(ValueError, match="the logits of the parts differ from the model's by"):
        direct_logits(model, ids)
    model.blocks[0].feed_forward = torch.nn.Sequential(torch.nn.Dropout(0.5))
    with pytest.raises(ValueError, match=r"dropout of 0\.5, .* model\.eval\(\)"):
        logits_without(model, ids, ["embedding"])
    model.blocks[0] = GPT(GPTConfig(**sizes, norm="post")).blocks[0]
    with pytest.raises(ValueError, match="the parts of this GPT differ from its stream by"):
        logits_without(model.eval(), ids, ["blocks.0.attention.1"])
    twice = GPT(GPTConfig(**sizes | {"n_layers": 2}))
    twice.blocks[1] = twice.blocks[0]
    with pytest.raises(ValueError, match="two blocks of this GPT share"):
        logits_without(twice, ids, ["embedding"])
