// Python's text as Python's own syntax tree (the module ast), as far as checks of answers ask for it.
//
//   parse("x = a @ b")      -> { kind: "Module", body: [...] }; throws a SyntaxError with a line
//   asPython(tree)          -> Python's text that makes the tree of the classes of python/engine.py
//   traced(text, tree)      -> the text, which tells __at__ each line and __let__ each variable
//   limited(text, tree)     -> the text, which asks __tick__ before each turn of a while loop
//
// Nodes have Python's names and fields, and { start, end } in the text. What an f-string holds is not
// looked into, and annotations are skipped.

import { tokens } from "./tokens.js";

export const FIELDS = {
  Module: ["body"],
  FunctionDef: ["name", "args", "body", "decorator_list"],
  ClassDef: ["name", "bases", "body", "decorator_list"],
  arguments: ["posonlyargs", "args", "vararg", "kwonlyargs", "kw_defaults", "kwarg", "defaults"],
  arg: ["arg"],
  Return: ["value"],
  Assign: ["targets", "value"],
  AugAssign: ["target", "op", "value"],
  AnnAssign: ["target", "value"],
  For: ["target", "iter", "body", "orelse"],
  While: ["test", "body", "orelse"],
  If: ["test", "body", "orelse"],
  With: ["items", "body"],
  withitem: ["context_expr", "optional_vars"],
  Try: ["body", "handlers", "orelse", "finalbody"],
  ExceptHandler: ["type", "name", "body"],
  Raise: ["exc", "cause"],
  Assert: ["test", "msg"],
  Delete: ["targets"],
  Import: [],
  Global: [],
  Pass: [],
  Break: [],
  Continue: [],
  Expr: ["value"],
  NamedExpr: ["target", "value"],
  IfExp: ["test", "body", "orelse"],
  Lambda: ["args", "body"],
  BoolOp: ["op", "values"],
  BinOp: ["left", "op", "right"],
  UnaryOp: ["op", "operand"],
  Compare: ["left", "ops", "comparators"],
  Call: ["func", "args", "keywords"],
  keyword: ["arg", "value"],
  Attribute: ["value", "attr", "ctx"],
  Subscript: ["value", "slice", "ctx"],
  Slice: ["lower", "upper", "step"],
  Starred: ["value", "ctx"],
  Name: ["id", "ctx"],
  Constant: ["value"],
  JoinedStr: ["values"],
  List: ["elts", "ctx"],
  Tuple: ["elts", "ctx"],
  Set: ["elts"],
  Dict: ["keys", "values"],
  ListComp: ["elt", "generators"],
  SetComp: ["elt", "generators"],
  GeneratorExp: ["elt", "generators"],
  DictComp: ["key", "value", "generators"],
  comprehension: ["target", "iter", "ifs"],
  Yield: ["value"],
  YieldFrom: ["value"],
  Await: ["value"],
};
const BINARY = [
  { "|": "BitOr" },
  { "^": "BitXor" },
  { "&": "BitAnd" },
  { "<<": "LShift", ">>": "RShift" },
  { "+": "Add", "-": "Sub" },
  { "*": "Mult", "/": "Div", "//": "FloorDiv", "%": "Mod", "@": "MatMult" },
];
const UNARY = { "+": "UAdd", "-": "USub", "~": "Invert" };
const AUGMENTED = Object.fromEntries(
  [...BINARY.flatMap(Object.entries), ["**", "Pow"]].map(([sign, name]) => [`${sign}=`, name]),
);
const COMPARED = { "<": "Lt", "<=": "LtE", ">": "Gt", ">=": "GtE", "==": "Eq", "!=": "NotEq" };
const BLOCKS = {
  if: "readIf", for: "readFor", while: "readWhile", def: "readDef", class: "readClass",
  with: "readWith", try: "readTry", "@": "readDecorated", async: "readAsync",
}; // biome-ignore format: a table
/** The classes of what has no parts. */
export const OPERATORS = [
  ...new Set([
    ...BINARY.flatMap(Object.values),
    ...Object.values(COMPARED),
    ...Object.values(UNARY),
    ..."Pow In NotIn Is IsNot And Or Not Load Store Del".split(" "),
  ]),
];
const CLOSES = new Set([")", "]", "}", ":", ",", "=", ";"]);

