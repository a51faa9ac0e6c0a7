"""PyTorch's own results for math/tensor/: every name on random arguments, and random programs.

A tensor is `{"t": numbers, "shape": ..., "dtype": ...}`, a float `{"real": number}`; what is left
out is None. Where PyTorch raises, the type and the message are the result.
"""

import math
import random
import re
import warnings
from pathlib import Path

import torch
import torch.nn.functional as F

PAGE = Path(__file__).parents[3] / "transformer_lib" / "widgets" / "write" / "python" / "names.py"
SHAPES = [(), (1,), (3,), (4,), (0,), (2, 3), (3, 4), (3, 1), (1, 4), (2, 3, 4), (2, 1, 4), (5, 5)]
DTYPES = [torch.float32] * 4 + [torch.int64] * 2 + [torch.bool, torch.float64]
EACH = 40  # calls of a name
PROGRAMS = 2500


def fixtures() -> dict[str, object]:
    warnings.simplefilter("ignore")
    random.seed(24)
    torch.manual_seed(24)
    calls = [_call(*made) for name in SIGNATURES for made in _samples(name)]
    calls += [_call(*made) for made in _corners()]
    return {
        "calls": [call for call in calls if call],
        "names": list(SIGNATURES),
        "printed": [_printed(x, options) for x, options in _to_print()],
        "random": _random(),
        "programs": [found for _ in range(PROGRAMS) if (found := _program())],
        "gradients": [found for _ in range(600) if (found := _gradient())],
        "corners": [_gradient_of(*made) for made in _gradient_corners()],
        "formats": _formats(),
        "matrices": [
            _singular(numbers(shape, kind)) for shape in MATRIX_SHAPES for kind in FLOATS_ONLY[1:]
        ],
    }


def _signatures() -> dict[str, tuple[str, list[str]]]:
    names = PAGE.read_text(encoding="utf-8").replace("\\\n", "")
    text = re.search(r'SIGNATURES = """\n(.*?)"""', names, re.DOTALL)
    found = {}
    for line in text[1].splitlines():
        where, rest = line.split(" ", 1)
        name, inside = rest[:-1].split("(", 1)
        found[name] = (where, [part.split("=")[0] for part in inside.split(", ")])
    return found


SIGNATURES = _signatures()
SEEDED = {"rand", "randn", "randperm", "normal_", "uniform_"}  # see _random
NOT_ALONE = {"backward", "retain_grad", "requires_grad_", "empty", "empty_like"}  # see programs


def encode(value):
    if isinstance(value, torch.Tensor):
        numbers = [_plain(number) for number in value.detach().reshape(-1).tolist()]
        return {"t": numbers, "shape": list(value.shape), "dtype": str(value.dtype)[6:]}
    if isinstance(value, torch.dtype):
        return str(value)[6:]
    if isinstance(value, float):
        return {"real": _plain(value)}
    if isinstance(value, (list, tuple)):
        return [encode(part) for part in value]
    return value


def _plain(number):
    if isinstance(number, float) and number - number != 0:
        return str(number)
    return "-0.0" if isinstance(number, float) and str(number) == "-0.0" else number


def _result(value):
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return [_result(part) for part in value]
    if isinstance(value, torch.Tensor):
        return encode(value) | {"text": repr(value)}
    return {"value": list(value) if isinstance(value, torch.Size) else value}


def _run(work):
    try:
        return {"result": _result(work())}
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        return {"error": [type(error).__name__, str(error).split("\nException raised")[0]]}


def _call(name, values, options):
    where, parameters = SIGNATURES[name]
    keywords = {parameter.lstrip("*"): value for parameter, value in values.items()}
    given = {key: value for key, value in keywords.items() if value is not None}
    encoded = [encode(keywords.get(parameter.lstrip("*"))) for parameter in parameters]
    if (
        encoded
        and all(isinstance(part, dict) and not part.get("t", [0]) for part in encoded[:1])
        and name in ("std", "var", "median")
    ):
        return None  # of nothing: NaN with a warning
    return {"name": name, "args": encoded, **_run(lambda: _torch(name, where, given))}


def _torch(name, where, given):
    given = dict(given)
    first = next(iter(given.values()), None)
    names = {"from_": "from", "size": "size"}
    given = {names.get(key, key): value for key, value in given.items()}
    lists = [part[1:] for part in SIGNATURES[name][1] if part.startswith("*")]
    if name in ("split", "dot"):  # whose second parameter has another name as a method
        return getattr(torch, name)(*given.values())
    if "m" in where and "other" not in given and isinstance(first, torch.Tensor):
        rest = list(given.items())[1:]
        positional = [value for key, value in rest if key in lists]
        return getattr(first, name)(
            *positional,
            **{key: value for key, value in rest if key not in lists},
        )
    owner = F if where == "F" else torch
    positional = [given.pop(key) for key in list(given) if key in lists]
    if "other" in given and name not in ("where",):
        positional += [given.pop("input"), given.pop("other")]
    tensors = [given.pop(key) for key in ("tensors",) if key in given]
    ranges = [
        given.pop(key) for key in ("start", "end", "step") if key in given and name == "arange"
    ]
    if name in ("where", "one_hot"):
        ranges += [
            given.pop(key) for key in ("condition", "input", "other", "tensor") if key in given
        ]
    return getattr(owner, name)(*tensors, *positional, *ranges, **given)


