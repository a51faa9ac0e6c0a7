"""The runner: whatever an answer does, a verdict comes back, and it names what happened."""

import dataclasses
import functools
import textwrap

import pytest
import torch
from torch import nn

from transformer_lib.exercises.engine import runner
from transformer_lib.exercises.engine.runner import Case, Exercise, randn
from transformer_lib.exercises.engine.verdict import NOT_ATTEMPTED, Verdict

# Made here, since its first use imports for seconds.
ZERO = torch.zeros(1)
JAGGED = torch.nested.nested_tensor([torch.ones(5)], layout=torch.jagged)


def _right(q, k):
    return torch.softmax(q @ k.T, dim=-1)


WEIGHTS = Exercise(
    right=_right,
    wrong={
        "The softmax runs over the queries.": lambda q, k: torch.softmax(q @ k.T, dim=0),
        "The keys are not transposed.": lambda q, k: torch.softmax(q @ k, dim=-1),
    },
    cases=[
        Case("5 queries and 5 keys", randn(5, 5, seed=0), randn(5, 5, seed=1)),
        Case("3 queries and 7 keys", randn(3, 5, seed=2), randn(7, 5, seed=3)),
    ],
    axes="queries keys",
    also={"Q asks alone.": lambda w, q, k: (w == 1).all()},
    praise="Right: rows sum to 1.",
)


@pytest.fixture(autouse=True)
def no_lines(monkeypatch):
    """These tests are of what is said without the lines: `mending` and `recording` have theirs."""
    monkeypatch.setattr(runner, "mended", lambda *_, **__: [])
    monkeypatch.setattr(runner, "departure", lambda *_: None)


def says(answer, exercise=WEIGHTS):
    verdict = exercise(answer)
    assert isinstance(verdict, Verdict)
    return repr(verdict)


@pytest.mark.parametrize(
    "answer",
    [
        _right,
        lambda q, k: (q @ k.T).exp() / (q @ k.T).exp().sum(1, keepdim=True),
        lambda q, k, *, scale=1.0: torch.einsum("id,jd->ij", q, k).mul(scale).softmax(1),
        lambda q, k: torch.stack([torch.softmax(k @ row, 0) for row in q]),
        functools.partial(lambda dim, q, k: (q @ k.T).softmax(dim), -1),
        lambda q, k: nn.Parameter(_right(q, k)),  # a gradient does not matter
        lambda q, k: _right(q.double(), k.double()),
        lambda q, k: _right(q, k).numpy(),
        lambda q, k: _right(q, k).flip(0).numpy()[::-1],
        lambda q, k: _right(q, k).tolist(),
        lambda q, k: list(_right(q, k)),
        lambda q, k: tuple([*row] for row in _right(q, k)),
    ],
)
def test_a_right_answer_passes_however_it_is_written(answer):
    assert says(answer) == "✓ Right: rows sum to 1."


def _stub(q, k):
    """A docstring."""


def _returns_none(q, k):
    return None


def _raises(q, k):
    raise NotImplementedError("your turn")


def _half_filled(q, k):
    scores = ...
    return scores.softmax(-1)


def _operand(q, k):
    return q @ ...


@pytest.mark.parametrize(
    "answer",
    [
        None, ..., NotImplemented, (..., 3), [None, None], {"a": ...},
        _stub, _returns_none, _raises, _half_filled, _operand,
        lambda q, k: ..., lambda q, k: (..., ...), lambda q, k: NotImplemented,
    ],
)  # fmt: skip
def test_a_stub_is_not_attempted(answer):
    assert WEIGHTS(answer) == NOT_ATTEMPTED


def _forgets_return(q, k):
    _right(q, k)


def _whole_numbers(q, k):
    return torch.softmax(q.long() @ k.long().T, dim=-1)


class _MisspeltForward(nn.Module):
    def foward(self, q, k):
        return _right(q, k)


def test_an_attempt_is_not_mistaken_for_a_stub():
    assert says(_forgets_return) == "✗ Your function returns None: is a `return` missing?"
    both = Exercise(
        right=lambda n: {"once": n, "twice": 2 * n},
        cases=[Case("3", 3)],
        call=lambda answer, n: {"once": answer(n), "twice": answer(2 * n)},
    )
    assert says(lambda n: print(n), both) == f"✗ {runner.PRINTED}"
    with pytest.raises(NotImplementedError):  # PyTorch's own, for want of a kernel
        _whole_numbers(torch.eye(2), torch.eye(2))
    assert "your answer raises NotImplementedError" in says(_whole_numbers)
    assert "is missing the required" in says(_MisspeltForward())


