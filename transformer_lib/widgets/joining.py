"""Joins a widget's JavaScript modules into the one text that pages and notebooks want.

There is no build step and no bundler: `bundle("mask_painter")` reads `mask_painter/view.js` and
what it imports, and gives each module a scope of its own.
"""

import json
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(
    r"import \{\s*([\w$]+(?: as [\w$]+)?(?:,\s*[\w$]+(?: as [\w$]+)?)*),?\s*\} "
    r'from "(\.\.?/(?:[\w.-]+/)*[\w-]+\.js)";'
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:const|class|function\*?) ([\w$]+))", re.MULTILINE)
_DEFAULT = re.compile(r"^export default ", re.MULTILINE)
_STYLE = re.compile(r'^const (\w+) = ""; // (\w+\.css)\b.*$', re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*(?:[^*]|\*(?!/))*\*/[ \t]*)\n", re.MULTILINE)


@cache
def bundle(name: str, folder: Path = FOLDER, *, entry: str = "view") -> str:
    """One ES module out of `NAME/view.js` and all the modules that it imports, each once, in order.

    `entry` names another file of the widget to begin with.

    Each module becomes a function that is called at once, so that its names are its own:

        const core_dom = (() => {
        const font = ...;
        function element() { ... }
        return { element };
        })();
        export default (() => {
        const { element } = core_dom;
        ...
        return { render };
        })();

    Lines that only comment are left out: they would be a sixth of what a page loads. Exports are
    declarations (`export const`, `function` or `class`), and imports are named:
    `import { a, b as c } from "../core/x.js"`. The text of a style beside a module is put where it
    says `const TEXT = ""; // name.css`. A template (`...`) ends in the line in which it begins:
    a line within one could look like a comment. Raises ValueError with the file and line where
    that is not so, where a name is not exported, and where modules import one another in a circle.
    """
    folder = folder.resolve()
    modules: dict[Path, _Module] = {}
    view = folder / name / f"{entry}.js"
    _collect(view, folder, modules, importing=())
    if not modules[view].is_view:
        raise ValueError(f"{name}/{entry}.js: there is no `export default {{ ... }};`")
    return "\n".join(module.text for module in modules.values())


@cache
def worker(name: str, folder: Path = FOLDER) -> str:
    """The text of `NAME/worker.js`, `export default { method, ... };`, for core/remote.js.

    What takes longer than a frame is computed there, in a thread of its own.
    """
    return bundle(name, folder, entry="worker")


@cache
def stylesheet(name: str, folder: Path = FOLDER) -> str:
    """`NAME/style.css`, below its name; empty where there is none.

    What all figures share, core/widget.css, comes with their modules instead (core/figure.js).
    """
    own = folder / name / "style.css"
    if not own.exists():
        return ""
    return f"/*! afm: {name}/style.css */\n{own.read_text(encoding='utf-8')}"


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


