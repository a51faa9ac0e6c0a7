"""torch.testing and torch.nn, as far as the book's exercises ask for them: read by MicroPython."""

import sys

# ---- torch.testing ------------------------------------------------------------------------------

TOLERANCES = {"float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7), "int64": (0, 0), "bool": (0, 0)}


def assert_close(
    actual, expected, *, rtol=None, atol=None, equal_nan=False, check_dtype=True, msg=None
):
    if isinstance(actual, (list, tuple)) and isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            lengths = f"{len(actual)} != {len(expected)}"
            raise AssertionError(f"The length of the sequences mismatch: {lengths}")
        for i, one in enumerate(actual):
            assert_close(
                one, expected[i], rtol=rtol, atol=atol, equal_nan=equal_nan,
                check_dtype=check_dtype, msg=msg,
            )  # fmt: skip
        return
    if isinstance(actual, Tensor) != isinstance(expected, Tensor):
        what = f"{type(actual).__name__} and {type(expected).__name__}"
        raise TypeError(f"No comparison pair was able to handle inputs of type {what}.")
    is_number = not isinstance(actual, Tensor)
    if is_number:
        actual, expected = tensor(actual, dtype=float64), tensor(expected, dtype=float64)
    if actual.shape != expected.shape:
        shapes = f"{actual.shape} != {expected.shape}"
        raise AssertionError(f"The values for attribute 'shape' do not match: {shapes}.")
    if check_dtype and actual.dtype is not expected.dtype:
        kinds = f"{actual.dtype} != {expected.dtype}"
        raise AssertionError(f"The values for attribute 'dtype' do not match: {kinds}.")
    usual = max(TOLERANCES[actual.dtype.name], TOLERANCES[expected.dtype.name])
    rtol = usual[0] if rtol is None else rtol
    atol = usual[1] if atol is None else atol
    kind = actual.dtype if actual.dtype is expected.dtype else float64
    actual, expected = actual.detach().to(kind), expected.detach().to(kind)
    wrong = ~_call("isclose", actual, expected, rtol, atol, equal_nan)
    if not wrong.any():
        return
    raise AssertionError(msg or _mismatch(actual, expected, wrong, rtol, atol))


def _mismatch(actual, expected, wrong, rtol, atol):
    differences = (actual.to(float64) - expected.to(float64)).abs()
    relative = differences / expected.to(float64).abs()
    differences, relative = (each.masked_fill(~wrong, 0) for each in (differences, relative))
    if not actual.shape:
        return (
            "Scalars are not close!\n\n"
            f"Expected {expected.item()} but got {actual.item()}.\n"
            f"Absolute difference: {differences.item()} (up to {atol} allowed)\n"
            f"Relative difference: {relative.item()} (up to {rtol} allowed)"
        )
    lines = []
    for name, found, most in (("absolute", differences, atol), ("relative", relative, rtol)):
        place, index = int(found.argmax()), []
        for size in reversed(list(actual.shape)):
            index.insert(0, place % size)
            place //= size
        largest = found.max().item()
        lines.append(
            f"Greatest {name} difference: {largest} at index {tuple(index)} (up to {most} allowed)"
        )
    count, total = int(wrong.sum()), actual.numel()
    share = page.format(100 * count / total, ".1f", "float")
    exactly = "equal" if rtol == atol == 0 else "close"
    mismatched = f"Mismatched elements: {count} / {total} ({share}%)"
    return f"Tensor-likes are not {exactly}!\n\n{mismatched}\n" + "\n".join(lines)


torch.testing = Module("torch.testing", assert_close=assert_close)

# ---- torch.nn -----------------------------------------------------------------------------------


class Parameter(Tensor):
    made = 0

    def __init__(self, data, requires_grad=True):
        self._t = data.detach()._t
        Parameter.made += 1
        self._number_made = Parameter.made
        self.requires_grad_(requires_grad)

    def __repr__(self):
        return "Parameter containing:\n" + _call("repr", self)

    __str__ = __repr__


class Layer:
    """torch.nn.Module."""

    training = True
    _hooks = ()
    _buffers = ()
    made = 0

    def __new__(cls, *args, **kwargs):
        made = object.__new__(cls)
        Layer.made += 1
        made._number_made = Layer.made
        return made

    def __init__(self):
        pass

    def extra_repr(self):
        return ""

    def __repr__(self):
        parts = [(name, part) for name, part in self._parts() if isinstance(part, Layer)]
        lines = [f"({name}): {part}".replace("\n", "\n  ") for name, part in parts]
        inside = "\n  " + "\n  ".join(lines) + "\n" if lines else self.extra_repr()
        return f"{type(self).__name__}({inside})"

    __str__ = __repr__

    def register_forward_hook(self, hook):
        self._hooks = list(self._hooks)
        self._hooks.append(hook)

    def forward(self, *args):
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args, **kwargs):
        result = self.forward(*args, **kwargs)
        for hook in self._hooks:
            other = hook(self, args, result)
            result = result if other is None else other
        return result

    def _parts(self):
        own = [pair for pair in self.__dict__.items() if isinstance(pair[1], (Parameter, Layer))]
        # MicroPython's __dict__ keeps no order. Parameters come before layers, as in PyTorch.
        return sorted(own, key=lambda pair: (isinstance(pair[1], Layer), pair[1]._number_made))

    def _all_named(self, prefix="", buffers=False):
        """A parameter that is shared comes once for each of its names."""
        parts = self._parts()
        own = [pair for pair in parts if not isinstance(pair[1], Layer)]
        if buffers:
            own += [(name, getattr(self, name)) for name in self._buffers]
        for name, value in own:
            if value is not None:
                yield prefix + name, value
        for name, value in parts:
            if isinstance(value, Layer):
                yield from value._all_named(prefix + name + ".", buffers)

    def named_parameters(self, prefix=""):
        seen = set()
        for name, value in self._all_named(prefix and prefix + "."):
            if id(value) not in seen:
                seen.add(id(value))
                yield name, value

    def modules(self):
        yield self
        for _, value in self._parts():
            if isinstance(value, Layer):
                yield from value.modules()

    def parameters(self):
        return (value for _, value in self.named_parameters())

    def state_dict(self):
        return Dict([(name, value.detach()) for name, value in self._all_named(buffers=True)])

    def zero_grad(self):
        for parameter in self.parameters():
            parameter.grad = None

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def train(self, mode=True):
        for layer in self.modules():
            layer.training = mode
        return self

    def eval(self):
        return self.train(False)

    def register_buffer(self, name, tensor, persistent=True):
        setattr(self, name, tensor)
        self._buffers = [each for each in self._buffers if each != name]
        if persistent:
            self._buffers.append(name)