def _fails_on_line(q, k):
    scores = q @ k.T
    return scores.view(2, -1)


def _exits(q, k):
    raise SystemExit(3)


def _fails_deeper(q, k):
    return nn.functional.softmax("text", dim=0)


def _recurses(q, k):
    return _recurses(q, k)


def _mute(q, k):
    raise type("Mute", (Exception,), {"__str__": None})


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_fails_on_line, ["raises RuntimeError", "`return scores.view(2, -1)`", "line "]),
        (_exits, ["raises SystemExit", "3"]),
        (_fails_deeper, ["raises", '`return nn.functional.softmax("text", dim=0)`']),
        (_recurses, ["raises RecursionError"]),
        (lambda q, k: 1 / 0, ["raises ZeroDivisionError", "division by zero"]),
        (_mute, ["raises Mute", "no message"]),
    ],
)
def test_an_exception_is_reported_with_the_line_of_the_answer(answer, words):
    verdict = says(answer)
    assert verdict.startswith("✗ On 5 queries and 5 keys: your answer raises ")
    assert all(word in verdict for word in words), verdict


def test_the_readers_own_interrupt_passes():
    def interrupted(q, k):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        WEIGHTS(interrupted)


def _writes(q, k):
    q *= 0.5
    return _right(q / 0.5, k)


def _reshapes(q, k):
    k.t_()
    return torch.softmax(q @ k, dim=-1)


@pytest.mark.parametrize(("answer", "name"), [(_writes, "q"), (_reshapes, "k")])
def test_writing_into_an_argument_is_found(answer, name):
    assert f"you write into the argument `{name}`" in says(answer)


def test_every_answer_gets_fresh_inputs():
    for _ in range(2):
        assert "write into" in says(_writes)
    assert says(_right).startswith("✓")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda w: w.numpy().astype(object), "a NumPy array; a torch tensor is expected"),
        (lambda w: [*w[0].tolist(), [1]], "a list; a torch tensor is expected"),
        (lambda w: _right, "a function; a torch tensor is expected"),
        (lambda w: w.sum().item(), "a number; a torch tensor is expected, of shape (5, 5): does a"),
        (lambda w: (w, 2 * w), "You return 2 results, as a tuple. The one at index 0 is the right"),
        (lambda w: ("weights", w.tolist()), "The one at index 1 is the right one"),
        (lambda w: (2 * w, w[0]), "a tuple; a torch tensor is expected"),
        (lambda w: w.to("meta"), "on the device `meta`, the inputs are on `cpu`"),
        (lambda w: w.bfloat16(), "`torch.bfloat16`, not `torch.float32`"),
        (lambda w: w.to(torch.complex64), "`torch.complex64`, not `torch.float32`"),
        (lambda w: w.long(), "`torch.int64`, not `torch.float32`"),
        (lambda w: w.to_sparse(), "an ordinary one is expected"),
        (lambda w: JAGGED, "an ordinary one is expected"),
        (lambda w: w[:0], "has the shape (0, 5); it should be (5, 5) = (queries, keys)"),
        (lambda w: w / 0 * 0, "holds nan (first at [0, 0]), where a finite number is expected: is"),
        (lambda w: w / 0, "holds inf (first at [0, 0]), where a finite number is expected."),
        (lambda w: torch.ones_like(w), "On 5 queries and 5 keys: Q asks alone."),
    ],
)
def test_a_result_of_another_kind_is_named(change, words):
    assert words in says(lambda q, k: change(_right(q, k)))


def test_the_order_of_axes_is_named():
    verdict = says(lambda q, k: _right(q, k).T if len(q) != len(k) else _right(q, k))
    assert "Right on 5 queries and 5 keys, but on 3 queries and 7 keys" in verdict
    assert "its axes in the order (keys, queries); it should be (3, 7) = (queries, keys)" in verdict


