"""The classifier: made of the blocks, read at the last token, and its checks."""

import pytest
import torch
from torch.testing import assert_close

from transformer_lib.classifier import Classifier

SIZES = {"vocabulary": 11, "tokens": 7, "d_model": 6, "n_heads": 3, "n_classes": 2}


def test_its_scores_are_the_parts_put_together():
    model = Classifier(**SIZES, n_layers=2, d_ff=13).double()
    ids = torch.randint(11, (5, 4))
    x = model.embedding.weight[ids] + model.embedding.positions.table.weight[:4]
    for block in model.blocks:
        x = x + block.attention(block.norm_1(x))
        x = x + block.feed_forward(block.norm_2(x))
    assert_close(model(ids), x[:, -1] @ model.head.weight.T + model.head.bias)
    assert len(model.blocks) == 2
    assert model.blocks[0].feed_forward.expand.out_features == 13


def test_every_token_is_seen_also_from_before():
    model = Classifier(**SIZES, n_layers=2)
    ids = torch.randint(10, (1, 7))
    for place in range(7):
        changed = ids.clone()
        changed[0, place] = 10
        assert not torch.equal(model(changed), model(ids))


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (torch.zeros(7, dtype=torch.int64), ValueError, r"ids have shape \(7,\)"),
        (torch.zeros(0, 7, dtype=torch.int64), ValueError, r"ids have shape \(0, 7\)"),
        (torch.zeros(2, 7), TypeError, "have dtype torch.float32"),
        ([[1, 2]], TypeError, "of type list"),
        (torch.zeros(2, 8, dtype=torch.int64), ValueError, "7"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_bad_ids_get_a_clear_error(ids, error, message):
    with pytest.raises(error, match=message):
        Classifier(**SIZES)(ids)


@pytest.mark.parametrize("change", [{"n_classes": 0}, {"n_layers": 0}, {"tokens": 0}])
def test_bad_sizes_get_a_clear_error(change):
    [name] = change
    with pytest.raises(ValueError, match=name if name != "tokens" else "0"):
        Classifier(**SIZES | change)
