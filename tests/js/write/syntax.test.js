import assert from "node:assert/strict";
import test from "node:test";
import { limited, nodesOf, parse, traced } from "../../../transformer_lib/widgets/write/syntax.js";
import { fixture } from "../support.js";

const KINDS = new Set(
  "FunctionDef ClassDef arg Return Assign AugAssign For While If Expr IfExp Lambda BoolOp BinOp UnaryOp Compare Call keyword Attribute Subscript Slice Starred Name List Tuple Set Dict ListComp GeneratorExp DictComp".split(
    " ",
  ),
);

/** "Name 3:4-3:9" for each node, as the fixture has them from Python's own ast. */
function places(text) {
  const at = (place) => {
    const lines = text.slice(0, place).split("\n");
    return `${lines.length}:${Buffer.byteLength(lines.at(-1))}`;
  };
  return [...nodesOf(parse(text))]
    .filter(({ kind }) => KINDS.has(kind))
    .map(({ kind, start, end }) => `${kind} ${at(start)}-${at(end)}`)
    .sort();
}

test("the syntax trees of all chapters' cells and checks are Python's own", () => {
  const texts = fixture("write_syntax");
  assert.ok(texts.length > 500);
  for (const { text, nodes } of texts) assert.deepEqual(places(text), nodes, text);
});

test("what is not Python is an error with its line", () => {
  for (const [text, line] of [
    ["x = (1,", 1],
    ["a = 1\ndef f(:\n    pass", 2],
    ["if x:\npass", 2],
    ["for in y: pass", 1],
  ]) {
    assert.throws(
      () => parse(text),
      (error) => error instanceof SyntaxError && error.line === line,
      text,
    );
  }
});

test("a while loop is told to end, and no other line moves", () => {
  const text = "n = 3\nwhile (n > 0 and\n       True):\n    n -= 1\n";
  assert.equal(
    limited(text, parse(text)),
    "n = 3\nwhile (__tick__() or (n > 0 and\n       True)):\n    n -= 1\n",
  );
});

test("each line and each variable is told", () => {
  const text =
    "def f(x):\n    a, b = x\n    for c in a: b += c\n    for d in a:\n        if d: b = d\n    return lambda y: y @ b\n";
  assert.equal(
    traced(text, parse(text)),
    [
      "def f(x):",
      '    __at__(2);a, b = x;__let__("a", a);__let__("b", b)',
      '    for c in a: __let__("c", c);__at__(3);b += c;__let__("b", b)',
      "    for d in a:",
      '        if __let__("d", d) or (d): __at__(5);b = d;__let__("b", b)',
      "    __at__(6);return lambda y: __at__(6) or (y @ b)",
      "",
    ].join("\n"),
  );
});
