import assert from "node:assert/strict";
import test, { before } from "node:test";
import { begin } from "./python.js";

let python = null;
before(async () => {
  python = await begin();
});

const printed = (code, text) => {
  const { text: got, error } = python.run(code);
  assert.equal(error, undefined, code);
  assert.equal(got, text, code);
};
const raises = (code, type, message, line = undefined) => {
  const { error } = python.run(code);
  assert.ok(error, code);
  assert.equal(error.type, type, code);
  assert.match(error.message, message, code);
  if (line !== undefined) assert.equal(error.line, line, code);
  printed("1 + 1", "2\n"); // and the page goes on
};

test("a cell prints, and its last expression is shown", () => {
  printed(
    "import torch\nx = torch.arange(3)\nprint(x)\nx * 2",
    "tensor([0, 1, 2])\ntensor([0, 2, 4])\n",
  );
  printed("x;", "");
  printed("x = 3", "");
  printed("if True:\n    x", "");
  printed("'a', 1.0", "('a', 1.0)\n");
  printed("None", "");
  printed("def f(x):\n    return x\n    # f(2)\n\t\nf(3)", "3\n");
});

test("names stay from one run to the next, each namespace for itself", () => {
  python.run("a = 5", "one");
  assert.equal(python.run("a", "one").text, "5\n");
  assert.equal(python.run("a", "two").error.type, "NameError");
  python.forget("one");
  assert.equal(python.run("a", "one").error.type, "NameError");
});

test("numbers are written as Python writes them", () => {
  printed(
    "f'{0.03125:.4f} {2.5:.0f} {1e16} {1/3:.3g} {12345678:,} {0.5:>8.1%}|'",
    "'0.0312 2 1e+16 0.333 12,345,678    50.0%|'\n",
  );
  printed(
    "w = 7\nf'{3.14159:{w}.2f}|{\"a\"!r:<5}|{w=}'",
    "'   3.14|\\'a\\'  |w=7'\n".replaceAll("'   3.14|\\'a\\'  |w=7'", "\"   3.14|'a'  |w=7\""),
  );
  printed(
    "import torch\nf'{torch.tensor(0.5):.2f} {torch.tensor([1, 2])}'",
    "'0.50 tensor([1, 2])'\n",
  );
});

test("a number may stand on the left of a comparison with a tensor", () => {
  printed("import torch\n0.2 < torch.tensor([0.1, 0.3])", "tensor([False,  True])\n");
  printed("bool(0 < torch.tensor(0.5) < 1)", "True\n");
});

test("dicts keep their order, and stars stand in displays", () => {
  printed("list({'c': 1, 'a': 2, 'b': 3})", "['c', 'a', 'b']\n");
  printed("{k: v for k, v in zip('zyx', range(3))}", "{'z': 0, 'y': 1, 'x': 2}\n");
  printed("{'a': 1, **{'b': 2}}", "{'a': 1, 'b': 2}\n");
  printed("[*range(2), 5]", "[0, 1, 5]\n");
  printed("def f(x):\n    return 0, *x, *x; y = 1\nf([2])", "(0, 2, 2)\n");
  printed("a, *b = c = *range(2), 5\nb, c", "([1, 5], (0, 1, 5))\n");
  printed("(a, *b) = [c, (d, *e)] = 1, (2, 3)\nb, d, e", "([(2, 3)], 2, [3])\n");
  printed("for i, (a, *b) in enumerate([(1, 2, 3)]):\n    print(i, b)", "0 [2, 3]\n");
  printed(
    "[(a, *b) for a, *b in ['xyz']], [b for a, (*b, c) in [(0, 'xyz')]]",
    "([('x', 'y', 'z')], [['x', 'y']])\n",
  );
  printed("[(*a, 0) for a in [*['xy'], (1,)]]", "[('x', 'y', 0), (1, 0)]\n");
  printed("dict(a=1)['a'], isinstance({}, dict)", "(1, True)\n");
});

test("sorting keeps the order of what is equal, and takes tensors", () => {
  printed("sorted(['b1', 'a1', 'b0', 'a0'], key=lambda s: s[0])", "['a1', 'a0', 'b1', 'b0']\n");
  printed("sorted([1, 2, 3, 4], key=lambda n: n % 2, reverse=True)", "[1, 3, 2, 4]\n");
  printed("import torch\nmin(range(3), key=lambda n: torch.tensor([3.0, 1.0, 2.0])[n])", "1\n");
  printed("import torch\nx = torch.eye(3)\nx[slice(1, None)].shape", "torch.Size([2, 3])\n");
});

test("stars stand in indices and before a lambda's arguments; bytes are decoded as told", () => {
  printed("import torch\np = (1, 0)\ntorch.arange(4).view(2, 2)[*p]", "tensor(2)\n");
  printed("d = {'f': lambda a, *b: len(b), 'g': 1}\nd['f'](1, 2, 3)", "2\n");
  printed("b'a\\xff'.decode('utf-8', errors='ignore')", "'a'\n");
});

