"""Checks for the deeper pages of chapter 12: Muon, memory and speed, and what a run must keep."""

import torch
from torch import Tensor

from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import close
from transformer_lib.exercises.engine.observing import otherwise
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- 12b: Newton and Schulz -----------------------------------------------------------------------

A, B, C = 3.4445, -4.7750, 2.0315


def _step(x: Tensor, a: float = A, b: float = B, c: float = C) -> Tensor:
    products = x @ x.T
    return a * x + (b * products + c * products @ products) @ x


def _turned(gradient):
    """The directions of a gradient: u and vh of its decomposition."""
    u, _, vh = torch.linalg.svd(gradient.double(), full_matrices=False)
    return u, vh


def _same_directions(result, gradient, n_iterations):
    """The singular values that a result has along the gradient's directions, if it keeps these."""
    u, vh = _turned(gradient)
    inside = u.mT @ result.double() @ vh.mT
    lifted = inside.diagonal()
    spread = (inside - lifted.diag()).abs().max()
    kept = bool(spread <= 1e-3 * lifted.abs().max())
    return kept and close(result.double(), u @ lifted.diag() @ vh, (1e-3, 1e-3)) and lifted


def _other_lengths(result, gradient, n_iterations):
    lifted = _same_directions(result, gradient, n_iterations)
    right = _iterated()(gradient, n_iterations)
    if lifted is False or close(result, right):
        return None
    wanted = _same_directions(right, gradient, n_iterations)
    return f"{float(lifted[0]):.3g}", f"{float(wanted[0]):.3g}"


def _iterated(step=_step, size=torch.linalg.matrix_norm, extra=0):
    def orthogonalize(gradient, n_iterations):
        x = gradient / size(gradient)
        for _ in range(n_iterations + extra):
            x = step(x)
        return x

    return orthogonalize


_ITERATIONS = [
    {
        "": torch.linalg.matrix_norm,
        "the gradient is not divided by its norm": lambda x: 1.0,
        "it is divided by its largest singular value": lambda x: torch.linalg.matrix_norm(x, 2),
        "it is divided by the sum of its singular values, the nuclear norm": (
            lambda x: torch.linalg.matrix_norm(x, "nuc")
        ),
        "it is divided by the sum of squares": lambda x: x.square().sum(),
        "it is divided by its largest number": lambda x: x.abs().max(),
        "it is divided by the root of the mean square": lambda x: x.square().mean().sqrt(),
        "it is divided by its standard deviation": lambda x: x.std(),
    },
    {
        "": lambda x: x @ x.T,
        "A is Xᵀ X": lambda x: x.T @ x,
        "A is X X, without a transpose": lambda x: x @ x,
        "A is X times itself, number by number": lambda x: x * x,
    },
    {
        "": lambda a: (B * a) + (C * a @ a),
        "A² squares each number": lambda a: B * a + C * a * a,
        "A stands in place of A²": lambda a: B * a + C * a,
        "A³ stands in place of A²": lambda a: B * a + C * a @ a @ a,
        "b and c are swapped": lambda a: C * a + B * a @ a,
        "b has lost its sign": lambda a: -B * a + C * a @ a,
    },
    {
        "": lambda x, bracket: A * x + bracket @ x,
        "a · X is left out": lambda x, bracket: bracket @ x,
        "a is left out": lambda x, bracket: x + bracket @ x,
        "the bracket meets a · X, since X is overwritten first": lambda x, bracket: (
            A * x + bracket @ (A * x)
        ),
        "a · X stands inside the bracket": lambda x, bracket: (A * x + bracket) @ x,
        "the bracket comes from the right": lambda x, bracket: A * x + x @ bracket,
        "the bracket is multiplied number by number": lambda x, bracket: A * x + bracket * x,
    },
    {
        "": lambda n: n,
        "there is one iteration too few": lambda n: n - 1,
        "there is one iteration too many": lambda n: n + 1,
        "there is one iteration alone": lambda n: 1,
        "there are five iterations, whatever is asked": lambda n: 5,
    },
]