# ---- arguments --------------------------------------------------------------------------------


def numbers(shape, dtype=None, *, positive=False):
    dtype = dtype or random.choice(DTYPES)
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype == torch.int64:
        return torch.randint(0 if positive else -5, 8, shape)
    x = torch.randint(-12, 13, shape).to(dtype) / 4
    if random.random() < 0.5:
        x = torch.randn(shape, dtype=dtype)
    if random.random() < 0.05 and x.numel():
        x.view(-1)[0] = random.choice([float("nan"), float("inf"), -float("inf"), 1e30])
    return x.abs() + 0.1 if positive else x


def _shape():
    return random.choice(SHAPES)


def _partner(shape):
    """A shape that goes with another one by broadcasting; now and then, one that does not."""
    if random.random() < 0.15:
        return _shape()
    kept = [size if random.random() < 0.7 else 1 for size in shape]
    return tuple(kept[random.choice([0, 0, 0, 1]) :])


def _dim(rank, none=0.0):
    if random.random() < none:
        return None
    if random.random() < 0.1:
        return random.choice([rank, -rank - 1])
    return random.randrange(-max(rank, 1), max(rank, 1))


def _scalar():
    return random.choice([2, -1, 3, 0.5, 2.0, -1.5, True, 0.1])


MATRICES = {
    "mm": [((2, 3), (3, 4)), ((2, 3), (2, 3)), ((0, 3), (3, 2)), ((3,), (3, 2))],
    "bmm": [
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (3, 4, 5)),
        ((2, 3, 4), (2, 3, 4)),
        ((3, 4), (4, 5)),
    ],
    "mv": [((2, 3), (3,)), ((2, 3), (2,))],
    "dot": [((3,), (3,)), ((3,), (4,)), ((2, 3), (3,))],
    "outer": [((3,), (4,)), ((1,), (2,))],
    "matmul": [
        ((3,), (3,)),
        ((3,), (4,)),
        ((2, 3), (3,)),
        ((2, 3), (2,)),
        ((3,), (3, 2)),
        ((3,), (2, 3)),
        ((2, 3), (3, 4)),
        ((3, 4), (3, 4)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (3, 4)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (1, 4, 5)),
        ((2, 3, 4), (2, 3, 4)),
        ((2, 3, 4), (3, 4, 2)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 3)),
        ((3, 4), (2, 4, 3)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((), (3,)),
        ((2, 3, 4), (5, 4, 2)),
        ((3, 4), (2, 3, 4)),
    ],
}


def _corners():
    """What is too rare to be drawn: other seeds have found it."""
    yes, whole, none = torch.tensor([True, False]), torch.tensor([5, -3]), torch.ones(0).long()
    yield "pow", {"input": yes, "exponent": True}, {}
    yield "pow", {"input": yes, "exponent": False}, {}
    yield "remainder", {"input": yes, "other": yes}, {}
    yield "div", {"input": yes, "other": yes, "rounding_mode": "trunc"}, {}
    yield "div", {"input": whole, "other": 0 * whole, "rounding_mode": "trunc"}, {}
    yield "floor_divide", {"input": whole, "other": torch.tensor(math.nan)}, {}
    yield "floor_divide", {"input": none, "other": torch.tensor(0)}, {}
    four = torch.ones(4, dtype=torch.bool)
    yield "masked_fill", {"input": whole, "mask": four, "value": -math.inf}, {}


def _samples(name):
    if name in SEEDED | NOT_ALONE:
        return []
    return [(name, values, {}) for _ in range(EACH) if (values := _values(name)) is not None]


def _values(name):
    _, parameters = SIGNATURES[name]
    shape = _shape()
    values = {}
    if name in MATRICES:
        one, other = random.choice(MATRICES[name])
        kinds = (
            random.choices(DTYPES, k=1) * 2
            if random.random() < 0.9
            else random.choices(DTYPES, k=2)
        )
        return dict(
            zip(parameters, [numbers(one, kinds[0]), numbers(other, kinds[1])], strict=True)
        )
    if name in CUSTOM:
        return CUSTOM[name]()
    for parameter in parameters:
        if parameter == "input":
            floats = name in FLOATS.split()
            values[parameter] = numbers(shape, random.choice(FLOATS_ONLY) if floats else None)
        elif parameter in ("other", "exponent"):
            isscalar = random.random() < 0.3
            values[parameter] = _scalar() if isscalar else numbers(_partner(shape))
        elif parameter in ("dim", "dim0", "dim1"):
            none = 0.3 if name in REDUCTIONS.split() else 0.0
            several = name in SEVERAL and len(shape) > 1 and random.random() < 0.2
            values[parameter] = [0, -1] if several else _dim(len(shape), none)
            if parameter == "dim" and values[parameter] is None:
                return values
        elif parameter == "keepdim" or parameter == "descending":
            values[parameter] = random.random() < 0.5
    if name == "norm" and shape == (0,):
        return None
    if name == "norm":
        values["p"] = random.choice([None, 1, 2, float("inf")])
        values = {key: values.get(key) for key in ("input", "p", "dim", "keepdim")}
        values["p"] = 2 if values["p"] is None else values["p"]
    return values