export function parse(source) {
  return new Reader(source).module();
}

class Reader {
  constructor(source) {
    this.source = source;
    this.tokens = tokens(source);
    this.at = 0;
  }

  // ---- tokens ----

  get next() {
    return this.tokens[this.at] ?? { kind: "end", text: "", start: this.source.length };
  }

  is(...texts) {
    return this.next.kind !== "string" && texts.includes(this.next.text);
  }

  take(...texts) {
    if (!this.is(...texts)) return null;
    this.at += 1;
    return this.tokens[this.at - 1];
  }

  expect(text) {
    return this.take(text) ?? this.fail();
  }

  fail() {
    const line = this.source.slice(0, this.next.start).split("\n").length;
    throw Object.assign(new SyntaxError("invalid syntax"), { line });
  }

  /** A node from a token to what was taken last. */
  make(kind, start, fields = {}) {
    let last = this.at - 1; // a block's last statement has taken its newline
    while (this.tokens[last].kind === "newline" || this.tokens[last].kind === "indent") last -= 1;
    return { kind, start: start.start, end: this.tokens[last].end, ...fields };
  }

  // ---- statements ----

  module() {
    const body = [];
    while (this.next.kind !== "end") {
      if (this.next.kind === "newline" || this.next.kind === "indent") this.at += 1;
      else body.push(...this.statement(0));
    }
    return { kind: "Module", start: 0, end: this.source.length, body };
  }

  /** How far the line of a token is indented. */
  indent(token) {
    const from = this.source.lastIndexOf("\n", token.start - 1) + 1;
    return token.start - from;
  }

  statement(depth) {
    const block = this.next.kind !== "string" && BLOCKS[this.next.text];
    return block ? [this[block](depth)] : this.simple();
  }

  /** The statements of a line. */
  simple() {
    const found = [this.small()];
    while (this.take(";")) {
      if (this.next.kind === "newline" || this.next.kind === "end") break;
      found.push(this.small());
    }
    if (this.next.kind === "newline") this.at += 1;
    else if (this.next.kind !== "end") this.fail();
    return found;
  }

  small() {
    const first = this.next;
    const ends = () => CLOSES.has(this.next.text) || ["newline", "end"].includes(this.next.kind);
    const one = (kind, field) => {
      this.at += 1;
      const value = ends() ? null : this.tuple();
      return this.make(kind, first, { [field]: value });
    };
    const bare = { pass: "Pass", break: "Break", continue: "Continue" };
    if (first.kind === "name" && bare[first.text]) {
      this.at += 1;
      return this.make(bare[first.text], first);
    }
    if (this.is("return")) return one("Return", "value");
    if (this.is("del")) {
      this.at += 1;
      return this.make("Delete", first, { targets: [this.tuple()] });
    }
    if (this.is("import", "from", "global", "nonlocal")) {
      while (!["newline", "end"].includes(this.next.kind) && !this.is(";")) this.at += 1;
      return this.make(this.is("global") ? "Global" : "Import", first);
    }
    if (this.take("raise")) {
      const exc = ends() ? null : this.expression();
      const cause = this.take("from") ? this.expression() : null;
      return this.make("Raise", first, { exc, cause });
    }
    if (this.take("assert")) {
      const test = this.expression();
      const msg = this.take(",") ? this.expression() : null;
      return this.make("Assert", first, { test, msg });
    }
    return this.assignment(first);
  }