def _iterations(size, square, bracket, update, count, gradient, n_iterations):
    x = gradient / size(gradient)
    for _ in range(count(n_iterations)):
        x = update(x, bracket(square(x)))
    return x


check_orthogonalize = Exercise(
    asks="""`answer(gradient, n_iterations)`: Newton and Schulz's iteration.

    gradient [rows, columns] -> the same shape.
    """,
    right=_iterated(),
    wrong={
        "Powers of each number: `**` and `*` work on the numbers, and the singular values need "
        "matrix products, `@`.": _iterated(step=lambda x: A * x + B * x**3 + C * x**5),
        "You divide each row by its own norm: the whole gradient has one, the Frobenius norm.": (
            _iterated(size=lambda gradient: gradient.norm(dim=1, keepdim=True))
        ),
        "You divide each column by its own norm: the whole gradient has one, the Frobenius norm.": (
            _iterated(size=lambda gradient: gradient.norm(dim=0, keepdim=True))
        ),
    },
    cases=[
        Case("a 5 × 5 gradient, 3 times", 0.3 * randn(5, 5, seed=0), 3),
        Case("a 3 × 7 gradient, 5 times", 0.3 * randn(3, 7, seed=1), 5),
        Case("a 7 × 3 gradient, 2 times", 0.3 * randn(7, 3, seed=2), 2),
    ],
    also={
        "Your result is what comes out if {}.": otherwise(_ITERATIONS, _iterations),
        "The directions are right, the lengths are not: the largest singular value of the gradient "
        "becomes {}, and {} is right. Look at the three numbers, at the "
        "norm, and at what each iteration begins with.": _other_lengths,
    },
    axes="rows columns",
    praise="Right: products of matrices alone lift small singular values and keep the directions.",
)


# --- 12c: accumulation ----------------------------------------------------------------------------


def _accumulate(gradients: Tensor, counts: Tensor) -> Tensor:
    return (gradients * counts[:, None]).sum(0) / counts.sum()


check_accumulate = Exercise(
    asks="""`answer(gradients, counts)`: the gradient of the mean loss over all targets.

    gradients [parts, parameters], of each part's mean loss; counts [parts] -> [parameters].
    """,
    right=_accumulate,
    wrong={
        "The mean of means: a target in a part with few targets weighs more than one in a part "
        "with many. Weigh each part by its targets.": lambda gradients, counts: gradients.mean(0),
        "The sum of the parts' gradients: each is a mean already, so the result is about as many "
        "times too large as there are parts.": lambda gradients, counts: gradients.sum(0),
        "Weighted, but never divided: the number of all targets is missing.": (
            lambda gradients, counts: (gradients * counts[:, None]).sum(0)
        ),
        "The parts' sums, not their means, would have to be divided by all targets: a mean must "
        "be multiplied by its own count first.": lambda gradients, counts: (
            gradients.sum(0) / counts.sum()
        ),
        "The weights are the wrong way around: a part with many targets counts less.": (
            lambda gradients, counts: (gradients / counts[:, None]).sum(0) / (1 / counts).sum()
        ),
        "Only the last part's gradient: the others are forgotten, as by a zero_grad() inside the "
        "loop.": lambda gradients, counts: gradients[-1],
    },
    cases=[
        Case("3 parts of 5 parameters", randn(3, 5, seed=0), torch.tensor([7.0, 2.0, 11.0])),
        Case("2 parts of 7 parameters", randn(2, 7, seed=1), torch.tensor([1.0, 5.0])),
    ],
    axes="parameters",
    praise="Right: every target counts once, whichever part it came in.",
)


# --- 12c: what training keeps in memory -----------------------------------------------------------


def _bytes(number=4, gradient=4, of_adamw=8, of_muon=4):
    def memory(muon, others):
        return (number + gradient + of_muon) * muon + (number + gradient + of_adamw) * others

    return memory


def _other_bytes(result, muon, others):
    """What each number of either kind takes, if both are whole: 16 and 12."""
    of_muon, rest = divmod(float(result), muon)
    of_others = rest / others
    if (
        not of_others.is_integer()
        or max(of_muon, of_others) > 64
        or (of_muon, of_others) == (12, 16)
    ):
        return None
    return f"{of_muon:.0f}", f"{of_others:.0f}"