REDUCTIONS = "sum mean prod std var norm argmax argmin amax amin all any median count_nonzero"
SEVERAL = {"sum", "mean", "std", "var", "amax", "amin"}
FLOATS = "softmax log_softmax std var norm silu softplus logsigmoid gelu normalize mse_loss median"
FLOATS_ONLY = [torch.float32, torch.float32, torch.float64]
IN = "input"


def _ids(shape, size):
    return torch.randint(0, size, shape)


def _gathering():
    x = numbers(random.choice([(3, 4), (2, 3, 4), (5,)]))
    d = random.randrange(-x.dim(), x.dim())
    shape = [max(1, size - random.choice([0, 0, 1])) for size in x.shape]
    shape[d] = random.choice([1, 2, 6])
    index = _ids(shape, x.shape[d] + (random.random() < 0.1))
    return x, d, index


def _catting(same):
    shape = list(random.choice([(2, 3), (3,), (2, 3, 4)]))
    d = _dim(len(shape) + same)
    parts = []
    for _ in range(random.choice([1, 2, 3])):
        one = list(shape)
        if not same and -len(shape) <= d < len(shape):
            one[d] = random.choice([0, 1, 2, 3])
        if random.random() < 0.1:
            one[0] += 1
        parts.append(numbers(one))
    return {"tensors": parts, "dim": d}


def _attending():
    batch = random.choice([(), (2,), (2, 3)])
    q, k = numbers((*batch, 3, 4), torch.float32), numbers((*batch, 5, 4), torch.float32)
    mask = random.choice([None, torch.rand(3, 5) < 0.6, torch.randn(3, 5)])
    v = numbers((*batch, 5, 2), torch.float32)
    if not all(x.isfinite().all() for x in (q, k, v)):
        return None
    return {
        "query": q,
        "key": k,
        "value": v,
        "attn_mask": mask,
        "is_causal": mask is None and random.random() < 0.3,
        "scale": random.choice([None, 1.0, 0.3]),
    }


def _losing():
    logits = torch.randn(random.choice([(5, 4), (4,), (2, 4, 3)]))
    shape = () if logits.dim() == 1 else (logits.shape[0], *logits.shape[2:])
    if random.random() < 0.1:
        shape = (3, 3)
    target = _ids(shape, 4)
    if target.dim() and random.random() < 0.3:
        target.view(-1)[0] = -100
    return {"input": logits, "target": target, "reduction": random.choice(["mean", "sum", "none"])}


def _sized(name, shapes):
    return lambda: {IN: numbers(_shape()), name: list(random.choice(shapes))}