class ModuleList(Layer):
    def __init__(self, modules=()):
        self._list = list(modules)

    def _parts(self):
        return [(str(i), layer) for i, layer in enumerate(self._list)]

    def __iter__(self):
        return iter(self._list)

    def __len__(self):
        return len(self._list)

    def __getitem__(self, i):
        return self._list[i]

    def append(self, layer):
        self._list.append(layer)
        return self


class Sequential(ModuleList):
    def __init__(self, *layers):
        super().__init__(layers)

    def forward(self, x):
        for layer in self._list:
            x = layer(x)
        return x


class ModuleDict(ModuleList):
    def __init__(self, modules=None):
        self._list = []
        self._names = []
        for name, layer in (modules or {}).items():
            self[name] = layer

    def __setitem__(self, name, layer):
        self._names.append(name)
        self._list.append(layer)

    def __getitem__(self, name):
        return self._list[self._names.index(name)]

    def _parts(self):
        return self.items()

    def items(self):
        return [(name, self._list[i]) for i, name in enumerate(self._names)]

    def keys(self):
        return list(self._names)

    def values(self):
        return list(self._list)

    def __iter__(self):
        return iter(self._names)


class ParameterDict(ModuleDict):
    def __setitem__(self, name, value):
        value = value if isinstance(value, Parameter) else Parameter(value)
        super().__setitem__(name, value)


class Identity(Layer):
    def forward(self, x):
        return x


class Linear(Layer):
    def __init__(self, in_features, out_features, bias=True):
        self.in_features, self.out_features = in_features, out_features
        bound = in_features**-0.5
        self.weight = Parameter(torch.empty(out_features, in_features).uniform_(-bound, bound))
        self.bias = Parameter(torch.empty(out_features).uniform_(-bound, bound)) if bias else None

    def extra_repr(self):
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"{sizes}, bias={self.bias is not None}"

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Embedding(Layer):
    def __init__(self, num_embeddings, embedding_dim):
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.weight = Parameter(torch.randn(num_embeddings, embedding_dim))

    def extra_repr(self):
        return f"{self.num_embeddings}, {self.embedding_dim}"

    def forward(self, ids):
        return F.embedding(ids, self.weight)


class LayerNorm(Layer):
    def __init__(self, normalized_shape, eps=1e-05, bias=True):
        shape = _listed(normalized_shape)
        self.normalized_shape, self.eps = shape, eps
        self.weight = Parameter(torch.ones(*shape))
        self.bias = Parameter(torch.zeros(*shape)) if bias else None

    def extra_repr(self):
        shape, bias = tuple(self.normalized_shape), self.bias is not None
        return f"{shape}, eps={self.eps}, elementwise_affine=True, bias={bias}"

    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class Dropout(Layer):
    def __init__(self, p=0.5):
        self.p = p

    def extra_repr(self):
        return f"p={self.p}, inplace=False"

    def forward(self, x):
        return dropout(x, self.p, self.training)


def dropout(input, p=0.5, training=True):
    if p and training:
        raise NotImplementedError(missing_sentence("dropout with p > 0"))
    return input


class ReLU(Layer):
    def forward(self, x):
        return torch.relu(x)


def xavier_uniform_(tensor, gain=1.0):
    bound = gain * (6 / (tensor.shape[0] + tensor.shape[1])) ** 0.5
    with torch.no_grad():
        return tensor.uniform_(-bound, bound)


def normal_(tensor, mean=0.0, std=1.0):
    with torch.no_grad():
        return tensor.normal_(mean, std)


def zeros_(tensor):
    with torch.no_grad():
        return tensor.zero_()


init = Module("torch.nn.init", xavier_uniform_=xavier_uniform_, normal_=normal_, zeros_=zeros_)
nn = Module(
    "torch.nn", functional=F, init=init, ModuleDict=ModuleDict, ParameterDict=ParameterDict,
    Identity=Identity, Parameter=Parameter, Module=Layer, ModuleList=ModuleList, ReLU=ReLU,
    Sequential=Sequential, Linear=Linear, Embedding=Embedding, LayerNorm=LayerNorm,
    Dropout=Dropout,
)  # fmt: skip
torch.nn, torch.functional, F.dropout = nn, F, dropout
for _each in (
    torch,
    torch.nn,
    torch.nn.functional,
    torch.nn.init,
    torch.testing,
    torch.autograd,
    torch.autograd.functional,
    torch.linalg,
    torch.distributions,
    torch.special,
):
    sys.modules[_each.__name__] = _each