check_memory = Exercise(
    asks="""`answer(muon, others)`: bytes of parameters, gradients and optimizer in float32.

    muon, others: how many numbers Muon moves, and how many its AdamW moves.
    """,
    right=_bytes(),
    also={
        "You give {} bytes to each number that Muon moves, and {} to each of the others. Count "
        "what is kept for a number, 4 bytes each: itself, its gradient, and one running mean for "
        "Muon, two for AdamW.": _other_bytes,
    },
    cases=[Case("a small GPT", 98_304, 1_408), Case("GPT-2 small", 84_934_656, 39_505_152)],
    praise="Right: 12 bytes for each number of Muon's, and 16 for each of AdamW's.",
)


# --- 12c: how busy is the machine? ----------------------------------------------------------------


def _utilization(products=6.0, scores=12.0, by_layers=True, by_context=True):
    def share(tokens_per_second, n_parameters, n_layers, context, d_model, peak):
        attention = scores * (n_layers if by_layers else 1) * (context if by_context else 1)
        return tokens_per_second * (products * n_parameters + attention * d_model) / peak

    return share


_TIMES = (0, 0.5, 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 36)


def _other_operations(result, tokens_per_second, n_parameters, n_layers, context, d_model, peak):
    """How often the parameters, and the meetings of queries and keys, are counted for a token."""
    for products in _TIMES:
        for scores in _TIMES:
            operations = products * n_parameters + scores * n_layers * context * d_model
            share = tokens_per_second * operations / peak
            if (products, scores) != (6, 12) and close(float(result), share, (1e-6, 0)):
                return f"{products:g}", f"{scores:g}"
    return None


check_utilization = Exercise(
    asks="""`answer(tokens_per_second, n_parameters, n_layers, context, d_model, peak)`: a share.

    peak: floating point operations a second that the machine can do at best.
    """,
    right=_utilization(),
    wrong={
        "Only attention's part is divided by `peak`, and only the other multiplied by "
        "tokens_per_second: put their sum in parentheses.": (
            lambda rate, n, layers, context, d, peak: (
                rate * 6 * n + 12 * layers * context * d / peak
            )
        ),
        "The two parts are multiplied: add attention's operations to those with parameters.": (
            lambda rate, n, layers, context, d, peak: (
                rate * 6 * n * 12 * layers * context * d / peak
            )
        ),
        "Those are the operations in a second: divide by what the machine can do, `peak`.": (
            lambda *given: given[-1] * _utilization()(*given)
        ),
    },
    also={
        "For each token you count {} operations a parameter and {} for each layer, key and "
        "component. Forward there are 2 for a parameter, and 2 each for a score and an average; "
        "backward, twice as many.": _other_operations,
    },
    tolerance=(1e-4, 0.0),
    cases=[
        Case("a small GPT on a laptop", 13_000.0, 1_900_000, 4, 256, 200, 3e11),
        Case("GPT-2 small on a large GPU", 400_000.0, 85_000_000, 12, 1024, 768, 9.9e14),
    ],
    praise="Right: what the training needs, divided by what the machine could do.",
)


# --- 12d: what a run must keep --------------------------------------------------------------------

check_state = Choice(
    asks="Which of these must be saved, so that the run goes on bit for bit? Letters.",
    right={"a", "b", "e", "f", "g"},
    wrong={
        "a": "without the parameters there is nothing to go on with.",
        "b": "without its running means, AdamW's next step moves every number by the full rate.",
        "c": "the next step computes the gradient anew, of another batch.",
        "d": "it follows from the number of the step, which is saved.",
        "e": "the schedule needs it, and so does Adam's correction at the start.",
        "f": "without it the run sees the first rows again, and others never.",
        "g": "dropout would draw other zeros.",
        "h": "a curve that is lost is a pity, but no step reads it.",
    },
    praise="Right: what the next step reads and cannot compute.",
)
