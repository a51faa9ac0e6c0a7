"""Tensors in the page: read by MicroPython after names.py, and thin over math/tensor/.

A name of names.py becomes a function and a method; the rest is what Python's syntax needs:
operators, indices, lists.
"""

import builtins

import js

page = js.afmTensors
JsProxy = type(page)

NATIVE_SLICE = slice
NUMBERS = (int, float, bool)  # MicroPython's bool is not an int


def missing_sentence(name):
    return f"this page's tensors have no {name}; `make lab` or Colab has all of PyTorch."


def _parsed(line):
    where, _, rest = line.partition(" ")
    name, _, inside = rest[:-1].partition("(")
    parameters = []
    for part in inside.split(", "):
        parameter, given, default = part.partition("=")
        parameters.append((parameter, given != "", eval(default) if given else None))
    return where, name, parameters


def _is_size(value):
    return isinstance(value, int) or (isinstance(value, Tensor) and not value.shape)


def _bound(name, parameters, args, kwargs):
    """The arguments in the order of the signature; TypeError in Python's words."""
    values, args = [], list(args)
    for position, (parameter, has_default, default) in enumerate(parameters):
        if parameter[0] == "*":
            plain = parameter[1:]
            if plain in kwargs:
                given = kwargs.pop(plain)
            elif args and not _is_size(args[0]):
                given = args.pop(0)
            else:
                given, args = args, []
            values.append([int(size) for size in given])
        elif args:
            values.append(args.pop(0))
            if parameter in kwargs:
                raise TypeError(f"{name}() got multiple values for argument '{parameter}'")
        elif parameter in kwargs:
            values.append(kwargs.pop(parameter))
        elif parameter == "keepdim" and "keepdims" in kwargs:
            values.append(kwargs.pop("keepdims"))
        elif parameter == "dim" and "axis" in kwargs:
            values.append(kwargs.pop("axis"))
        elif has_default:
            values.append(default)
        else:
            raise TypeError(f'{name}() missing 1 required positional arguments: "{parameter}"')
        if position == 0 and parameter == "input" and not isinstance(values[0], Tensor):
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, "
                f"not {type(values[0]).__name__}"
            )
    kwargs.pop("device", None)  # there is one
    if args:
        count = len(values) + len(args)
        raise TypeError(f"{name}() takes {len(values)} positional arguments but {count} were given")
    if kwargs:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
    return values


def _js(value):
    """What JavaScript gets: a float that is whole must not become an int there."""
    if isinstance(value, Tensor):
        return value._t
    if isinstance(value, float):
        return page.real(value) if value % 1 == 0 else value
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**31) <= value < 2**31 else float(value)
    if isinstance(value, (list, tuple)):
        return page.array(*[_js(part) for part in value])
    if isinstance(value, dtype):
        return value.name
    if isinstance(value, Generator):
        return value._g
    if value is None or isinstance(value, (str, JsProxy)):
        return value
    if isinstance(value, type) and value in OF_PYTHON:
        return OF_PYTHON[value].name
    kind = type(value).__name__
    raise TypeError(f"an argument is of type {kind}, which PyTorch does not take here")


def _raise():
    raise getattr(builtins, page.failedType(), RuntimeError)(page.failedMessage())


def _call(name, *args):
    """Call JavaScript; None is for what has failed, which is raised as Python's own error."""
    result = page.call(name, *[_js(value) for value in args])
    if result is None:
        _raise()
    return _py(result)


def _py(result):
    if not isinstance(result, JsProxy):
        return result
    if page.isList(result):
        return tuple([_py(page.part(result, i)) for i in range(page.size(result))])
    return Tensor(result)


class _Pair(tuple):
    """What max, sort and others return along a dimension: values and indices."""

    def __init__(self, name, pair):
        super().__init__(pair)
        self._name = name
        self.values, self.indices = pair

    def __repr__(self):
        return f"torch.return_types.{self._name}(\nvalues={self.values},\nindices={self.indices})"

    __str__ = __repr__


class Size(tuple):
    def __repr__(self):
        return "torch.Size([" + ", ".join([str(size) for size in self]) + "])"

    __str__ = __repr__

    def numel(self):
        product = 1
        for size in self:
            product *= size
        return product


class dtype:
    def __init__(self, name, is_floating_point):
        self.name = name
        self.is_floating_point = is_floating_point

    def __repr__(self):
        return "torch." + self.name


