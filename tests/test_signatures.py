"""tests/support/signatures.py: what the tests hold the library's signatures to."""

import jaxtyping
import pytest
import signatures
import torch

from transformer_lib.attention import attention_weights
from transformer_lib.cache import KeyValueCache
from transformer_lib.exercises.engine.calling import time_limit
from transformer_lib.gpt import GPTConfig


def test_a_shape_is_checked():
    q, k = torch.ones(2, 3, 5), torch.ones(2, 7, 6)  # of unequal widths
    with pytest.raises(jaxtyping.TypeCheckError):
        attention_weights(q, k)


@pytest.mark.parametrize("call", [
    lambda: KeyValueCache(1, 1, 1, 1).rewind("one"),
    lambda: time_limit("long"),
    lambda: GPTConfig(vocabulary="7", context=8, n_layers=1, n_heads=2, d_model=12),
])  # fmt: skip
def test_a_type_is_checked_where_there_is_no_shape(call):
    with pytest.raises(jaxtyping.TypeCheckError):
        call()


def test_a_reader_meets_none_of_it():
    with signatures.unchecked(), pytest.raises(TypeError, match="it must be an int"):
        KeyValueCache(1, 1, 1, 1).rewind("one")


def test_what_has_a_shape():
    found = jaxtyping.Float[torch.Tensor, "rows"]
    assert all(map(signatures.has_shape, [found, found | None, list[found], "Float"]))
    assert not any(map(signatures.has_shape, [int, None, torch.Tensor | None, list[str]]))