class _Module:
    """A file as it is joined: `text`, and the names that it exports."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.name = _name(path, folder)
        self.identifier = re.sub(r"\W", "_", self.name.removesuffix(".js"))
        self.source = path.read_text(encoding="utf-8")
        self.exports = _EXPORT.findall(self.source)
        self.is_view = bool(_DEFAULT.search(self.source))
        self.text = ""

    def where(self, at: int) -> str:
        return f"{self.name}:{self.source.count(chr(10), 0, at) + 1}"

    def _style(self, match: re.Match) -> str:
        """`const TEXT = ""; // a.css` with the text of that file, without comments, in one line."""
        path = self.path.parent / match[2]
        if not path.exists():
            raise ValueError(f"{self.where(self.source.index(match[0]))}: there is no {path}")
        css = path.read_text(encoding="utf-8")
        short = re.sub(r"\s*\n\s*", " ", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)).strip()
        return f"const {match[1]} = {json.dumps(short, ensure_ascii=False)};"

    def join(self, imports: list[tuple[re.Match, "_Module"]]) -> None:
        """Write `text`: imports from scopes, and a scope of its own around it."""
        body = self.source
        for match, target in reversed(imports):
            names = " ".join(match[1].split()).replace(" as ", ": ")
            line = f"const {{ {names} }} = {target.identifier};"
            body = body[: match.start()] + line + body[match.end() :]
        body = _STYLE.sub(self._style, body)
        body = _COMMENT.sub("", _EXPORT.sub("", body)).lstrip("\n")
        if self.is_view:
            begin, end = "export default (() => {", "})();\n"
            body = _DEFAULT.sub("return ", body)
        else:
            begin = f"const {self.identifier} = (() => {{"
            end = f"return {{ {', '.join(self.exports)} }};\n}})();\n"
        self.text = f"// {self.name}\n{begin}\n{body}{end}"


@cache
def _read(path: Path, folder: Path) -> _Module:
    """A file that many figures import is read and joined once."""
    module = _Module(path, folder)
    _require_plain_exports(module)
    _require_templates_in_a_line(module)
    return module


def _collect(
    path: Path, folder: Path, modules: dict[Path, _Module], importing: tuple[_Module, ...]
) -> _Module:
    """Add `path` to `modules`, after those that it imports."""
    if path in [module.path for module in importing]:
        circle = " -> ".join([*(module.name for module in importing), _name(path, folder)])
        raise ValueError(f"modules import one another in a circle: {circle}")
    if path in modules:
        return modules[path]
    if not path.exists():
        raise ValueError(f"{importing[-1].name if importing else 'bundle'}: there is no {path}")
    module = _read(path, folder)
    if module.is_view and importing:
        at = _DEFAULT.search(module.source).start()
        raise ValueError(
            f"{module.where(at)}: only a widget's own view.js may have a default export"
        )
    imports = []
    for found in re.finditer(r"^import\b", module.source, re.MULTILINE):
        match = _IMPORT.match(module.source, found.start())
        if not match:
            line = module.source[found.start() :].splitlines()[0]
            raise ValueError(
                f"{module.where(found.start())}: {line!r} is not of the form import {{ a, b as c }}"
                ' from "../core/x.js"; only named imports of files can be joined'
            )
        target = _collect((path.parent / match[2]).resolve(), folder, modules, (*importing, module))
        wanted = [name.split(" as ")[0] for name in re.findall(r"[\w$]+(?: as [\w$]+)?", match[1])]
        if missing := [name for name in wanted if name not in target.exports]:
            raise ValueError(
                f"{module.where(found.start())}: {target.name} does not export {', '.join(missing)}"
            )
        imports.append((match, target))
    if module.identifier in {other.identifier for other in modules.values()}:
        raise ValueError(f"{module.name}: another module is called {module.identifier}; rename one")
    if not module.text:
        module.join(imports)
    modules[path] = module
    return module


def _require_plain_exports(module: _Module) -> None:
    """Every export is one declaration, or the view's `export default { ... };` at the end."""
    for found in re.finditer(r"^export\b.*", module.source, re.MULTILINE):
        where = module.where(found.start())
        if found[0].startswith("export default "):
            if not re.fullmatch(r"export default \{.*\};\n", module.source[found.start() :]):
                raise ValueError(f"{where}: end the file with `export default {{ render }};`")
        elif not _EXPORT.match(found[0]):
            raise ValueError(
                f"{where}: write `export` before a const, function or class, "
                "one name at a time, not as a list"
            )


def _require_templates_in_a_line(module: _Module) -> None:
    """No line is within a template, so that one which begins with // is a comment, and left out."""
    for number, line in enumerate(module.source.splitlines(), start=1):
        if line.count("`") % 2:
            raise ValueError(
                f"{module.name}:{number}: a template (`...`) goes over the end of the line; end it "
                'there, and join the lines by [...].join("\\n")'
            )