class device:
    """There is one."""

    index = None

    def __init__(self, type="cpu", index=None):
        self.type = type

    def __eq__(self, other):
        return isinstance(other, device) and self.type == other.type

    def __hash__(self):
        return hash(self.type)

    def __str__(self):
        return self.type

    def __repr__(self):
        return f"device(type='{self.type}')"


CPU = device()
float32, float64 = dtype("float32", True), dtype("float64", True)
int64, bool_ = dtype("int64", False), dtype("bool", False)
DTYPES = {each.name: each for each in (float32, float64, int64, bool_)}
OF_PYTHON = {float: float64, int: int64, bool: bool_}


def _dtype(value):
    return OF_PYTHON.get(value, value)


class Generator:
    def __init__(self, device="cpu"):
        self._g = page.call("generator")

    def manual_seed(self, seed):
        _call_raw("manual_seed", str(int(seed)), self._g)
        return self


def _call_raw(name, *args):
    if page.call(name, *args) is None:
        _raise()


def _flat(data, into, depth=0, shape=None):
    """The numbers of nested lists, and their shape: ValueError where one list is longer."""
    if isinstance(data, Tensor):
        data = data.tolist()
    if not isinstance(data, (list, tuple, range)):
        if not isinstance(data, NUMBERS):
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        into.append(data)
        return []
    rest = None
    for part in data:
        inner = _flat(part, into, depth + 1)
        if rest is not None and inner != rest:
            if len(inner) != len(rest):
                raise TypeError("not a sequence" if len(inner) < len(rest) else "only numbers fit")
            raise ValueError(
                f"expected sequence of length {rest[0]} at dim {depth + 1} (got {inner[0]})"
            )
        rest = inner
    return [len(data)] + (rest or [])


def tensor(data, *, dtype=None, device=None, requires_grad=False):
    dtype = _dtype(dtype)
    if isinstance(data, Tensor):
        made = data.detach().clone()
        made = made.to(dtype) if dtype else made
        return made.requires_grad_(requires_grad) if requires_grad else made
    numbers = []
    shape = _flat(data, numbers)
    kind = "int64" if numbers else "float32"
    if any(isinstance(number, float) for number in numbers):
        kind = "float32"
    elif numbers and all(isinstance(number, bool) for number in numbers):
        kind = "bool"
    held = page.array(*[float(number) for number in numbers])
    made = page.call("tensor", held, _js(shape), _js(dtype), kind)
    made = _raise() if made is None else Tensor(made)
    return made.requires_grad_(requires_grad) if requires_grad else made


def _index(index):
    parts = index if isinstance(index, tuple) else (index,)
    return page.array(*[_part(part) for part in parts])


def _part(part):
    if part is None or isinstance(part, bool):
        return part
    if part is ...:
        return "..."
    if isinstance(part, NATIVE_SLICE) or type(part).__name__ == "Slice":
        ends = [None if end is None else int(end) for end in (part.start, part.stop, part.step)]
        return page.slice(*ends)
    if isinstance(part, (list, tuple, range)):
        part = tensor(list(part))
        return part._t if len(part) else part.long()._t
    if isinstance(part, Tensor):
        return part._t if part.shape or part.dtype is bool_ else part.item()
    if isinstance(part, int):
        return part
    raise TypeError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {type(part).__name__})"
    )


def _operator(name, reflected=False):
    def method(self, other):
        if not isinstance(other, OPERANDS):
            return NotImplemented
        return _call(name, other, self) if reflected else _call(name, self, other)

    return method


def _in_place(name):
    def method(self, other):
        _call(name + "_", self, other)
        return self

    return method


