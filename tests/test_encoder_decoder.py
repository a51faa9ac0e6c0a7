"""The paper's Transformer: against nn.Transformer, padding, the cache, sources given once."""

import warnings

import pytest
import torch
from models import PAIRS, SIZES_OF_PAIR, VOCABULARY_OF_SOURCE, make_pair, padded
from torch import nn
from torch.testing import assert_close

from transformer_lib import tokenizers
from transformer_lib.encoder_decoder import (
    BEGIN,
    END,
    PADDING,
    EncoderDecoder,
    EncoderDecoderConfig,
)
from transformer_lib.interpret.maps import attention_maps
from transformer_lib.sampling import generate, next_logits

D_MODEL, HEADS, D_FF, LAYERS = 12, 3, 17, 2
ALIKE = {torch.float64: {"rtol": 0, "atol": 1e-10}, torch.float32: {"rtol": 0, "atol": 1e-5}}


def sources(*lengths):
    return padded([torch.randint(3, VOCABULARY_OF_SOURCE, (n,)).tolist() for n in lengths])


def targets(model, *lengths):
    highest = model.config.target_vocabulary
    return padded([[BEGIN, *torch.randint(3, highest, (n - 1,)).tolist()] for n in lengths])


def pairs_of_layers(model, theirs):
    """Each linear layer and norm of ours beside theirs; and the attentions' projections."""
    linear, attention = [], []
    for ours, other in zip(model.encoder, theirs.encoder.layers, strict=True):
        attention.append((ours.attention, other.self_attn))
        linear += [(ours.norm_1, other.norm1), (ours.norm_2, other.norm2)]
        linear += [(ours.feed_forward.expand, other.linear1)]
        linear += [(ours.feed_forward.contract, other.linear2)]
    for ours, other in zip(model.decoder, theirs.decoder.layers, strict=True):
        attention.append((ours.attention, other.self_attn))
        attention.append((ours.cross_attention, other.multihead_attn))
        linear += [(ours.norm_1, other.norm1), (ours.norm_2, other.norm2)]
        linear += [(ours.norm_3, other.norm3), (ours.feed_forward.expand, other.linear1)]
        linear += [(ours.feed_forward.contract, other.linear2)]
    linear += [(ours.output, other.out_proj) for ours, other in attention]
    if model.config.norm == "pre":
        linear += [(model.encoder_norm, theirs.encoder.norm)]
        linear += [(model.decoder_norm, theirs.decoder.norm)]
    return linear, attention


def pytorchs(model, dtype):
    """nn.Transformer with the weights of ``model``, and which layer is which.

    PyTorch's has a final norm in both stacks, also with post-norm, which the paper has not: there
    it is taken out.
    """
    theirs = nn.Transformer(
        D_MODEL, HEADS, LAYERS, LAYERS, D_FF, dropout=0.0, batch_first=True,
        norm_first=model.config.norm == "pre", dtype=dtype,
    )  # fmt: skip
    if model.config.norm == "post":
        theirs.encoder.norm = theirs.decoder.norm = None
    linear, attention = pairs_of_layers(model, theirs)
    with torch.no_grad():
        for ours, other in linear:
            other.weight.copy_(ours.weight)
            other.bias.copy_(ours.bias)
        for ours, other in attention:
            three = (ours.query, ours.key, ours.value)
            other.in_proj_weight.copy_(torch.cat([layer.weight for layer in three]))
            other.in_proj_bias.copy_(torch.cat([layer.bias for layer in three]))
    return theirs, linear, attention


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("dtype", list(ALIKE))
def test_outputs_and_gradients_equal_pytorch(norm, dtype):
    config = EncoderDecoderConfig(**SIZES_OF_PAIR, norm=norm, d_ff=D_FF)
    model = make_pair(config, dtype)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    theirs, linear, attention = pytorchs(model, dtype)
    source, target = sources(7, 4), targets(model, 5, 3)
    vectors = model.source_embedding(source), model.target_embedding(target)
    hidden = source == PADDING
    future = nn.Transformer.generate_square_subsequent_mask(5, dtype=dtype)
    result = theirs(
        *vectors, tgt_mask=future, src_key_padding_mask=hidden, memory_key_padding_mask=hidden
    )
    reference = model.target_embedding.logits(result)
    mine = model(source, target)
    real = target != PADDING
    assert_close(mine[real], reference[real], **ALIKE[dtype])
    g = torch.randn_like(mine)[real]
    weights = [layer.weight for pair in linear for layer in pair]
    weights += [layer.bias for pair in linear for layer in pair]
    of_mine = torch.autograd.grad(mine[real], weights[::2], g, retain_graph=True)
    of_theirs = torch.autograd.grad(reference[real], weights[1::2], g, retain_graph=True)
    for ours, other in zip(of_mine, of_theirs, strict=True):
        assert_close(ours, other, **ALIKE[dtype])
    for ours, other in attention:
        three = [layer.weight for layer in (ours.query, ours.key, ours.value)]
        found = torch.autograd.grad(mine[real], three, g, retain_graph=True)
        (expected,) = torch.autograd.grad(
            reference[real], [other.in_proj_weight], g, retain_graph=True
        )
        assert_close(torch.cat(found), expected, **ALIKE[dtype])


