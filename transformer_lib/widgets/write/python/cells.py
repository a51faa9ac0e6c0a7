"""Python names that MicroPython lacks, and how a cell is run; it is read after the others.

source.js writes the calls of names between two underscores.
"""

import builtins
import functools
import io
import itertools
import math
import sys
from collections import OrderedDict, deque, namedtuple

import js

page = js.afmTensors
Tensor = torch.Tensor
missing_sentence_of_module = "this page's Python has no {}; `make lab` or Colab has all of Python."
MODULES = """
math cmath re collections itertools functools random string operator typing heapq bisect array
struct binascii hashlib builtins torch
"""


class OutputEnd(BaseException):
    """More was printed than the page shows."""


# How often something was printed; is it unseen; may it be too much; how often in this call.
_said = [0, False, False, 0]
MOST_OF_A_CALL = 5_000  # of an answer that is being judged


def printed(*values, sep=" ", end="\n", file=None, flush=False):
    text = (sep or " " if sep is None else sep).join([as_text(value) for value in values])
    _said[0] += 1
    _said[3] += 1
    if _said[2] and _said[3] > MOST_OF_A_CALL:
        raise OutputEnd("it prints more than 5,000 times in one call: does a loop print too much?")
    if not _said[1] and not page.out(text + ("\n" if end is None else end)) and not _said[2]:
        raise OutputEnd()


_repr = repr


def shown(value):
    """repr: MicroPython's own has letters of ASCII only."""
    text = _repr(value)
    return page.unescaped(text) if "\\" in text else text


def as_text(value="", encoding=None, errors="strict"):
    if encoding:
        return decoded(value, encoding, errors)
    text = str(value)
    return page.unescaped(text) if "\\" in text and not isinstance(value, str) else text


def show(value):
    if value is not None:
        page.shown(shown(value))


def kind_of(value, *more):
    """type, for which a Dict is a dict."""
    found = type(value, *more)
    return dict if found is Dict else found


def formatted(value, spec=""):
    """format(value, spec), as Python rounds."""
    if isinstance(value, Tensor) and not value.shape:
        value = value.item()
    if isinstance(value, bool):
        value = int(value) if spec else str(value)
    if isinstance(value, (int, float, str)):
        if not spec:
            return str(value)
        kind = "str" if isinstance(value, str) else "int" if isinstance(value, int) else "float"
        text = page.format(str(value) if kind == "int" else value, spec, kind)
        return text if text is not None else _raise()
    if spec:
        kind = type(value).__name__
        raise TypeError(f"unsupported format string passed to {kind}.__format__")
    return as_text(value)


def fstring(value, conversion, spec):
    if conversion:
        value = shown(value) if conversion in "ra" else as_text(value)
    return formatted(value, spec)


def _compared(name, reflected):
    def compare(a, b):
        if isinstance(b, Tensor) and not isinstance(a, Tensor):
            return getattr(b, reflected)(a)
        return COMPARE[name](a, b)

    return compare


COMPARE = {
    "__lt__": lambda a, b: a < b,
    "__gt__": lambda a, b: a > b,
    "__le__": lambda a, b: a <= b,
    "__ge__": lambda a, b: a >= b,
    "__eq__": lambda a, b: a == b,
    "__ne__": lambda a, b: a != b,
}
REFLECTED = {"__lt__": "gt", "__gt__": "lt", "__le__": "ge", "__ge__": "le", "__eq__": "eq"}
REFLECTED["__ne__"] = "ne"


class Keys(list):
    """The keys of a dict, which are a set as well."""

    def __or__(self, other):
        return set(self) | set(other)

    def __and__(self, other):
        return set(self) & set(other)

    def __sub__(self, other):
        return set(self) - set(other)

    def __eq__(self, other):
        return set(self) == set(other)

    __ror__, __rand__ = __or__, __and__

    def __rsub__(self, other):
        return set(other) - set(self)