def test_the_first_difference_is_shown():
    def noisy(q, k):
        scores = q @ k.T
        return scores + 0.01 * torch.sin(37 * scores)

    scores = Exercise(right=lambda q, k: q @ k.T, cases=WEIGHTS.cases)
    q, k = WEIGHTS.cases[0].inputs
    ours, right = noisy(q, k)[0, 0].item(), (q @ k.T)[0, 0].item()
    wanted = f"at [0, 0] you have {ours:.4g}; it should be {right:.4g}."
    assert says(noisy, scores) == f"✗ On 5 queries and 5 keys: {wanted}"


def test_named_mistakes_come_first_and_must_fit_every_case():
    assert says(lambda q, k: (q @ k.T).softmax(0)) == "✗ The softmax runs over the queries."
    # bmm and matmul raise where the axes do not fit: works for squares only.
    assert says(lambda q, k: torch.matmul(q, k).softmax(-1)) == "✗ The keys are not transposed."

    def one_case_only(q, k):
        return (q @ k.T).softmax(0 if len(q) == len(k) else -1)

    assert "runs over the wrong axis" in says(one_case_only)

    def other_case_fails(q, k):
        return (q @ k.T).softmax(0).view(5, 5)

    assert "but" not in says(other_case_fails)
    assert "runs over the wrong axis" in says(other_case_fails)


def test_a_wrong_computation_that_tells_nothing_is_never_named():
    useless = Exercise(
        right=lambda x: x + 1,
        wrong={"Same as right.": lambda x: 1 + x, "Fails always.": lambda x: x @ torch.ones(9)},
        cases=[Case("3 numbers", randn(3, seed=0))],
    )
    assert says(lambda x: 1 + x, useless) == "✓ Right."
    assert "raises RuntimeError" in says(lambda x: x.view(2, 2), useless)


@pytest.mark.parametrize("edge", [False, True])
def test_an_edge_case_judges_but_names_no_mistake(edge):
    cases = [Case("3", 3), Case("0", 0, edge=edge)]
    wrong = {"Doubled.": lambda x: 2 * x / x}
    share = Exercise(right=lambda x: x / (x or 1), wrong=wrong, cases=cases)
    assert says(lambda x: 2 * x / x, share) == "✗ Doubled."
    assert ("Doubled" in says(lambda x: 2 if x else 0, share)) is edge
    assert "✗ Right on 3, but on 0: your answer raises Zero" in says(lambda x: x / x, share)


def test_a_value_is_checked_without_giving_the_answer_away():
    count = Exercise(right=12, wrong={"The biases are missing.": 8, "No W_O.": lambda: 9})
    assert says(12, count) == says(12.0, count) == "✓ Right."
    assert says(8, count) == "✗ The biases are missing."
    assert says(9, count) == "✗ No W_O."
    assert says(13, count) == "✗ 13 is too large."
    assert says(..., count) == says(None, count) == "○ not attempted yet"
    assert says("12", count) == "✗ Your result is a string; an int is expected."


def test_functions_and_values_are_told_apart():
    assert says(lambda q: q) == "✗ Your function must take 2 arguments: (q, k)."
    assert says(torch.eye(5)) == ("✗ You gave a tensor of shape (5, 5); give the function itself.")
    count = Exercise(right=12)
    assert says(lambda: 12, count) == "✗ You gave a function; give its result: call it."


def test_the_example_in_the_docstring_works():
    lines = runner.__doc__.splitlines()
    code = "\n".join(line for line in lines if line.startswith("    ") or not line)
    names: dict = {}
    exec(textwrap.dedent(code), names)
    check = names["check_one_output"]
    assert check(lambda x, i: (x @ x.T).softmax(1)[i] @ x).passed
    assert check(lambda x, i: (x @ x[i]) @ x).diagnosis.endswith("a softmax is missing.")
    assert check(lambda x, i: x[i]).diagnosis == "The sum adds x_i, not x_j."


def test_the_random_state_is_the_notebooks_own():
    before = torch.random.get_rng_state()
    noisy = Exercise(right=lambda n: torch.randn(n), cases=[Case("5 numbers", 5)])
    assert says(lambda n: torch.randn(n), noisy) == "✓ Right."
    assert torch.equal(before, torch.random.get_rng_state())