@pytest.mark.parametrize("name", PAIRS)
def test_padding_on_the_right_changes_nothing(name):
    """Not bit for bit: sums over more (zero) terms are rounded otherwise."""
    model = make_pair(PAIRS[name])
    source, target = sources(5), targets(model, 4)
    wide = nn.functional.pad(source, (0, 3)), nn.functional.pad(target, (0, 2))
    assert_close(model(*wide)[:, :4], model(source, target), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_the_future_of_the_target_changes_nothing_and_all_of_the_source_counts(name):
    model = make_pair(PAIRS[name])
    source, target = sources(5, 5), targets(model, 6, 6)
    other = target.clone()
    other[:, 4:] = BEGIN
    with torch.no_grad():
        logits = model(source, target)
        assert model(source, other)[:, :4].equal(logits[:, :4])
        for place in range(5):
            changed = source.clone()
            changed[:, place] = 3 + (source[:, place] - 2) % (VOCABULARY_OF_SOURCE - 3)
            assert (model(changed, target) - logits).abs().amax(dim=(1, 2)).min() > 1e-6


@pytest.mark.parametrize("name", PAIRS)
def test_a_source_given_once_and_a_cache_change_nothing(name):
    model = make_pair(PAIRS[name])
    source, target = sources(5, 3), targets(model, 6, 6)
    with torch.no_grad():
        expected = model(source, target)
        given = model.given(source)
        assert_close(given(target), expected, rtol=0, atol=1e-12)
        cache = given.new_cache(2, capacity=6)
        pieces = [given(piece, cache) for piece in target.split([2, 1, 1, 2], dim=1)]
        assert_close(torch.cat(pieces, dim=1), expected, rtol=0, atol=1e-12)
        rows = given(target.repeat_interleave(3, dim=0))  # as many beams of each
        assert_close(rows, expected.repeat_interleave(3, dim=0), rtol=0, atol=1e-12)


def test_what_generates_takes_a_model_that_is_given_its_source():
    model = make_pair()
    given, begin = model.given(sources(5, 3)), torch.full((2, 1), BEGIN)
    cached = generate(given, begin, 7, temperature=0)
    assert cached.equal(generate(given, begin, 7, temperature=0, cache=False))
    with pytest.raises(ValueError, match="this model reads 2 sources, and each prompt is read by"):
        next_logits(given, [[BEGIN], [BEGIN]])


def test_maps_of_all_three_attentions():
    model = make_pair()
    source, target = sources(5, 3), targets(model, 4, 4)
    maps = attention_maps(model, source, target)
    kinds = ["encoder.{}.attention", "decoder.{}.attention", "decoder.{}.cross_attention"]
    shapes = {"encoder.0.attention": (5, 5), "decoder.0.attention": (4, 4)}
    assert set(maps) == {kind.format(layer) for kind in kinds for layer in range(LAYERS)}
    for name, shape in (shapes | {"decoder.1.cross_attention": (4, 5)}).items():
        assert maps[name].shape == (2, HEADS, *shape)
    cross = maps["decoder.0.cross_attention"]
    assert_close(cross.sum(dim=-1), torch.ones(2, HEADS, 4, dtype=torch.float64))
    assert (cross[1, :, :, 3:] == 0).all()


def test_the_base_model_of_the_paper_counted():
    with torch.device("meta"):
        model = EncoderDecoder(EncoderDecoderConfig.paper())
    assert model.n_parameters == 63_082_496
    biases = {name: p for name, p in model.named_parameters() if name.endswith("bias")}
    of_attention = sum(p.numel() for name, p in biases.items() if "attention" in name)
    assert model.n_parameters - of_attention == 63_045_632


def test_a_start_at_zero_makes_every_block_the_identity():
    model = EncoderDecoder(EncoderDecoderConfig.fast(**SIZES_OF_PAIR))
    source = sources(5)
    with torch.no_grad():
        vectors = model.source_embedding(source)
        assert_close(model.encode(source), model.encoder_norm(vectors))
    assert abs(vectors.std().item() - 1) < 0.5


def test_the_special_ids_are_those_of_the_tokenizers():
    assert [tokenizers.SPECIALS.index(name) for name in ("<pad>", "<s>", "</s>")] == [
        PADDING, BEGIN, END,
    ]  # fmt: skip


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("source", "target", "error", "message"),
    [
        ([[3, 11]], [[1]], ValueError, r"source\[0, 1\] is 11; .* ids 0 to 10"),
        ([[3]], [[-1]], ValueError, r"target\[0, 0\] is -1; .* ids 0 to 4"),
        ([[3.0]], [[1]], TypeError, "source have dtype torch.float32"),
        ([3], [[1]], ValueError, r"source have shape \(1,\)"),
        ([[3], [4]], [[1]], ValueError, "2 sources and 1 targets"),
        ([[3], [0]], [[1], [1]], ValueError, "source 1 is nothing but padding"),
        ([[3, 4], [0, 3]], [[1], [1]], ValueError, "source 1 begins with padding"),
        ([[3]], [[0, 1]], ValueError, r"target 0 begins with padding .*\.pad_sequence\("),
        ([[3] * 18], [[1]], ValueError, "18 tokens are more than the model's context of 17"),
        ([[3]], [[1] * 18], ValueError, "18 tokens are more than the model's context of 17"),
    ],
)
def test_input_that_makes_no_sense(source, target, error, message):
    with pytest.raises(error, match=message):
        make_pair()(torch.tensor(source), torch.tensor(target))


