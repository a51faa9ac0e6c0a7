"""A sliding window with sinks against its definition, query by query, and its rolling cache."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.gpt import GPT, GPTConfig
from transformer_lib.masks import padding_mask
from transformer_lib.positions import AlibiPositions, RotaryPositions, rotary_angles
from transformer_lib.sampling import generate
from transformer_lib.window import WindowAttention, WindowCache

BATCH, TOKENS, HEADS, D_HEAD, WINDOW, SINKS = 2, 13, 3, 4, 4, 2
D_MODEL = HEADS * D_HEAD
EXACT = {"rtol": 0, "atol": 1e-12}
POSITIONS = pytest.mark.parametrize("positions", [None, RotaryPositions(D_HEAD)])


def make(positions, **options):
    options = {"window": WINDOW, "sinks": SINKS} | options
    attend = WindowAttention(D_MODEL, HEADS, positions=positions, **options).double()
    return attend, torch.randn(BATCH, TOKENS, D_MODEL, dtype=torch.float64)


def turned(vectors, places):
    """Rows of components (2i, 2i+1), as complex numbers times e^(i·angle)."""
    angles = rotary_angles(TOKENS, D_HEAD, dtype=torch.float64)[places]
    numbers = torch.view_as_complex(vectors.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(numbers * torch.exp(1j * angles)).flatten(-2)


def by_definition(attend, x):
    """Section 3.2: the kept tokens alone, at the places 0, 1, 2, … that they have in the cache."""
    heads = attend.n_heads
    q, k, v = (
        layer(x).unflatten(2, (-1, D_HEAD)).transpose(1, 2)
        for layer in (attend.query, attend.key, attend.value)
    )
    k, v = (y.repeat_interleave(heads // y.shape[1], dim=1) for y in (k, v))
    rows = []
    for t in range(x.shape[1]):
        kept = [s for s in range(t + 1) if s < attend.sinks or s > t - attend.window]
        query, keys = q[:, :, t : t + 1], k[:, :, kept]
        if attend.positions is not None:
            query = turned(query, [len(kept) - 1])
            keys = turned(keys, list(range(len(kept))))
        weights = (query @ keys.mT / D_HEAD**0.5).softmax(dim=-1)
        rows.append(weights @ v[:, :, kept])
    return attend.output(torch.cat(rows, dim=2).transpose(1, 2).flatten(2))


@POSITIONS
@pytest.mark.parametrize("options", [{}, {"sinks": 0}, {"n_kv_heads": 1}, {"window": 1}])
def test_it_is_its_definition(positions, options):
    attend, x = make(positions, **options)
    assert_close(attend(x, causal=True), by_definition(attend, x), **EXACT)


@POSITIONS
def test_a_window_over_all_is_plain_attention(positions):
    attend, x = make(positions, window=TOKENS)
    plain = MultiHeadAttention(D_MODEL, HEADS, positions=positions).double()
    plain.load_state_dict(attend.state_dict())
    assert_close(attend(x, causal=True), plain(x, causal=True), **EXACT)
    assert attend.project(x)[0].shape[-1] == D_HEAD  # no sink that needs a half of its own


@POSITIONS
@pytest.mark.parametrize("steps", [[1] * 13, [13], [5, 1, 1, 6], [1, 3, 9], [2, 11], [8, 1, 4]])
@torch.no_grad()
def test_the_cache_does_not_grow_and_equals_the_full_pass(positions, steps):
    attend, x = make(positions)
    cache = attend.new_cache(BATCH, 1000)
    memory = cache._memory
    assert memory.shape[3] == SINKS + WINDOW
    parts = [attend(part, causal=True, cache=cache) for part in x.split(steps, dim=1)]
    assert_close(torch.cat(parts, dim=1), attend(x, causal=True), **EXACT)
    assert (cache.length, cache.capacity, cache._memory is memory) == (TOKENS, 1000, True)


@POSITIONS
@torch.no_grad()
def test_steps_rewound_and_chosen_anew(positions):
    """As the decoder and beam search do: rewind one token, go on from other rows."""
    attend, x = make(positions)
    full, cache = attend(x, causal=True), attend.new_cache(BATCH, TOKENS)
    step = attend.stepper(cache)
    for t in range(TOKENS):
        step(torch.randn_like(x[:, t]))
        cache.rewind(1)
        assert_close(step(x[:, t]), full[:, t], **EXACT)
        cache.select(torch.tensor([1, 0]))
        x, full = x.flip(0), full.flip(0)


@torch.no_grad()
def test_padding_is_hidden_in_the_window_too():
    attend, x = make(RotaryPositions(D_HEAD))
    mask, cache = padding_mask([9, 13], TOKENS), attend.new_cache(BATCH, TOKENS)
    full = attend(x, mask=mask, causal=True)
    attend(x[:, :10], mask=padding_mask([9, 10], 10), causal=True, cache=cache)
    assert_close(attend(x[:, 10:], mask=mask, causal=True, cache=cache), full[:, 10:], **EXACT)


@pytest.mark.usefixtures("as_a_reader")
@torch.no_grad()
def test_what_is_refused():
    attend, x = make(None)
    with pytest.raises(ValueError, match="Use MultiHeadAttention to read a memory"):
        attend(x, x)
    with pytest.raises(ValueError, match="adds a bias by distances in the text"):
        make(AlibiPositions(HEADS))
    for wrong, said in ({"window": 0}, "at least 1"), ({"sinks": -1}, "sinks is -1; .* at least 0"):
        with pytest.raises(ValueError, match=said):
            make(None, **wrong)
        with pytest.raises(ValueError, match=said):
            WindowCache(1, 1, 9, 4, **{"window": 3, "sinks": 0} | wrong)
    cache = attend.new_cache(BATCH, TOKENS)
    attend(x, cache=cache)
    with pytest.raises(ValueError, match=r"2 tokens cannot be rewound: .* a window of 4"):
        cache.rewind(2)
    with pytest.raises(ValueError, match="holds 13 of at most 13 tokens"):
        attend(x[:, :1], cache=cache)


def test_a_gpt_writes_far_with_a_small_memory():
    config = GPTConfig.fast(
        vocabulary=11, context=500, n_layers=2, n_heads=2, d_model=16, projections="normal",
        attention="window", attention_options={"window": 8, "sinks": 1},
    )  # fmt: skip
    model, ids = GPT(config).double(), torch.tensor([[3, 1, 4]])
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    assert model.new_cache(1).layers[0]._memory.numel() == 2 * 9 * 16
    text = generate(model, ids, 200, temperature=0)
    assert text[:, :60].equal(generate(model, ids, 57, temperature=0, cache=False))
    assert len(text.unique()) > 3