  assignment(first) {
    const left = this.tuple();
    if (this.next.kind === "op" && AUGMENTED[this.next.text]) {
      const op = AUGMENTED[this.next.text];
      this.at += 1;
      const value = this.tuple();
      return this.make("AugAssign", first, { target: stored(left), op, value });
    }
    if (this.take(":")) {
      this.expression();
      const value = this.take("=") ? this.tuple() : null;
      return this.make("AnnAssign", first, { target: stored(left), value });
    }
    const parts = [left];
    while (this.take("=")) parts.push(this.tuple());
    const value = parts.pop();
    return parts.length
      ? this.make("Assign", first, { targets: parts.map(stored), value })
      : this.make("Expr", first, { value });
  }

  /** The block behind a colon: the rest of the line, or deeper lines. */
  block(depth) {
    this.expect(":");
    if (this.next.kind !== "newline") return this.simple();
    this.at += 1;
    const body = [];
    let within = null;
    while (this.next.kind !== "end") {
      if (this.next.kind === "newline") {
        this.at += 1;
        continue;
      }
      const first = this.next.kind === "indent" ? this.tokens[this.at + 1] : this.next;
      if (first.kind === "newline") {
        this.at += 2;
        continue;
      }
      const here = this.indent(first);
      within ??= here;
      if (here <= depth || here < within) break;
      if (this.next.kind === "indent") this.at += 1;
      body.push(...this.statement(here));
    }
    if (!body.length) this.fail();
    return body;
  }

  /** else and its kin stand as deep as their statement. */
  follows(depth, ...words) {
    const first = this.next.kind === "indent" ? this.tokens[this.at + 1] : this.next;
    if (first?.kind !== "name" || !words.includes(first.text)) return false;
    if (this.indent(first) !== depth) return false;
    if (this.next.kind === "indent") this.at += 1;
    return true;
  }

  otherwise(depth) {
    if (!this.follows(depth, "else")) return [];
    this.at += 1;
    return this.block(depth);
  }

  readIf(depth) {
    const first = this.next;
    this.at += 1;
    const test = this.named();
    const body = this.block(depth);
    const orelse = this.follows(depth, "elif") ? [this.readIf(depth)] : this.otherwise(depth);
    return this.make("If", first, { test, body, orelse });
  }

  readWhile(depth) {
    const first = this.expect("while");
    const test = this.named();
    const body = this.block(depth);
    return this.make("While", first, { test, body, orelse: this.otherwise(depth) });
  }

  readFor(depth) {
    const first = this.expect("for");
    const target = stored(this.targets());
    this.expect("in");
    const iter = this.tuple();
    const body = this.block(depth);
    return this.make("For", first, { target, iter, body, orelse: this.otherwise(depth) });
  }

  readAsync() {
    return this.fail();
  }

  readWith(depth) {
    const first = this.expect("with");
    const items = [];
    do {
      const start = this.next;
      const context_expr = this.expression();
      const optional_vars = this.take("as") ? stored(this.unary()) : null;
      items.push(this.make("withitem", start, { context_expr, optional_vars }));
    } while (this.take(","));
    return this.make("With", first, { items, body: this.block(depth) });
  }

  readTry(depth) {
    const first = this.expect("try");
    const [body, handlers] = [this.block(depth), []];
    while (this.follows(depth, "except")) {
      const start = this.expect("except");
      const type = this.is(":") ? null : this.expression();
      const name = this.take("as") ? this.word() : null;
      handlers.push(this.make("ExceptHandler", start, { type, name, body: this.block(depth) }));
    }
    const orelse = this.otherwise(depth);
    const finalbody = this.follows(depth, "finally") && this.take("finally") && this.block(depth);
    return this.make("Try", first, { body, handlers, orelse, finalbody: finalbody || [] });
  }

  readDecorated(depth) {
    const decorator_list = [];
    while (this.take("@")) {
      decorator_list.push(this.expression());
      if (this.next.kind === "newline") this.at += 1;
      if (this.next.kind === "indent") this.at += 1;
    }
    return { ...this.statement(depth)[0], decorator_list };
  }

