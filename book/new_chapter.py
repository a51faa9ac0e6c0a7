"""Begin a chapter: a notebook that runs and keeps every rule, and the file of its exercises.

    python book/new_chapter.py 14-inside-a-gpt "Inside a GPT"
    python book/new_chapter.py 14b-circuits "Circuits by hand"     a deeper page of chapter 14
    python book/new_chapter.py 14-inside-a-gpt --exercise halve    one exercise more in a chapter

Writes chapters/14-inside-a-gpt.ipynb and transformer_lib/exercises/inside_a_gpt.py, lists the
chapter in _toc.yml, and says what is left to do. The words in it are there to be replaced. A deeper
page is only the notebook, and its place below its chapter.
"""

import keyword
import re
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebooks import load_config, refresh

ROOT = Path(__file__).resolve().parents[1]

IMPORTS = """\
import torch

from transformer_lib import plots
from transformer_lib.attention import attention_weights
from transformer_lib.exercises.{module} import check_double, check_half, check_sum
from transformer_lib.widgets import AttentionMap

torch.set_printoptions(precision=3, sci_mode=False)
"""
START = """\
words = "mary gave roses to susan".split()
x = torch.eye(5)
weights = attention_weights(x, x)
"""
CLAIM = """\
assert torch.allclose(weights, weights.mT)
"""
PROOF = """\
mine = torch.softmax(x @ x.mT / 5**0.5, dim=-1)
torch.testing.assert_close(mine, weights)
"""
EXERCISE = re.compile(r"^### Exercise ", re.MULTILINE)
ALT = "Heat map of five by five attention weights. Say here what a reader should see in it."
# What each exercise asks, in the notebook and in the library: (name, in words, the right answer).
EXERCISES = [
    ("double", "twice", "2 * x"),
    ("half", "half of", "x / 2"),
    ("sum", "the sum of", "x.sum()"),
]
LIBRARY = '''\
"""Checks for chapter {number}, {title}."""

from transformer_lib.exercises.engine.runner import Case, Exercise, randn
'''
CHECK = """
check_{name} = Exercise(
    asks="`answer(x)`: {words} x. x [tokens].",
    right=lambda x: {right},
    wrong={{
        # "The mistake in a sentence, and what to do.": lambda x: what that mistake computes,
    }},
    cases=[Case("5 numbers", randn(5, seed=0)), Case("7 numbers", randn(7, seed=1))],
    praise="Right.",
)
"""


def is_name(text: str) -> bool:
    """Whether Python takes a text as a name of one's own."""
    return text.isidentifier() and not keyword.iskeyword(text)


def code(source: str, *tags: str, **metadata: object) -> NotebookNode:
    return new_code_cell(source, metadata={**({"tags": list(tags)} if tags else {}), **metadata})


def exercise(number: int, name: str, words: str, right: str) -> list[NotebookNode]:
    """The four cells of an exercise: what is asked, a stub, a hint, a solution."""
    head = f"### Exercise {number} · Title\n\n*Difficulty ●○○ · importance ●●○ · 5 minutes*"
    stub = f'def {name}(x):\n    """{words.capitalize()} x."""\n    ...\n\n\ncheck_{name}({name})'
    solution = f"# @title Solution\ndef {name}(x):\n    return {right}\n\n\ncheck_{name}({name})"
    return [
        new_markdown_cell(f"{head}\n\nReturn {words} `x`."),
        code(stub, "exercise"),
        new_markdown_cell("<details><summary>Hint</summary>\n\nA first step.\n\n</details>"),
        code(
            solution, "solution", "hide-cell", jupyter={"source_hidden": True}, cellView="form"
        ),
    ]  # fmt: skip