CUSTOM = {
    "where": lambda: {
        "condition": torch.rand(2, 3) < 0.5,
        "input": random.choice([numbers((2, 3)), numbers((3,)), _scalar(), numbers((2, 4))]),
        "other": random.choice([numbers((2, 3)), numbers((2, 1)), numbers(())]),
    },
    "masked_fill": lambda: {
        IN: numbers((2, 3)),
        "mask": random.choice(
            [torch.rand(2, 3) < 0.5, torch.rand(3) < 0.5, torch.rand(4) < 0.5, numbers((2, 3))]
        ),
        "value": random.choice([0, -1, 2.5, -float("inf")]),
    },
    "clamp": lambda: {
        IN: numbers(_shape(), random.choice([torch.float32, torch.int64])),
        "min": random.choice([None, -1, 0, -0.5]),
        "max": random.choice([None, 1, 2, 0.5]),
    },
    "nan_to_num": lambda: {IN: numbers(_shape()), "nan": random.choice([0.0, 1.0])},
    "round": lambda: {
        IN: numbers(_shape(), torch.float32),
        "decimals": random.choice([0, 0, 1, 2]),
    },
    "isclose": lambda: {IN: numbers((2, 3)), "other": numbers((2, 3))},
    "div": lambda: {
        IN: numbers((2, 3)),
        "other": random.choice([numbers((2, 3)), _scalar()]),
        "rounding_mode": random.choice([None, None, "floor", "trunc"]),
    },
    "cat": lambda: _catting(False),
    "stack": lambda: _catting(True),
    "reshape": _sized("*shape", [(6,), (3, 2), (-1,), (-1, 2), (4, 3), (2, -1, 2), (-1, -1), (1,)]),
    "view": _sized("*shape", [(6,), (3, 2), (-1,), (-1, 2), (4, 3), (2, -1, 2), (1,)]),
    "expand": _sized("*size", [(2, 3), (4, 3), (2, 2, 3), (3, 4), (4,)]),
    "repeat": _sized("*repeats", [(2,), (2, 1), (1, 2, 2), (0, 1), (2, 1, 3)]),
    "tile": _sized("*dims", [(2,), (2, 1), (1, 2, 2)]),
    "permute": _sized("*dims", [(0,), (1, 0), (2, 0, 1), (0, 0), (-1, 0), (0, 3), ()]),
    "flatten": lambda: {
        IN: numbers(_shape()),
        "start_dim": random.choice([0, 1, -2]),
        "end_dim": random.choice([-1, 1]),
    },
    "unflatten": lambda: {
        IN: numbers((4, 6)),
        "dim": random.choice([0, 1, -1]),
        "sizes": random.choice([[2, 3], [2, -1], [2, 2]]),
    },
    "squeeze": lambda: {IN: numbers(_shape()), "dim": random.choice([None, 0, -1])},
    "unsqueeze": lambda: {IN: numbers(_shape()), "dim": random.choice([0, 1, -1, -2, 3])},
    "select": lambda: {
        IN: numbers(_shape()),
        "dim": random.choice([0, 1, -1]),
        "index": random.choice([0, 1, -1, 5]),
    },
    "narrow": lambda: {
        IN: numbers((4, 5)),
        "dim": random.choice([0, 1]),
        "start": random.choice([0, 1, -2]),
        "length": random.choice([1, 2, 4]),
    },
    "split": lambda: {
        IN: numbers((4, 5)),
        "split_size_or_sections": random.choice([1, 2, 3, [1, 3], [2, 3]]),
        "dim": random.choice([0, 1]),
    },
    "chunk": lambda: {
        IN: numbers((4, 5)),
        "chunks": random.choice([1, 2, 3, 7]),
        "dim": random.choice([0, 1, -1]),
    },
    "diagonal": lambda: {
        IN: numbers(random.choice([(3, 4), (2, 3, 4), (5, 5)])),
        "offset": random.choice([0, 1, -1, 4]),
    },
    "diag_embed": lambda: {
        IN: numbers(random.choice([(3,), (2, 3)])),
        "offset": random.choice([0, 1, -1]),
    },
    "roll": lambda: {
        IN: numbers(random.choice([(3, 4), (5,)])),
        "shifts": random.choice([1, -1, 3]),
        "dims": random.choice([None, 0, -1]),
    },
    "flip": _sized("*dims", [(0,), (-1,), (0, 1)]),
    "repeat_interleave": lambda: {
        IN: numbers((2, 3)),
        "repeats": random.choice([2, 3]),
        "dim": random.choice([None, 0, 1]),
    },
    "tril": lambda: {IN: numbers(_shape()), "diagonal": random.choice([0, 1, -1])},
    "triu": lambda: {IN: numbers(_shape()), "diagonal": random.choice([0, 1, -1])},
    "softmax": lambda: {
        IN: numbers(shape := _shape(), random.choice([*FLOATS_ONLY, torch.int64])),
        "dim": _dim(len(shape)),
    },
    "topk": lambda: {
        IN: torch.randperm(12).reshape(3, 4).float(),
        "k": random.choice([1, 2, 4, 5]),
        "dim": random.choice([0, 1, -1]),
        "largest": random.random() < 0.5,
    },
    "argsort": lambda: {
        IN: torch.randperm(12).reshape(3, 4),
        "dim": random.choice([0, 1, -1]),
        "descending": random.random() < 0.5,
    },
    "sort": lambda: {
        IN: torch.randperm(12).reshape(3, 4).float(),
        "dim": random.choice([0, 1, -1, 2]),
        "descending": random.random() < 0.5,
    },
    "gather": lambda: dict(zip((IN, "dim", "index"), _gathering(), strict=True)),
    "scatter": lambda: {
        IN: numbers((3, 4), torch.float32),
        "dim": 1,
        "index": torch.stack([torch.randperm(4)[:2] for _ in range(3)]),
        "src": numbers((3, 2), torch.float32),
    },
    "index_put_": lambda: {
        IN: numbers((3, 4), kind := random.choice([torch.float32, torch.int64])),
        "indices": [_ids((5,), 3), *([_ids((5,), 4)] if random.random() < 0.5 else [])],
        "values": numbers(random.choice([(), (1,)]), random.choice([kind, kind, torch.float64])),
        "accumulate": random.random() < 0.7,
    },
    "index_select": lambda: {
        IN: numbers((3, 4)),
        "dim": random.choice([0, 1]),
        "index": _ids((2,), random.choice([3, 6])),
    },
    "masked_select": lambda: {
        IN: numbers((3, 4)),
        "mask": torch.rand(random.choice([(3, 4), (4,), (3, 1)])) < 0.5,
    },
    "linear": lambda: {
        IN: numbers((2, 3), torch.float32),
        "weight": numbers(random.choice([(4, 3), (4, 2)]), torch.float32),
        "bias": random.choice([None, numbers((4,), torch.float32)]),
    },
    "one_hot": lambda: {
        "tensor": numbers(_shape(), torch.int64, positive=True),
        "num_classes": random.choice([-1, 8, 4]),
    },
    "cross_entropy": _losing,
    "nll_loss": lambda: {
        "input": torch.randn(5, 4).log_softmax(1),
        "target": _ids((5,), 4),
        "reduction": random.choice(["mean", "sum", "none"]),
    },
    "mse_loss": lambda: {
        "input": numbers((2, 3), torch.float32),
        "target": numbers((2, 3), torch.float32),
        "reduction": random.choice(["mean", "sum", "none"]),
    },
    "layer_norm": lambda: {
        "input": torch.randn(2, 3, 4),
        "normalized_shape": random.choice([[4], [3, 4], [5]]),
        "weight": None,
        "bias": None,
    },
    "rms_norm": lambda: {"input": torch.randn(2, 4), "normalized_shape": [4]},
    "embedding": lambda: {
        "input": _ids((2, 3), 5),
        "weight": torch.randn(4 + (random.random() < 0.8), 3),
    },
    "normalize": lambda: {
        "input": numbers((2, 4), torch.float32),
        "dim": random.choice([0, 1, -1]),
    },
    "scaled_dot_product_attention": _attending,
    "gelu": lambda: {
        IN: numbers(_shape(), torch.float32).clamp(-9, 9),
        "approximate": random.choice(["none", "tanh"]),
    },
    "zeros": lambda: {
        "*size": list(_shape()),
        "dtype": random.choice([None, torch.int64, torch.bool]),
    },
    "ones": lambda: {"*size": list(_shape()), "dtype": random.choice([None, torch.int64])},
    "full": lambda: {
        "size": list(_shape()),
        "fill_value": _scalar(),
        "dtype": random.choice([None, torch.float64]),
    },
    "eye": lambda: {"n": random.choice([0, 1, 3]), "m": random.choice([None, 2, 4])},
    "arange": lambda: {
        "start": random.choice([0, 1, 5, -2, 0.5]),
        "end": random.choice([None, 5, 7, 2.5]),
        "step": None,
    },
    "linspace": lambda: {
        "start": random.choice([0, -1, 0.5]),
        "end": random.choice([1, 3.0]),
        "steps": random.choice([1, 2, 5, 10, 11]),
    },
    "zeros_like": lambda: {IN: numbers(_shape())},
    "ones_like": lambda: {IN: numbers(_shape())},
    "full_like": lambda: {IN: numbers(_shape()), "fill_value": random.choice([1, 2.0])},
    "new_zeros": lambda: {IN: numbers(_shape()), "*size": [2, 3]},
    "new_ones": lambda: {IN: numbers(_shape()), "*size": [2, 3]},
    "new_full": lambda: {IN: numbers(_shape()), "size": [2, 3], "fill_value": 3},
    "count_nonzero": lambda: {IN: numbers(_shape())},
}