  word() {
    if (this.next.kind !== "name") this.fail();
    this.at += 1;
    return this.tokens[this.at - 1].text;
  }

  readDef(depth) {
    const first = this.expect("def");
    const name = this.word();
    this.expect("(");
    const args = this.parameters(")", true);
    this.expect(")");
    if (this.take("->")) this.expression();
    const body = this.block(depth);
    return this.make("FunctionDef", first, { name, args, body, decorator_list: [] });
  }

  readClass(depth) {
    const first = this.expect("class");
    const name = this.word();
    const bases = this.is("(") ? this.call().args : [];
    const body = this.block(depth);
    return this.make("ClassDef", first, { name, bases, body, decorator_list: [] });
  }

  parameters(closing, isTyped) {
    const start = this.next;
    const found = {
      posonlyargs: [], args: [], vararg: null, kwonlyargs: [], kw_defaults: [], kwarg: null,
      defaults: [],
    }; // biome-ignore format: the fields of Python's own
    let isKeyword = false;
    const one = () => {
      const from = this.next;
      const made = this.make("arg", from, { arg: this.word() });
      if (!isTyped || !this.take(":")) return made;
      this.expression();
      return this.make("arg", from, { arg: made.arg });
    };
    while (!this.is(closing)) {
      if (this.take("*")) {
        isKeyword = true;
        if (!this.is(",")) found.vararg = one();
      } else if (this.take("**")) found.kwarg = one();
      else if (!this.take("/")) {
        const made = one();
        const value = this.take("=") ? this.expression() : null;
        (isKeyword ? found.kwonlyargs : found.args).push(made);
        if (isKeyword) found.kw_defaults.push(value);
        else if (value) found.defaults.push(value);
      }
      if (!this.take(",")) break;
    }
    const end = this.tokens[this.at - 1].end;
    return { kind: "arguments", start: start.start, end, ...found };
  }

  // ---- expressions ----

  /** One expression, or several with commas between them. */
  tuple(one = () => this.star(), ends = CLOSES) {
    const first = this.next;
    const found = [one()];
    let commas = 0;
    while (this.take(",")) {
      commas += 1;
      const { kind, text } = this.next;
      if (["newline", "end"].includes(kind) || (kind !== "string" && ends.has(text))) break;
      if (this.is("in")) break;
      found.push(one());
    }
    return commas ? this.make("Tuple", first, { elts: found, ctx: "Load" }) : found[0];
  }

  targets() {
    return this.tuple(() => (this.is("*") ? this.star() : this.binary(0)));
  }

  star() {
    const first = this.next;
    if (!this.take("*")) return this.named();
    return this.make("Starred", first, { value: this.binary(0), ctx: "Load" });
  }

  named() {
    const first = this.next;
    const left = this.expression();
    if (!this.take(":=")) return left;
    return this.make("NamedExpr", first, { target: stored(left), value: this.expression() });
  }

  expression() {
    const first = this.next;
    if (this.take("lambda")) {
      const args = this.parameters(":", false);
      this.expect(":");
      return this.make("Lambda", first, { args, body: this.expression() });
    }
    if (this.take("yield")) {
      const kind = this.take("from") ? "YieldFrom" : "Yield";
      const ends = CLOSES.has(this.next.text) || ["newline", "end"].includes(this.next.kind);
      return this.make(kind, first, { value: ends ? null : this.tuple() });
    }
    const body = this.or();
    if (!this.take("if")) return body;
    const test = this.or();
    this.expect("else");
    return this.make("IfExp", first, { test, body, orelse: this.expression() });
  }

  /** a or b or c, of what `one` reads. */
  chain(word, op, one) {
    const first = this.next;
    const values = [one()];
    while (this.take(word)) values.push(one());
    return values.length > 1 ? this.make("BoolOp", first, { op, values }) : values[0];
  }

  or() {
    return this.chain("or", "Or", () => this.chain("and", "And", () => this.not()));
  }

