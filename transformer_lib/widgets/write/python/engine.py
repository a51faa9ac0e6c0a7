"""All that the engine of the checks asks of Python, as far as MicroPython does not have it.

The engine itself (transformer_lib/exercises/engine/) is read after this file, in MicroPython's
syntax (book/page_code.py), all but its modules `calling`, `guarding` and `isolating`, whose place
is taken here: there is no notebook to be kept alive, no file, and no signal to set a limit by. A
loop without an end is ended at its next turn (`__tick__`), and a longer one by the page, with the
worker.
"""

native_dict = dict  # as source.js leaves it
ENGINE = "transformer_lib.exercises.engine."


def _module(name, **names):
    sys.modules[name] = Module(name, **names)
    return sys.modules[name]


# ---- Python's library ---------------------------------------------------------------------------


def context(function):
    """contextlib.contextmanager."""

    class Managed:
        def __init__(self, *args, **kwargs):
            self.steps = function(*args, **kwargs)

        def __enter__(self):
            return next(self.steps)

        def __exit__(self, kind, error, trace):
            if error is None:
                next(self.steps, None)
                return False
            try:
                self.steps.throw(error)
            except StopIteration:
                return True
            return False

    return Managed


@context
def suppress(*kinds):
    try:
        yield
    except kinds:
        return


@context
def redirect_stdout(stream):
    before = _said[1]
    _said[1] = True
    try:
        yield stream
    finally:
        _said[1] = before


class NullContext:
    def __init__(self, value=None):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *error):
        return False


def copied(value):
    """copy.deepcopy."""
    if isinstance(value, Parameter):
        made = Parameter(value.detach().clone(), value.requires_grad)
        made._number_made = value._number_made  # a model's parameters keep their order
        return made
    if isinstance(value, Tensor):
        made = value.detach().clone()
        return made.requires_grad_(True) if value.requires_grad else made
    if isinstance(value, (list, set)):
        return type(value)([copied(item) for item in value])
    if isinstance(value, tuple):
        return Size(value) if isinstance(value, Size) else tuple([copied(item) for item in value])
    if isinstance(value, dict):
        made = value.copy()
        for key, item in value.items():
            made[key] = copied(item)
        return made
    return _made_again(value, copied)


def _made_again(value, part):
    """An object of a reader's class, or a layer, with `part` of each of its attributes."""
    if isinstance(value, (type, Module, dtype, device, Generator)) or not hasattr(
        value, "__dict__"
    ):
        return value
    made = object.__new__(type(value))
    for name, item in value.__dict__.items():
        setattr(made, name, part(item))
    return made


def shallow(value):
    """copy.copy."""
    if isinstance(value, (list, set)):
        return type(value)(value)
    if isinstance(value, dict):
        return value.copy()
    return _made_again(value, lambda item: item)


def replaced(value, **changes):
    """dataclasses.replace."""
    fields = {name: getattr(value, name) for name in type(value)._fields}
    fields.update(changes)
    return type(value)(**fields)


class Pattern:
    """A regular expression, which JavaScript reads in Python's place."""

    def __init__(self, pattern, flags=0):
        self.pattern, self.flags = _as_text(pattern), flags

    def _found(self, text, anchor, start=0):
        found = page.search(self.pattern, self.flags, _as_text(text), anchor, start)
        if found is None:
            _raise()
        return Match(found, text) if page.size(found) else None

    def search(self, text, pos=0):
        return self._found(text, "", pos)

    def match(self, text, pos=0):
        return self._found(text, "^", pos)

    def fullmatch(self, text, pos=0):
        return self._found(text, "^$", pos)

    def finditer(self, text):
        start, found = 0, self._found(text, "")
        while found:
            yield found
            start = found.end() + (found.end() == found.start())
            found = self._found(text, "", start) if start <= len(text) else None

    def findall(self, text):
        return [found._all() for found in self.finditer(text)]

    def sub(self, new, text, count=0):
        pieces, at = [], 0
        for n, found in enumerate(self.finditer(text)):
            if count and n == count:
                break
            pieces.append(text[at : found.start()])
            pieces.append(new(found) if callable(new) else found.expand(new))
            at = found.end()
        return "".join(pieces) + text[at:]

    def split(self, text, maxsplit=0):
        pieces, at = [], 0
        for n, found in enumerate(self.finditer(text)):
            if maxsplit and n == maxsplit:
                break
            pieces += [text[at : found.start()], *found.groups()]
            at = found.end()
        return [*pieces, text[at:]]