class Dict(OrderedDict):
    """A dict that keeps its order, as Python's does."""

    def keys(self):
        return Keys(super().keys())

    def __repr__(self):
        return "{" + ", ".join([f"{key!r}: {value!r}" for key, value in self.items()]) + "}"

    __str__ = __repr__

    def copy(self):
        return Dict(self.items())

    def update(self, *given, **names):
        for key, value in dict_of(*given, **names).items():
            self[key] = value

    def __or__(self, other):
        return augmented("|", self.copy(), other)

    def __eq__(self, other):
        if not isinstance(other, dict) or len(self) != len(other):
            return False
        return all(key in other and other[key] == value for key, value in self.items())

    def __reversed__(self):
        return iter(list(self)[::-1])


Dict.__name__ = "dict"


AUGMENTED = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_in_place_names = {
    "+": "add_", "-": "sub_", "*": "mul_", "/": "div_", "%": "remainder_", "**": "pow_",
    "&": "bitwise_and_", "|": "bitwise_or_", "^": "bitwise_xor_", "//": "floor_divide_",
}  # fmt: skip


def augmented(sign, a, b):
    """a += b and its kind: a tensor, a list, a set and a dict change in place."""
    if isinstance(a, Tensor) and isinstance(b, OPERANDS) and sign in _in_place_names:
        _call(_in_place_names[sign], a, b)
        return a
    if isinstance(a, dict) and not isinstance(a, Counter) and sign == "|":
        for key, value in b.items():
            a[key] = value
        return a
    if isinstance(a, (list, bytearray)) and sign == "+":
        a.extend(b)
        return a
    if isinstance(a, set) and sign in "&|-^":
        change = {"&": "intersection", "|": "", "-": "difference", "^": "symmetric_difference"}
        getattr(a, (change[sign] + "_update").lstrip("_"))(b)
        return a
    return AUGMENTED[sign](a, b)


def dict_of(*given, **names):
    pairs = [list(one.items()) if hasattr(one, "items") else list(one) for one in given]
    return Dict((pairs[0] if pairs else []) + list(names.items()))


def cached(maxsize=None):
    """functools.cache and lru_cache."""
    if callable(maxsize):
        return cached()(maxsize)

    def keeping(function):
        kept = {}

        def call(*args, **kwargs):
            key = (args, tuple(sorted(kwargs.items())))
            if key not in kept:
                result = function(*args, **kwargs)
                if maxsize and len(kept) >= maxsize:
                    kept.clear()
                kept[key] = result
            return kept[key]

        return call

    return keeping


class DefaultDict(Dict):
    def __init__(self, default_factory=None, *given, **names):
        super().__init__()
        self.default_factory = default_factory
        self.update(dict_of(*given, **names))

    def __getitem__(self, key):
        return super().__getitem__(key) if key in self else self.__missing__(key)

    def __missing__(self, key):
        if self.default_factory is None:
            raise KeyError(key)
        self[key] = value = self.default_factory()
        return value

    def copy(self):
        return DefaultDict(self.default_factory, self)

    def __repr__(self):
        return f"defaultdict({self.default_factory}, {super().__repr__()})"

    __str__ = __repr__


class Counter(DefaultDict):
    def __init__(self, values=(), **names):
        super().__init__()
        self.update(values, **names)

    def __missing__(self, key):
        return 0

    def _add(self, values, names, sign):
        pairs = values.items() if isinstance(values, dict) else [(v, 1) for v in values]
        for key, count in list(pairs) + list(names.items()):
            self[key] = self.get(key, 0) + sign * count

    def update(self, values=(), **names):
        self._add(values, names, 1)

    def total(self):
        return sum(self.values())

    def most_common(self, n=None):
        return sorted(self.items(), key=lambda pair: -pair[1])[:n]

    def _with(self, other, sign):
        made = Counter(self)
        made._add(other, {}, sign)
        return Counter(Dict([pair for pair in made.items() if pair[1] > 0]))

    def __add__(self, other):
        return self._with(other, 1)

    def __sub__(self, other):
        return self._with(other, -1)

    def __or__(self, other):
        return self + (other - self)

    def __and__(self, other):
        return self - (self - other)

    def copy(self):
        return Counter(self)

    def __repr__(self):
        return f"Counter({Dict(self.most_common())})" if self else "Counter()"

    __str__ = __repr__


def permutations(values, r=None):
    values = tuple(values)
    r = len(values) if r is None else r
    if r == 0:
        yield ()
    for i in range(len(values) if r else 0):
        for rest in permutations(values[:i] + values[i + 1 :], r - 1):
            yield values[i : i + 1] + rest