test("letters of any writing are written as they are", () => {
  printed(
    "print(['ಕ'], {'é': ('ü',)})\n['ಕ', 'a\\n', b'\\xe9', '\\\\u0c95']",
    `['ಕ'] {'é': ('ü',)}
['ಕ', 'a\\n', b'\\xe9', '\\\\u0c95']
`,
  );
  printed("repr('é'), f'{[\"é\"]} {\"é\"!r}', str(['é'])", `("'é'", "['é'] 'é'", "['é']")\n`);
});

test("texts and bytes become one another as told, or that is refused", () => {
  printed(
    "str(b'a\\xff', 'utf-8', 'replace'), str(b'a', encoding='utf-8'), str(3)",
    "('a�', 'a', '3')\n",
  );
  printed("'é'.encode('utf-8').decode('utf-8')", "'é'\n");
  raises("'é'.encode('latin-1')", "LookupError", /^this page's Python has no encoding latin-1;/, 1);
});

test("dicts with a default, counters and caches are Python's", () => {
  const words = "from collections import Counter, defaultdict\nd = defaultdict(list)\n";
  printed(
    `${words}for k in 'cac': d[k].append(1)\nprint(dict(d), len(d), d.get('x'))\n[*d]`,
    "{'c': [1, 1], 'a': [1]} 2 None\n['c', 'a']\n",
  );
  printed(`${words}d['x']\nd`, "defaultdict(<class 'list'>, {'x': []})\n");
  raises(`${words}defaultdict()[1]`, "KeyError", /^1$/, 3);
  printed(
    `${words}c = Counter()\nc['new'] += 1\nc['new'] += 1\nc, c['old'], len(c)`,
    "(Counter({'new': 2}), 0, 1)\n",
  );
  printed(
    `${words}Counter({'a': 3}) + Counter('ab') - Counter(b=1), Counter('ab').total()`,
    "(Counter({'a': 4}), 2)\n",
  );
  printed(
    `${words}a, b = Counter('aab'), Counter('bbc')\nc = a.copy()\na |= b\nc['z'], a, c & b`,
    "(0, Counter({'a': 2, 'b': 2, 'c': 1}), Counter({'b': 1}))\n",
  );
  printed(
    `${words}d = defaultdict(list, {'ab': [1]})\n(d | {'cd': 2}).copy()['x'], {**d, 'ef': 3}`,
    "([], {'ab': [1], 'ef': 3})\n",
  );
  printed("d = {'ab': 1}\nd.update({'cd': 2}, ef=3)\nd", "{'ab': 1, 'cd': 2, 'ef': 3}\n");
  printed(
    `${words}Counter('ab') == Counter('ba'), {'b': 1, 'a': 2} == {'a': 2, 'b': 1}`,
    "(True, True)\n",
  );
  const fib = "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(60)";
  for (const cached of ["lru_cache", "lru_cache(maxsize=None)", "cache"])
    printed(`import functools\n@functools.${cached}\n${fib}`, "1548008755920\n");
});

test("kinds are Python's", () => {
  printed("isinstance(True, int), type({}) is dict, isinstance({}, dict)", "(True, True, True)\n");
  printed("list(reversed({'b': 1, 'a': 2}))", "['a', 'b']\n");
  printed("round(4.35, 1), round(2.675, 2), round(2.5), round(1234, -2)", "(4.3, 2.67, 2, 1200)\n");
  printed(
    "import math\nmath.isclose(math.inf, 1.0), math.isclose(1, 1 + 1e-12)",
    "(False, True)\n",
  );
  printed("f'{255:#x} {5:#b} {255:x}'", "'0xff 0b101 ff'\n");
  printed(
    "import torch\ntorch.ones(1, dtype=bool), torch.zeros(1, dtype=float)",
    "(tensor([True]), tensor([0.], dtype=torch.float64))\n",
  );
  for (const number of ["2 ** 53 + 1", "2 ** 64", "[1, -2 ** 60]"])
    raises(`import torch\ntorch.tensor(${number})`, "RuntimeError", /exact up to 2 \*\* 53/, 2);
});

test("a model prints as PyTorch prints it", () => {
  const code = `from torch import nn
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.z = nn.ReLU()
        self.a = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Dropout(0.1))
        self.b = nn.LayerNorm(2)
Block()`;
  printed(
    code,
    `Block(
  (z): ReLU()
  (a): Sequential(
    (0): Linear(in_features=3, out_features=2, bias=False)
    (1): Dropout(p=0.1, inplace=False)
  )
  (b): LayerNorm((2,), eps=1e-05, elementwise_affine=True, bias=True)
)
`,
  );
});

const SHARING = `import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(2, 3)
        self.h = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.1))
        self.h[0].weight = self.e.weight
        self.s = nn.Parameter(torch.ones(1))
model = Model()
`;

test("parameters come in PyTorch's order, and one that is shared comes once", () => {
  printed(
    `${SHARING}[name for name, _ in model.named_parameters()]`,
    "['s', 'e.weight', 'h.0.bias']\n",
  );
  printed("list(model.state_dict())", "['s', 'e.weight', 'h.0.weight', 'h.0.bias']\n");
});

test("a module's buffers come after its parameters and before its layers", () => {
  printed(
    `${SHARING}model.h[1].register_buffer("mask", torch.ones(2))
model.register_buffer("kept", torch.zeros(1))
model.register_buffer("table", torch.zeros(1), persistent=False)
model.kept = torch.ones(1)
print(model.state_dict()["kept"])
list(model.state_dict())`,
    "tensor([1.])\n['s', 'kept', 'e.weight', 'h.0.weight', 'h.0.bias', 'h.1.mask']\n",
  );
});

test("eval() reaches the layers within", () => {
  printed(`${SHARING}model.eval()\nmodel.h(torch.ones(3)).shape`, "torch.Size([2])\n");
});

test("norms of matrices, weighted counts and inverse powers are PyTorch's, or refused", () => {
  const code = "import torch\nA = torch.tensor([[3.0, 0.0], [4.0, 5.0]])\n";
  printed(
    `${code}norm = torch.linalg.norm\nnorm(A), norm(A, ord=2), norm(A, 1, dim=1), norm(A[1], 1)`,
    "(tensor(7.0711), tensor(6.7082), tensor([3., 9.]), tensor(9.))\n",
  );
  raises(`${code}torch.linalg.norm(A, 1)`, "NotImplementedError", /no matrix_norm with ord=1;/, 3);
  raises(`${code}torch.linalg.norm(A[None], 2)`, "RuntimeError", /must be 1D or 2D\. Got 3D/, 3);
  raises(`${code}torch.linalg.matrix_power(A, -1)`, "NotImplementedError", /power with n < 0/, 3);
  const ids = "import torch\nids = torch.tensor([0, 1, 1, 3])\n";
  printed(
    `${ids}w = torch.arange(4)\nids.bincount(), ids.bincount(0.5 * w), torch.bincount(ids, w, 5)`,
    `(tensor([1, 2, 0, 1]), tensor([0.0000, 1.5000, 0.0000, 1.5000]), \
tensor([0., 3., 0., 3., 0.], dtype=torch.float64))
`,
  );
});

test("an error names its type, its message and the reader's own line", () => {
  raises("x = 1\n\nundefined + x", "NameError", /^name 'undefined' is not defined$/, 3);
  raises("def f(x):\n    return x / 0\n\nf(1)", "ZeroDivisionError", /^division by zero$/, 2);
  raises("'a' + 1", "TypeError", /can only concatenate str|unsupported operand/, 1);
  raises(
    "import torch\ntorch.ones(3, 4) @ torch.ones(3, 4)",
    "RuntimeError",
    /^mat1 and mat2 shapes cannot be multiplied \(3x4 and 3x4\)$/,
    2,
  );
  raises("def f(:\n  pass", "SyntaxError", /invalid syntax/, 1);
  raises("if True:\n\tx = 1\n        y = 2", "TabError", /inconsistent use of tabs and spaces/, 3);
  raises("assert 1 == 2, 'they differ'", "AssertionError", /^they differ$/, 1);
});

test("what would never end, or fill the page, is a sentence", () => {
  raises(
    "def f(n):\n    return f(n + 1)\nf(0)",
    "RecursionError",
    /does the function call itself/,
    2,
  );
  raises("[0] * 10**9", "MemoryError", /this asks for 4,000 MB/, 1);
  raises("for i in range(10**6):\n    print(i)", "Output", /2,000 lines at most/);
  raises(
    "import torch\nwhile True: torch.zeros(4000, 4000)",
    "RuntimeError",
    /take more than 1\.5 GB/,
    2,
  );
  raises("print('a' * 10**6)", "Output", /at most/);
  raises(
    "import torch\ntorch.zeros(10**5, 10**5)",
    "RuntimeError",
    /at most 50 million numbers/,
    2,
  );
});

test("what is not there says so, and where it is", () => {
  raises("import os", "ImportError", /^this page's Python has no os; `make lab` or Colab/, 1);
  raises("import transformer_lib", "ImportError", /has no transformer_lib/, 1);
  raises(
    "import torch\ntorch.fft",
    "AttributeError",
    /^this page's tensors have no fft; `make lab` or Colab has all of PyTorch\.$/,
    2,
  );
  raises("import torch\ntorch.linalg.qr", "AttributeError", /have no qr;/, 2);
  raises("import torch\ntorch.ones(2).cpu()", "AttributeError", /have no cpu;/, 2);
  raises(
    "import torch\ntorch.sofmax",
    "AttributeError",
    /^module 'torch' has no attribute 'sofmax'$/,
    2,
  );
  raises("match 1:\n    case 1: pass", "SyntaxError", /no match statement; write if and elif/, 1);
  raises("x = 1\ndef f(a, /): pass", "SyntaxError", /no \/ among a function's parameters/, 2);
  raises("with (f() as a, f()):\n    pass", "SyntaxError", /no brackets around what with opens/, 1);
  raises("def f():\n    async def g(): pass", "SyntaxError", /no async; leave it out/, 2);
  raises("from math import *", "SyntaxError", /no import \*; name what you need/, 1);
  raises("print(“a”)", "SyntaxError", /^“ is not a quote in Python/, 1);
  raises("'abc'[::-1]", "NotImplementedError", /no steps in slices of texts and tuples/, 1);
  raises(
    "import random\nrandom.shuffle([1])",
    "AttributeError",
    /^this page's Python has no shuffle;/,
    2,
  );
  raises("import math\nmath.comb(3, 2)", "AttributeError", /^this page's Python has no comb;/, 2);
  raises("import itertools\nitertools.tee([1])", "OSError", /^this page's Python has no tee;/, 2);
  raises("import json\njson.dumps({})", "OSError", /^this page's Python has no json.dumps;/, 2);
  raises("import copy", "ImportError", /^this page's Python has no copy;/, 1);
  raises(
    "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int",
    "TypeError",
    /^this page's Python has no classes of typing;/,
    2,
  );
  raises("%timeit 1", "SyntaxError", /belong to a notebook/, 1);
  printed("from __future__ import annotations\nfrom typing import Any\n1", "1\n");
});

test("an index writes into an expanded view as PyTorch does, and counts dimensions as it does", () => {
  const code =
    "import torch\nx = torch.zeros(2).expand(2, 2)\nx[torch.tensor([True, False])] = 1.5\nx";
  printed(code, "tensor([[1.5000, 1.5000],\n        [1.5000, 1.5000]])\n");
  raises(
    "import torch\ntorch.zeros(2, 1)[:, torch.tensor([-2])]",
    "IndexError",
    /^index -2 is out of bounds for dimension 0 with size 1$/,
    2,
  );
});

test("gradients reach leaves, and no_grad holds them back", () => {
  const code = [
    "import torch",
    "w = torch.tensor([1.0, 2.0], requires_grad=True)",
    "(w ** 2).sum().backward()",
    "with torch.no_grad():",
    "    w -= 0.1 * w.grad",
    "print(w, w.grad)",
    "torch.autograd.grad((w * w).sum(), w)[0]",
  ].join("\n");
  printed(
    code,
    "tensor([0.8000, 1.6000], requires_grad=True) tensor([2., 4.])\ntensor([1.6000, 3.2000])\n",
  );
});

test("assert_close complains in PyTorch's words", () => {
  raises(
    "import torch\ntorch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 3.0]))",
    "AssertionError",
    /^Tensor-likes are not close!\n\nMismatched elements: 1 \/ 2 \(50\.0%\)\nGreatest absolute difference: 1\.0 at index \(1,\) \(up to 1e-05 allowed\)/,
    2,
  );
  printed("torch.testing.assert_close(torch.tensor([1.0]), torch.tensor([1.0000001]))", "");
  const lists = "import torch\none = torch.ones(1)\ntorch.testing.assert_close([one], ";
  printed(`${lists}[one.double()], check_dtype=False)`, "");
  raises(`${lists}[2 * one], msg="mine")`, "AssertionError", /^mine$/, 3);
});

test("x += 1 changes a tensor, a list and a dict in place, as Python does", () => {
  printed(
    "import torch\nx = torch.ones(3)\ny = x[1:]\ny += 1; y[0] /= 4\ny **= 2\nprint(x)",
    "tensor([1.0000, 0.2500, 4.0000])\n",
  );
  printed(
    "a = [1]\nb = a\nb += (2,)\nd = {'x': 1}\ne = d\ne |= {'y': 2}\nprint(a, d)",
    "[1, 2] {'x': 1, 'y': 2}\n",
  );
  printed("n = 2\nfor i in range(3): n *= i + 1; n -= (1 +\n  1)\nn", "-8\n");
  const wide = "import torch\nx = torch.ones(2, 1)\nx += torch.ones(2, 2)";
  raises(wide, "RuntimeError", /output with shape \[2, 1\] doesn't match/, 3);
  raises("x = torch.arange(3)\nx /= 2", "RuntimeError", /can't be cast to the desired output/, 2);
});
