"""The machine of chapter 00 in the page: a reader's functions are put in by `machine.using(...)`.

Read by MicroPython after engine.py, when a reader first puts something in. The rules of what fits,
and their words, are the library's own (interpret/your_part.py, open_parts.py); the machine computes
in JavaScript (write/machine.js), which calls the functions.
"""


def _signature(function):
    """inspect.signature, as far as takes_mask asks: MicroPython tells it only by its errors."""
    names = []
    try:
        function()
    except TypeError as error:
        words = str(error).split()
        count = int(words[words.index("takes") + 1]) if "takes" in words else 0
        names = [f"argument {i}" for i in range(count)]
    except Exception:  # it was called, and needs nothing
        pass
    small = torch.zeros(1, 2)
    try:
        function(small, small, mask=torch.ones(1, 1).bool())
        names.append("mask")
    except TypeError as error:
        if "keyword" not in str(error):
            names.append("mask")
    except Exception:  # of its own: it has taken the mask
        names.append("mask")
    return Holder(
        parameters={name: Holder(name=name, empty=None, default=None, kind=1) for name in names}
    )


class Holder:
    def __init__(self, **names):
        for name, value in names.items():
            setattr(self, name, value)


# Of Python's own modules, what the rules ask; the engine of the checks has another of this name.
_before = {name: sys.modules[name] for name in ("inspect",)}
sys.modules["inspect"] = torch.__class__("inspect", signature=_signature)


def rules_are_read():
    for name, module in _before.items():
        sys.modules[name] = module


SECONDS = 10  # for one call
_placed = []  # (name, function)
_until = [0]
_kept = [None]  # what was returned last: else it may be gone before JavaScript has it


class OnThePage:
    """What load_shipped("gifts-v3") returns here."""

    def __init__(self, config, vocabulary, people, gifts):
        blocks = [None] * config["n_layers"]
        self.model = Holder(config=Holder(**config), blocks=blocks)
        self.tokenizer = Holder(vocabulary=vocabulary)
        self.grammar = Holder(people=people, gifts=gifts)

    def using(self, *, at=None, **parts):
        rules = sys.modules["transformer_lib.interpret.your_part"]
        rules.require_parts(self.model, parts)
        layers, head = rules._place(self.model, at, parts)
        for name, function in parts.items():
            layer = layers[0] if len(layers) == 1 and name != "embedding" else None
            takes = name == "attention_weights" and rules.takes_mask(function)
            _placed.append((name, function))
            called = getattr(function, "__name__", "yours")
            js.afmMachine.place(len(_placed) - 1, name, called, layer, head, takes)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def begin_machine(name, namespace):
    """The machine is in the namespace, with nothing put in."""
    _placed.clear()
    _until[0] = page.now() + 1000 * SECONDS
    names_of(namespace)["machine"] = machines[name]
    names_of(namespace)["__tick__"] = _tick


def _tick():
    if page.now() > _until[0]:
        raise TimeoutError(f"this runs for more than {SECONDS} seconds: does its loop end?")


def call_own(number, calls):
    """The results of a reader's function, in JavaScript's form; None: it raised, and was told.

    Many calls in one: MicroPython tidies its memory each time that it is left.
    """
    name, function = _placed[number]
    _until[0] = page.now() + 1000 * SECONDS
    try:
        results = []
        for n in range(page.size(calls)):
            given = page.part(calls, n)
            result = function(*[_py(page.part(given, i)) for i in range(page.size(given))])
            if not isinstance(result, Tensor):
                _rules().require_result(name, result, (), (), 0)
            results.append(result._t)
        _kept[0] = page.array(*results)
        return _kept[0]
    except BaseException as error:
        if page.isSingle(str(error)):
            return "single"
        _tell(error)


def fits(number, result, shape, given, axes):
    """Whether the result can take the library's place; if not, it is told."""
    name, _ = _placed[number]
    shape, given = _numbers(shape), [_numbers(page.part(given, i)) for i in range(page.size(given))]
    try:
        _rules().require_result(name, Tensor(result), shape, given, axes)
        return True
    except Exception as error:
        return _tell(error)


def refuse(number, what):
    name, _ = _placed[number]
    _tell(ValueError(getattr(_rules(), what)(name)))


def _rules():
    return sys.modules["transformer_lib.interpret.open_parts"]


def _tell(error):
    trace = io.StringIO()
    sys.print_exception(error, trace)
    page.erred(type(error).__name__, str(error), trace.getvalue())
    return False


machines = {}


def load_shipped(name):
    if name not in machines:
        raise ValueError(f"this page has {', '.join(machines)}, and not {name!r}.")
    return machines[name]


sys.modules["transformer_lib.training.trained"] = torch.__class__(
    "transformer_lib.training.trained", load_shipped=load_shipped
)
js.afmOwn, js.afmFits, js.afmRefuse, js.afmBeginMachine = call_own, fits, refuse, begin_machine
