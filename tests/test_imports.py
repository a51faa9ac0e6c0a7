"""The library's imports run one way, and importing it costs nothing.

Read from every module's syntax tree, so that an import within a function counts, too.
"""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import transformer_lib

PACKAGE = Path(transformer_lib.__file__).parent

# Lower layers first: a module may import from lower layers and from its own group, no others.
# A group is a module or a folder of the package; the modules of fast/ are each where they serve.
LAYERS = [
    ["checks", "storage"],
    ["masks", "cache"],
    ["fast.kernels", "fast.rotation", "fast.steps"],
    ["positions", "fast.ragged"],
    ["attention", "layers"],
    ["blocks", "latent", "window"],
    ["wiring"],
    ["classifier", "encoder_decoder", "gpt"],
    ["fast.decoding"],
    ["sampling", "pretrained", "interpret"],
    ["beam"],
    ["training"],
]
LEVEL = {group: level for level, groups in enumerate(LAYERS) for group in groups}
# These are beside the model code. What of the library each may import:
BESIDE = {
    "data": {"bpe", "checks", "storage", "tokenizers"},
    "bpe": {"tokenizers"},
    "tokenizers": set(),
    "plots": {"checks"},
    "widgets": {"checks", "plots"},
}
# Training brings both sides together.
TRAINING = {"bpe", "data", "tokenizers"}
ON_TOP = {"notebook", "exercises"}  # may import anything; nothing imports them
OPTIONAL = {"transformers", "bertviz", "IPython", "ipykernel", "sacrebleu", "tokenizers"}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def group_of(module: str) -> str:
    """transformer_lib.training.run_log -> training; transformer_lib.fast.kernels -> fast.kernels"""
    parts = module.split(".")[1:]
    return ".".join(parts[:2]) if parts[:1] == ["fast"] else "".join(parts[:1])


def imports_of(source: str, package: str = "transformer_lib") -> set[str]:
    """Full names of all modules that a source in ``package`` imports, at the top or within."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                found.add(submodule if submodule in MODULES else base)
    return found


def wrong_imports(module: str, imported: set[str]) -> list[str]:
    """Those among the imported modules of this library that this module may not use."""
    group = group_of(module)
    used = {group_of(name) for name in imported if name.split(".")[0] == "transformer_lib"}
    wrong = []
    for other in sorted(used - {group}):
        if group in ON_TOP:
            allowed = True
        elif group in BESIDE:
            allowed = other in BESIDE[group]
        else:
            lower = other in LEVEL and LEVEL[other] < LEVEL[group]
            allowed = lower or (group == "training" and other in TRAINING)
        if not allowed:
            wrong.append(other)
    return wrong


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_one_way(module):
    group = group_of(module)
    assert group in {"", "fast", *LEVEL, *BESIDE, *ON_TOP}, (
        f"say in this test where {group} belongs"
    )
    path = MODULES[module]
    imported = imports_of(path.read_text(encoding="utf-8"), package=name_of(path.parent))
    if module == "transformer_lib":
        assert not imported, "the package itself imports nothing"
    assert not wrong_imports(module, imported)


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("transformer_lib.masks", "from transformer_lib.attention import attention", ["attention"]),
        ("transformer_lib.masks", "from transformer_lib import checks", []),
        (
            "transformer_lib.masks",
            "def f():\n  import transformer_lib.interpret.maps",
            ["interpret"],
        ),
        ("transformer_lib.positions", "from transformer_lib import attention", ["attention"]),
        ("transformer_lib.attention", "from transformer_lib import layers, masks", ["layers"]),
        ("transformer_lib.training.run", "from transformer_lib.training.loop import Step", []),
        ("transformer_lib.training.loop", "from transformer_lib.data import batches", []),
        ("transformer_lib.gpt", "from transformer_lib.data import batches", ["data"]),
        ("transformer_lib.widgets.lab", "from transformer_lib import positions", ["positions"]),
        ("transformer_lib.plots", "import transformer_lib.widgets.base", ["widgets"]),
        (
            "transformer_lib.interpret.maps",
            "from transformer_lib.notebook import show",
            ["notebook"],
        ),
        ("transformer_lib.sampling", "from .notebook import show", ["notebook"]),
        ("transformer_lib.widgets.lab", "from .. import positions, plots", ["positions"]),
        ("transformer_lib.widgets.lab", "from . import base", []),
        ("transformer_lib.exercises.masking", "from transformer_lib import masks", []),
    ],
)
def test_the_rule_finds_what_breaks_it(module, source, wrong):
    assert wrong_imports(module, imports_of(source, module.rpartition(".")[0])) == wrong


def modules_after(statement: str) -> set[str]:
    """The top-level packages that a fresh Python has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*(name.split('.')[0] for name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    loaded = modules_after("import transformer_lib")
    assert not loaded & {"torch", "numpy", "matplotlib", "anywidget", "ipywidgets", *OPTIONAL}


@pytest.mark.slow
def test_no_module_of_the_models_needs_an_optional_package():
    models = [name for name in MODULES if group_of(name) in {*LEVEL, *BESIDE} - {"widgets"}]
    loaded = modules_after("import " + ", ".join(models))
    assert "torch" in loaded
    assert not loaded & OPTIONAL - {"IPython"}


def test_run_logs_are_read_without_torch():
    assert "torch" not in modules_after("import transformer_lib.training.run_log")


def test_no_modules_import_each_other_in_a_circle():
    graph = {}
    for module, path in MODULES.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        imported = imports_of(path.read_text(encoding="utf-8"), package)
        graph[module] = imported & MODULES.keys() - {module}
    graphlib.TopologicalSorter(graph).prepare()  # a CycleError names the circle
