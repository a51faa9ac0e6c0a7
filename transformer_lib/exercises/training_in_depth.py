"""Checks for the deeper pages of chapter 12: Muon, memory and speed, and what a run must keep."""

import torch
from torch import Tensor

from transformer_lib.exercises.engine.building import otherwise
from transformer_lib.exercises.engine.choosing import Choice
from transformer_lib.exercises.engine.comparing import close
from transformer_lib.exercises.engine.runner import Case, Exercise, randn

# --- 12b: Newton and Schulz -----------------------------------------------------------------------

A, B, C = 3.4445, -4.7750, 2.0315


def _step(x: Tensor, a: float = A, b: float = B, c: float = C) -> Tensor:
    products = x @ x.T
    return a * x + (b * products + c * products @ products) @ x


def _normed_each_time(gradient, n_iterations):
    x = gradient
    for _ in range(n_iterations):
        x = _step(x / torch.linalg.matrix_norm(x))
    return x


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


def _other_directions(result, gradient, n_iterations):
    return _same_directions(result, gradient, n_iterations) is False


def _iterated(step=_step, size=torch.linalg.matrix_norm, extra=0):
    def orthogonalize(gradient, n_iterations):
        x = gradient / size(gradient)
        for _ in range(n_iterations + extra):
            x = step(x)
        return x

    return orthogonalize


def _other_side(x):
    """As the right step on a square matrix with X^T X; on others the shapes do not fit."""
    products = x.T @ x
    return A * x + (B * products + C * products @ products) @ x


def _stale(gradient, n_iterations):
    x = gradient / torch.linalg.matrix_norm(gradient)
    products = x @ x.T
    for _ in range(n_iterations):
        x = A * x + (B * products + C * products @ products) @ x
    return x


def _exact(gradient, n_iterations):
    u, _, vh = torch.linalg.svd(gradient, full_matrices=False)
    return u @ vh


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
        "Only the length of the gradient changes: run the iteration.": _iterated(step=lambda x: x),
        "Powers of each number: `**` and `*` work on the numbers, and the singular values need "
        "matrix products, `@`.": _iterated(step=lambda x: A * x + B * x**3 + C * x**5),
        "A² is a matrix product, A @ A: you square each number.": _iterated(
            step=lambda x: A * x + (B * (x @ x.T) + C * (x @ x.T) ** 2) @ x
        ),
        "A is X times Xᵀ: you have Xᵀ X, whose shape fits only a square matrix.": _iterated(
            step=_other_side
        ),
        "The first term is missing: a · X.": _iterated(step=lambda x: _step(x) - A * x),
        "b and c are swapped: b belongs to A, and c to A².": _iterated(
            step=lambda x: _step(x, b=C, c=B)
        ),
        "The sign of b is lost: it is negative.": _iterated(step=lambda x: _step(x, b=-B)),
        "A stands once in the last term: c · A² · X has it twice.": _iterated(
            step=lambda x: A * x + (B + C) * x @ x.T @ x
        ),
        "The middle term is missing: b · A · X.": _iterated(step=lambda x: _step(x, b=0.0)),
        "The result of the bracket is not multiplied by X: (b A + c A²) X.": _iterated(
            step=lambda x: A * x + B * x @ x.T + C * x @ x.T @ x @ x.T
        ),
        "You divide by the norm in each iteration: once, before the first, is enough.": (
            _normed_each_time
        ),
        "Only one iteration counts: does each begin with the first X, or the loop end early?": (
            lambda gradient, n_iterations: _iterated()(gradient, 1)
        ),
        "The bracket is multiplied number by number, with `*`: it is a matrix product, "
        "(b A + c A²) @ X.": _iterated(
            step=lambda x: A * x + (B * (x @ x.T) + C * (x @ x.T) @ (x @ x.T)) * x
        ),
        "You divide by the norm once more at the end.": lambda gradient, n_iterations: (
            _iterated()(gradient, n_iterations)
            / torch.linalg.matrix_norm(_iterated()(gradient, n_iterations))
        ),
        "You divide each row by its own norm: the whole gradient has one, the Frobenius norm.": (
            _iterated(size=lambda gradient: gradient.norm(dim=1, keepdim=True))
        ),
        "You divide each column by its own norm: the whole gradient has one, the Frobenius norm.": (
            _iterated(size=lambda gradient: gradient.norm(dim=0, keepdim=True))
        ),
        "You divide by the root of the norm: the norm is a root already.": _iterated(
            size=lambda gradient: torch.linalg.matrix_norm(gradient) ** 0.5
        ),
        "You divide by the sum of absolute values; the norm is the root of the sum of squares.": (
            _iterated(size=lambda gradient: gradient.abs().sum())
        ),
        "The last term is missing: c · A² · X.": _iterated(
            step=lambda x: A * x + B * (x @ x.T) @ x
        ),
        "The gradient is not divided by its norm: the iteration needs singular values of at most "
        "1.": _iterated(size=lambda gradient: 1.0),
        "You divide by the largest singular value. It would do, but costs a decomposition: "
        "use the Frobenius norm, which is at least as large.": _iterated(
            size=lambda gradient: torch.linalg.matrix_norm(gradient, 2)
        ),
        "You divide by the largest number; the norm is the root of the sum of squares.": _iterated(
            size=lambda gradient: gradient.abs().max()
        ),
        "You divide by the sum of squares: the root is missing.": _iterated(
            size=lambda gradient: gradient.square().sum()
        ),
        "A is computed once, before the loop. X changes in each iteration, and A with it.": _stale,
        "That is the older iteration, 1.5 X − 0.5 X Xᵀ X. Muon's has three numbers and a fifth "
        "power.": _iterated(step=lambda x: 1.5 * x - 0.5 * (x @ x.T) @ x),
        "One iteration too few.": _iterated(extra=-1),
        "One iteration too many.": _iterated(extra=1),
        "That is U Vᵀ exactly, by a decomposition. Use the iteration, which needs only "
        "products.": _exact,
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
        "The directions of the gradient are not kept, as matrix products would keep them: is there "
        "a `*` or `**` between matrices, or a division by more than one number?": _other_directions,
    },
    axes="rows columns",
    praise="Right: products of matrices alone lift small singular values and keep the directions.",
)


