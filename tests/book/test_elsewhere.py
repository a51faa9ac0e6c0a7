"""book/elsewhere.py: what differs on another machine is found, and nothing else."""

import elsewhere
import pytest
from execution import execute
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from stored_form import computed_digest

pytestmark = pytest.mark.slow

IMPORTS = "import torch\ntorch.manual_seed(0)\nx, y = torch.randn(3, 40), torch.randn(40, 3)"
FRAGILE = {
    "the sign of a zero": "print([f'{n:.3f}' for n in (x @ y - x @ y).flatten()])",
    "one order of a sum": "print(torch.equal(x @ y, torch.stack([row @ y for row in x])))",
    "a near tie": "print((torch.ones(3, 9) @ torch.full((9, 50), 0.1)).argmax(dim=1))",
    "a digit too many": "print(x.exp().sum().item())",
    "a sign of a decomposition": "print(torch.linalg.qr(torch.randn(9, 9)).R.diagonal().sign())",
    "a running sum": "print(torch.tensor([0.4, 0.3, 0.15, 0.1]).cumsum(0).tolist())",
    "a claim without a margin": "assert x.sum() == x.flatten().sum()",
    "one product twice": "print(torch.equal(x @ y, x @ y))",
}
FIRM = {
    "two digits": "print(f'{(x @ y)[0, 0]:.2f}')",
    "what is near": "print(torch.allclose(x @ y, torch.stack([row @ y for row in x]), atol=1e-4))",
    "exact arithmetic": "print((torch.arange(3) / 7 + 1).tolist(), (x * 2 / 2).equal(x))",
    "a running sum of halves": "print(torch.tensor([0.125, 0.5, 0.125, 0.25]).cumsum(0).tolist())",
}


@pytest.fixture(scope="module")
def stored():
    """A notebook of all these cells, run here."""
    cells = [new_code_cell(source) for source in (IMPORTS, *FRAGILE.values(), *FIRM.values())]
    cells.append(new_code_cell(FRAGILE["one product twice"]))
    cells[-1].metadata["bits"] = "the same product twice"
    cells.append(new_code_cell(FRAGILE["a digit too many"]))
    cells[-1].metadata["tags"] = ["nbval-ignore-output"]
    return execute(new_notebook(cells=cells), to_the_end=True)


@pytest.fixture(scope="module")
def runs(stored):
    return [elsewhere.run(stored, elsewhere.noise(seed)) for seed in range(3)]


def test_each_fragile_cell_is_found_and_no_other(stored, runs):
    found = set().union(*(elsewhere.differences(stored, nb) for nb in runs))
    names = dict(enumerate((*FRAGILE, *FIRM, "about bits"), start=2))
    assert {names[number] for number in found} == set(FRAGILE)


def test_the_spread_of_what_is_not_compared_is_kept(runs):
    (cell, ((least, most),)) = next(iter(elsewhere.spread(runs).items()))
    assert int(cell) == len(runs[0].cells)
    assert 0 < most - least < 1e-4 * most


def test_lines_with_the_same_words_keep_their_numbers_beside_lines_that_have_others():
    def ran(text):
        cell = new_code_cell(outputs=[new_output("stream", text=text)])
        cell.metadata["tags"] = ["nbval-ignore-output"]
        return new_notebook(cells=[new_markdown_cell("Of it:"), cell])

    found = elsewhere.spread([ran("loss 1.5 of 2\na rose\n"), ran("loss 1.7 of 2\nno rose\n")])
    assert found == {"1": [[1.5, 1.7], "other words from run to run"]}


QUESTION = """# how many
Predict("How many?", {"more": "Count " "again.", f"{n} in all": "No."}, right="six")
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# how many", "# asked", True),
        ("How many?", "How many are there?", True),
        ('"Count " "again."', '"Look: it is more."', True),
        ("{n} in", "{n + 1} in", False),
        ("in all", "altogether", False),
        ("Predict", "print", False),
        ("# how", "%time # how", False),
    ],
)
def test_a_comment_or_a_question_in_other_words_computes_the_same(old, new, same):
    asked, changed = (
        computed_digest(new_notebook(cells=[new_code_cell(source)]))
        for source in (QUESTION, QUESTION.replace(old, new))
    )
    assert (asked == changed) == same
