"""Run changed copies of an answer apart, so that they have no effects beyond the copy.

To find a mistake, `mending` runs hundreds of changed copies of an answer. The answer itself may
write a file or fill a list of the reader's: that is its own business. A change of it would write
*another* file. So a copy runs with

- copies of the reader's values that it uses, and of the functions and classes that use others;
- the harmless part of Python's functions, and of the modules in `_PACKAGES`;
- nothing else: what uses anything else (`open`, `os`, `torch.save`, a plot) is `Unsafe`, and no
  copy of it is run;
- and, for what still slips through, an audit hook that refuses to write files, to start processes
  and to open sockets while a copy runs.

>>> notes, names = [1], {}
>>> exec("def note(x): notes.append(x); return notes", {"notes": notes}, names)
>>> Apart().copy(names["note"])(2), notes
([1, 2], [1])
"""

import builtins
import copy
import dis
import functools
import os
import sys
import threading
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    EllipsisType,
    FunctionType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy
import torch

# Modules, and packages with all they hold, whose functions and classes leave the world as it is,
_PACKAGES = """
    math cmath operator _operator itertools functools _functools collections _collections copy re
    random numbers fractions decimal statistics string heapq _heapq bisect _bisect dataclasses enum
    typing contextlib textwrap time json jaxtyping einops numpy.linalg numpy.fft numpy.random
    torch.nn torch.autograd torch.optim torch.linalg torch.fft torch.special torch.func
    torch._functorch torch.distributions torch.random torch._C torch.functional torch._tensor
    torch.amp torch._jit_internal torch._linalg_utils torch._lowrank torch.return_types
    transformer_lib
"""
_ITSELF = {"numpy", "torch"}  # these, and not all they hold,
_NOT_IN_IT = [f"transformer_lib.{name}" for name in ("notebook", "plots", "storage", "widgets")]
# but for what writes files without Python's `open`, or sets what holds for the whole program.
_NOT = {"save", "from_file", "PyTorchFileWriter", "compile", "seterr", "seterrcall", "setbufsize"}
_NOT_BUILTIN = {"open", "exec", "eval", "compile", "input", "breakpoint", "globals", "locals"}
_NOT_BUILTIN |= {"vars", "setattr", "delattr", "__import__"}

_TELLING = {dis.opmap[name] for name in ("IMPORT_NAME", "STORE_ATTR", "DELETE_ATTR")}

_ATOMS = {bool, int, float, complex, str, bytes, range, slice, NoneType, EllipsisType}
_ATOMS |= {type(NotImplemented), torch.dtype, torch.device, torch.Size, torch.layout}
_ATOMS |= {torch.memory_format, numpy.dtype}
_NUMBERS = {torch.Tensor, torch.nn.Parameter, torch.Generator, numpy.ndarray}
_READING = {"os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.getxattr", "os.listxattr"}
_EFFECTS = ("os.", "shutil.", "subprocess.", "socket.", "tempfile.", "sqlite3.", "pty.", "winreg.")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Unsafe(Exception):
    """A copy of this could have effects beyond the copy."""


def apart(names: dict, cells: dict, code: CodeType) -> tuple[dict, dict]:
    """Copies of the globals that a `code` uses, and of the variables around it, to run it with.

    Raises `Unsafe` if it uses what cannot be copied.
    """
    here = Apart()
    found = here.globals_of(names, code)
    return found, {name: here.copy(value) for name, value in cells.items()}


