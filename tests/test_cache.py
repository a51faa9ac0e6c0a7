"""The cache: step by step equals the full pass, and a call that fails leaves it as it was."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.cache import KeyValueCache, ModelCache
from transformer_lib.masks import sliding_window_mask
from transformer_lib.positions import AlibiPositions, RotaryPositions
from transformer_lib.window import WindowCache

BATCH, HEADS, CAPACITY, D_HEAD, TOKENS = 2, 3, 13, 4, 11
POSITIONS = pytest.mark.parametrize("positions", [None, RotaryPositions(4), AlibiPositions(HEADS)])


def make(positions=None, dtype=torch.float64):
    attend = MultiHeadAttention(HEADS * D_HEAD, HEADS, positions=positions).to(dtype)
    cache = KeyValueCache(BATCH, HEADS, CAPACITY, D_HEAD, dtype=dtype)
    return attend, cache, torch.randn(BATCH, TOKENS, HEADS * D_HEAD, dtype=dtype)


@POSITIONS
@pytest.mark.parametrize("steps", [[1] * 11, [11], [5, 1, 1, 4], [1, 3, 7]])
@torch.no_grad()
def test_step_by_step_equals_the_full_pass(positions, steps):
    attend, cache, x = make(positions)
    parts = [attend(part, causal=True, cache=cache) for part in x.split(steps, dim=1)]
    assert_close(torch.cat(parts, dim=1), attend(x, causal=True), rtol=0, atol=1e-12)
    assert cache.length == TOKENS


@POSITIONS
@torch.no_grad()
def test_a_mask_over_the_cached_keys(positions):
    """A sliding window whose keys are partly cached and partly new."""
    attend, cache, x = make(positions)
    expected = attend(x, mask=sliding_window_mask(TOKENS, 3))
    attend(x[:, :6], causal=True, cache=cache)
    output = attend(x[:, 6:], mask=sliding_window_mask(5, 3, keys=11), cache=cache)
    assert_close(output, expected[:, 6:], rtol=0, atol=1e-12)


@torch.no_grad()
def test_reset_starts_again():
    attend, cache, x = make(RotaryPositions(4))
    first = attend(x, causal=True, cache=cache)
    cache.reset()
    assert cache.length == 0
    assert attend(x, causal=True, cache=cache).equal(first)


def test_extend_returns_all_so_far_and_keeps_a_copy():
    cache = KeyValueCache(2, 3, 7, 5)
    k, v = torch.randn(2, 2, 3, 4, 5)
    first, _ = cache.extend(k, v)
    assert first.equal(k)
    expected = k.clone()
    k.zero_()  # what the caller does with his tensor later does not matter
    k_2, v_2 = torch.randn(2, 2, 3, 3, 5)
    keys, values = cache.extend(k_2, v_2)
    assert keys.equal(torch.cat([expected, k_2], dim=2))
    assert values.equal(torch.cat([v, v_2], dim=2))
    assert first.equal(expected)  # what was returned before is still good
    assert (cache.length, cache.capacity) == (7, 7)
    assert repr(cache) == "KeyValueCache(batch=2, n_heads=3, length=7, capacity=7, d_head=5)"


def test_the_memory_is_allocated_once():
    cache = KeyValueCache(1, 1, 5, 2)
    addresses = {
        cache.extend(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2))[0].data_ptr() for _ in range(5)
    }
    assert len(addresses) == 1


def test_what_is_made_and_chosen_in_inference_mode_is_written_to_outside():
    x = torch.ones(2, 1, 2)
    with torch.inference_mode():
        layer = KeyValueCache(2, 1, 5, 2)
        cache = ModelCache([layer])
        cache.before(x, 1)
        layer.extend(x.unsqueeze(1), x.unsqueeze(1))
        cache.select(torch.tensor([1, 0]))
    cache.before(x, 1)
    assert layer.extend(x.unsqueeze(1), x.unsqueeze(1))[0].shape == (2, 1, 2, 2)


def test_dtype_and_device():
    cache = KeyValueCache(1, 2, 3, 5, dtype=torch.bfloat16, device="meta")
    x = torch.ones(1, 2, 2, 5, dtype=torch.bfloat16, device="meta")
    keys, _ = cache.extend(x, x)
    assert (keys.dtype, keys.device.type) == (torch.bfloat16, "meta")


def fresh():
    """A cache with four of seven tokens in it."""
    cache = KeyValueCache(2, 3, 7, 5)
    cache.extend(torch.ones(2, 3, 4, 5), torch.ones(2, 3, 4, 5))
    return cache


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("k", "v", "error", "message"),
    [
        (
            torch.ones(2, 3, 4, 5),
            torch.ones(2, 3, 4, 5),
            ValueError,
            "holds 4 of at most 7 tokens and cannot take 4 more. Make it with capacity=8",
        ),
        (torch.ones(1, 3, 1, 5), torch.ones(1, 3, 1, 5), ValueError, r"takes \[2, 3, tokens, 5\]"),
        (torch.ones(2, 3, 1, 7), torch.ones(2, 3, 1, 7), ValueError, r"k has shape \(2, 3, 1, 7\)"),
        (torch.ones(2, 3, 1, 5), torch.ones(2, 3, 5), ValueError, r"v has shape \(2, 3, 5\)"),
        (torch.ones(2, 3, 1, 5), torch.ones(2, 3, 2, 5), ValueError, "each key needs its value"),
        (
            torch.ones(2, 3, 1, 5).double(),
            torch.ones(2, 3, 1, 5),
            TypeError,
            "the cache is torch.float32 on cpu and k is torch.float64 on cpu. Make the cache",
        ),
        (
            torch.ones(2, 3, 1, 5),
            torch.ones(2, 3, 1, 5, device="meta"),
            ValueError,
            "the cache is torch.float32 on cpu and v is torch.float32 on meta",
        ),
        (
            torch.ones(2, 3, 1, 5),
            torch.ones(2, 3, 1, 5, requires_grad=True),
            ValueError,
            r"v carries a gradient; .* under torch.no_grad\(\)",
        ),
        (torch.ones(2, 3, 1, 5).long(), torch.ones(2, 3, 1, 5), TypeError, "k has dtype torch.int"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(k, v, error, message):
    cache = fresh()
    with pytest.raises(error, match=message):
        cache.extend(k, v)
    keys, values = cache.extend(torch.zeros(2, 3, 3, 5), torch.zeros(2, 3, 3, 5))
    assert (keys[:, :, :4] == 1).all()
    assert (values[:, :, :4] == 1).all()
    assert (keys[:, :, 4:] == 0).all()


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mask": torch.ones(1, 5, dtype=torch.bool)}, ValueError, "does not broadcast"),
        ({"mask": torch.ones(1, 7)}, TypeError, "a mask is a boolean tensor"),
        ({"memory": torch.ones(2, 3, 12)}, ValueError, "cache and memory are given together"),
    ],
)
@torch.no_grad()
def test_a_call_of_the_module_that_fails_leaves_the_cache_as_it_was(options, error, message):
    attend, cache, x = make(dtype=torch.float32)
    attend(x[:, :6], causal=True, cache=cache)
    with pytest.raises(error, match=message):
        attend(x[:, 6:7], **options, cache=cache)
    assert cache.length == 6
    output = attend(x[:, 6:], causal=True, cache=cache)
    assert_close(output, attend(x, causal=True)[:, 6:])


@pytest.mark.usefixtures("as_a_reader")
@torch.no_grad()
def test_a_full_cache_says_so():
    attend, cache, x = make(dtype=torch.float32)
    attend(x, causal=True, cache=cache)
    with pytest.raises(ValueError, match="holds 11 of at most 13 tokens and cannot take 3 more"):
        attend(x[:, :3], causal=True, cache=cache)
    assert cache.length == 11


@pytest.mark.parametrize(
    ("rows", "error"),
    [(0, TypeError), ([0, 1], TypeError), (torch.tensor([True, False]), TypeError),
     (torch.tensor([0, 1], dtype=torch.uint8), TypeError), (torch.tensor([[0]]), ValueError),
     (torch.tensor([], dtype=torch.int64), ValueError), (torch.tensor([0, 2]), IndexError),
     (torch.tensor([-3]), IndexError)],
)  # fmt: skip
def test_rows_that_number_no_sequences(rows, error, as_a_reader):
    cache = make()[1]
    for each in (cache, ModelCache([cache])):
        with pytest.raises(error, match=r"rows (are|have shape)"):
            each.select(rows)
    assert "batch=2" in repr(cache)


def test_a_rewind_that_one_layer_refuses_changes_none(as_a_reader):
    layers = [KeyValueCache(1, 2, 9, 4), WindowCache(1, 2, 9, 4, window=2, sinks=1)]
    cache = ModelCache(layers)
    for layer in layers:
        layer.extend(torch.zeros(1, 2, 7, 4), torch.zeros(1, 2, 7, 4))
    with pytest.raises(ValueError, match="keeps a window of 2"):
        cache.rewind(5)
    assert [layer.length for layer in layers] == [7, 7]


@pytest.mark.usefixtures("as_a_reader")
@pytest.mark.parametrize(
    ("sizes", "options", "error", "message"),
    [
        ((0, 3, 7, 5), {}, ValueError, "batch is 0"),
        ((2, 3, 0, 5), {}, ValueError, "capacity is 0"),
        ((2, 3, 7, 5.0), {}, TypeError, "d_head is 5.0"),
        ((2, 3, 7, 5), {"dtype": torch.int64}, TypeError, "choose a floating point type"),
    ],
)
def test_a_cache_of_impossible_sizes(sizes, options, error, message):
    with pytest.raises(error, match=message):
        KeyValueCache(*sizes, **options)
