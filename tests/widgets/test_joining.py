"""Joining JavaScript modules: each once, in order, in a scope of its own."""

import json
import re

import pytest
from programs import run_node

from transformer_lib.widgets.joining import FOLDER, bundle, stylesheet


@pytest.fixture
def folder(tmp_path):
    """Write modules by name (`core__a` is core/a.js), to be joined from there."""

    def write(**modules: str):
        for name, text in modules.items():
            path = tmp_path / f"{name.replace('__', '/')}.js"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write


def answer(folder, name: str = "w") -> object:
    """The result of the joined module's `render()` under node."""
    path = folder / "joined.mjs"
    path.write_text(bundle(name, folder), encoding="utf-8")
    check = f"""
      const widget = (await import({json.dumps(path.as_uri())})).default;
      console.log(JSON.stringify(widget.render()));
    """
    return json.loads(run_node("--input-type=module", "--eval", check))


def test_modules_are_joined_once_each_in_order(folder):
    path = folder(
        core__a="export const one = 1;\n",
        core__b='import { one } from "./a.js";\nexport async function two() { return one; }\n',
        w__view='import { one } from "../core/a.js";\nimport { two } from "../core/b.js";\n'
        "class Three {}\nexport default { render: two };\n",
    )
    text = bundle("w", path)
    assert re.findall(r"^(const core_\w|export default)", text, re.M) == [
        "const core_a",
        "const core_b",
        "export default",
    ]
    assert "import" not in text


def test_modules_with_equal_private_names_do_not_meet(folder):
    module = "const text = {};\nfunction write() {{ return text; }}\nexport const {} = write();\n"
    path = folder(
        core__a=module.format(1, "one"),
        core__b=module.format(2, "two"),
        w__view='import { one } from "../core/a.js";\nimport { two } from "../core/b.js";\n'
        "const text = 3;\nfunction write() { return [one, two, text]; }\n"
        "export default { render: write };\n",
    )
    assert answer(path) == [1, 2, 3]


def test_comments_are_left_out_and_nothing_else_is(folder):
    path = folder(
        core__a="// Head.\n//\n//   usage()\n\n/** One\n * of * them. */\n"
        "export const one = 1; // kept\n",
        w__view='import { one } from "../core/a.js";\n/* Two. */\nconst two = "/* 2 */";\n'
        "export default { render: () => [one, two, `// ${one}`] };\n",
    )
    text = bundle("w", path)
    assert re.findall(r"//.*|/\*.*", text) == [
        "// core/a.js",
        "// kept",
        "// w/view.js",
        '/* 2 */";',
        "// ${one}`] };",
    ]
    assert answer(path) == [1, "/* 2 */", "// 1"]


def test_exports_with_equal_names_are_imported_under_others(folder):
    path = folder(
        core__a="export const brief = 1;\n",
        w__b="export function brief() { return 2; }\nexport class Kind {}\n",
        w__view='import { brief } from "../core/a.js";\n'
        'import {\n  brief as short,\n  Kind,\n} from "./b.js";\n'
        "export default { render: () => [brief, short(), new Kind()] };\n",
    )
    assert answer(path) == [1, 2, {}]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('import * as a from "../core/a.js";', "w/view.js:1: .*named"),
        ('import a from "../core/a.js";', "w/view.js:1: .*named"),
        ('import { one } from "https://cdn.example/a.js";', "w/view.js:1: .*is not of the form"),
        ('const two = 2;\nimport "../core/a.js";', "w/view.js:2: .*is not of the form"),
        ('import { two } from "../core/a.js";', "w/view.js:1: core/a.js does not export two"),
        ('import { kept } from "../core/a.js";', "w/view.js:1: core/a.js does not export kept"),
        ('import { one } from "../core/none.js";', "w/view.js: there is no .*none.js"),
        ("export const { one, two } = {};", "w/view.js:1: write `export` before a const"),
        ("export let one = 1;", "w/view.js:1: write `export` before a const"),
        ("const one = 1;\nexport { one };", "w/view.js:2: write `export` before a const"),
        ("export default {\n  render,\n};\nlet two;", "w/view.js:1: end the file with"),
        ("const two = `\n// no comment\n`;", "w/view.js:1: a template .* goes over the end"),
        ('import { bad } from "../core/b.js";', "core/b.js:1: only a widget's own view.js"),
        ('import { c } from "../core/c.js";', "w/view.js -> core/c.js -> core/d.js -> core/c.js"),
        (
            'import { one } from "../core/e-f.js";\nimport { two } from "../core/e_f.js";',
            "core_e_f",
        ),
    ],
)
def test_modules_that_cannot_be_joined_are_refused(folder, line, message):
    path = folder(
        core__a="export const one = 1;\nconst kept = 2;\n",
        core__b="export default {};\n",
        core__c='import { d } from "./d.js";\nexport const c = 1;\n',
        core__d='import { c } from "./c.js";\nexport const d = 1;\n',
        w__view=line + "\nexport default {};\n",
        **{"core__e-f": "export const one = 1;\n", "core__e_f": "export const two = 1;\n"},
    )
    with pytest.raises(ValueError, match=message):
        bundle("w", path)