class Match:
    def __init__(self, found, text):
        self._start, self._names, *self._groups = _py(found)
        self.string = text

    def __getitem__(self, i):
        return self._groups[i if isinstance(i, int) else 1 + self._names.split().index(i)]

    def group(self, *which):
        found = tuple([self[i] for i in which or (0,)])
        return found if len(found) > 1 else found[0]

    def groups(self, default=None):
        return tuple([default if group is None else group for group in self._groups[1:]])

    def start(self):
        return self._start

    def end(self):
        return self._start + len(self._groups[0])

    def span(self):
        return self.start(), self.end()

    def expand(self, new):
        return page.filled(new, self._names, page.array(*[group or "" for group in self._groups]))

    def _all(self):
        found = self.groups("")
        return found if len(found) > 1 else (found or self._groups)[0]

    def __repr__(self):
        return f"<re.Match object; span={self.span()}, match={self[0]!r}>"


def _as_text(text):
    return "".join([chr(byte) for byte in text]) if isinstance(text, bytes) else text


def _by_pattern(name):
    most = {"sub": 3, "split": 2}.get(name, 1)

    def call(pattern, *given, flags=0, **how):
        flags = given[most] if len(given) > most else flags
        return getattr(_pattern(pattern, flags), name)(*given[:most], **how)

    return call


def _pattern(pattern, flags=0):
    return pattern if isinstance(pattern, Pattern) else Pattern(pattern, flags)


def text_method(name, text, *given):
    """Methods of texts that MicroPython's lack."""
    if name == "is_integer":
        return text % 1 == 0
    if name == "bit_length":
        return len(bin(abs(text))) - 2 if text else 0
    if not isinstance(text, str):
        return getattr(text, name)(*given)
    if name == "removeprefix":
        return text[len(given[0]) :] if given[0] and text.startswith(given[0]) else text
    if name == "removesuffix":
        return text[: -len(given[0])] if given[0] and text.endswith(given[0]) else text
    if name in ("ljust", "rjust", "zfill"):
        fill = ("0" if name == "zfill" else (given[1] if len(given) > 1 else " ")) * (
            given[0] - len(text)
        )
        return text + fill if name == "ljust" else fill + text
    return page.textMethod(name, text)


def cleandoc(text):
    lines = text.strip().split("\n")
    return "\n".join([lines[0]] + [line.strip() for line in lines[1:]])


def dedented(text):
    lines = text.split("\n")
    least = min([len(line) - len(line.lstrip()) for line in lines if line.strip()], default=0)
    return "\n".join([line[least:] for line in lines])


def indented(text, by):
    return "\n".join([by + line if line.strip() else line for line in text.split("\n")])


def pairwise(values):
    values = list(values)
    return [(values[i], values[i + 1]) for i in range(len(values) - 1)]


class Nothing:
    """A class of which there is no instance."""

    def __init__(self, *args, **kwargs):
        raise ImportError(missing_sentence_of_module.format(type(self).__name__))


class SimpleNamespace:
    def __init__(self, **names):
        for name, value in names.items():
            setattr(self, name, value)


for _name in (
    "PermissionError", "TimeoutError", "FileNotFoundError", "Warning", "UserWarning",
    "RecursionError", "FutureWarning", "UnicodeDecodeError",
):  # fmt: skip
    if not hasattr(builtins, _name):
        setattr(builtins, _name, type(_name, (Exception,), native_dict()))