# --- 12c: accumulation ----------------------------------------------------------------------------


def _accumulate(gradients: Tensor, counts: Tensor) -> Tensor:
    return (gradients * counts[:, None]).sum(0) / counts.sum()


def _weights(result, gradients):
    """The weights of the parts in a mixture of their gradients, if it is one."""
    found = torch.linalg.lstsq(gradients.double().T, result.double()[:, None]).solution[:, 0]
    return found if close(found @ gradients.double(), result.double(), (1e-3, 1e-4)) else None


def _shown(numbers):
    return ", ".join(f"{float(x):.3g}" for x in numbers)


def _other_weights(result, gradients, counts):
    found, right = _weights(result, gradients), counts / counts.sum()
    if found is None or close(found, right.double(), (1e-3, 1e-4)):
        return None
    return _shown(found), f"{float(found.sum()):.3g}", _shown(counts)


def _no_mixture(result, gradients, counts):
    return _weights(result, gradients) is None


check_accumulate = Exercise(
    asks="""`answer(gradients, counts)`: the gradient of the mean loss over all targets.

    gradients [parts, parameters], of each part's mean loss; counts [parts] -> [parameters].
    """,
    right=_accumulate,
    wrong={
        "The mean of means: a target of a part with few targets weighs more than one of a part "
        "with many. Weigh each part by its targets.": lambda gradients, counts: gradients.mean(0),
        "The sum of the parts' gradients: each is a mean already, so the result is about as many "
        "times too large as there are parts.": lambda gradients, counts: gradients.sum(0),
        "Weighted, but never divided: the number of all targets is missing.": (
            lambda gradients, counts: (gradients * counts[:, None]).sum(0)
        ),
        "You divide by the number of parts where the number of all targets belongs.": (
            lambda gradients, counts: (gradients * counts[:, None]).mean(0)
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
    also={
        "The parts weigh {} in your result, together {}. A part's share is its count's, of the "
        "counts {}, and all shares together are 1.": _other_weights,
        "Your result is not a mixture of the parts' gradients, each times one number.": _no_mixture,
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


def _other_unit(result, muon, others):
    units = {"thousands of bytes": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10}
    units |= {"MiB": 2**20, "GiB": 2**30, "bits": 1 / 8}
    right = _bytes()(muon, others)
    return next(((name,) for name, size in units.items() if close(result * size, right)), None)


check_memory = Exercise(
    asks="""`answer(muon, others)`: bytes of parameters, gradients and optimizer in float32.

    muon, others: how many numbers Muon moves, and how many its AdamW moves.
    """,
    right=_bytes(),
    wrong={
        "That is AdamW for all: Muon keeps one running mean, not two.": _bytes(of_muon=8),
        "You give Muon's numbers 16 bytes and the others 12: it is Muon that keeps one running "
        "mean, and AdamW two.": _bytes(of_muon=8, of_adamw=4),
        "That is Muon for all: AdamW keeps two running means.": _bytes(of_adamw=4),
        "Those are the parameters alone: gradients take as much, and the optimizer keeps means.": (
            _bytes(gradient=0, of_adamw=0, of_muon=0)
        ),
        "Muon keeps one running mean, too: you count none.": _bytes(of_muon=0),
        "AdamW keeps two running means, of the gradient and of its square: you count none.": (
            _bytes(of_adamw=0)
        ),
        "Parameters or gradients are missing: each takes 4 bytes a number.": _bytes(gradient=0),
        "That is what the optimizer keeps. Parameters and gradients take memory, too.": _bytes(
            number=0, gradient=0
        ),
        "The optimizer's running means are missing.": _bytes(of_adamw=0, of_muon=0),
        "You count numbers; each takes 4 bytes.": _bytes(1, 1, 2, 1),
        "You count 16 bits for each number. Under autocast, too, parameters, gradients and running "
        "means stay in float32.": _bytes(2, 2, 4, 2),
    },
    also={
        "That is in {}: return bytes.": _other_unit,
        "You give {} bytes to each number that Muon moves, and {} to each other one. Count what is "
        "kept for a number, 4 bytes each: itself, its gradient, and one running mean for Muon, two "
        "for AdamW.": _other_bytes,
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
        "That is the forward pass alone: the backward pass costs twice as much again.": (
            _utilization(products=2.0, scores=4.0)
        ),
        "The products with parameters cost 6 operations a parameter: 2 forward, 4 backward. "
        "You count only the forward pass.": _utilization(products=2.0),
        "Attention's own products are counted only for the forward pass: 4, which the "
        "backward pass makes 12.": _utilization(scores=4.0),
        "Attention's products are missing: scores and averages multiply vectors, not parameters.": (
            _utilization(scores=0.0)
        ),
        "You count half of attention's products, those that a causal mask leaves. The convention "
        "counts them all.": _utilization(scores=6.0),
        "A multiplication and an addition are two operations: you count one.": _utilization(
            products=3.0, scores=6.0
        ),
        "Each layer has attention: multiply by n_layers.": _utilization(by_layers=False),
        "A token is compared with all tokens of the context: multiply by it.": _utilization(
            by_context=False
        ),
        "You count the attention of a whole text for one token: a token meets context keys, and "
        "not context² of them.": lambda rate, n, layers, context, d, peak: (
            _utilization()(rate, n, layers, context, d, peak)
            + rate * 12 * layers * (context - 1) * context * d / peak
        ),
        "d_model is squared: a query and a key meet in d_model products, and so do a weight and a "
        "value.": lambda rate, n, layers, context, d, peak: (
            rate * (6 * n + 12 * layers * context * d**2) / peak
        ),
        "Attention is multiplied by 6 once more: 12 holds the backward pass already.": (
            _utilization(scores=72.0)
        ),
        "tokens_per_second is missing: what one token costs is done so many times a second.": (
            lambda rate, *given: _utilization()(1.0, *given)
        ),
        "You divide by tokens_per_second: multiply what one token costs by it.": (
            lambda rate, *given: _utilization()(1 / rate, *given)
        ),
        "You multiply the tokens of a second by context as well: they are tokens already, not "
        "texts.": lambda rate, n, layers, context, d, peak: (
            context * _utilization()(rate, n, layers, context, d, peak)
        ),
        "The parameters are counted once for each layer: n_parameters are those of all layers.": (
            lambda rate, n, layers, context, d, peak: _utilization()(
                rate, layers * n, layers, context, d, peak
            )
        ),
        "Only attention's part is divided by `peak`, and only the other multiplied by "
        "tokens_per_second: put their sum in brackets.": lambda rate, n, layers, context, d, peak: (
            rate * 6 * n + 12 * layers * context * d / peak
        ),
        "d_model stands where context belongs: a token meets context keys.": (
            lambda rate, n, layers, context, d, peak: _utilization()(rate, n, layers, d, d, peak)
        ),
        "`peak` counts single operations already: no factor of 10¹² or 10⁹ belongs to it.": (
            lambda *given: _utilization()(*given) / 1e12
        ),
        "The two parts are multiplied: add attention's operations to those with parameters.": (
            lambda rate, n, layers, context, d, peak: (
                rate * 6 * n * 12 * layers * context * d / peak
            )
        ),
        "Those are the operations in a second: divide by what the machine can do, `peak`.": (
            lambda *given: given[-1] * _utilization()(*given)
        ),
        "The products with parameters are missing: 6 operations a parameter.": (
            _utilization(products=0.0)
        ),
        "The reciprocal: it is what is done, divided by what could be done.": (
            lambda *given: 1 / _utilization()(*given)
        ),
        "That is in percent: return a share.": lambda *given: 100 * _utilization()(*given),
    },
    also={
        "Your result is 0: `//` cuts a share to a whole number.": lambda result, *_: result == 0,
        "For each token you count {} operations a parameter and {} for each layer, key and "
        "component. Forward there are 2 for a parameter, and 2 each for a score and an average; "
        "backward, twice as many.": _other_operations,
    },
    tolerance=(1e-4, 0.0),
    cases=[
        Case("a small GPT on a laptop", 13_000.0, 1_900_000, 4, 256, 200, 3e11),
        Case("GPT-2 small on a large GPU", 400_000.0, 85_000_000, 12, 1024, 768, 9.9e14),
    ],
    praise="Right: what the training needs, by what the machine could do.",
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