class Apart:
    """Copies of values, of functions and of classes, each made once."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}  # by the identity of what it is a copy of

    def globals_of(self, names: dict, code: CodeType) -> dict:
        """The globals for functions that have these `names`, with all that a `code` asks of them.

        What is not to be found is not there, as for the answer itself.
        """
        asked, imported, written = _uses(code)
        if not all(map(_harmless, imported)) or written:
            raise Unsafe
        there = {"__name__": names.get("__name__", ""), "__builtins__": _builtins()}
        found = self._made.setdefault(id(names), there)
        for name in asked:
            if name in names and name not in found:
                found[name] = self.copy(names[name])
            elif name not in found and hasattr(builtins, name) and name not in _builtins():
                raise Unsafe
        return found

    def copy(self, value: Any) -> Any:
        """A copy of a value with all it holds; raises `Unsafe`."""
        kind, key = type(value), id(value)
        if kind in _ATOMS or _is_harmless(value):
            return value
        if key in self._made:
            return self._made[key]
        try:
            return self._copied(value, kind, key)
        except (TypeError, ValueError, AttributeError, RuntimeError) as error:  # no copy of it
            raise Unsafe from error

    def _copied(self, value: Any, kind: type, key: int) -> Any:
        made: Any
        if kind is ModuleType and _harmless(value.__name__):
            return _Part(value)
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, type):
            return self._class(value)
        if kind in _NUMBERS:
            made = self._made[key] = copy.deepcopy(value)
        elif kind in (list, deque):
            made = self._made[key] = kind()
            made.extend(map(self.copy, value))
        elif kind in (dict, OrderedDict, Counter, defaultdict):
            factory = [self.copy(value.default_factory)] if kind is defaultdict else []
            made = self._made[key] = kind(*factory)
            for name, item in value.items():
                dict.__setitem__(made, self.copy(name), self.copy(item))
        elif kind in (tuple, set, frozenset):
            made = self._made[key] = kind(map(self.copy, value))
        elif kind in (staticmethod, classmethod):
            made = kind(self.copy(value.__func__))
        elif kind is property:
            made = property(*map(self.copy, (value.fget, value.fset, value.fdel)))
        elif kind is MethodType:
            made = MethodType(self.copy(value.__func__), self.copy(value.__self__))
        elif kind is functools.partial:
            made = kind(self.copy(value.func), *self.copy(value.args), **self.copy(value.keywords))
        else:  # an object: a module of PyTorch, or of a class of the reader's own
            made = self._made[key] = object.__new__(self.copy(kind))
            for name, item in vars(value).items():
                made.__dict__[name] = self.copy(item)
        return made

    def _function(self, function: FunctionType) -> FunctionType:
        names = self.globals_of(function.__globals__, function.__code__)
        cells, new = function.__closure__ or (), []
        for cell in cells:
            if id(cell) not in self._made:
                self._made[id(cell)] = CellType()
                new.append(cell)
        closure = tuple(self._made[id(cell)] for cell in cells)
        made = FunctionType(function.__code__, names, function.__name__, None, closure)
        self._made[id(function)] = made
        for cell in new:
            self._made[id(cell)].cell_contents = self.copy(cell.cell_contents)
        made.__defaults__ = self.copy(function.__defaults__)
        made.__kwdefaults__ = self.copy(function.__kwdefaults__)
        made.__dict__.update(self.copy(function.__dict__))
        return made

    def _class(self, kind: type) -> type:
        inside = {n: v for n, v in vars(kind).items() if n not in ("__dict__", "__weakref__")}
        empty = {n: v for n, v in inside.items() if type(v) in _ATOMS}
        made = type(kind)(kind.__name__, tuple(map(self.copy, kind.__bases__)), empty)
        self._made[id(kind)] = made  # before its functions, whose `super()` needs it
        for name, value in inside.items():
            if name not in empty and name != "__annotations__":
                setattr(made, name, self.copy(value))
        return made


class _Part(ModuleType):
    """The harmless part of a module; nothing can be written into it."""

    def __init__(self, whole: ModuleType) -> None:
        super().__init__(whole.__name__)
        self.__dict__["_whole"] = whole

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.__dict__["_whole"], name)
        if type(value) is ModuleType and _harmless(value.__name__):
            value = _Part(value)
        elif name in _NOT or not (type(value) in _ATOMS or _is_harmless(value)):
            raise AttributeError(f"{name} is not for a copy of an answer")
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a copy of an answer changes no module")

    __delattr__ = __setattr__


@functools.lru_cache(maxsize=2048)
def _harmless(module: str | None) -> bool:
    """Do the functions and classes of a module, by its name, leave the world as it is?"""
    if module in _ITSELF:
        return True
    return _within(module or "", _PACKAGES.split()) and not _within(module or "", _NOT_IN_IT)


def _within(module: str, packages: list[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _is_harmless(value: Any) -> bool:
    """Is this a function or a class that leaves the world as it is, whatever it is given?"""
    if not isinstance(
        value, type | FunctionType | BuiltinFunctionType | functools._lru_cache_wrapper
    ):
        return getattr(type(value), "__module__", "") == "typing"
    owner = getattr(value, "__self__", None)
    if isinstance(value, BuiltinFunctionType) and not isinstance(owner, type | ModuleType | None):
        return False  # a method of something: `notes.append`
    name, module = value.__name__, value.__module__
    if module == "builtins":
        return name in _builtins() or isinstance(value, type)
    sets = name.startswith("set_") and name != "set_grad_enabled"
    return _harmless(module) and name not in _NOT and not sets


@functools.cache
def _beyond() -> frozenset[str]:
    return frozenset(vars(builtins).keys() - _builtins().keys())


@functools.cache
def _builtins() -> dict:
    """Python's own functions, but for those that reach beyond what they are given."""
    found = {
        name: value
        for name, value in vars(builtins).items()
        if name not in _NOT_BUILTIN and getattr(value, "__module__", "builtins") == "builtins"
    }
    return {**found, "__import__": _imported, "__build_class__": __build_class__}


def _imported(name: str, names: Any = None, inside: Any = None, given: Any = (), level: int = 0):
    """The `__import__` of a copy."""
    if level or not _harmless(name):
        raise ImportError(f"{name} is not for a copy of an answer")
    return _Part(__import__(name, {}, {}, given or ()))


@functools.lru_cache(maxsize=2048)
def _uses(code: CodeType) -> tuple[set[str], set[str], bool]:
    """The globals that a code asks for, the modules it imports; does it write into one of them?"""
    asked, imported, written, root = set(), set(), False, False
    if _TELLING.isdisjoint(code.co_code[::2]) and _beyond().isdisjoint(code.co_names):
        asked.update(code.co_names)  # attributes, too: quicker than to tell them from globals
        steps = []
    else:
        steps = list(dis.get_instructions(code))
    for step in steps:
        if step.opname in ("STORE_ATTR", "DELETE_ATTR") and root:
            written = True
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            asked.add(step.argval)
            root = True
        elif not step.opname.startswith("LOAD_ATTR"):
            root = False
        if step.opname == "IMPORT_NAME":
            imported.add(step.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            more = _uses(inner)
            asked, imported, written = asked | more[0], imported | more[1], written or more[2]
    return asked, imported, written


# --- the audit hook -----------------------------------------------------------------------------

_apart: set[int] = set()  # the threads that run a copy


@contextmanager
def effects_refused() -> Iterator[None]:
    """In the block, this thread writes no file, starts no process and opens no socket."""
    _install()
    me = threading.get_ident()
    _apart.add(me)
    try:
        yield
    finally:
        _apart.discard(me)


@functools.cache
def _install() -> None:
    sys.addaudithook(_hook)  # for good: Python has no way to take one away


def _hook(event: str, args: tuple) -> None:
    if not _apart or threading.get_ident() not in _apart:
        return
    writes = event == "open" and isinstance(args[2], int) and args[2] & _WRITING
    if writes or (event.startswith(_EFFECTS) and event not in _READING):
        raise PermissionError("a changed copy of an answer has no effects")
