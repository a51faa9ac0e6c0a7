import assert from "node:assert/strict";
import test, { before } from "node:test";
import { judge } from "../../../transformer_lib/widgets/write/page/choice.js";
import { prepare } from "../../../transformer_lib/widgets/write/source.js";
import { fixture } from "../support.js";
import { begin } from "./python.js";

const prepared = (text) => prepare(text).code;
let python = null;
const { engine, exercises } = fixture("write_checks");

before(async () => {
  python = await begin();
  const [shims, ...modules] = engine;
  python.readEngine([prepared(shims), ...modules.map(([name, text]) => [name, prepared(text)])]);
  for (const { check, program } of exercises) {
    const modules = program.modules.map(([name, text]) => [name, prepared(text)]);
    const { error } = python.lay({ modules, context: prepared(program.context) }, check);
    assert.equal(error, undefined, check);
  }
});

const said = (check, text, name = "answer") =>
  python.check(text, { namespace: check, name, call: `${check}(${name})` });

test("the page says of an answer what the notebook says", () => {
  let count = 0;
  for (const { check, stub, answers } of exercises) {
    assert.deepEqual(said(check, ...stub).verdict, { passed: null, text: "not attempted yet" });
    for (const [text, passed, diagnosis] of answers) {
      count += 1;
      assert.deepEqual(said(check, text).verdict, { passed, text: diagnosis }, text);
    }
  }
  assert.ok(count > 20);
});

test("an answer that does not run is an error with its line", () => {
  const { error, verdict } = said(
    "check_one_output",
    "def answer(x, i):\n    return x\n\nnothing\n",
  );
  assert.deepEqual([error.type, error.line], ["NameError", 4]);
  assert.equal(verdict, undefined); // the one before it is not judged in its place
});

test("an answer that the page cannot read is an error, not a crash", () => {
  const { error } = said("check_one_output", "def answer(x, i):\n    async def g(): pass\n");
  assert.match(error.message, /no async/);
});

const printed = (code, text) => {
  const { text: got, error } = python.run(code);
  assert.deepEqual([got, error], [text, undefined], code);
};

test("regular expressions are Python's", () => {
  for (const [call, text] of [
    ["findall(r'(\\w)(\\d)', 'a1 b2')", "[('a', '1'), ('b', '2')]"],
    ["findall(r'\\w+', 'café ಕ2')", "['café', 'ಕ2']"],
    ["findall(r'\\b\\w', 'été à')", "['é', 'à']"],
    ["findall('x*', 'axb')", "['', 'x', '', '']"],
    ["findall('^a', 'a\\na', re.M)", "['a', 'a']"],
    ["split('(,)', 'a,b')", "['a', ',', 'b']"],
    ["split('[,;!?()-]', 'a;b-c', maxsplit=1)", "['a', 'b-c']"],
    ["sub('a', 'b', 'aaa', count=1)", "'baa'"],
    ["sub(r'(?P<x>\\w)(\\d)', r'\\2\\g<x>', 'a1')", "'1a'"],
    ["search(r'(\\w)(?P<n>\\d)', '😀 a1').group('n', 1)", "('1', 'a')"],
    ["search(r'\\d$', '😀 1\\n')", "<re.Match object; span=(2, 3), match='1'>"],
  ]) {
    printed(`import re\nre.${call}`, `${text}\n`);
  }
  for (const pattern of ["(", "[\\\\W_]"]) {
    assert.ok(python.run(`import re\nre.findall('${pattern}', 'x')`).error);
  }
});

test("a copy shares what is inside it, a deep one does not", () => {
  printed(
    "import copy\na = [[1]]\nb = copy.copy(a)\nb[0].append(2)\nc = copy.deepcopy(a)\nc[0].append(3)\na, c",
    "([[1, 2]], [[1, 2, 3]])\n",
  );
  printed(
    "class A: pass\nx = A()\nx.y = [1]\ny, z = copy.copy(x), copy.deepcopy(x)\nz.y.append(2)\ny is x, y.y is x.y, x.y",
    "(False, True, [1])\n",
  );
  printed(
    "import copy\nfrom collections import Counter\nc = copy.deepcopy(Counter('aab'))\nc, c['z']",
    "(Counter({'a': 2, 'b': 1}), 0)\n",
  );
});

test("a class that the page does not have is refused when it is used", () => {
  for (const code of [
    "from fractions import Fraction\nFraction(1, 3)",
    "from decimal import Decimal\nDecimal('0.1')",
    "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int",
  ]) {
    assert.match(python.run(code).error.message, /^this page's Python has no /, code);
  }
});

test("a choice is judged by the sentences of its check", () => {
  const asked = {
    right: ["1", "3"],
    said: { 1: "3 is missing.", 2: "2 does not belong: why.", 3: "" },
    missing: { 1: "1 is missing: it sees word 5.", 3: "3 is missing." },
    praise: "Right.",
  };
  assert.deepEqual(judge(asked, []), { passed: null, text: "not attempted yet" });
  assert.deepEqual(judge(asked, ["1", "2"]), { passed: false, text: "2 does not belong: why." });
  assert.deepEqual(judge(asked, ["3"]), { passed: false, text: "1 is missing: it sees word 5." });
  assert.deepEqual(judge(asked, ["1", "3"]), { passed: true, text: "Right." });
});