class Tensor:
    def __init__(self, t):
        self._t = t

    def __getattr__(self, name):
        if name in _missing_of["Tensor"]:
            raise AttributeError(missing_sentence(name))
        raise AttributeError(f"'Tensor' object has no attribute '{name}'")

    def __repr__(self):
        return _call("repr", self)

    __str__ = __repr__

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __bool__(self):
        return _call("truth", self)

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if self.dtype.is_floating_point or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __hash__(self):
        return id(self)

    def __getitem__(self, index):
        return _call("getitem", self, _index(index))

    def __setitem__(self, index, value):
        if not isinstance(value, OPERANDS):
            value = tensor(value)
        _call("setitem", self, _index(index), value)

    def __contains__(self, value):
        return bool((self == value).any())

    def __neg__(self):
        return _call("neg", self)

    def __pos__(self):
        return self

    def __abs__(self):
        return _call("abs", self)

    def __invert__(self):
        return _call("bitwise_not", self)

    def __round__(self, decimals=0):
        return _call("round", self, decimals)

    @property
    def shape(self):
        return Size(_numbers(page.call("shape", self._t)))

    @property
    def dtype(self):
        return DTYPES[page.dtypeOf(self._t)]

    @property
    def device(self):
        return CPU

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def T(self):
        return _call("T", self)

    @property
    def mT(self):
        return _call("mT", self)

    @property
    def requires_grad(self):
        return self._t.requiresGrad

    @requires_grad.setter
    def requires_grad(self, needed):
        self.requires_grad_(needed)

    @property
    def is_leaf(self):
        return not _has(self._t.node)

    @property
    def grad_fn(self):
        return self._t.node.name if _has(self._t.node) else None

    @property
    def grad(self):
        return Tensor(self._t.grad) if _has(self._t.grad) else None

    @grad.setter
    def grad(self, value):
        self._t.grad = None if value is None else value._t

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, value):
        _call("share", self, value)

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return len(self.shape)

    def item(self):
        return self._number(_call("item", self))

    def tolist(self):
        numbers = page.call("tolist", self._t)
        if numbers is None:
            _raise()
        size = page.size(numbers)
        return _nested([self._number(page.part(numbers, i)) for i in range(size)], self.shape)

    def _number(self, value):
        kind = self.dtype
        if kind is bool_:
            return bool(value)
        return _float(value) if kind.is_floating_point else int(value)

    def to(self, *args, **kwargs):
        wanted = [_dtype(arg) for arg in list(args) + list(kwargs.values())]
        wanted = [arg.dtype if isinstance(arg, Tensor) else arg for arg in wanted]
        kinds = [arg for arg in wanted if isinstance(arg, dtype)]
        return _call("to", self, kinds[0]) if kinds else self

    type = to

    def float(self):
        return _call("float", self)

    def double(self):
        return _call("double", self)

    def long(self):
        return _call("long", self)

    def bool(self):
        return _call("bool", self)

    def copy_(self, source):
        _call("setitem", self, _index(...), source)
        return self

    def fill_(self, value):
        _call("setitem", self, _index(...), value)
        return self

    def zero_(self):
        return self.fill_(0)

    def nelement(self):
        return self.numel()

    def numpy(self):
        raise RuntimeError("this page has no numpy; .tolist() gives Python's lists.")


OPERANDS = (Tensor, int, float, bool)


def _numbers(held):
    return [int(page.part(held, i)) for i in range(page.size(held))]


def _has(value):
    return value is not None and isinstance(value, JsProxy)


def _float(value=0.0):
    """What float() is in the page: tensors of one number become one, too."""
    if isinstance(value, Tensor):
        return value.item() + 0.0
    return float(value)