_module(
    "re", compile=_pattern, I=2, IGNORECASE=2, S=16, DOTALL=16, M=8, MULTILINE=8, U=0, UNICODE=0,
    escape=lambda text: page.escaped(text),
    **{n: _by_pattern(n) for n in (
        "search", "match", "fullmatch", "finditer", "findall", "split", "sub",
    )},
)  # fmt: skip
_function_type = type(lambda: 0)
_generator_type = type(x for x in ())
_module("contextlib", contextmanager=context, suppress=suppress, nullcontext=NullContext,
        redirect_stdout=redirect_stdout)  # fmt: skip
_module("copy", deepcopy=copied, copy=shallow)
_module("dataclasses", replace=replaced, dataclass=_without("dataclass"), field=None,
        is_dataclass=lambda x: False,
        fields=lambda x: [SimpleNamespace(name=name) for name in type(x)._fields])  # fmt: skip
_module("textwrap", dedent=dedented, indent=indented)
_module("types", FunctionType=_function_type, GeneratorType=_generator_type, CodeType=Nothing,
        SimpleNamespace=SimpleNamespace, UnionType=Nothing)  # fmt: skip


def _clock():
    return page.now() / 1000


_module("time", monotonic=_clock, perf_counter=_clock, process_time=_clock, time=_clock)
_module("warnings", catch_warnings=NullContext, simplefilter=lambda *a: None, warn=lambda *a: None)
_module("collections.abc", Mapping=dict, Sequence=(list, tuple), Set=(set, frozenset),
        Callable=None,
        Iterable=None, Iterator=None, Generator=None, Sized=None, Hashable=None,
        MutableMapping=dict)  # fmt: skip


class NoNumpy(Module):
    """What the engine asks of numpy; a reader who asks more is told."""

    def __getattr__(self, name):
        raise AttributeError(missing_sentence_of_module.format("numpy"))


sys.modules["numpy"] = NoNumpy("numpy", ndarray=Nothing)
for _name, _place in (("Decimal", "decimal"), ("Fraction", "fractions")):
    _module(_place, **{_name: type(_name, (Nothing,), native_dict())})
_module("threading", local=SimpleNamespace, Lock=NullContext)
_module("numbers", Number=(int, float), Real=(int, float), Integral=int)
_module("difflib", get_close_matches=lambda word, words, n=3, cutoff=0.6: [
    match for match in page.close("\n".join([word, *list(words)]), n, cutoff).split("\n")
    if match
])  # fmt: skip
_module("html", escape=lambda text: text)
_module("unicodedata", normalize=lambda form, text: page.normalized(form, text))
_module("jaxtyping", Float=None, Int=None, Bool=None, Shaped=None)
itertools.pairwise = pairwise
sys.modules["collections"].abc = sys.modules["collections.abc"]

for _name, _value in (
    ("__text__", text_method), ("__module__", lambda name: sys.modules[name]),
    ("__fromkeys__", lambda keys: Dict([(key, None) for key in keys])),
):  # fmt: skip
    setattr(builtins, _name, _value)

# ---- PyTorch, as the engine sees it -------------------------------------------------------------

Tensor.layout, Tensor.is_nested, Tensor.is_sparse = "strided", False, False
Tensor.is_meta, Tensor.aminmax = False, lambda self: (self.min(), self.max())
Tensor.is_complex = lambda self: False
dtype.is_complex = False
MORE_DTYPES = (
    "uint8", "int8", "int16", "int32", "float16", "bfloat16", "complex64", "complex128",
)  # fmt: skip


class ForkedGenerator:
    """torch.random.fork_rng(): random numbers go on afterwards as if nothing had been drawn."""

    def __enter__(self):
        self.state = page.generatorState()

    def __exit__(self, *error):
        page.setGenerator(self.state)


def broadcast_shapes(*shapes):
    found = torch.zeros(())
    for shape in shapes:
        found = found + torch.zeros(shape)
    return found.shape