  not() {
    const first = this.next;
    if (this.take("not")) return this.make("UnaryOp", first, { op: "Not", operand: this.not() });
    return this.comparison();
  }

  comparison() {
    const first = this.next;
    const left = this.binary(0);
    const [ops, comparators] = [[], []];
    for (;;) {
      let op = this.next.kind === "op" ? COMPARED[this.next.text] : null;
      if (op) this.at += 1;
      else if (this.take("in")) op = "In";
      else if (this.is("not") && this.tokens[this.at + 1]?.text === "in") {
        this.at += 2;
        op = "NotIn";
      } else if (this.take("is")) op = this.take("not") ? "IsNot" : "Is";
      if (!op) break;
      ops.push(op);
      comparators.push(this.binary(0));
    }
    return ops.length ? this.make("Compare", first, { left, ops, comparators }) : left;
  }

  binary(level) {
    if (level === BINARY.length) return this.unary();
    const first = this.next;
    let left = this.binary(level + 1);
    for (;;) {
      const op = this.next.kind === "op" && BINARY[level][this.next.text];
      if (!op) return left;
      this.at += 1;
      const right = this.binary(level + 1);
      left = this.make("BinOp", first, { left, op, right });
    }
  }

  unary() {
    const first = this.next;
    const op = first.kind === "op" && UNARY[first.text];
    if (!op) return this.power();
    this.at += 1;
    return this.make("UnaryOp", first, { op, operand: this.unary() });
  }

  power() {
    const first = this.next;
    const left = this.primary();
    if (!this.take("**")) return left;
    return this.make("BinOp", first, { left, op: "Pow", right: this.unary() });
  }

  primary() {
    const first = this.next;
    let value = this.atom();
    for (;;) {
      if (this.take(".")) {
        const attr = this.word();
        value = this.make("Attribute", first, { value, attr, ctx: "Load" });
      } else if (this.is("(")) {
        const { args, keywords } = this.call();
        value = this.make("Call", first, { func: value, args, keywords });
      } else if (this.take("[")) {
        const slice = this.tuple(() => this.slice(), new Set("]"));
        this.expect("]");
        value = this.make("Subscript", first, { value, slice, ctx: "Load" });
      } else return value;
    }
  }

  slice() {
    const first = this.next;
    const ends = () => this.is(":", "]", ",");
    const lower = ends() ? null : this.star();
    if (!this.take(":")) return lower ?? this.fail();
    const upper = ends() ? null : this.expression();
    const step = this.take(":") && !ends() ? this.expression() : null;
    return this.make("Slice", first, { lower, upper, step });
  }

  /** What is called with, in its brackets. */
  call() {
    const open = this.expect("(");
    const [args, keywords] = [[], []];
    while (!this.is(")")) {
      const first = this.next;
      const isNamed = first.kind === "name" && this.tokens[this.at + 1]?.text === "=";
      if (this.take("**")) {
        keywords.push(this.make("keyword", first, { arg: null, value: this.expression() }));
      } else if (isNamed) {
        this.at += 2;
        const value = this.expression();
        keywords.push(this.make("keyword", first, { arg: first.text, value }));
      } else {
        const elt = this.star();
        if (this.is("for")) {
          // Its brackets are the call's own.
          const inside = this.make("GeneratorExp", first, { elt, generators: this.generators() });
          args.push({ ...inside, start: open.start, end: this.next.end });
        } else args.push(elt);
      }
      if (!this.take(",")) break;
    }
    this.expect(")");
    return { args, keywords };
  }

  generators() {
    const found = [];
    while (this.is("for")) {
      const first = this.expect("for");
      const target = stored(this.targets());
      this.expect("in");
      const iter = this.or();
      const ifs = [];
      while (this.take("if")) ifs.push(this.condition());
      found.push(this.make("comprehension", first, { target, iter, ifs }));
    }
    return found;
  }

  condition() {
    const first = this.next;
    const left = this.or();
    if (!this.take(":=")) return left;
    return this.make("NamedExpr", first, { target: stored(left), value: this.or() });
  }