MATRIX_SHAPES = [(1, 1), (5, 5), (3, 7), (7, 3), (2, 6)]


def _singular(x):
    x = x.nan_to_num(0, 1, -1).clamp(-9, 9)
    x[:, -1] = x[:, 0]  # one direction fewer, where there are two
    return {"x": encode(x), "values": encode(torch.linalg.svdvals(x))}


# ---- printing, random numbers -----------------------------------------------------------------


def _to_print():
    for _ in range(500):
        scale = 10.0 ** random.choice([0, 0, 0, 1, 3, 6, -3, -6])
        x = numbers(random.choice([*SHAPES, (30,), (3, 30), (2, 2, 2, 2)]))
        if x.is_floating_point():
            x = x * scale
            x = x.round() if random.random() < 0.2 else x
        options = {}
        if random.random() < 0.4:
            options = {
                "precision": random.choice([2, 3, 6]),
                "sci_mode": random.choice([None, True, False]),
            }
        if random.random() < 0.2:
            options["linewidth"] = random.choice([40, 120])
        yield x, options
    for shape in [(2000,), (40, 40), (3, 500), (12, 12, 12), (1001,), (1000,)]:
        yield torch.randn(shape), {}
        yield torch.arange(torch.Size(shape).numel()).reshape(shape), {}
    ties = torch.tensor([0.03125, 0.09375, 2.5, -0.00005, 0.0, -0.0])
    yield from [(ties, {"sci_mode": False}), (ties[:3], {}), (ties[:1], {"precision": 3})]


def _printed(x, options):
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**options)
    text = repr(x)
    torch.set_printoptions(profile="default")
    return {"x": encode(x), "options": options, "text": text}


DRAWS = {
    "randn": lambda shape, kind: torch.randn(shape, dtype=kind),
    "rand": lambda shape, kind: torch.rand(shape, dtype=kind),
    "randint": lambda shape, kind: torch.randint(-3, 11, shape),
    "randperm": lambda shape, kind: torch.randperm(shape[0]),
}


def _random():
    found = []
    for seed in [0, 1, 7, 2**31, 2**40 + 3, 123456789]:
        torch.manual_seed(seed)
        draws = []
        for _ in range(12):
            name = random.choice(list(DRAWS))
            shape = random.choice([(1,), (3,), (15,), (16,), (17,), (4, 5), (40,), (7, 7)])
            kind = random.choice([torch.float32, torch.float64])
            draws.append([name, list(shape), str(kind)[6:], encode(DRAWS[name](shape, kind))])
        found.append({"seed": str(seed), "draws": draws})
    return found