def _nested(numbers, shape):
    if not shape:
        return numbers[0]
    if len(shape) == 1:
        return numbers
    rows = shape[0]
    step = len(numbers) // rows if rows else 0
    return [_nested(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(rows)]


OPERATORS = "add sub mul pow matmul truediv:div floordiv:floor_divide mod:remainder"
BITWISE = "and:bitwise_and or:bitwise_or xor:bitwise_xor"
for _pair in (OPERATORS + " " + BITWISE).split():
    _name, _, _target = _pair.partition(":")
    _target = _target or _name
    setattr(Tensor, f"__{_name}__", _operator(_target))
    setattr(Tensor, f"__r{_name}__", _operator(_target, True))
    setattr(Tensor, f"__i{_name}__", _in_place(_target))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", _operator(_name))


class Module:
    """A module of PyTorch: names that are missing are said so."""

    def __init__(self, name, **names):
        self.__name__ = name
        for each, value in names.items():
            setattr(self, each, value)

    def __getattr__(self, name):
        if name == "__path__":  # Python looks for a module inside
            raise ImportError(missing_sentence(f"more of {self.__name__}"))
        if name in _missing_of.get(self.__name__, ()):
            raise AttributeError(missing_sentence(name))
        raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")

    def __repr__(self):
        return f"<module '{self.__name__}'>"


_missing_of = {}
for _line in MISSING.strip().split("\n"):
    _where, _, _names = _line.partition(": ")
    _missing_of[_where] = _missing_of.get(_where, ()) + tuple(_names.split())
for _where in list(_missing_of):
    if _where not in ("torch", "Tensor"):
        _missing_of["torch." + _where] = _missing_of.pop(_where)
_missing_of["Tensor"] += tuple([name for name in _missing_of["torch"] if name != "optim"])

F = Module("torch.nn.functional")
torch = Module("torch", inf=float("inf"), nan=float("nan"))
torch.pi, torch.e = 3.141592653589793, 2.718281828459045


def _function(name, parameters):
    def call(*args, **kwargs):
        needed = kwargs.pop("requires_grad", False) if name != "requires_grad_" else False
        result = _call(name, *_bound(name, parameters, args, kwargs))
        if name in FIELDS_OF and isinstance(result, tuple):
            return _Pair(name, result)
        return result.requires_grad_(True) if needed else result

    return call


FIELDS_OF = ("max", "min", "sort", "topk", "median")
for _line in SIGNATURES.strip().split("\n"):
    _where, _name, _parameters = _parsed(_line)
    _made = _function(_name, _parameters)
    if "t" in _where:
        setattr(torch, _name, _made)
    if "m" in _where:
        setattr(Tensor, _name, _made)
        if "_" in _where:
            setattr(Tensor, _name + "_", _function(_name + "_", _parameters))
    if "F" in _where:
        setattr(F, _name, _made)
for _name, _target in SAME.items():
    for _place in (torch, Tensor, F):
        if hasattr(_place, _target) and (_place is not F):
            setattr(_place, _name, getattr(_place, _target))


# ---- what a line of SIGNATURES cannot say -------------------------------------------------------


def _max_or_min(name):
    elementwise = {"max": "maximum", "min": "minimum"}[name]

    def call(input, dim=None, keepdim=False, *, other=None):
        if isinstance(dim, Tensor) or other is not None:
            return _call(elementwise, input, dim if other is None else other)
        result = _call(name, input, dim, keepdim)
        return _Pair(name, result) if isinstance(result, tuple) else result

    return call


for _name in ("max", "min"):
    setattr(torch, _name, _max_or_min(_name))
    setattr(Tensor, _name, getattr(torch, _name))


def _std_or_var(name):
    def call(input, dim=None, unbiased=None, keepdim=False, *, correction=1):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None:
            correction = int(unbiased)
        return _call(name, input, dim, correction, keepdim)

    return call


for _name in ("std", "var"):
    setattr(torch, _name, _std_or_var(_name))
    setattr(Tensor, _name, getattr(torch, _name))


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    return bool(_call("isclose", input, other, rtol, atol, equal_nan).all())


def einsum(equation, *operands):
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return _call("einsum", equation, list(operands))


def where(condition, input=None, other=None):
    if input is None:
        return nonzero_as_tuple(condition)
    return _call("where", condition, input, other)


def nonzero_as_tuple(input):
    return tuple(_call("nonzero", input).unbind(1))


def nonzero(input, *, as_tuple=False):
    return nonzero_as_tuple(input) if as_tuple else _call("nonzero", input)


def diag(input, diagonal=0):
    if input.ndim == 1:
        return _call("diag_embed", input, diagonal)
    return _call("diagonal", input, diagonal, 0, 1).clone()


def randint(low, high=None, size=None, *, generator=None, dtype=None, device=None):
    if isinstance(high, (tuple, list)):
        high, size = None, high
    if high is None:
        low, high = 0, low
    return _call("randint", low, high, size, _dtype(dtype), generator)


def randn_like(input, *, dtype=None):
    return _call("randn", list(input.shape), dtype or input.dtype, None)


def rand_like(input, *, dtype=None):
    return _call("rand", list(input.shape), dtype or input.dtype, None)


def manual_seed(seed):
    _call_raw("manual_seed", str(int(seed)), None)


def set_printoptions(
    precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None
):
    _call_raw("set_printoptions", precision, threshold, edgeitems, linewidth, profile, sci_mode)


def is_tensor(value):
    return isinstance(value, Tensor)


def as_tensor(data, dtype=None, device=None):
    if isinstance(data, Tensor):
        return data.to(_dtype(dtype)) if dtype else data
    return tensor(data, dtype=dtype)


def bincount(input, weights=None, minlength=0):
    size = max(int(input.max()) + 1 if input.numel() else 0, minlength)
    is_at = input.unsqueeze(-1) == torch.arange(size)
    if weights is None:
        return is_at.sum(0)
    weights = weights if weights.is_floating_point() else weights.double()
    return torch.where(is_at, weights.unsqueeze(-1), 0).sum(0)


def _index_add(input, dim, index, source, *, alpha=1):
    result = input.clone()
    places, values = result.transpose(0, dim), source.transpose(0, dim)
    for i, place in enumerate(index.tolist()):
        places[place] = places[place] + alpha * values[i]
    return result


def pad(input, pad, mode="constant", value=0.0):
    """torch.nn.functional.pad, of constant numbers: the last axis first."""
    if mode != "constant":
        raise NotImplementedError(missing_sentence(f"pad with mode={mode!r}"))
    for i in range(len(pad) // 2):
        axis = input.ndim - 1 - i
        for count, at_end in ((pad[2 * i], False), (pad[2 * i + 1], True)):
            if count < 0:
                size = input.shape[axis] + count
                input = input.narrow(axis, 0 if at_end else -count, size)
            elif count:
                shape = list(input.shape)
                shape[axis] = count
                edge = torch.full(shape, value or 0, dtype=input.dtype)
                input = torch.cat([input, edge] if at_end else [edge, input], dim=axis)
    return input


def _smoothed(exact):
    def cross_entropy(
        input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
        reduction="mean", label_smoothing=0.0,
    ):  # fmt: skip
        if weight is not None:
            raise NotImplementedError(missing_sentence("cross_entropy with weights"))
        loss = exact(input, target, ignore_index=ignore_index, reduction=reduction)
        if not label_smoothing:
            return loss
        axis = 1 if input.ndim > 1 else 0
        even = -input.log_softmax(axis).mean(axis).masked_fill(target == ignore_index, 0.0)
        if reduction == "mean":
            even = even.sum() / (target != ignore_index).sum()
        elif reduction == "sum":
            even = even.sum()
        return (1 - label_smoothing) * loss + label_smoothing * even

    return cross_entropy


def atan2(input, other):
    angle = (input / other).atan().nan_to_num(0.0)
    half_turn = torch.where(input < 0, -torch.pi, torch.pi)
    return torch.where(other < 0, angle + half_turn, angle)


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    if return_inverse or return_counts or dim is not None:
        raise NotImplementedError(missing_sentence("unique with return_inverse, counts or dim"))
    values = input.flatten().sort().values
    return torch.cat([values[:1], values[1:][values[1:] != values[:-1]]])


def binary_cross_entropy_with_logits(input, target, *, reduction="mean"):
    loss = input.clamp(min=0) - input * target + (1 + (-input.abs()).exp()).log()
    return loss if reduction == "none" else getattr(loss, reduction)()


def jacobian(func, inputs):
    """torch.autograd.functional.jacobian, of one tensor."""
    x = inputs.detach().clone().requires_grad_(True)
    y = func(x)
    rows = [
        grad([one], [x], retain_graph=True, allow_unused=True)[0] if one.requires_grad else None
        for one in y.flatten()
    ]
    rows = [torch.zeros_like(x) if row is None else row for row in rows]
    return torch.stack(rows).reshape(list(y.shape) + list(x.shape))


def block_diag(*tensors):
    result = torch.zeros(sum([t.shape[0] for t in tensors]), sum([t.shape[1] for t in tensors]))
    row, column = 0, 0
    for one in tensors:
        rows, columns = one.shape
        result[row : row + rows, column : column + columns] = one
        row, column = row + rows, column + columns
    return result


def entr(input):
    return torch.where(input > 0, -input * input.log(), input * 0.0)


class Categorical:
    def __init__(self, probs=None, logits=None):
        self.logits = (probs.log() if logits is None else logits).log_softmax(-1)
        self.probs = self.logits.exp()

    def entropy(self):
        return -(self.probs * self.logits.nan_to_num(neginf=0.0)).sum(-1)

    def log_prob(self, value):
        return self.logits.gather(-1, value.unsqueeze(-1)).squeeze(-1)


class finfo:
    def __init__(self, of=None):
        double = (of or float32).name == "float64"
        self.eps = 2.0**-52 if double else 2.0**-23
        self.max = 1.7976931348623157e308 if double else 3.4028234663852886e38
        self.tiny = 2.2250738585072014e-308 if double else 1.1754943508222875e-38
        self.smallest_normal, self.min = self.tiny, -self.max


class _Grad:
    """with torch.no_grad(): ..., and as a decorator."""

    def __init__(self, is_on):
        self.is_on = is_on

    def __enter__(self):
        self.before = page.call("set_grad", self.is_on)

    def __exit__(self, *error):
        page.call("set_grad", self.before)

    def __call__(self, function):
        def inside(*args, **kwargs):
            with _Grad(self.is_on):
                return function(*args, **kwargs)

        return inside


def grad(
    outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None
):
    return _call(
        "grad",
        _listed(outputs), _listed(inputs), None if grad_outputs is None else _listed(grad_outputs),
        retain_graph, create_graph, allow_unused,
    )  # fmt: skip


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


for _each in (
    allclose, einsum, where, nonzero, diag, randint, randn_like, rand_like, manual_seed, tensor,
    set_printoptions, is_tensor, as_tensor, finfo, Tensor, Generator, Size, dtype, device, float32,
    float64, int64,
):  # fmt: skip
    setattr(torch, getattr(_each, "__name__", getattr(_each, "name", "")), _each)
torch.bool, torch.float, torch.double, torch.long = bool_, float32, float64, int64
torch.no_grad = torch.inference_mode = lambda: _Grad(False)
torch.enable_grad = lambda: _Grad(True)
torch.is_grad_enabled = lambda: page.call("is_grad_on")
torch.get_default_dtype = lambda: float32
torch.is_floating_point = lambda input: input.dtype.is_floating_point
Tensor.is_floating_point = torch.is_floating_point
torch.numel = lambda input: input.numel()
torch.return_types = _Pair
Tensor.expand_as = lambda self, other: self.expand(other.shape)
Tensor.view_as = Tensor.reshape_as = lambda self, other: self.reshape(other.shape)
Tensor.type_as = lambda self, other: self.to(other.dtype)
torch.bincount = Tensor.bincount = bincount
torch.index_add = Tensor.index_add = _index_add
F.pad, F.cross_entropy = pad, _smoothed(F.cross_entropy)
torch.atan2 = Tensor.atan2 = torch.arctan2 = atan2
torch.block_diag = block_diag
torch.special = Module("torch.special", entr=entr)
torch.randint_like = lambda input, low, high=None: randint(low, high, list(input.shape))
torch.distributions = Module("torch.distributions", Categorical=Categorical)
_strides = Tensor.stride
Tensor.stride = lambda self, dim=None: _strides(self) if dim is None else _strides(self)[dim]
torch.square = Tensor.square = lambda input: input**2
torch.trace = Tensor.trace = lambda input: input.diagonal().sum()
Tensor.allclose, Tensor.nonzero, Tensor.diag = allclose, nonzero, diag
Tensor.where = lambda self, condition, other: _call("where", condition, self, other)
torch.autograd = Module(
    "torch.autograd", grad=grad, functional=Module("torch.autograd.functional", jacobian=jacobian)
)
torch.unique = Tensor.unique = unique
torch.clamp_min = Tensor.clamp_min = lambda input, min: input.clamp(min, None)
torch.clamp_max = Tensor.clamp_max = lambda input, max: input.clamp(None, max)
F.binary_cross_entropy_with_logits = binary_cross_entropy_with_logits


def linalg_norm(A, ord=None, dim=None, keepdim=False):
    count = A.ndim if dim is None else len(_listed(dim))
    if ord is None or count == 1:
        return vector_norm(A, ord, dim, keepdim)
    if count == 2:
        return matrix_norm(A, ord, (-2, -1) if dim is None else dim, keepdim)
    raise RuntimeError(
        "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. "
        f"Got {count}D."
    )


def vector_norm(x, ord=2, dim=None, keepdim=False):
    return _call("norm", x, ord, dim, keepdim)


def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False):
    if ord in (2, "nuc") and A.ndim == 2:
        values = svdvals(A)
        found = values[0] if ord == 2 else values.sum()
        return found.reshape(1, 1) if keepdim else found
    if ord != "fro":
        raise NotImplementedError(missing_sentence(f"matrix_norm with ord={ord!r}"))
    return _call("norm", A, 2, list(dim), keepdim)


def svd(A, full_matrices=True):
    if full_matrices and A.ndim == 2 and A.shape[0] != A.shape[1]:
        raise NotImplementedError(missing_sentence("svd with full_matrices=True"))
    return _Svd(_call("svd", A))


class _Svd(tuple):
    def __init__(self, parts):
        super().__init__(parts)
        self.U, self.S, self.Vh = parts


def matrix_power(A, n):
    if n < 0:
        raise NotImplementedError(missing_sentence("matrix_power with n < 0"))
    result = torch.eye(A.shape[-1], dtype=A.dtype)
    for _ in range(n):
        result = result @ A
    return result


def svdvals(A):
    return _call("svd", A)[1]


torch.linalg = Module(
    "torch.linalg", norm=linalg_norm, vector_norm=vector_norm, matrix_norm=matrix_norm,
    svd=svd, svdvals=svdvals, matrix_power=matrix_power,
)  # fmt: skip