full = Module(
    "torch", **{name: dtype(name, False) for name in MORE_DTYPES}, strided="strided",
    default_generator=torch, get_default_device=lambda: CPU,
    compiler=Module("torch.compiler", is_compiling=lambda: False),
    is_autocast_enabled=lambda *kind: False,
    amp=Module("torch.amp", is_autocast_available=lambda *kind: False),
    random=Module("torch.random", fork_rng=lambda *a, **k: ForkedGenerator()),
    broadcast_shapes=broadcast_shapes,
    promote_types=lambda one, other: float64 if float64 in (one, other) else float32,
)  # fmt: skip
for _name, _value in torch.__dict__.items():
    if not hasattr(full, _name) or _name == "__name__":
        setattr(full, _name, _value)
sys.modules["full_torch"] = full


class FunctionMode:
    """torch.overrides.TorchFunctionMode: sees every operation on tensors within it."""

    def __init__(self):
        pass

    def __enter__(self):
        _modes.append(self)
        return self

    def __exit__(self, *error):
        _modes.remove(self)
        return False


class Function:
    def __init__(self, name, call):
        self.__name__, self._call = name, call

    def __call__(self, *args, **kwargs):
        return self._call(*args)


_modes = []
_plain_call = _call


def _seen_call(name, *args):
    if not _modes:
        return _plain_call(name, *args)
    mode = _modes.pop()  # as PyTorch does, it is off within
    try:
        function = Function(NAMED.get(name, name), lambda *given: _plain_call(name, *given))
        return mode.__torch_function__(function, (), args, {})
    finally:
        _modes.append(mode)


# What a mode of PyTorch calls these.
NAMED = {"getitem": "__getitem__", "setitem": "__setitem__"}
_call = _seen_call
_module("torch.overrides", TorchFunctionMode=FunctionMode)
_never = Module(
    "_functorch", is_gradtrackingtensor=lambda x: False, is_batchedtensor=lambda x: False
)
full._C = Module("torch._C", DisableTorchFunction=NullContext, _functorch=_never)

# ---- Python's syntax ----------------------------------------------------------------------------


class AST:
    _names = ()

    def __init__(self, at=None, *parts):
        if at:
            self.lineno, self.col_offset, self.end_lineno, self.end_col_offset = at
        for i, name in enumerate(self._names):
            setattr(self, name, parts[i] if i < len(parts) else None)


ast_module = _module("ast", AST=AST)
_kinds = native_dict()
for _line in page.syntaxNames().split("\n"):
    _name, _, _fields = _line.partition(" ")
    _kinds[_name] = type(_name, (AST,), native_dict([("_names", tuple(_fields.split()))]))
    setattr(ast_module, _name, _kinds[_name])


def iter_fields(node):
    for name in node._names:
        yield name, getattr(node, name)


def walk(node):
    waiting = [node]
    while waiting:
        node = waiting.pop(0)
        yield node
        for _, value in iter_fields(node):
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, AST):
                    waiting.append(part)


def parsed(text):
    written = page.syntax(text)
    if page.isList(written):
        raise SyntaxError(page.part(written, 0))
    nodes = []
    exec(written, native_dict(_kinds, n=nodes))
    return nodes[-1]


ast_module.iter_fields, ast_module.walk, ast_module.parse = iter_fields, walk, parsed


def compiled(text, file, mode):
    """compile, of Python's syntax: for changes of an answer, whose loops must end."""
    prepared = page.prepared(text, "limited")
    if page.isList(prepared):
        raise SyntaxError(page.part(prepared, 0))
    return compile(prepared, file, mode)


def executed(code, names, made):
    """exec, into a dict of the book's kind."""
    found = native_dict()
    exec(code, names, found)
    for name, value in found.items():
        made[name] = value


# ---- the answer ---------------------------------------------------------------------------------


class TimeOver(BaseException):
    """Time is up."""