def _formats():
    values = [
        0.03125,
        2.5,
        0.125,
        1 / 3,
        1e22,
        123456789.123,
        2.5e-7,
        0.0,
        -0.0,
        1e300,
        5e-324,
        -1.5,
        1e16,
        1e-5,
        100.0,
    ]
    values += [random.uniform(-1, 1) * 10 ** random.randint(-8, 18) for _ in range(200)]
    specs = [
        "",
        ".0f",
        ".2f",
        ".4f",
        "8.3f",
        "<9.1f",
        ".3e",
        ".0e",
        ".1g",
        ".3g",
        "g",
        ".1%",
        "+.2f",
        ",.2f",
        "010.3f",
        ".20f",
        "^12.2e",
        ".2",
    ]
    whole = [0, 5, -12, 1234567, 2**70]
    texts = ["", "roses", "é→"]
    return (
        [["float", _plain(x), spec, format(x, spec)] for x in values for spec in specs]
        + [
            ["int", str(n), spec, format(n, spec)]
            for n in whole
            for spec in ["", "5", "<5", "04", ",", "x", "b", ".1f", "+"]
        ]
        + [
            ["str", text, spec, format(text, spec)]
            for text in texts
            for spec in ["", "8", ">8", "^8", "*<8", ".2"]
        ]
    )


# ---- programs ---------------------------------------------------------------------------------


def _indices(shape):
    """A random index as [python, encoded]."""
    parts, shown = [], []
    for size in shape[: random.randint(0, len(shape))]:
        kind = random.choice(["int", "slice", "slice", "all", "list", "mask"])
        if kind == "int" or not size:
            at = random.randrange(-size, size) if size else 0
            parts.append(at)
            shown.append(at)
        elif kind == "slice":
            ends = (
                random.choice([None, 1, -1, 0]),
                random.choice([None, size, -1]),
                random.choice([None, 1, 2]),
            )
            parts.append(slice(*ends))
            shown.append({"slice": ends})
        elif kind == "all":
            parts.append(slice(None))
            shown.append({"slice": [None, None, None]})
        elif kind == "list" and size:
            ids = torch.randint(-size, size, (2,))
            parts.append(ids)
            shown.append(encode(ids))
        else:
            mask = torch.rand(size) < 0.6
            parts.append(mask)
            shown.append(encode(mask))
    if random.random() < 0.2:
        at = random.randint(0, len(parts))
        parts.insert(at, None)
        shown.insert(at, None)
    if random.random() < 0.2:
        parts.insert(0, ...)
        shown.insert(0, "...")
    return tuple(parts), shown


UNARY = [
    "abs",
    "exp",
    "neg",
    "sigmoid",
    "tanh",
    "relu",
    "sin",
    "cos",
    "floor",
    "sign",
    "isnan",
    "round",
    "T",
    "clone",
]
BINARY = ["add", "sub", "mul", "maximum", "minimum", "lt", "ge", "eq"]
ALONG = ["softmax", "log_softmax", "cumsum"]
FOLDS = ["sum", "mean", "amax", "amin", "std", "argmax", "logsumexp"]


def _step(pool):
    """One line of a program: [name, args], with ["#", i] for a tensor of the pool."""
    i = random.randrange(len(pool))
    x = pool[i]
    kind = random.choice(
        [
            "unary",
            "binary",
            "binary",
            "scalar",
            "along",
            "fold",
            "index",
            "shape",
            "write",
            "write",
            "product",
            "inplace",
        ]
    )
    ref = ["#", i]
    if kind == "unary":
        name = random.choice(UNARY)
        return [name, [ref]], lambda: x.T if name == "T" else getattr(torch, name)(x)
    if kind in ("binary", "product"):
        j = random.randrange(len(pool))
        name = "matmul" if kind == "product" else random.choice(BINARY)
        return [name, [ref, ["#", j]]], lambda: getattr(torch, name)(x, pool[j])
    if kind == "scalar":
        name, value = random.choice(BINARY[:3]), random.choice([2, 0.5, -1])
        return [name, [ref, encode(value)]], lambda: getattr(torch, name)(x, value)
    if kind in ("along", "fold"):
        name, d = random.choice(ALONG if kind == "along" else FOLDS), _dim(x.dim())
        tail = [] if kind == "along" else [True]
        if name == "std":
            return [name, [ref, d, 0, True]], lambda: x.std(d, correction=0, keepdim=True)
        return [name, [ref, d, *tail]], lambda: getattr(torch, name)(x, d, *tail)
    if kind == "index":
        index, shown = _indices(x.shape)
        return ["getitem", [ref, shown]], lambda: x[index]
    if kind == "write":
        index, shown = _indices(x.shape)
        j = random.randrange(len(pool))
        memory = [y.untyped_storage().data_ptr() for y in (x, pool[j])]
        shared = [] if memory[0] == memory[1] else [(pool[j], ["#", j])] * 2
        value, given = random.choice([(1.5, encode(1.5)), (0, 0), *shared])

        def write():
            x[index] = value
            return x

        return ["setitem", [ref, shown, given]], write
    if kind == "inplace":
        name, value = random.choice(["add", "mul"]), random.choice([1, 0.5])
        return [name + "_", [ref, encode(value)]], lambda: getattr(x, name + "_")(value)
    name = random.choice(["transpose", "unsqueeze", "flatten", "reshape", "expand", "unbind"])
    if name == "transpose":
        a, b = _dim(x.dim()), _dim(x.dim())
        return [name, [ref, a, b]], lambda: x.transpose(a, b)
    if name == "unsqueeze":
        d = random.choice([0, -1])
        return [name, [ref, d]], lambda: x.unsqueeze(d)
    if name == "expand":
        sizes = [2, *[-1] * x.dim()]
        return [name, [ref, sizes]], lambda: x.expand(sizes)
    if name == "unbind":
        return ["select", [ref, 0, 0]], lambda: x.select(0, 0)
    return [name, [ref] + ([[-1]] if name == "reshape" else [])], lambda: getattr(x, name)(
        *([(-1,)] if name == "reshape" else [])
    )