  atom() {
    const first = this.next;
    if (first.kind === "string") return this.text();
    if (first.kind === "number") {
      this.at += 1;
      return this.make("Constant", first, { value: first.text });
    }
    if (this.take("...")) return this.make("Constant", first, { value: "..." });
    if (this.take("(")) return this.brackets(first);
    if (this.take("[")) return this.display(first, "]", "List", "ListComp");
    if (this.take("{")) return this.braces(first);
    if (first.kind !== "name") this.fail();
    this.at += 1;
    if (["True", "False", "None"].includes(first.text)) {
      return this.make("Constant", first, { value: first.text });
    }
    return this.make("Name", first, { id: first.text, ctx: "Load" });
  }

  text() {
    const first = this.next;
    let isFormatted = false;
    const parts = [];
    while (this.next.kind === "string") {
      isFormatted ||= /^[a-zA-Z]*[fF]/.test(this.next.text.split(/["']/)[0]);
      parts.push(this.next.text);
      this.at += 1;
    }
    return isFormatted
      ? this.make("JoinedStr", first, { values: [] })
      : this.make("Constant", first, { value: parts.join(" ") });
  }

  brackets(first) {
    if (this.take(")")) return this.make("Tuple", first, { elts: [], ctx: "Load" });
    const start = this.next;
    const inside = this.tuple();
    if (this.is("for")) {
      const generators = this.generators();
      this.expect(")");
      return this.make("GeneratorExp", first, { elt: inside, generators });
    }
    this.expect(")");
    const isTuple = inside.kind === "Tuple" && inside.start === start.start && !inside.bracketed;
    return isTuple ? { ...inside, ...this.make("Tuple", first), bracketed: true } : inside;
  }

  display(first, closing, kind, comprehension) {
    if (this.take(closing)) return this.make(kind, first, { elts: [], ctx: "Load" });
    const elt = this.star();
    if (this.is("for")) {
      const generators = this.generators();
      this.expect(closing);
      return this.make(comprehension, first, { elt, generators });
    }
    const elts = [elt];
    while (this.take(",")) if (!this.is(closing)) elts.push(this.star());
    this.expect(closing);
    return this.make(kind, first, { elts, ctx: "Load" });
  }

  braces(first) {
    if (this.take("}")) return this.make("Dict", first, { keys: [], values: [] });
    const [keys, values] = [[], []];
    const key = this.is("**") ? null : this.star();
    if (key && !this.is(":")) return this.set(first, key);
    for (let one = key; ; one = this.is("**") ? null : this.expression()) {
      if (one) this.expect(":");
      else this.expect("**");
      keys.push(one);
      values.push(this.expression());
      if (this.is("for")) {
        const generators = this.generators();
        this.expect("}");
        return this.make("DictComp", first, { key: one, value: values[0], generators });
      }
      if (!this.take(",") || this.is("}")) break;
    }
    this.expect("}");
    return this.make("Dict", first, { keys, values });
  }

  set(first, elt) {
    if (this.is("for")) {
      const generators = this.generators();
      this.expect("}");
      return this.make("SetComp", first, { elt, generators });
    }
    const elts = [elt];
    while (this.take(",")) if (!this.is("}")) elts.push(this.star());
    this.expect("}");
    return this.make("Set", first, { elts });
  }
}

/** An expression that is given a value. */
function stored(node) {
  if (node.ctx) node.ctx = "Store";
  for (const part of node.elts ?? []) stored(part);
  if (node.kind === "Starred") stored(node.value);
  return node;
}

// ---- for Python --------------------------------------------------------------------------------

const SIGNS = new Set(["op", "ops", "ctx"]);
const WORDS = new Set(["id", "attr", "name"]);

/** Lines that make the tree, each node after its parts; the last is the whole. */
export function asPython(source, tree) {
  const places = positions(source);
  const lines = [];
  const text = (value, field, kind) => {
    if (value === null || value === undefined) return "None";
    if (Array.isArray(value)) return `[${value.map((part) => text(part, field, kind)).join(", ")}]`;
    if (typeof value === "object") return write(value);
    if (SIGNS.has(field)) return `${value}()`;
    if (WORDS.has(field) || field === "arg") return JSON.stringify(value);
    return `(${value})`; // a number or a text, as it is written
  };
  const write = (node) => {
    const parts = FIELDS[node.kind].map((field) => text(node[field], field, node.kind));
    const at = [places(node.start), places(node.end)].flat().join(", ");
    lines.push(`n.append(${node.kind}((${at}), ${parts.join(", ")}))`.replace(", )", ")"));
    return `n[${lines.length - 1}]`;
  };
  write(tree);
  return lines.join("\n");
}

/** [line, byte within the line] of a place, as Python counts. */
function positions(source) {
  const starts = [0];
  for (let i = 0; i < source.length; i += 1) if (source[i] === "\n") starts.push(i + 1);
  return (place) => {
    let line = starts.length - 1;
    while (starts[line] > place) line -= 1;
    const before = source.slice(starts[line], place);
    return [line + 1, new TextEncoder().encode(before).length];
  };
}

export function* nodesOf(node) {
  yield node;
  for (const field of FIELDS[node.kind]) {
    for (const part of [node[field]].flat()) {
      if (part && typeof part === "object") yield* nodesOf(part);
    }
  }
}

// ---- what is told while it runs ----------------------------------------------------------------

const SIMPLE = new Set(
  "Return Assign AugAssign AnnAssign Expr Raise Assert Delete Pass Break Continue".split(" "),
);

/** Edits of a text: [place, what to insert]; of two at a place, a closing bracket stands first. */
function inserted(source, edits) {
  let [text, at] = ["", 0];
  const isClosing = ([, what]) => (what === ")" ? 0 : 1);
  for (const [place, what] of edits.sort((a, b) => a[0] - b[0] || isClosing(a) - isClosing(b))) {
    text += source.slice(at, place) + what;
    at = place;
  }
  return text + source.slice(at);
}

export function limited(source, tree) {
  const edits = [];
  for (const node of nodesOf(tree)) {
    if (node.kind === "While") {
      edits.push([node.test.start, "__tick__() or ("], [blockStart(source, node.test.end), ")"]);
    }
  }
  return inserted(source, edits);
}

/** The colon behind a place that may be inside brackets: `while (a):` */
function blockStart(source, from) {
  return source.indexOf(":", from);
}

export function traced(source, tree) {
  const edits = [];
  const line = (place) => source.slice(0, place).split("\n").length;
  const names = (node) =>
    node.kind === "Name" ? [node.id] : (node.elts ?? []).flatMap((part) => names(part));
  for (const node of nodesOf(tree)) {
    if (node.kind === "Lambda") {
      edits.push([node.body.start, `__at__(${line(node.body.start)}) or (`], [node.end, ")"]);
    } else if (SIMPLE.has(node.kind)) {
      edits.push([node.start, `__at__(${line(node.start)});`]);
      const targets = node.kind === "Assign" ? node.targets : node.target ? [node.target] : [];
      const made = node.value ? targets.flatMap(names) : [];
      if (made.length) edits.push([node.end, made.map((n) => `;__let__("${n}", ${n})`).join("")]);
    } else if (node.kind === "For") {
      const [first] = node.body;
      const told = names(node.target).map((n) => `__let__("${n}", ${n})`);
      const asked =
        first.iter ?? (first.kind === "If" || first.kind === "While" ? first.test : null);
      // Nothing may stand before a statement that has a block: its first expression tells instead.
      if (asked) {
        edits.push([asked.start, `${told.join(" or ")} or (`]);
        edits.push([blockStart(source, asked.end), ")"]);
      } else if (!first.body) edits.push([first.start, told.map((one) => `${one};`).join("")]);
    }
  }
  return inserted(source, edits);
}