class Answer:
    """The code of the reader's answer, in the place of Python's own code object."""

    co_consts = ()
    co_filename = "answer"

    def __init__(self, text, name, names):
        self.text, self.co_name, self.names = text, name, names
        self.node = self.value = None
        for node in parsed(text).body:
            if getattr(node, "name", "") == name:
                self.node = node
                continue
            is_lambda = isinstance(getattr(node, "value", None), ast_module.Lambda)
            if is_lambda and getattr(getattr(node, "targets", [0])[0], "id", "") == name:
                self.node = node.value

    def function(self):
        """The node of the function that runs when the answer is called."""
        node = self.node
        if isinstance(node, ast_module.ClassDef):
            inside = [n for n in node.body if getattr(n, "name", "") == "forward"]
            return inside[0] if inside else None
        return node

    def takes(self):
        """(least, most) number of arguments."""
        node = self.function()
        if node is None:
            return 0, 99
        count = len(node.args.args)
        required = [value for value in node.args.kw_defaults if value is None]
        most = 99 if node.args.vararg else count
        return (99 if required else count - len(node.args.defaults)), most


class Place:
    """A frame: the line and the variables of the answer, as it has told them."""

    f_back = None
    line, f_locals = 0, {}


_answer = None  # the one that is being judged
_deadline = [float("inf")]


def at(line):
    Place.line = line


def let(name, value):
    if isinstance(value, Tensor):
        Place.f_locals[name] = value


def tick():
    if page.now() > _deadline[0]:
        raise TimeOver()


for _name, _value in (("__at__", at), ("__let__", let), ("__tick__", tick)):
    setattr(builtins, _name, _value)


def _frame(depth=0):
    frame = Place()
    frame.f_code, frame.f_lineno = _answer, Place.line
    frame.f_locals = dict(Place.f_locals)
    return frame


_module(
    "sys",
    _getframe=_frame,
    float_info=Module("float_info", max=1.7976931348623157e308),
    modules=sys.modules,
)


class Bound:
    def __init__(self, arguments):
        self.arguments = arguments


class Signature:
    def __init__(self, names, least, most):
        self.names, self.least, self.most = names, least, most
        self.parameters = names

    def bind(self, *given):
        if not self.least <= len(given) <= self.most:
            raise TypeError("another number of arguments")
        return Bound(self.names if self.names else list(range(len(given))))


_named = []


def named(function, names):
    """What the arguments of a right computation are called."""
    _named.append((function, names))


def signature(function):
    for known, names in _named:
        if known is function:
            return Signature(names, len(names), len(names))
    if _answer is not None and function is _answer.value:
        return Signature([], *_answer.takes())
    return Signature([], 0, 99)


_module("inspect", signature=signature, cleandoc=cleandoc, currentframe=lambda: None,
        unwrap=lambda f: f, isroutine=lambda f: isinstance(f, _function_type))  # fmt: skip


def getline(file, line):
    lines = _answer.text.split("\n") if _answer else []
    return lines[line - 1] if 0 < line <= len(lines) else ""


_module("linecache", getline=getline, getlines=lambda *a: [])

# ---- the engine's modules `calling`, `guarding` and `isolating` ----------------------------------


class Outcome:
    _fields = ("result", "error", "where", "inputs", "written")

    def __init__(self, result=None, error=None, where="", inputs=(), written=()):
        self.result, self.error, self.where = result, error, where
        self.inputs, self.written = inputs, written


@context
def time_limit(seconds, computing=False):
    before = _deadline[0]
    _deadline[0] = min(before, page.now() + 1000 * seconds)
    try:
        yield
    finally:
        _deadline[0] = before


