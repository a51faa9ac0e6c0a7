"""The machine on the page: a reader's own functions take the place of its parts there, too.

At the end of the chapters that build a part stands the figure `YourPart`. Below it the page has a
place where a reader writes the part (write/page/machine.js). `yours` says with which texts it can
begin: the chapter's own versions, and what the reader has answered to an exercise. `machine` is
what the worker needs, with the weights that chapter 00's figure has.
"""

import ast
import base64
import functools
import hashlib
from dataclasses import asdict
from pathlib import Path

import nbformat
import page_code
import python_files as built

from transformer_lib.training.asking import questions
from transformer_lib.training.trained import load_shipped
from transformer_lib.widgets.joining import FOLDER
from transformer_lib.widgets.weights import pack_weights, unpack_weights

NAME = "gifts-v3"
HEAD = 'at="block-3-head-1"'
DIVIDED = "q @ k.mT / 12**0.5"
# What can be put in at the end of a chapter: the arguments of machine.using(...). A name is that of
# a function of the chapter, or of an exercise, whose text is then the reader's answer.
YOURS = {
    "01-self-attention": [
        "attention_weights=mine",
        f"{HEAD}, attention_weights=wrong_axis",
    ],
    "02-queries-keys-values": [
        f"{HEAD}, attention_weights=one_matrix",
        f"attention_weights=lambda q, k: stable_softmax({DIVIDED})",
    ],
    "03-scaling": [
        "attention_weights=undivided",
        "attention_weights=divided_twice",
        "attention_weights=scaled_weights",
    ],
    "04-masking": [
        "causal_mask=my_mask",
        "causal_mask=no_mask",
        "causal_mask=my_causal_mask",
        "causal_mask=lambda queries, keys: my_window_mask(keys, 8)",
        f"attention_weights=lambda q, k, mask: masked_softmax({DIVIDED}, mask)",
    ],
    "05-multi-head": [
        "split_heads=split_heads, merge_heads=merge_heads",
        "split_heads=only_reshape",
        f"{HEAD}, attention_weights=silent",
    ],
    "06-tokens-and-embeddings": [
        "embedding=my_embedding",
        "embedding=one_row_for_all",
        "embedding=exchanged",
    ],
    "07c-turn-do-not-add": [
        "apply_rotary=turn",
        "apply_rotary=a_thousand_on",
        "apply_rotary=not_at_all",
    ],
}
RULES = (
    "from transformer_lib.interpret.your_part import require_parts, _place, takes_mask\n"
    "from transformer_lib.interpret.open_parts import require_result, asks_for_single_numbers\n"
    "from transformer_lib.interpret.open_parts import has_changed_the_given\n"
)


def yours(path: Path) -> dict | None:
    """What a chapter's place begins with; None if it has none.

    {"cell": the number of the cell with the figure, among those of code,
     "program": {"modules", "context"}, what is there before,
     "versions": [{"name", "text", "call", "exercise": its name, or None}]}

    Raises:
        ValueError: the chapter has no such figure, or no such function.
    """
    if path.stem not in YOURS:
        return None
    cells = nbformat.read(path, 4).cells
    place = next((n for n, cell in enumerate(cells) if "\nYourPart(" in cell.source), None)
    if place is None:
        raise ValueError(f"{path.stem} has no figure YourPart; see YOURS in book/page_machine.py.")
    defined = _functions(cells)
    exercises = {one.name: one for one in page_code.asked(path) if one.name not in defined}
    versions, needs = [], {"torch", "F", "nn", "math"}
    for call in YOURS[path.stem]:
        names = [n.id for n in ast.walk(ast.parse(f"f({call})")) if isinstance(n, ast.Name)]
        answered = [exercises[name] for name in names if name in exercises]
        own = [defined[name] for name in names if name in defined]
        if not answered and not own:
            raise ValueError(f"{path.stem} defines nothing of {call}, in book/page_machine.py.")
        text = answered[0].stub if answered else "\n\n\n".join(own) + "\n"
        one = answered[0] if answered else None
        name = one.name if one else next(name for name in names if name in defined)
        versions.append(
            {
                "name": name,
                "text": text,
                "call": f"machine.using({call})",
                "exercise": one and f"{path.stem}/{one.check}",
            }
        )
        made = {bound for unit in page_code.Code.of(text).units for bound in unit.binds}
        needs |= {n for unit in page_code.Code.of(text).units for n in unit.needs} - made
    before = page_code.sliced(page_code.notebook(path), needs - {"machine"}, place)
    code = [n for n, cell in enumerate(cells) if cell.cell_type == "code"]
    return {
        "cell": code.index(place),
        "program": {"modules": [*before.modules.items()], "context": before.code},
        "versions": versions,
    }


def _functions(cells: list) -> dict[str, str]:
    """The texts of a chapter's functions, all but those that answer an exercise."""
    found = {}
    for cell in cells:
        answers = {"exercise", "solution"} & set(cell.metadata.get("tags", []))
        if cell.cell_type == "code" and not answers:
            source = page_code._python(cell.source)
            for node in ast.parse(source).body:
                if isinstance(node, ast.FunctionDef):
                    found[node.name] = ast.get_source_segment(source, node)
    return found


def machine() -> tuple[dict, list[bytes]]:
    """What the worker needs (session.js, readMachine), and the weights: those of the figure Machine
    in 8 bits, and what these leave out, in 8 bits, too.

    With both, every count of right answers is the notebook's (tests/js/write/own_parts.test.js).
    """
    trained = load_shipped(NAME)
    asked, grammar = questions(trained), trained.grammar
    config, vocabulary = asdict(trained.model.config), list(trained.tokenizer.vocabulary)
    code = page_code.Code.of(RULES)
    rules = page_code.sliced(code, {name for unit in code.units for name in unit.binds})
    source = (FOLDER / "write" / "python" / "machine.py").read_text(encoding="utf-8")
    begun = (
        f"rules_are_read()\nmachines[{NAME!r}] = OnThePage({config!r}, {vocabulary!r}, "
        f"{list(grammar.people)!r}, {list(grammar.gifts)!r})"
    )
    facts = {
        "config": config,
        "vocabulary": vocabulary,
        "prompts": [one.prompt for one in asked],
        "answers": [one.answer for one in asked],
    }
    parts = {
        "name": NAME,
        "python": ast.unparse(page_code.translated(source)),
        "modules": [*rules.modules.items()],
        "begun": begun,
        "facts": facts,
    }
    weights = {name: w.detach().numpy() for name, w in trained.model.state_dict().items()}
    first = pack_weights(weights)
    rounded = unpack_weights(first)
    rest = pack_weights({name: weights[name] - rounded[name] for name in weights})
    return parts, [first, rest]


def weights_file(content: bytes) -> tuple[str, str]:
    """The name and the text of a page's file of weights, as extensions/figures.py writes it."""
    data = base64.b64encode(content).decode("ascii")
    name = f"weights-{hashlib.sha256(data.encode('ascii')).hexdigest()[:10]}.js"
    return name, f'afm.provide("{name}", "{data}");\n'


@functools.cache
def files() -> tuple[tuple[str, str], list[tuple[str, str]]]:
    """What all places share: a file of what the worker needs, and those of the weights."""
    parts, packed = machine()
    rules = {"modules": parts["modules"], "context": parts["python"]}
    ready = built.tried({"programs": [rules]})["programs"][0]
    content = parts | {"modules": ready["modules"], "python": ready["context"]}
    return built.provided("machine", content), [weights_file(one) for one in packed]
