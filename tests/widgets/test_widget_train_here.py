"""TrainHere in Python: what is offered and what is refused."""

import pytest
import traitlets

from transformer_lib.widgets.train_here.widget import RATES, USUAL, TrainHere


def test_the_rate_follows_the_optimizer():
    assert TrainHere().rate == USUAL["muon"]
    assert TrainHere(optimizer="adam").rate == USUAL["adam"]
    assert TrainHere(optimizer="adam", rate=0.02).rate == 0.02
    assert set(USUAL.values()) <= set(RATES)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"rate": float("nan")}, "rate is nan"),
        ({"task": "copy"}, "repeats"),
        ({"optimizer": "sgd"}, "adam"),
        ({"layers": 3}, "layers"),
        ({"speed": "fast"}, "watch"),
    ],
)
def test_what_is_not_offered(options, problem):
    with pytest.raises((ValueError, traitlets.TraitError), match=problem):
        TrainHere(**options)