def call_safely(call, answer=None, inputs=(), *, seconds, code=None, seed=0, convert=None):
    given = copied(inputs)
    result, error, where = None, None, ""
    _said[3] = 0
    generator = page.generatorState()
    torch.manual_seed(seed)
    grad = page.call("is_grad_on")
    try:
        with time_limit(seconds):
            result = (convert or sys.modules[ENGINE + "comparing"].plain)(call(answer, *given))
    except BaseException as caught:
        error, where = caught, _line_of(caught) if code is not None else ""
    page.setGenerator(generator)
    page.call("set_grad", grad)
    pairs = enumerate(zip(inputs, given, strict=True))
    written = tuple([n for n, pair in pairs if _written(*pair)])
    return Outcome(result, error, where, given, written)


def written_into(before, now):
    return any(map(_written, before, now))


def _written(old, new):
    try:
        if isinstance(old, Tensor):
            if old.shape != new.shape or old.dtype is not new.dtype:
                return True
            return not bool(((old == new) | ((old != old) & (new != new))).all())
        if isinstance(old, Layer):
            pairs = zip(old.parameters(), new.parameters(), strict=True)
            return any(_written(a, b) for a, b in pairs)
        if isinstance(old, dict):
            return list(old) != list(new) or any(_written(old[key], new[key]) for key in old)
        if isinstance(old, (list, tuple)):
            return len(old) != len(new) or any(map(_written, old, new))
        return old is not new and old != new
    except Exception:
        return True


def _line_of(error):
    trace = io.StringIO()
    sys.print_exception(error, trace)
    line = int(page.lineOf(trace.getvalue(), "answer"))
    text = getline("answer", line).strip()
    text = text if len(text) <= 120 else text[:120] + " …"
    return f"line {line}" + (f", `{text}`" if text else "") if line else ""


def does_nothing(code):
    node = code.function() if code is not None else None
    if node is None:
        return code is None or code.node is None
    for part in node.body if isinstance(node.body, list) else []:
        idle = isinstance(part, ast_module.Pass) or (
            isinstance(part, (ast_module.Expr, ast_module.Return))
            and (part.value is None or isinstance(part.value, ast_module.Constant))
        )
        if not idle or (isinstance(part, ast_module.Return) and part.value and part.value.value):
            return False
    return isinstance(node.body, list)


def still_open(error):
    if isinstance(error, NotImplementedError):
        return "NotImplementedError" in _answer.text if _answer else True
    return isinstance(error, (TypeError, AttributeError)) and "ellipsis" in str(error)


def message_of(error, most=300):
    text = page.reworded(type(error).__name__, str(error)).strip() or "no message"
    line = text.split("\n")[0]
    return line if len(line) <= most else line[:most] + " …"


def code_of(answer):
    is_own = _answer is not None and answer is _answer.value and _answer.function() is not None
    return _answer if is_own else None


class Guard:
    left_running = False

    @property
    def printed(self):
        return _said[0] - self.before

    def __init__(self):
        self.before = _said[0]


@context
def kept(seed=0):
    generator = page.generatorState()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        page.setGenerator(generator)


class Unsafe(Exception):
    """A copy of this could have effects beyond the copy."""


class Apart:
    def copy(self, value):
        raise Unsafe


class NothingRefused(NullContext):
    def __call__(self, look):
        return look


def apart(names, cells, code):
    """The names that a changed answer is run with: what it could fill or empty is copied."""
    found = native_dict(names)
    for name, value in names.items():
        if isinstance(value, (list, set, dict)) and name in _answer.text:
            found[name] = copied(value)
    return found, cells


_module(
    ENGINE + "calling", Outcome=Outcome, TimeOver=TimeOver, call_safely=call_safely,
    can_be_stopped=lambda: True, code_of=code_of, does_nothing=does_nothing, message_of=message_of,
    still_open=still_open, time_limit=time_limit, written_into=written_into,
)  # fmt: skip
_module(
    ENGINE + "guarding", Guard=Guard, guarded=lambda: NullContext(Guard()), own_torch=NullContext,
    random_kept=kept, settings_kept=NullContext, torch_random_kept=kept,
)  # fmt: skip
_module(
    ENGINE + "isolating", Apart=Apart, Unsafe=Unsafe, apart=apart, effects_refused=NothingRefused,
)  # fmt: skip