def combinations(values, r):
    values = tuple(values)
    if r == 0:
        yield ()
    for i in range(len(values) if r else 0):
        for rest in combinations(values[i + 1 :], r - 1):
            yield values[i : i + 1] + rest


def product(*rows, repeat=1):
    rows = [tuple(row) for row in rows] * repeat
    if not rows:
        yield ()
        return
    for i in range(len(rows[0])):
        for rest in product(*rows[1:]):
            yield rows[0][i : i + 1] + rest


for _each in (permutations, combinations, product):
    setattr(itertools, _each.__name__, _each)

_zip = zip


def zipped(*rows, strict=False):
    if strict:
        rows = [list(row) for row in rows]
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                how = "shorter" if len(row) < len(rows[0]) else "longer"
                before = "argument 1" if i == 1 else f"arguments 1-{i}"
                raise ValueError(f"zip() argument {i + 1} is {how} than {before}")
    return _zip(*rows)


class Math:
    """math, which takes tensors of one number."""

    def __getattr__(self, name):
        found = getattr(math, name)
        if not callable(found):
            return found
        return lambda *given: found(
            *[_float(value) if isinstance(value, Tensor) else value for value in given]
        )

    @staticmethod
    def isclose(a, b, *, rel_tol=1e-09, abs_tol=0.0):
        if a == b or abs(a - b) == math.inf:
            return a == b
        return abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol)

    @staticmethod
    def hypot(*values):
        return math.sqrt(sum([_float(value) ** 2 for value in values]))

    @staticmethod
    def prod(values, start=1):
        for value in values:
            start = start * value
        return start


def _ordered(name):
    """min, max and sorted, which take tensors of one number; MicroPython's take numbers only."""
    of_numbers = getattr(builtins, name)

    def ordered(*values, key=None, **how):
        def number(value):
            value = key(value) if key else value
            return value.item() if isinstance(value, Tensor) else value

        if name == "sorted":  # MicroPython's does not keep the order of what is equal
            sign = -1 if how.get("reverse") else 1
            pairs = [(number(value), sign * i, value) for i, value in enumerate(values[0])]
            return [value for _, _, value in of_numbers(pairs, key=lambda p: p[:2], **how)]
        if key is None and len(values) == 1 and isinstance(values[0], Tensor):
            values = (list(values[0]),)
        return of_numbers(*values, key=number, **how)

    return ordered


class Slice:
    """slice(1, None), which MicroPython does not make."""

    def __init__(self, *ends):
        at = 1 if len(ends) == 1 else 0
        self.start = None if at else ends[0]
        self.stop = ends[1 - at]
        self.step = ends[2] if len(ends) > 2 else None


def encoded(value, *given, **named):
    """str.encode, and whatever else is called so."""
    if not isinstance(value, str):
        return value.encode(*given, **named)
    name = named.get("encoding", given[0] if given else "utf-8")
    if name == "unicode_escape":
        return _repr(value)[1:-1].encode()
    if name.lower() not in ("utf-8", "utf8"):
        raise LookupError(missing_sentence_of_module.format(f"encoding {name}"))
    return value.encode()


def decoded(value, encoding="utf-8", errors="strict"):
    """bytes.decode, which says what to do with what is not UTF-8."""
    if errors == "strict" or not isinstance(value, (bytes, bytearray)):
        return value.decode(encoding)
    return page.decoded("".join([chr(byte) for byte in value]), errors)


class Typing:
    """typing: annotations are read and forgotten."""

    def __init__(self, *base):
        if base:  # class P(NamedTuple)
            raise TypeError(missing_sentence_of_module.format("classes of typing"))

    def __getattr__(self, name):
        return self

    def __getitem__(self, index):
        return self

    def __call__(self, *args, **kwargs):
        return self


class NamedTuple:
    """typing.NamedTuple: a class of its own, since MicroPython's tuples have no further names."""

    def __iter__(self):
        return iter([getattr(self, name) for name in self._fields])

    def __len__(self):
        return len(self._fields)

    def __getitem__(self, index):
        return tuple(self)[index]

    def __eq__(self, other):
        return isinstance(other, (tuple, NamedTuple)) and tuple(self) == tuple(other)

    def __hash__(self):
        return hash(tuple(self))

    def _replace(self, **changes):
        values = {name: getattr(self, name) for name in self._fields}
        values.update(changes)
        return type(self)(**values)


