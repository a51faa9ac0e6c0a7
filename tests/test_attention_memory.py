"""The fused kernel is the one that runs: PyTorch's other ways, which store weights, raise here."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from transformer_lib.attention import attention, attention_weights

QUERIES, KEYS = 5, 7


def make():
    """Queries and keys [2, 3, tokens, 11]; the keys are the values, too."""
    return (torch.randn(2, 3, tokens, 11, dtype=torch.float64) for tokens in (QUERIES, KEYS))


def a_mask(*shape):
    """Half of it hidden; row 2 is empty."""
    mask = torch.rand(shape) < 0.5
    mask[..., -1, :], mask[..., 2, :] = True, False
    return mask


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_no_weights_are_stored_whatever_the_number_of_axes(axes):
    q, k = ([x, x[0], x[0, 0]][4 - axes] for x in make())
    for mask in (None, a_mask(QUERIES, KEYS), a_mask(*q.shape[:-1], KEYS)):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            output = attention(q, k, k, mask, causal=True)
        assert_close(output, attention_weights(q, k, mask, causal=True) @ k)


def test_no_weights_are_stored_for_keys_that_lie_in_memory_as_columns():
    q, k = make()
    columns = k.mT.contiguous().mT
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        output = attention(q, columns, k, causal=True)
    assert_close(output, attention(q, k, k, causal=True), rtol=0, atol=0)
