"""Circuit in Python: what travels, what comes back, what is refused."""

import numpy as np
import pytest

from transformer_lib.interpret.handmade import induction_gpt, slots
from transformer_lib.widgets import Circuit
from transformer_lib.widgets.weights import unpack_weights

GIVEN = {"machine": induction_gpt(3, 8), "slots": slots(3, 8), "letters": "abc", "text": "a b a"}


def test_every_number_of_the_machine_travels():
    widget = Circuit(**GIVEN)
    packed = unpack_weights(widget._packed)
    assert packed.keys() == GIVEN["machine"].state_dict().keys()
    for name, weight in GIVEN["machine"].state_dict().items():
        np.testing.assert_array_equal(packed[name], weight)
    assert repr(widget) == "Circuit(letters=3, context=8)"
    assert widget.ids == [0, 1, 0] == Circuit(**GIVEN | {"text": "aba"}).ids


def test_a_machine_in_bfloat16_is_shown():
    machine = induction_gpt(3, 8)
    weights = unpack_weights(Circuit(**GIVEN | {"machine": machine.bfloat16()})._packed)
    for name, weight in machine.state_dict().items():
        np.testing.assert_array_equal(weights[name], weight.float())


@pytest.mark.parametrize(
    ("changes", "wrong", "problem"),
    [
        ({"letters": "ab"}, ValueError, "letters are 'ab'; give 3 different"),
        ({"letters": "aab"}, ValueError, "letters are 'aab'; give 3 different"),
        ({"text": "a d"}, ValueError, "give 2 to 8 of a, b, c"),
        ({"text": "a d"}, ValueError, "text is 'a d', which has a 'd'"),
        ({"slots": slots(2, 8)}, ValueError, r"slots are .*: give slots\(3, 8\)"),
        (
            {"slots": slots(3, 8) | {"before": slice(2, 5)}},
            ValueError,
            "each must be apart from the others",
        ),
        ({"text": 5}, TypeError, "text is 5, but must be a str of these letters: abc"),
        ({"text": "a"}, ValueError, "give 2 to 8 of a, b, c"),
        ({"text": "abc" * 3}, ValueError, "give 2 to 8 of a, b, c"),
        ({"slots": {"token": slice(0, 3)}}, ValueError, "slots lack 'before'"),
        ({"slots": slots(30, 80)}, ValueError, r"slots end at 170, .* give slots\(3, 8\)"),
        ({"machine": "induction"}, TypeError, "machine is 'induction', which has no config"),
    ],
)
@pytest.mark.usefixtures("as_a_reader")
def test_what_is_refused(changes, wrong, problem):
    with pytest.raises(wrong, match=problem):
        Circuit(**GIVEN | changes)


def test_a_letter_outside_of_the_context():
    with pytest.raises(
        ValueError, match="at is 8, but must be a whole number from 0 to 7, or last"
    ):
        Circuit(**GIVEN).at = 8