def is_instance(value, kinds):
    """isinstance, which knows typing.Protocol: whatever has the names that it asks for."""
    if isinstance(value, kinds) or (isinstance(value, bool) and isinstance(0, kinds)):
        return True
    asked = getattr(kinds, "_asked", None)
    return asked is not None and all(hasattr(value, n) for n in asked)


_round = round


def rounded(value, digits=None):
    """round, to the digit that Python gives."""
    if isinstance(value, float) and digits is not None and digits >= 0:
        return page.rounded(value, digits) + 0.0
    return _round(value) if digits is None else _round(value, digits)


sys.modules["math"] = Math()
sys.modules["typing"] = Typing()
sys.modules["collections"] = Module(
    "collections", Counter=Counter, defaultdict=DefaultDict, OrderedDict=OrderedDict,
    # Where it is full and has no maxlen, it raises an IndexError.
    deque=lambda values=(), maxlen=None: deque(values, maxlen or 1 << 16, maxlen is None),
    namedtuple=namedtuple,
)  # fmt: skip
functools.cache = functools.lru_cache = cached
_import = builtins.__import__


def imported(name, *args):
    if name in sys.modules and len(args) > 2 and args[2]:  # from a.b import c, without an a
        return sys.modules[name]
    if name.split(".")[0] not in MODULES.split() and name not in sys.modules:
        raise ImportError(missing_sentence_of_module.format(name))
    return _import(name, *args)


def _without(what):
    def refused(*args, **kwargs):
        raise OSError(f"this page's Python has no {what}; `make lab` or Colab has all of Python.")

    return refused


itertools.tee = _without("tee")
# MicroPython's json writes a Dict as it prints it.
sys.modules["json"] = Module("json", **{n: _without(f"json.{n}") for n in ("dumps", "loads")})
for _name, _value in (
    ("print", printed), ("zip", zipped), ("format", formatted), ("__import__", imported),
    ("open", _without("files")), ("input", _without("keyboard to read from")),
    ("__show__", show), ("__float__", _float), ("__fstring__", fstring),
    ("__list__", lambda *a: list(a)), ("__tuple__", lambda *a: a), ("__set__", lambda *a: set(a)),
    ("__decode__", decoded), ("__encode__", encoded), ("__text_of__", as_text), ("repr", shown),
    ("__type__", kind_of), ("round", rounded), ("__augmented__", augmented),
    ("__dict__", lambda *pairs: Dict(pairs)), ("__dictof__", dict_of),
    ("min", _ordered("min")), ("max", _ordered("max")), ("sorted", _ordered("sorted")),
    ("slice", Slice), ("__NamedTuple__", NamedTuple),
):  # fmt: skip
    setattr(builtins, _name, _value)
for _name in COMPARE:
    setattr(builtins, _name, _compared(_name, f"__{REFLECTED[_name]}__"))

_namespaces = {}


def names_of(namespace):
    return _namespaces.setdefault(namespace, {"__name__": "__main__", "isinstance": is_instance})


def run(code, cell, namespace):
    """Run a cell, and say whether it went through; tell the page of an error."""
    names = names_of(namespace)
    try:
        exec(compile(code, cell, "exec"), names)
        return True
    except BaseException as error:
        trace = io.StringIO()
        sys.print_exception(error, trace)
        page.erred(type(error).__name__, str(error), trace.getvalue())
        return False


def forget(namespace):
    _namespaces.pop(namespace, None)


def provide(name, code, more=(), instead=()):
    """A module of the book's library, from its source.

    `more`, pairs, is there from the start; `instead`, pairs, takes the place of what it defines.
    """
    names = {"__name__": name, "isinstance": is_instance}
    for each, value in more:
        names[each] = value
    exec(compile(code, name, "exec"), names)
    for each, value in instead:
        names[each] = value
    module = torch.__class__(name)
    for each, value in names.items():
        if each[:2] != "__":
            setattr(module, each, value)
    sys.modules[name] = module


js.afmRun, js.afmForget, js.afmProvide = run, forget, provide