def test_a_view_without_a_default_export_is_refused(folder):
    with pytest.raises(ValueError, match=r"w/view.js: there is no `export default \{ \.\.\. \};`"):
        bundle("w", folder(w__view="export function render() {}\n"))


def test_a_widget_s_own_style_says_whose_it_is(tmp_path):
    (tmp_path / "w").mkdir()
    assert stylesheet("w", tmp_path) == ""
    stylesheet.cache_clear()
    (tmp_path / "w" / "style.css").write_text("b {}")
    assert stylesheet("w", tmp_path) == "/*! afm: w/style.css */\nb {}"


def test_a_style_beside_a_module_is_joined_as_text(folder):
    source = 'const TEXT = ""; // look.css (shared)\nexport const text = TEXT;\n'
    path = folder(
        core__a=source, w__view='import { text } from "../core/a.js";\nexport default {};\n'
    )
    with pytest.raises(ValueError, match=r"core/a.js:1: there is no .*look.css"):
        bundle("w", path)
    css = '/* why */\n.a::before {\n  content: "\\2713"; /* a tick */\n}\n'
    (path / "core" / "look.css").write_text(css)
    assert 'const TEXT = ".a::before { content: \\"\\\\2713\\"; }";' in bundle("w", path)


def classes(text: str) -> set[str]:
    return set(re.findall(r"\bafm-[\w-]+", text))


def selectors(style: str) -> list[str]:
    """Those of a sheet's rules, each on its own."""
    style = re.sub(r"/\*.*?\*/|@[\w-]+ [^{;]*\{", "", style, flags=re.DOTALL)
    listed = re.findall(r"([^{}]+)\{", style)
    return [" ".join(one.split()) for text in listed for one in re.split(r",(?![^(]*\))", text)]


def test_no_widget_s_own_style_is_for_what_another_widget_draws():
    """On a page with both, each would change the other's look.

    The views of bertviz are one kind, with a frame that all of them have.
    """
    assert selectors("/* a {} */ .afm :is(.b, .c) d,\n.e { } @media (x) { .f {} }") == [
        ".afm :is(.b, .c) d", ".e", ".f",
    ]  # fmt: skip
    shared = (FOLDER / "core" / "widget.css").read_text(encoding="utf-8")
    common = classes(shared) | {"afm-bertviz"}
    drawn = {
        view.parent.name: classes("".join(p.read_text("utf-8") for p in view.parent.glob("*.js")))
        for view in FOLDER.glob("*/view.js")
    }
    for path in sorted(FOLDER.glob("*/style.css")):
        for selector in selectors(path.read_text(encoding="utf-8")):
            own = classes(selector) - common
            assert own or "afm-bertviz" in selector, f"{path.parent.name}: {selector} is for all"
            for name, used in drawn.items():
                if own and name != path.parent.name:
                    assert not own <= used, f"{path.parent.name}: {selector} is {name}'s, too"
