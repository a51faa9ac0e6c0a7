"""Sampling: the filters by hand and by frequency, generation with and without cache."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from models import CONTEXT, FEW, SMALLEST, make_few, prompt
from torch.testing import assert_close

from transformer_lib.beam import beam_search
from transformer_lib.gpt import GPTConfig
from transformer_lib.sampling import (
    filter_logits,
    generate,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    next_logits,
    penalize_repetition,
    stream,
)


def distribution(probabilities, **options):
    logits = torch.tensor(probabilities, dtype=torch.float64).log()
    return filter_logits(logits, **options).softmax(dim=-1).tolist()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.2, 0.4, 0.1, 0.3]),
        ({"temperature": 0.5}, [4 / 30, 16 / 30, 1 / 30, 9 / 30]),  # squared, to sum to 1 again
        ({"temperature": 0}, [0, 1, 0, 0]),
        ({"top_k": 1}, [0, 1, 0, 0]),
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 99}, [0.2, 0.4, 0.1, 0.3]),
        ({"top_p": 0.3}, [0, 1, 0, 0]),
        ({"top_p": 0.41}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.69}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_p": 0.71}, [2 / 9, 4 / 9, 0, 3 / 9]),
        ({"top_p": 1.0}, [0.2, 0.4, 0.1, 0.3]),
        ({"top_k": 2, "top_p": 0.5}, [0, 1, 0, 0]),  # 4/7 of what top-k has left: enough
        ({"temperature": 0.5, "top_p": 0.5}, [0, 1, 0, 0]),  # 16/30 after temperature
        ({"min_p": 0.0}, [0.2, 0.4, 0.1, 0.3]),
        ({"min_p": 0.26}, [2 / 9, 4 / 9, 0, 3 / 9]),  # 0.1 is less than 0.26 * 0.4
        ({"min_p": 0.74}, [0, 4 / 7, 0, 3 / 7]),
        ({"min_p": 1.0}, [0, 1, 0, 0]),
        ({"temperature": 0.5, "min_p": 0.26}, [0, 16 / 25, 0, 9 / 25]),  # 4 < 0.26 * 16
        ({"top_p": 0.41, "min_p": 0.26}, [0, 4 / 7, 0, 3 / 7]),
    ],
)
def test_changes_to_one_distribution(options, expected):
    assert distribution([0.2, 0.4, 0.1, 0.3], **options) == pytest.approx(expected, abs=1e-12)


def test_equal_logits():
    logits = torch.zeros(2, 3, 7)
    assert (keep_top_k(logits, 3).isfinite().sum(dim=-1) == 3).all()  # three, not all of them
    assert (keep_top_p(logits, 0.5).isfinite().sum(dim=-1) == 4).all()  # 4/7 is the first above
    many = torch.linspace(-6, 3, 50_000).bfloat16()  # of which the sum of 16 bits stops short
    kept = keep_top_p(many, 0.9).isfinite()
    assert 0.9 <= many.float().softmax(-1)[kept].sum() < 0.91
    greedy = filter_logits(logits, temperature=0).softmax(dim=-1)
    assert greedy.argmax(dim=-1).eq(0).all()


def test_logits_are_not_written_into_and_axes_in_front_stay():
    logits = torch.randn(2, 3, 11)
    before = logits.clone()
    together = filter_logits(logits, temperature=0.7, top_k=5, top_p=0.8)
    assert logits.equal(before)
    for b, t in itertools.product(range(2), range(3)):
        alone = filter_logits(logits[b, t], temperature=0.7, top_k=5, top_p=0.8)
        assert alone.equal(together[b, t])


@given(st.integers(0, 2**31), st.integers(2, 40), st.floats(0.01, 1.0), st.floats(0.05, 5.0))
def test_top_p_keeps_the_fewest_that_reach_p(seed, vocabulary, p, temperature):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(vocabulary, generator=generator, dtype=torch.float64)
    kept = filter_logits(logits, temperature=temperature, top_p=p).isfinite()
    probabilities = (logits / temperature).softmax(dim=-1)
    total = probabilities[kept].sum().item()
    assert total >= p - 1e-12
    if kept.sum() > 1:
        assert total - probabilities[kept].min().item() < p + 1e-12
    if not kept.all():
        assert probabilities[kept].min() >= probabilities[~kept].max()


def test_the_filters_equal_hugging_face():
    transformers = pytest.importorskip("transformers")
    logits = 3 * torch.randn(17, 53, dtype=torch.float64)
    warpers = [
        transformers.TemperatureLogitsWarper(0.7),
        transformers.TopKLogitsWarper(19),
        transformers.TopPLogitsWarper(0.8),
        transformers.MinPLogitsWarper(0.4),
    ]
    ids = torch.randint(53, (17, 11))
    theirs = transformers.RepetitionPenaltyLogitsProcessor(1.3)(ids, logits.clone())
    mine = penalize_repetition(logits, ids, 1.3)
    assert not mine.equal(logits)
    assert_close(mine, theirs, rtol=0, atol=1e-12)
    for warper in warpers:
        before, theirs = theirs, warper(None, theirs)
        assert not theirs.equal(before)  # so that each of them is seen
    mine = filter_logits(mine, temperature=0.7, top_k=19, top_p=0.8, min_p=0.4)
    assert_close(mine, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "config",
    [
        GPTConfig.fast(**SMALLEST, qk_norm=True),
        GPTConfig.gpt2(**SMALLEST),
        GPTConfig.gpt1(**SMALLEST),
    ],
    ids=["fast", "gpt2", "gpt1"],
)
@pytest.mark.parametrize(
    "options", [{"temperature": 0}, {}, {"temperature": 1.5, "top_k": 4, "top_p": 0.9}]
)
def test_with_and_without_the_cache_the_same_tokens(config, options):
    model, ids = make_few(config), prompt()
    texts = [
        generate(model, ids, 10, **options, cache=cache, generator=torch.Generator().manual_seed(1))
        for cache in (True, False)
    ]
    assert texts[0].equal(texts[1])
    assert texts[0].shape == (2, CONTEXT)  # the context can be filled to its end
    assert texts[0][:, :3].equal(ids)


def test_greedy_is_the_largest_logit_at_each_step():
    model, text = make_few(), prompt()
    expected = text
    for _ in range(5):
        expected = torch.cat((expected, model(expected)[:, -1:].argmax(dim=-1)), dim=1)
    assert generate(model, text, 5, temperature=0).equal(expected)
    assert generate(model, text, 5, top_k=1).equal(expected)


@pytest.mark.parametrize("cache", [True, False])
def test_a_text_ends_and_is_filled_up(cache):
    """The tokens before the ends are those of a text without one; no step comes after the last."""
    model, ids = make_few(), prompt(batch=7)
    options = {"cache": cache, "temperature": 1.5}
    free = generate(model, ids, 10, generator=torch.Generator().manual_seed(3), **options)
    for end in range(FEW):
        source = torch.Generator().manual_seed(3)
        text = generate(model, ids, 10, end=end, generator=source, **options)
        first = (free[:, 3:] == end).int().argmax(dim=1) + 3  # the prompt's own end ends nothing
        has_end = (free[:, 3:] == end).any(dim=1)
        last = int(first.max()) + 1 if has_end.all() else CONTEXT
        assert text.shape == (7, last)
        for row, whole, at, ends in zip(text, free, first, has_end, strict=True):
            expected = whole.clone()
            if ends:
                expected[at:] = end
            assert row.equal(expected[:last])


@pytest.mark.parametrize("cache", [True, False])
def test_a_penalty_sees_the_prompt_and_what_has_been_written(cache):
    model, ids = make_few(), prompt(batch=7)
    expected = ids
    for _ in range(8):
        rows = model(expected)[:, -1].tolist()
        for row, text in zip(rows, expected.tolist(), strict=True):
            for token in set(text):  # once, however often it occurs
                row[token] = row[token] / 1.7 if row[token] > 0 else row[token] * 1.7
        expected = torch.cat((expected, torch.tensor(rows).argmax(dim=1, keepdim=True)), dim=1)
    options = {"temperature": 0, "cache": cache}
    assert generate(model, ids, 8, repetition_penalty=1.7, **options).equal(expected)
    plain = generate(model, ids, 8, **options)
    assert not plain.equal(expected)
    assert plain.equal(generate(model, ids, 8, repetition_penalty=1.0, **options))
    assert plain.equal(generate(model, ids, 8, min_p=1.0, cache=cache))


def test_tokens_are_as_frequent_as_they_are_probable():
    """20,000 draws of two tokens after one prompt: each pair within 5 standard errors."""
    model, n = make_few(), 20_000
    ids = torch.tensor([[1, 4, 2]])
    texts = generate(model, ids.expand(n, -1), 2, temperature=1.3)
    pairs = torch.cartesian_prod(torch.arange(FEW), torch.arange(FEW))
    with torch.no_grad():
        logits = model(torch.cat((ids.expand(len(pairs), -1), pairs[:, :1]), dim=1))
    steps = (logits / 1.3).softmax(dim=-1)
    rows = torch.arange(len(pairs))
    probable = steps[rows, 2, pairs[:, 0]] * steps[rows, 3, pairs[:, 1]]
    counts = torch.bincount(texts[:, 3] * FEW + texts[:, 4], minlength=len(pairs))
    assert_close(probable.sum().item(), 1.0)
    error = (probable * (1 - probable) / n).sqrt()
    assert ((counts / n - probable).abs() <= 5 * error + 1 / n).all()


def test_a_generator_decides_and_the_global_one_stays():
    model, ids = make_few(), prompt(batch=7)
    before = torch.get_rng_state()
    texts = [
        generate(model, ids, 9, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    ]
    assert texts[0].equal(texts[1])
    assert not texts[0].equal(texts[2])
    assert torch.get_rng_state().equal(before)


def test_dropout_is_off_and_the_modes_are_put_back():
    model, ids = make_few(GPTConfig.gpt2(**SMALLEST | {"dropout": 0.5})).train(), prompt()
    model.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    text = generate(model, ids, 5, temperature=0)
    assert [module.training for module in model.modules()] == modes
    assert text.equal(generate(model.eval(), ids, 5, temperature=0))


def test_a_stream_reads_its_prompt_at_once_and_leaves_with_its_last_token():
    model, ids = make_few(GPTConfig.gpt2(**SMALLEST | {"dropout": 0.9})), prompt()
    alone = generate(model, ids, 2, temperature=0)[:, -2:]
    written = stream(model.train(), ids, 2, temperature=0)
    ids.zero_()
    assert torch.stack([next(written), next(written)], dim=1).equal(alone)
    assert model.training  # whether or not anybody asks for another token


@pytest.mark.parametrize("cache", [True, False])
def test_a_stream_made_in_inference_mode_is_read_outside(cache):
    model, options = make_few(), {"temperature": 0, "cache": cache}
    with torch.inference_mode():
        written = stream(model, prompt(), 5, **options)
    assert torch.stack(list(written), dim=1).equal(generate(model, prompt(), 5, **options)[:, -5:])


@pytest.mark.parametrize("cache", [True, False])
def test_streams_that_take_turns_keep_dropout_off(cache):
    model, options = make_few(GPTConfig.gpt2(**SMALLEST | {"dropout": 0.9})), {"temperature": 0}
    alone = generate(model.eval(), prompt(), 9, **options)[:, -9:]
    model.train()
    first, second = (stream(model, prompt(), n, cache=cache, **options) for n in (2, 9))
    text = [next(second), *(next(second) for _ in first), *second]
    assert torch.stack(text, dim=1).equal(alone)
    assert model.training


def test_what_is_generated_can_be_trained_on():
    model = make_few()
    text = generate(model, prompt(), 5)
    model(text).sum().backward()
    assert model.embedding.weight.grad.isfinite().all()


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ids": torch.zeros(1, 0).long()}, ValueError, "an empty prompt has nothing to go on"),
        ({"ids": torch.tensor([[0, 5]])}, ValueError, r"ids\[0, 1\] is 5; .* 0 to 4"),
        ({"ids": torch.zeros(1, 3)}, TypeError, "ids have dtype torch.float32"),
        ({"ids": torch.zeros(3).long()}, ValueError, r"ids have shape \(3,\)"),
        (
            {"n_tokens": 11},
            ValueError,
            r"a prompt of 3 tokens and 11 new ones make 14, .* context of 13.* ids\[:, -n:\]",
        ),
        ({"n_tokens": 0}, ValueError, "n_tokens is 0"),
        ({"temperature": -0.5}, ValueError, "temperature is -0.5; .* or 0 for greedy"),
        ({"temperature": float("nan")}, ValueError, "temperature is nan"),
        ({"top_k": 0}, ValueError, "top_k is 0"),
        ({"top_k": 2.0}, TypeError, "top_k is 2.0"),
        ({"top_p": 0.0}, ValueError, "top_p is 0.0; .* choose 0 < top_p <= 1"),
        ({"top_p": 1.1}, ValueError, "top_p is 1.1"),
        ({"temperature": 0, "top_p": 2.0}, ValueError, "top_p is 2.0"),
        ({"temperature": 0, "min_p": 1.5}, ValueError, "min_p is 1.5; .* choose 0 <= min_p <= 1"),
        ({"min_p": "0.1"}, TypeError, "min_p is '0.1'"),
        ({"repetition_penalty": 0}, ValueError, "repetition_penalty is 0; .* above 1"),
        ({"repetition_penalty": float("nan")}, ValueError, "repetition_penalty is nan"),
        ({"repetition_penalty": 1e-300}, ValueError, "repetition_penalty is 1e-300; .* finite"),
        ({"temperature": True}, TypeError, "temperature is True, of type bool"),
        ({"top_p": True}, TypeError, "top_p is True"),
        ({"end": 5}, ValueError, "end is 5; .* 0 <= end < 5"),
        ({"end": 2.0}, TypeError, "end is 2.0, of type float"),
    ],
)
def test_generation_that_makes_no_sense(changes, error, message):
    options = {"ids": torch.zeros(1, 3).long(), "n_tokens": 2} | changes
    with pytest.raises(error, match=message):
        generate(make_few(), **options)


def test_next_logits_are_those_after_each_prompt():
    model, prompts = make_few().train(), [[3, 1, 4], [2], [0, 1, 2, 3, 4]]
    found = next_logits(model, prompts)
    assert (model.training, found.requires_grad) == (True, False)
    model.eval()
    assert_close(found, torch.stack([model(torch.tensor([ids]))[0, -1] for ids in prompts]))


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ([], "no prompts"),
        ([[1], []], "empty prompt"),
        ([[0] * 14], "14 tokens are more than the model's context of 13"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_prompts_that_make_no_sense(prompts, message):
    with pytest.raises(ValueError, match=message):
        next_logits(make_few(), prompts)


@pytest.mark.usefixtures("as_a_reader")
def test_a_share_that_makes_no_sense():
    with pytest.raises(ValueError, match="top_p is -1"):
        keep_top_p(torch.zeros(3), -1.0)
    with pytest.raises(ValueError, match="min_p is -1"):
        keep_min_p(torch.zeros(3), -1.0)
    with pytest.raises(ValueError, match=r"ids have shape \(1, 2\) and logits \(3, 5\)"):
        penalize_repetition(torch.zeros(3, 5), torch.zeros(1, 2).long(), 2.0)


def test_a_banned_token_has_a_way_out():
    model = make_few()
    logits = model.logits
    model.logits = lambda x: logits(x).index_fill(-1, torch.tensor([3]), -torch.inf)
    with pytest.raises(ValueError, match=r"-inf, the first for the token 3\. To ban .* -1e4"):
        generate(model, prompt(), 2)


def test_a_model_that_has_gone_wrong_is_not_asked_for_text():
    model = make_few()
    model.blocks[0].feed_forward.expand.weight.data[0, 0] = torch.nan
    for call in (
        lambda: generate(model, prompt(), 2),
        lambda: beam_search(model, prompt(), 2, width=2),
    ):
        with pytest.raises(ValueError, match="the model's logits holds 10 numbers that are NaN"):
            call()


def test_a_low_temperature_in_float16_is_greedy():
    logits = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float16)
    left = filter_logits(logits, temperature=1e-6).softmax(dim=-1)
    assert left.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: filter_logits(torch.tensor([1, 2])),
        lambda: keep_top_k(torch.tensor([1, 2]), 1),
        lambda: next_logits(make_few(), ["abc"]),
    ],
)
def test_what_is_not_of_numbers_is_refused(call, as_a_reader):
    with pytest.raises(TypeError, match=r"floating point|list of integers"):
        call()