def skeleton(title: str, module: str, following: str | None = None) -> NotebookNode:
    """A small chapter of the right anatomy (tests/chapters/rules.py); `following` is the next."""
    aims = "**After this chapter you can**\n\n- do one thing;\n- do another."
    onward = f" [The next chapter]({following}.ipynb) begins there." if following else ""
    cells = [
        new_markdown_cell(f"# {title}\n\nThe question.\n\n{aims}\n\n*About 20 minutes to read.*"),
        code("# written by `make notebooks`", "setup", "hide-cell"),
        code(IMPORTS.format(module=module), "setup"),
        new_markdown_cell("## The question, as a section\n\nSay what to try in the figure."),
        code(START),
        code("AttentionMap(weights, words)"),
        new_markdown_cell(
            "## The answer, step by step\n\nSource: "
            "[Vaswani et al., 2017](../book/references.md#vaswani2017)."
        ),
        code("plots.attention_heatmap(weights, words)", mystnb={"image": {"alt": ALT}}),
        new_markdown_cell(
            "The weights are symmetric here. The line below this one has checked it."
        ),
        code(CLAIM, "claim"),
        new_markdown_cell(
            f"## What you have, and what is missing\n\nSay what is still missing.{onward}"
        ),
        new_markdown_cell("## Exercises"),
        *(cell for n, parts in enumerate(EXERCISES, start=1) for cell in exercise(n, *parts)),
        new_markdown_cell("## Prove it\n\nCompare with something independent."),
        code(PROOF),
        new_markdown_cell("## What goes wrong in practice\n\nThree to five entries."),
    ]
    return new_notebook(cells=cells)


def deeper_page(title: str, chapter: str) -> NotebookNode:
    """A small deeper page of a chapter."""
    aside = f"What this page adds. Nobody needs it on [the road]({chapter}.ipynb)."
    cells = [
        new_markdown_cell(f"# {title}\n\n{aside}"),
        code("# written by `make notebooks`", "setup", "hide-cell"),
        code("import torch", "setup"),
        new_markdown_cell(
            "## A section\n\nSource: [Vaswani et al., 2017](../book/references.md#vaswani2017)."
        ),
        code("torch.arange(5)"),
    ]
    return new_notebook(cells=cells)


def listed(toc: str, name: str) -> str:
    """The text of _toc.yml with the chapter in its place, by number; deeper pages in `sections`."""
    entry = re.compile(r"^( *)- file: chapters/(\d\d[a-z]?)-\S*\n(?: *sections:\n)?", re.MULTILINE)
    entries = list(entry.finditer(toc))
    number = name.split("-")[0]
    before = [each for each in entries if each[2] < number]
    if not number.isdigit():
        last = before[-1]  # its chapter, or the deeper page before it
        if last[2].isdigit():
            head = last[0] if "sections:" in last[0] else f"{last[0]}{last[1]}  sections:\n"
            aside = f"{head}{last[1]}  - file: chapters/{name}\n"
            return f"{toc[: last.start()]}{aside}{toc[last.end() :]}"
        return f"{toc[: last.end()]}{last[1]}- file: chapters/{name}\n{toc[last.end() :]}"
    place = before[-1].end() if before else entries[0].start()
    indent = next(each[1] for each in entries if each[2].isdigit())
    return f"{toc[:place]}{indent}- file: chapters/{name}\n{toc[place:]}"


def with_exercise(nb: NotebookNode, name: str) -> str:
    """Add `check_NAME` to a chapter as its last exercise; the module of its exercises."""
    imported = re.compile(r"from transformer_lib\.exercises\.(\w+) import (?:\(([^)]*)\)|(.*))")
    setup = next((cell for cell in nb.cells if imported.search(cell.source)), None)
    heads = [n for n, cell in enumerate(nb.cells) if EXERCISE.search(cell.source)]
    if setup is None or not heads:
        raise ValueError("it has no exercise yet, to stand behind: write its first one by hand")
    module, *names = imported.search(setup.source).groups()
    checks = sorted({*re.findall(r"\w+", "".join(filter(None, names))), f"check_{name}"})
    listed = "".join(f"    {check},\n" for check in checks)
    line = f"from transformer_lib.exercises.{module} import (\n{listed})"
    setup.source = imported.sub(line, setup.source, count=1)
    after = (n for n in range(heads[-1] + 1, len(nb.cells)) if nb.cells[n].source.startswith("## "))
    place = next(after, len(nb.cells))
    nb.cells[place:place] = exercise(len(heads) + 1, name, *EXERCISES[0][1:])
    return module