def _play(start, steps, seed):
    random.seed(seed)
    pool = [x.clone() for x in start]
    lines = []
    for _ in range(steps):
        (name, args), work = _step(pool)
        before = [x.clone() for x in pool]
        outcome = _run(work)
        if "error" in outcome and not all(
            torch.equal(a, b) or a.isnan().any() for a, b in zip(before, pool, strict=True)
        ):
            return None
        if "result" in outcome:
            found = work() if name != "setitem" and not name.endswith("_") else pool[args[0][1]]
            pool.append(found)
        lines.append({"name": name, "args": args, **outcome})
    return lines, [encode(x) for x in pool]


def _program():
    """Lines that double precision confirms: no rounding decides what they give."""
    shapes = random.choices([(3,), (2, 3), (3, 3), (2, 3, 3), (1, 3)], k=3)
    start = [torch.randint(-8, 9, shape).float() / 4 for shape in shapes]
    start[2] = torch.randint(-3, 4, shapes[2])
    seed = random.getrandbits(32)
    state, torch_state = random.getstate(), torch.get_rng_state()
    one = _play(start, 7, seed)
    torch.set_rng_state(torch_state)
    other = _play([x.double() if x.is_floating_point() else x for x in start], 7, seed)
    random.setstate(state)
    random.getrandbits(32)
    if one is None or other is None or not _agree(one[1], other[1]):
        return None
    return {"start": [encode(x) for x in start], "lines": one[0], "pool": one[1]}


def _agree(ones, others):
    if len(ones) != len(others):
        return False
    for one, other in zip(ones, others, strict=True):
        if one["shape"] != other["shape"]:
            return False
        for a, b in zip(one["t"], other["t"], strict=True):
            if (isinstance(a, str) or isinstance(b, str)) and str(a) != str(b):
                return False
            if not isinstance(a, str) and not abs(a - b) <= 1e-4 * max(1, abs(b)):
                return False
            if not isinstance(a, str) and abs(a) > 1e6:
                return False
    return True


SMOOTH = ["exp", "sigmoid", "tanh", "sin", "relu", "abs", "neg", "log", "sqrt"]


def _gradient():
    """A few differentiable lines from two tensors, and the gradients of the sum of the last."""
    a = (torch.rand(random.choice([(2, 3), (3,), (3, 3)])) + 0.5).requires_grad_()
    b = (torch.rand(random.choice([(2, 3), (3, 1), (3, 3)])) + 0.5).requires_grad_()
    pool, lines = [a, b], []
    for _ in range(random.randint(2, 6)):
        i, j = random.randrange(len(pool)), random.randrange(len(pool))
        x, y = pool[i], pool[j]
        d = random.choice([0, -1])
        name, args, work = random.choice(
            [
                (
                    name := random.choice(SMOOTH),
                    [["#", i]],
                    lambda x=x, name=name: getattr(torch, name)(x),
                ),
                (
                    name := random.choice(["add", "sub", "mul", "div", "matmul", "maximum"]),
                    [["#", i], ["#", j]],
                    lambda x=x, y=y, name=name: getattr(torch, name)(x, y),
                ),
                (
                    name := random.choice(["softmax", "log_softmax", "cumsum"]),
                    [["#", i], d],
                    lambda x=x, d=d, name=name: getattr(torch, name)(x, d),
                ),
                (
                    name := random.choice(["sum", "mean", "amax", "logsumexp"]),
                    [["#", i], d, True],
                    lambda x=x, d=d, name=name: getattr(torch, name)(x, d, True),
                ),
                ("pow", [["#", i], random.choice([2, 3])], None),
                ("getitem", [["#", i], [0]], lambda x=x: x[0]),
                ("getitem", [["#", i], ["...", None]], lambda x=x: x[..., None]),
                ("transpose", [["#", i], 0, -1], lambda x=x: x.transpose(0, -1)),
                (
                    "std",
                    [["#", i], d, 0, True],
                    lambda x=x, d=d: x.std(d, correction=0, keepdim=True),
                ),
                ("cat", [[["#", i], ["#", j]], 0], lambda x=x, y=y: torch.cat([x, y], 0)),
                ("norm", [["#", i]], lambda x=x: x.norm()),
                ("tril", [["#", i]], lambda x=x: x.tril()),
                (
                    "masked_fill",
                    [["#", i], ["gt", i], encode(0.5)],
                    lambda x=x: x.masked_fill(x > 1, 0.5),
                ),
            ]
        )
        if name == "pow":
            work = lambda x=x, n=args[1]: x**n  # noqa: E731
        try:
            pool.append(work())
        except (RuntimeError, IndexError):
            continue
        lines.append([name, args])
    out = pool[-1].sum()
    out.backward()
    grads = [x.grad if x.grad is not None else torch.zeros(0) for x in (a, b)]
    if not all(g.isfinite().all() and g.abs().max() < 1e5 for g in grads if g.numel()):
        return None
    text = repr(pool[-1].detach()), pool[-1].grad_fn.name() if pool[-1].grad_fn else ""
    return {
        "start": [encode(a), encode(b)],
        "lines": lines,
        "grads": [encode(g) for g in grads],
        "last": text[1],
    }