def test_right_must_be_a_function_when_there_are_cases():
    with pytest.raises(TypeError, match="function of their inputs"):
        Exercise(right=3, cases=[Case("one", 1)])
    with pytest.raises(TypeError, match="name each argument"):
        Exercise(right=lambda *x: x, cases=[Case("two", 1, 2)])


def test_a_check_explains_itself():
    asks = """`answer(x)`: twice x.

        x [n] -> [n].
    """
    check = Exercise(asks=asks, right=lambda x: 2 * x, cases=[Case("one", 1)])
    assert check.__doc__ == "`answer(x)`: twice x.\n\nx [n] -> [n]."
    assert repr(check) == "<check of `answer(x)`: twice x.>"


def test_a_number_too_large_for_64_bits_is_judged():
    check = Exercise(right=lambda n: n, cases=[Case("3", 3), Case("5", 5)])
    assert "it should be 3" in says(lambda n: 12 ** (10 * n), check)
    assert "too large to represent" in says(lambda n: 12 ** (1000 * n), check)
    rows = Exercise(right=lambda x: x.sum(1), cases=[Case("two rows", torch.ones(2, 3))])
    assert "your result is a list" in says(lambda x: [10**30, x[0, 0]], rows).lower()


def test_of_what_no_look_is_possible_the_difference_is_told(monkeypatch):
    monkeypatch.setattr(runner, "departure", None)
    monkeypatch.setattr(runner.Exercise, "_trials", lambda *_: 1 / 0)
    assert "At [0] you have" in says(
        lambda x: x.sin(), Exercise(right=lambda x: x, cases=[Case("3", randn(3, seed=0))])
    )


def test_what_is_right_in_several_forms_is_adapted():
    ones = Exercise(right=lambda n: torch.ones(n), cases=[Case("3", 3)], adapt=lambda x: x.float())
    assert says(lambda n: torch.ones(n).double(), ones) == "✓ Right."
    assert says(lambda n: torch.zeros(n).long(), ones) == "✗ At [0] you have 0; it should be 1."
    assert says(lambda: 1, ones) == "✗ Your function must take 1 argument: (n)."


def test_the_steps_of_an_answer_are_looked_at_once(monkeypatch):
    looks = []
    monkeypatch.setattr(runner, "departure", lambda *given: looks.append(given))
    check = Exercise(right=lambda x: x, cases=[Case("3", randn(3, seed=0))])
    assert "here, at" not in says(lambda x: x.sin().cos(), check)
    assert len(looks) == 1


def test_a_mode_that_is_set_again_is_not_written():
    check = Exercise(
        right=lambda model, x: model(x), cases=[Case("one", nn.Linear(3, 2), randn(3, seed=0))]
    )
    assert says(lambda model, x: model.eval()(x), check) == "✓ Right."


def test_the_form_is_judged_before():
    form = Exercise(right=lambda: torch.ones(2), cases=[Case("")], unique=False)
    check = Exercise(right=lambda: torch.ones(2), cases=[Case("")], before=form, praise="Both.")
    assert says(lambda: torch.ones(3), check).startswith("✗ Your result has the shape (3,)")
    assert says(lambda: torch.zeros(2), check) == "✗ At [0] you have 0; it should be 1."
    assert says(lambda: torch.ones(2), check) == "✓ Both."
    assert says(None, check) == "○ not attempted yet"


def test_more_may_be_asked_once_an_answer_is_right():
    more = Exercise(
        right=lambda x: x.abs(),
        cases=[Case("a zero", torch.zeros(2))],
        unique=False,
        also={"0 has no sign to divide by.": lambda y, x: bool((y != 0).any())},
    )
    cases = [Case("3", randn(3, seed=0)), Case("5", randn(5, seed=1))]
    check = Exercise(
        right=lambda x: x.abs(), cases=cases, after=more, wrong={"A sign.": lambda x: x}
    )
    assert check.sentences == ["A sign.", "0 has no sign to divide by."]
    assert says(lambda x: x, check) == "✗ A sign."
    assert says(lambda x: x * x.sign() + (x == 0), check) == "✗ 0 has no sign to divide by."
    assert says(torch.abs, check) == "✓ Right."
    assert says(None, check) == "○ not attempted yet"


