"""MatrixInTheMiddle, the Python side: what it accepts, what it answers, what comes back."""

import pytest
import torch

from transformer_lib.attention import attention_weights
from transformer_lib.widgets import Goal, MatrixInTheMiddle

TOKENS = ["mary", "gave", "roses"]
FEATURES = ["person", "giving"]
X = torch.tensor([[1.0, 0.5], [0.0, 1.0], [-1.0, 2.0]])
A = torch.tensor([[0.0, 3.0], [-1.0, 0.5]])


def middle(**options):
    return MatrixInTheMiddle(TOKENS, X, A, FEATURES, **options)


def test_scores_and_weights_are_the_library_s():
    widget = middle()
    torch.testing.assert_close(widget.scores, X @ A @ X.T)
    torch.testing.assert_close(widget.weights, attention_weights(X @ A, X, scale=1.0))


def test_what_the_reader_does_comes_back_and_can_be_observed():
    widget = middle(presets={"identity": torch.eye(2)})
    seen = []
    widget.observe(lambda change: seen.append(widget.scores), "matrix")
    widget.set_state({"matrix": [[1.0, 0.0], [0.0, 1.0]], "entry": [1, 0]})
    torch.testing.assert_close(seen[-1], X @ X.T)
    assert widget.entry == (1, 0)
    widget.A = A
    torch.testing.assert_close(widget.A, A)


def test_it_opens_on_the_entry_that_is_named_or_on_the_largest():
    assert middle().entry == (0, 1)
    assert middle(entry=("giving", "person")).entry == (1, 0)
    assert middle(show="scores").show == "scores"


def test_links_may_set_what_the_docstring_says():
    widget = middle(presets={"identity": torch.eye(2)}, name="middle")
    taken = [("matrix", "identity"), ("matrix", "as built"), ("asking", "person")]
    taken += [("answering", "giving"), ("value", "-2.5"), ("show", "scores"), ("reset", "")]
    assert all(widget.accepts(key, value) for key, value in taken)
    refused = [("matrix", "none"), ("asking", "mary"), ("value", "101"), ("entry", "0,1")]
    assert not any(widget.accepts(key, value) for key, value in refused)


def test_goals_know_their_facts():
    middle(goals=[Goal("Do.", when=["weight roses mary > score gave roses", "moved <= 1"])])
    with pytest.raises(ValueError, match="there is no fact 'weight roses susan'"):
        middle(goals=[Goal("Do.", when=["weight roses susan > 1"])])


def test_repr_is_stable():
    assert repr(middle()) == "MatrixInTheMiddle(tokens=3, features=2)"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((TOKENS, X[0], A, FEATURES), {}, r"vectors have shape \(2,\)"),
        ((TOKENS, X, A[:1], FEATURES), {}, r"matrix has shape \(1, 2\), but must be \(2, 2\)"),
        ((TOKENS, X, A, FEATURES), {"presets": {"one": [[1]]}}, r"presets\['one'\] has shape"),
        ((TOKENS[:2], X, A, FEATURES), {}, "2 tokens for 3 rows of the vectors"),
        ((TOKENS, X, A, FEATURES[:1]), {}, "1 features for 2 columns"),
        ((TOKENS, X, 1000 * A, FEATURES), {}, "matrix holds 3000 at index"),
        ((TOKENS, X * float("nan"), A, FEATURES), {}, "vectors holds 6 numbers that are NaN"),
        ((TOKENS, X, A, FEATURES), {"entry": ("person", "thing")}, "entry is .*must be two of"),
        ((TOKENS, X, A, FEATURES), {"entry": "person"}, "entry is 'person'"),
        ((["a"] * 13, torch.ones(13, 2), A, FEATURES), {}, "13 tokens, but .* at most 12"),
        ((TOKENS, torch.ones(3, 9), torch.eye(9), ["f"] * 9), {}, "9 features, .* at most 8"),
    ],
)
def test_bad_input_gets_a_clear_error(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        MatrixInTheMiddle(*arguments, **options)


def test_what_is_set_later_is_checked_too():
    widget = middle()
    with pytest.raises(ValueError, match="A has shape"):
        widget.A = torch.eye(3)
    with pytest.raises(ValueError, match=r"entry is \(2, 0\)"):
        widget.entry = (2, 0)
    with pytest.raises(ValueError, match=r"cell is \(0, 3\)"):
        widget.cell = (0, 3)
    torch.testing.assert_close(widget.A, A)