AT = [["#", i] for i in range(5)]
CHANGES = "abs exp neg sigmoid tanh relu sin floor sign sqrt log rsqrt reciprocal tan"
WHOLE = "prod norm std var amax"


def _gradient_corners():
    """Zeros, values that are broadcast, and writing in place."""
    a, b, c, d, e = AT
    pair, row, zero = [1.5, 2.0], [1.0, 2.0, 3.0], [2.0, 0.0, 3.0]
    for index in ([0], []):  # a row of shape [1, 3] into one row, and into both
        yield [[row]], ["mul", [a, 2]], ["new_zeros", [a, [2, 3]]], ["setitem", [c, index, b]]
    for value in (5.0, b):
        yield [zero, pair], ["scatter", [a, 0, torch.tensor([2, 0]), value]]
    for x in (row, zero, [0.0, 2.0, 0.0]):
        yield [x], ["prod", [a]]
        yield [[x, row]], ["prod", [a, 1]], ["pow", [b, 2]]
        yield [[x, row]], ["cumprod", [a, 0]]
        yield [x], ["cumprod", [a, 0]], ["pow", [b, 2]]
    yield [[0.0, 0.0, 2.0, 0.0], [0.0, -1.0, 0.0, 1.0]], ["pow", [a, b]]
    yield [[0.0, 2.0]], ["pow", [a, 0]]
    yield [[[0.0, 0.0], [3.0, 4.0]]], ["normalize", [a]], ["pow", [b, 2]]

    double, shown = ["mul", [a, 2]], ["mul", [d, 1]]
    changes = [[name] for name in CHANGES.split()]
    changes += [["div", 8.0], ["mul", 3], ["mul", b], ["mul", c], ["pow", 2], ["remainder", 2]]
    whole = [[name] for name in WHOLE.split()] + [["logsumexp", 0], ["div", b], ["pow", b]]
    for name, *given in changes:
        yield [pair, pair], double, [f"{name}_", [c, *given]]
        yield [pair, pair], double, [f"{name}_", [c, *given]], ["add_", [c, 1]]
    for name, *given in changes + whole:
        for written in (c, d):  # what was given, and the result
            work = [name, [c, *given]]
            yield [pair, pair], double, work, ["add_", [written, 1]], shown
    for name in ("mul", "matmul"):  # of numbers without a gradient
        work = [name, [c, b]]
        yield [pair, pair], ["detach", [a]], work, ["detach", [b]], ["sub_", [e, 1]], shown
    mask = ["gt", [a, 1]]
    yield [pair], mask, ["masked_fill", [a, b, 0.0]], ["setitem", [b, [0], False]], ["mul", [c, 1]]
    for written in (["sub_", [b, 1]], ["setitem", [b, [0], 0]]):
        yield [pair], ["detach", [a]], written, ["mul", [a, a]]


def _gradient_of(start, *lines):
    """What _gradient gives, of methods; where PyTorch raises, what it says."""
    leaves = [torch.tensor(x, requires_grad=True) for x in start]
    made = {"start": encode(leaves), "lines": encode(lines)}
    pool = [*leaves]
    try:
        for name, given in lines:
            x, *args = [
                pool[arg[1]] if isinstance(arg, list) and arg in AT else arg for arg in given
            ]
            if name == "setitem":
                x[tuple(args[0])] = args[1]
                pool.append(x)
            elif name == "normalize":
                pool.append(F.normalize(x))
            else:
                pool.append(getattr(x, name)(*args))
        pool[-1].sum().backward()
    except RuntimeError as error:
        return made | {"error": str(error)}
    grads = [torch.zeros(0) if x.grad is None else x.grad for x in leaves]
    return made | {"grads": encode(grads)}