def write_exercise(chapter: str, name: str) -> int:
    """Write an exercise into chapters/CHAPTER.ipynb, and its check; 1 if that cannot be."""
    notebook = ROOT / "chapters" / f"{chapter}.ipynb"
    if not notebook.exists() or not (re.fullmatch(r"[a-z]\w*", name) and is_name(name)):
        print("Say: make exercise CHAPTER=03-scaling NAME=halve", file=sys.stderr)
        return 1
    nb = nbformat.read(notebook, as_version=4)
    try:
        library = ROOT / "transformer_lib" / "exercises" / f"{with_exercise(nb, name)}.py"
    except ValueError as error:
        print(f"{notebook.name}: {error}", file=sys.stderr)
        return 1
    checks = library.read_text("utf-8")
    if f"check_{name} = " in checks:
        print(f"{library.name} has a check_{name} already", file=sys.stderr)
        return 1
    check = CHECK.format(name=name, words=EXERCISES[0][1], right=EXERCISES[0][2])
    library.write_text(checks + check, encoding="utf-8")
    nbformat.write(nb, notebook)
    problems = refresh(notebook, load_config())
    print(*problems, sep="\n", file=sys.stderr)
    print(
        f"Written: {notebook.relative_to(ROOT)}, {library.relative_to(ROOT)}.\nLeft to do: replace "
        f"the words in both, then `make notebooks PATHS={chapter}`; its answers, right and\nwrong, "
        f"in tests/exercises/test_exercises_{library.stem}.py."
    )
    return 1 if problems else 0


def write_deeper_page(name: str, title: str) -> int:
    """Write chapters/NAME.ipynb below its chapter; 1 if there is no such chapter."""
    chapters, toc = ROOT / "chapters", ROOT / "_toc.yml"
    found = sorted(chapters.glob(f"{name[:2]}-*.ipynb"))
    there = list(chapters.glob(f"{name[:3]}-*.ipynb"))
    if there or not found:
        problem = f"{there[0].name} is there already" if there else f"no chapter {name[:2]}"
        print(problem, file=sys.stderr)
        return 1
    notebook = chapters / f"{name}.ipynb"
    nbformat.write(deeper_page(title, found[0].stem), notebook)
    toc.write_text(listed(toc.read_text("utf-8"), name), encoding="utf-8")
    problems = refresh(notebook, load_config())
    print(*problems, sep="\n", file=sys.stderr)
    print(f"Written: {notebook.relative_to(ROOT)}, _toc.yml. Link it from {found[0].name}.")
    return 1 if problems else 0


def main() -> int:
    name, title, *more = (*sys.argv[1:], "", "", "")
    if title == "--exercise":
        return write_exercise(name, more[0])
    if not re.fullmatch(r"\d\d[a-z]?(-[a-z0-9]+)+", name) or not title:
        print('Say: make chapter NAME=14-inside-a-gpt TITLE="Inside a GPT"', file=sys.stderr)
        return 1
    if name[2] != "-":
        return write_deeper_page(name, title)
    number, _, rest = name.partition("-")
    notebook = ROOT / "chapters" / f"{name}.ipynb"
    module = rest.replace("-", "_")
    if not is_name(module):
        print(
            f"{module}.py could not be imported: begin with a word that is not Python's own",
            file=sys.stderr,
        )
        return 1
    library = ROOT / "transformer_lib" / "exercises" / f"{module}.py"
    others = [path for path in (library, library.with_suffix("")) if path.exists()]
    there = [*notebook.parent.glob(f"{number}-*.ipynb"), *others]
    if there:
        print(f"{there[0].relative_to(ROOT)} is there already", file=sys.stderr)
        return 1
    checks = [CHECK.format(name=name, words=words, right=right) for name, words, right in EXERCISES]
    in_text = title.replace("\\", "\\\\").replace('"', '\\"')
    library.write_text(LIBRARY.format(number=number, title=in_text) + "".join(checks), "utf-8")
    toc = ROOT / "_toc.yml"
    contents = listed(toc.read_text("utf-8"), name)
    after = contents.partition(f"chapters/{name}\n")[2]
    following = re.search(r"file: chapters/(\d\d-\S+)", after)
    nbformat.write(skeleton(title, library.stem, following and following[1]), notebook)
    toc.write_text(contents, encoding="utf-8")
    problems = refresh(notebook, load_config())
    print(*problems, sep="\n", file=sys.stderr)
    tests = f"tests/exercises/test_exercises_{library.stem}.py"
    print(
        f"Written: {notebook.relative_to(ROOT)}, {library.relative_to(ROOT)}, _toc.yml.\n"
        "Left to do: replace the words in both; list wrong answers, each with its diagnosis, and\n"
        f"test them in {tests}; name the chapter in README.md and\n"
        "book/index.md, and at the end of the chapter before it; then\n"
        f"`make notebooks PATHS={name}`, `make page PATHS={name}`, its tests alone:\n"
        f"`pytest tests/chapters {tests} -k '{name} or {library.stem}'`, and `make check`."
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