def test_a_sentence_may_have_blanks():
    also = {
        "At {} it is {:.2f}.": lambda w, q, k: ("[0, 0]", w[0, 0].item()) if w.min() > 1 else None
    }
    check = dataclasses.replace(WEIGHTS, also=also)
    first = _right(*WEIGHTS.cases[0].inputs)[0, 0].item() + 1.5
    assert says(lambda q, k: _right(q, k) + 1.5, check).endswith(f": at [0, 0] it is {first:.2f}.")


def _divides_by_d(q, k):
    return torch.softmax(q @ k.T / 5, dim=-1)


def test_a_sentence_about_the_answer_may_have_blanks():
    about = {"The name is {}.": lambda answer: (answer.__name__,)}
    check = dataclasses.replace(WEIGHTS, about=about, wrong={})
    assert says(_divides_by_d, check) == "✗ The name is _divides_by_d."


def test_a_result_of_any_form_can_be_judged_before_its_form():
    named = {"A text of {}.": lambda w, q, k: (len(w),) if isinstance(w, str) else None}
    check = dataclasses.replace(WEIGHTS, any_form=named)
    assert says(lambda q, k: "five", check).endswith(": a text of 4.")
    assert "a torch tensor is expected" in says(lambda q, k: 5, check)
    assert says(_right, check).startswith("✓")
    lengths = {"It is long.": lambda w, q, k: len(w) > 99}
    assert "a torch tensor is expected" in says(
        lambda q, k: 5, dataclasses.replace(WEIGHTS, any_form=lengths)
    )


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (lambda q, k: k[torch.tensor(6)], "a tensor that has numbers 0 to 4"),
        (lambda q, k: q.reshape(-1, 2, 2), "the sizes must multiply to 25."),
        (lambda q, k: q.tolist()[5], "does a loop go one too far"),
    ],
)
def test_an_exception_about_places_is_explained(answer, hint):
    assert hint in says(answer)


def test_the_one_right_item_of_a_value_is_not_given_away():
    check = Exercise(right=7)
    assert "index" not in says((3, 7), check)


def test_a_mistake_in_an_exercise_is_not_taken_for_the_answers():
    broken = Exercise(right=lambda x: x.no_such_name, cases=[Case("3", 3)])
    with pytest.raises(AttributeError):
        broken(lambda x: x)


def test_a_right_function_of_another_cell_is_named_as_such():
    """A misspelt `def my_double` after Run All: the solution's function is still there."""
    check = Exercise(right=lambda x: 2 * x, cases=[Case("one", 1)])
    names = {"check": check}

    def run(cell: str, code: str) -> str:
        exec(compile(code, f"/tmp/ipykernel_7/{cell}.py", "exec"), names)
        return repr(names["verdict"])

    own = "def double(x): return 2 * x\nverdict = check(double)"
    misspelt = own.replace("def double", "def duoble")
    assert run("solution", own) == "✓ Right."
    assert run("exercise", misspelt) == f"✓ Right. {runner.ANOTHER_CELL}"
    assert run("exercise", own) == "✓ Right."
    assert run("exercise", own.replace("2 * x", "x")).startswith("✗")
    assert run("builtin", "verdict = check(abs)").startswith("✗")


# --- chance -------------------------------------------------------------------------------------


def drawn(draws):
    def answer(spread):
        numbers = spread * torch.randn(draws)
        return round(float((numbers**2).mean()) ** 0.5)

    return answer


def test_a_result_that_hangs_on_chance_is_told_so():
    check = Exercise(
        right=lambda spread: spread,
        cases=[Case("a spread of 3", 3), Case("a spread of 7", 7)],
    )
    assert check(drawn(100_000)).passed
    assert "of 8 tries: draw enough that chance decides nothing" in check(drawn(7)).diagnosis
    assert "random" not in check(lambda spread: spread + 1).diagnosis


def test_arguments_in_another_order():
    check = Exercise(
        right=lambda x, i: x[i],
        cases=[Case("word 1", randn(3, 2, seed=0), 1), Case("word 2", randn(5, 2, seed=1), 2)],
    )
    told = "Your function takes its arguments in the order (i, x); they come as (x, i)."
    assert check(lambda i, x: x[i]).diagnosis == told
    assert "is not subscriptable" in check(lambda i, x: 2 * x[i]).diagnosis