# ---- the check ----------------------------------------------------------------------------------


def begin():
    """The engine has been read: what it asks of an answer's code is told by `Answer`."""
    mending = sys.modules[ENGINE + "mending"]
    Source, Exercise = mending.Source, sys.modules[ENGINE + "runner"].Exercise

    def source_of(answer):
        if _answer is None or answer is not _answer.value or _answer.node is None:
            return None
        node = _answer.node
        lines = _answer.text.split("\n")[node.lineno - 1 : node.end_lineno]
        is_lambda = isinstance(node, ast_module.Lambda)
        raw = "\n".join(lines).encode()
        last = len("\n".join(lines[:-1]).encode()) + (len(lines) > 1)
        text = raw[node.col_offset : last + node.end_col_offset].decode()
        text = f"({text})" if is_lambda else text
        name = "" if is_lambda else node.name
        return Source(text, node.lineno, "answer", name, _answer.names, {}, is_lambda)

    Source.of = staticmethod(source_of)
    Exercise._departed = _traced(Exercise._departed, ("", set()))
    Exercise._writes = _traced(Exercise._writes, None)


def _traced(look, otherwise):
    """A look at an answer that tells its lines and variables; at the answer itself if it cannot."""

    def at_traced(self, answer, code, *given):
        if code is None:
            return look(self, answer, code, *given) if otherwise is None else otherwise
        Place.line, Place.f_locals = 0, {}
        prepared = page.prepared(code.text, "traced")
        if page.isList(prepared):
            return look(self, answer, code, *given) if otherwise is None else otherwise
        names = native_dict(code.names)
        exec(compile(prepared, "answer", "exec"), names)
        return look(self, names[code.co_name], code, *given)

    return at_traced


def check(text, name, call, namespace):
    """Judge the answer of this name; tells { verdict: { passed, text } }."""
    global _answer
    names = names_of(namespace)
    _said[2] = True
    try:
        _answer = Answer(text, name, names)
        _answer.value = names.get(name)
        exec(call, names)
        verdict = names["__verdict__"]
        page.verdict(verdict.passed, verdict.diagnosis)
    except BaseException as error:
        trace = io.StringIO()
        sys.print_exception(error, trace)
        page.erred(type(error).__name__, str(error), trace.getvalue())
    finally:
        _answer, _said[2] = None, False


def context_run(code, namespace):
    """Run code of the book: its errors are told, its output is not shown."""
    names = names_of(namespace)
    before, _said[1] = _said[1], True
    try:
        exec(compile(code, "book", "exec"), names)
    except BaseException as error:
        trace = io.StringIO()
        sys.print_exception(error, trace)
        page.erred(type(error).__name__, str(error), trace.getvalue())
    finally:
        _said[1] = before


def plain(value, around=()):
    """comparing.plain: MicroPython's own kinds have no subclasses that could surprise it."""
    if value is None or value is ... or value is NotImplemented:
        return value
    if isinstance(value, (bool, Tensor, int, float, str)):
        return value
    comparing = sys.modules[ENGINE + "comparing"]
    if id(value) in around:
        return comparing.Other(comparing.describe(value) + " that contains itself")
    around += (id(value),)
    if isinstance(value, list):
        return [plain(item, around) for item in value]
    if isinstance(value, tuple):
        return tuple([plain(item, around) for item in value])
    if isinstance(value, dict):
        return Dict([(key, plain(item, around)) for key, item in value.items()])
    if isinstance(value, (_generator_type, map)):
        return tuple([plain(item, around) for item in itertools.islice(value, 10000)])
    return comparing.Other(comparing.describe(value))


def provide_engine(name, code):
    instead = [("plain", plain)] if name == "comparing" else []
    provide(ENGINE + name, code, [("compile", compiled), ("exec", executed)], instead)


js.afmCheck, js.afmContext, js.afmBeginChecks = check, context_run, begin
js.afmProvideEngine, builtins.__named__ = provide_engine, named