@pytest.mark.usefixtures("as_a_reader")
def test_a_given_source_refuses_other_rows_and_a_full_cache():
    given = make_pair().given(sources(5, 3))
    with torch.no_grad():
        with pytest.raises(ValueError, match="ids have 3 rows for 2 sources"):
            given(torch.full((3, 1), BEGIN))
        with pytest.raises(ValueError, match="at most 2 tokens and cannot take 3 more"):
            given(torch.full((2, 3), BEGIN), given.new_cache(2, capacity=2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_vocabulary": 2}, "source_vocabulary is 2; ids 0 to 2 are padding"),
        ({"shared": True}, "the table is shared, but source_vocabulary is 11"),
        ({"norm": "middle"}, "norm is 'middle'"),
        ({"positions": "none"}, "positions is 'none'"),
    ],
)
def test_configurations_that_make_no_model(changes, message):
    with pytest.raises(ValueError, match=message):
        EncoderDecoderConfig(**SIZES_OF_PAIR | changes)


def test_what_is_done_to_forward_alone_is_said_to_have_no_effect_on_a_translation():
    class Capped(EncoderDecoder):
        def forward(self, source, target):
            return super().forward(source, target).clamp(max=1)

    source = sources(3, 5)
    model = make_pair()
    with warnings.catch_warnings(action="error"):
        model.given(source)
    model.register_forward_hook(lambda *seen: None)
    with pytest.warns(UserWarning, match=r"has hooks, without effect here: .* from decode"):
        model.given(source)
    with pytest.warns(UserWarning, match="this Capped has a forward of its own, without"):
        Capped(model.config).eval().given(source)


def test_sources_are_given_without_dropout_and_the_mode_comes_back():
    config = EncoderDecoderConfig(
        source_vocabulary=11, target_vocabulary=13, context=9, n_layers=1, n_heads=2, d_model=12,
        dropout=0.5,
    )  # fmt: skip
    model = EncoderDecoder(config).train()
    source, begin = torch.tensor([[3, 4, 5]]), torch.tensor([[BEGIN]])
    with torch.no_grad():
        once, again = (model.given(source).eval()(begin) for _ in range(2))
        model.train()
    assert once.equal(again)
    model.given(source)
    assert all(part.training for part in model.modules())
