"""A reader's functions in chapter 00's machine: what the notebook counts, and how it refuses."""

import math
from pathlib import Path

import page_code
import page_machine
import torch
import torch.nn.functional as F
from python_files import tried
from signatures import unchecked
from torch import nn

from transformer_lib.training.asking import examine, questions
from transformer_lib.training.trained import load_shipped

CHAPTERS = Path(__file__).parents[3] / "chapters"
EVERY = 25  # of the questions
HEAD = "block-3-head-1"
STORY = (
    "<story> mary has roses at first . john has books at first . peter has cups at first . "
    "mary gave roses to susan . who has roses ?"
)
# By what is put in: functions that a reader might write.
OTHERS = {
    "attention_weights=even": "def even(q, k):\n    n = len(k)\n    return torch.ones(1, n) / n\n",
    "attention_weights=by_steps": "def by_steps(q, k, mask):\n"
    "    scores = torch.zeros(len(q), len(k))\n"
    "    for i in range(len(q)):\n        scores[i] = k @ q[i] / math.sqrt(k.shape[1])\n"
    "    scores[~mask] = -math.inf\n    return F.softmax(scores, dim=-1)\n",
    "at='block-2', attention_weights=named": "def named(q, k):\n"
    "    scores = torch.einsum('id,jd->ij', q, k) * q.size(-1) ** -0.5\n"
    "    e = (scores - scores.max()).exp()\n    return e / e.sum(-1, keepdim=True)\n",
    "attention_weights=sharp, causal_mask=wide": "def sharp(q, k, mask):\n"
    "    return (q @ k.T).masked_fill(~mask, -1e9).softmax(1)\n\n\n"
    "def wide(queries, keys):\n    return torch.ones(queries, keys).tril(1) > 0\n",
    "split_heads=four, merge_heads=joined": "def four(x, n):\n"
    "    return x.unflatten(-1, (n // 2, -1)).transpose(1, 2)\n\n\n"
    "def joined(z):\n    return torch.cat(list(z.unbind(1)), dim=-1)\n",
    "at='block-1-head-3', apply_rotary=still": "still = lambda x, angles: x.clone()\n",
    "at='block-1-head-3', causal_mask=first": "def first(queries, keys):\n"
    "    mask = torch.zeros(queries, keys, dtype=torch.bool)\n    mask[:, 0] = True\n"
    "    return mask\n",
    "embedding=rows": "def rows(ids, table):\n"
    "    return torch.stack([table[i] for i in ids.tolist()])\n",
    # What is refused.
    "attention_weights=nothing": "def nothing(q, k):\n    q @ k.mT\n",
    "attention_weights=tall": "def tall(q, k):\n    return (k @ q.mT).softmax(0)\n",
    "attention_weights=nan": "def nan(q, k):\n    e = (100 * q @ k.mT).exp()\n"
    "    return e / e.sum(-1, keepdim=True)\n",
    "attention_weights=writes": "def writes(q, k):\n    q.div_(12**0.5)\n"
    "    return torch.softmax(q @ k.mT, -1)\n",
    "attention_weights=single": "def single(q, k):\n    s = q @ k.mT\n"
    "    return torch.tensor([[math.exp(s[0, i].item()) for i in range(len(k))]])\n",
    "attention_weights=outside": "def outside(q, k):\n    return torch.softmax(q @ k, dim=-1)\n",
    "causal_mask=numbers": "def numbers(queries, keys):\n    return torch.ones(queries, keys)\n",
    "split_heads=flat": "def flat(x, n):\n    return x\n",
    "attention_weight=mine": "def mine(q, k):\n    return torch.softmax(q @ k.mT, dim=-1)\n",
    "at='block-4', attention_weights=mine": "def mine(q, k):\n    return q @ k.mT\n",
    "attention_weights=3": "",
    "attention_weights=two, causal_mask=wide": "def two(q, k):\n    return q @ k.mT\n\n\n"
    "def wide(queries, keys):\n    return torch.ones(queries, keys).bool()\n",
}


def fixtures(every: int = EVERY) -> dict:
    shipped = load_shipped("gifts-v3")
    asked = questions(shipped)[::every]
    names = {"torch": torch, "F": F, "nn": nn, "math": math, "machine": shipped}
    empty = {"modules": [], "context": "import math\nimport torch\nimport torch.nn.functional as F"}
    cases, programs = [], [empty]
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        if place := page_machine.yours(path):
            programs.append(place["program"])
            answers = {f"{path.stem}/{one.check}": one.solution for one in page_code.asked(path)}
            for version in place["versions"]:
                text = answers.get(version["exercise"], version["text"])
                case = {"text": text, "call": version["call"], "program": len(programs) - 1}
                cases.append(case | counted(asked, place["program"]["context"], case))
    for call, text in OTHERS.items():
        case = {"text": text, "call": f"machine.using({call})", "program": 0}
        cases.append(case | counted(asked, empty["context"], case, names))
    done = tried({"programs": [*programs, *[{"modules": [], "context": "1"}]]})
    parts, packed = page_machine.machine()
    rules = {"modules": parts["modules"], "context": parts["python"]}
    prepared = tried({"programs": [rules]})
    parts |= {"modules": prepared["programs"][0]["modules"]}
    parts |= {"python": prepared["programs"][0]["context"]}
    prompts = {"prompts": [one.prompt for one in asked], "answers": [one.answer for one in asked]}
    parts["facts"] |= prompts
    return {
        "engine": done["engine"],
        "machine": parts,
        "packed": [list(content) for content in packed],
        "programs": done["programs"][:-1],
        "words": STORY.split(),
        "cases": cases,
    }


def counted(asked, context, case, more=None) -> dict:
    """What the notebook says: its count, answer and weights, or its error."""
    names = {"load_shipped": load_shipped, **(more or {})}
    exec(context, names)
    if "machine" not in names:
        names["machine"] = load_shipped("gifts-v3")
    machine = names["machine"]
    exec(case["text"], names)
    try:
        with unchecked(), eval(case["call"], names):
            found = examine(machine, STORY, HEAD, asked)
    except Exception as error:
        return {"error": {"type": type(error).__name__, "message": str(error)}}
    row = found.weights[-1].tolist()
    return {"right": found.right, "said": found.said, "chance": found.probability, "row": row}
