"""Some exercises as the page gets them, and the notebook's verdicts on answers."""

import linecache
from pathlib import Path

import page_code

from transformer_lib.exercises.engine.verdict import Verdict

CHAPTERS = Path(__file__).parents[3] / "chapters"
CHAPTERS_ASKED = ("01-self-attention", "04-masking", "04b-leaks-and-empty-rows")
CHAPTERS_ASKED += ("08-transformer-block",)
# By the name of the check: answers as a reader writes them, right and wrong ones.
ANSWERS = {
    "check_one_output": [
        "def answer(x, i):\n    w = torch.softmax(x @ x.T, dim=-1)\n    return w[i] @ x\n",
        "def answer(x, i):\n    return (x @ x[i]) @ x\n",
        "def answer(x, i):\n    w = torch.softmax(x @ x.T, dim=0)\n    return w[i] @ x\n",
        "def answer(x, i):\n    s = x @ x[i]\n    return s / s.sum() @ x\n",
        "def answer(x, i):\n    return x @ x\n",
        "def answer(x, i):\n    return torch.softmax(x @ x[i], dim=0) @ x[i]\n",
        "def answer(x):\n    return x\n",
        "def answer(x, i):\n    return x[i]\n",
        "def answer(x, i):\n    y = [x[i]]\n    y.append(y)\n    return y\n",
        "answer = lambda x, i: torch.softmax(x @ x[i - 1], dim=0) @ x\n",
        "def answer(x, i):\n    x[0] = 0\n    return torch.softmax(x @ x[i], dim=0) @ x\n",
        "def answer(x, i):\n    ys = []\n    for row in x:\n        ys.append(row @ x[i])\n"
        "    return torch.softmax(torch.stack(ys), dim=0) @ x\n",
        "def answer(x, i):\n    w = torch.softmax(x @ x[i], dim=0)\n"
        "    y = w * 2 + 1\n    return y @ x\n",
    ],
    "check_mended": [
        "def answer(x):\n    w = torch.softmax(x @ x.T, dim=0)\n"
        "    return w.sum(dim=1, keepdim=True) * x\n",
        "def answer(x):\n    w = torch.softmax(x @ x.T, dim=0)\n    return w @ x\n",
        "def answer(x):\n    return x @ x.T @ x\n",
    ],
    "check_equivariance": [
        "def answer(f, x, order):\n    return True\n",
        "def answer(f, x, order):\n    return torch.allclose(f(x[order]), f(x), atol=1e-5)\n",
        "def answer(f, x, order):\n    return torch.equal(f(x[order]), f(x)[order])\n",
    ],
    "check_is_causal": [  # by a Jacobian
        "def answer(f, x):\n    z = x.clone()\n    z[-1] += 1\n"
        "    return torch.allclose(f(z)[:-1], f(x)[:-1])\n",
    ],
    "check_shares": [  # by hooks
        "def answer(block, head, x):\n    parts = [x, block.attention(x), block.feed_forward(x)]\n"
        "    return torch.stack([p[:, -1] @ head.weight.T for p in parts])\n",
    ],
    "check_prefers_roses": ["answer = torch.eye(5)\n", "answer = torch.ones(5, 2)\n"],
    "check_causal_mask": [
        "def answer(n):\n    return torch.ones(n, n).tril()\n",
        "def answer(n):\n    return torch.ones(n, n, dtype=torch.bool).triu()\n",
    ],
}


def fixtures() -> dict[str, object]:
    asked = [
        (one, path)
        for path in (CHAPTERS / f"{name}.ipynb" for name in CHAPTERS_ASKED)
        for one in page_code.asked(path)
        if one.check in ANSWERS
    ]
    return {
        "engine": page_code.engine(),
        "exercises": [
            {
                "check": one.check,
                "program": {"modules": [*one.program.modules.items()], "context": one.program.code},
                "stub": [one.stub, one.name],
                "answers": [
                    [text, *_said(one.check, path, text)]
                    for text in [*ANSWERS[one.check], _named(one.solution, one.name)]
                ],
            }
            for one, path in asked
        ],
    }


def _named(solution: str, name: str) -> str:
    return f"{solution}\nanswer = {name}\n"


def _said(check: str, path: Path, text: str) -> tuple[bool | None, str]:
    """The notebook's verdict on an answer."""
    file = f"<{check} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict = {}
    exec("import torch", names)
    exec(compile(text, file, "exec"), names)
    verdict: Verdict = page_code._object(check, page_code.notebook(path))(names["answer"])
    return verdict.passed, verdict.diagnosis
