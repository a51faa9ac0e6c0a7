// Rewrites a reader's cell so that MicroPython can run it: into the same lines, so that an error's
// line is the reader's own.
//
//   prepare("x = 1\nf'{x:.2f}'")   ->   { code } or { problem, type, line }
//
// - The value of a cell's last expression goes to __show__, as a notebook shows it.
// - f"{x:.2f}" becomes ("" + __fstring__(x, "", ".2f") + ""), since MicroPython rounds in its own way.
// - 0.5 < x becomes __lt__(0.5, x), since MicroPython does not ask x.
// - [*a, b] becomes __list__(*a, b), and {k: v} __dict__((k, v)): MicroPython's own keep no order.
// - return *a, b becomes return __tuple__(*a, b), which MicroPython does not read; x = *a, b likewise.
// - x += 1 becomes x = __augmented__("+", x, (1)): MicroPython does not ask a tensor to change in place.
// - data.decode("utf-8", errors="replace") becomes __decode__(data, "utf-8", errors="replace"), and
//   str(x) __text_of__(x), type(x) __type__(x): what MicroPython's own give is another.
// - What MicroPython's syntax lacks otherwise gets a sentence.

import { tokens } from "./tokens.js";

const ORDER = { "<": "__lt__", ">": "__gt__", "<=": "__le__", ">=": "__ge__" };
const EQUAL = { "==": "__eq__", "!=": "__ne__" };
const CALLED = {
  float: "__float__",
  dict: "__dictof__",
  str: "__text_of__",
  type: "__type__",
};
const WORDS = new Set(
  "and or not if else elif while for return assert lambda yield await del raise from import with as async def class try except finally global nonlocal pass break continue".split(
    " ",
  ),
);
const STATEMENTS = new Set(
  "if elif else while for return assert del raise from import with async def class try except finally global nonlocal pass break continue @ yield".split(
    " ",
  ),
);
const ENDS = /^(?:[,:;]|:=|->|[-+*/%&|^@]?=|\*\*=|\/\/=|>>=|<<=)$/;

export function prepare(source) {
  const found = tokens(source);
  const problem = lacking(found, source);
  if (problem) return problem;
  const edits = [];
  show(found, edits);
  rewrite(found, source, edits);
  return { code: applied(source, edits) };
}

/** Edits are { start, end, text, rank }. At one place come first what closes (rank above 0, the inner
 * first), then what opens (below 0, the outer first), then what takes a token's place (0). */
function applied(source, edits) {
  let text = "";
  let at = 0;
  for (const edit of edits.sort((a, b) => a.start - b.start || order(a) - order(b))) {
    text += source.slice(at, edit.start) + edit.text;
    at = Math.max(at, edit.end);
  }
  return text + source.slice(at);
}

const order = ({ rank }) => (rank > 0 ? rank - 100 : rank);
const insert = (edits, at, text, rank) => edits.push({ start: at, end: at, text, rank });
const replace = (edits, { start, end }, text) => edits.push({ start, end, text, rank: 0 });
const lineOf = (source, at) => source.slice(0, at).split("\n").length;

// ---- what is not there ------------------------------------------------------------------------

const lacks = (what, instead) => `This page's Python has no ${what}; ${instead}.`;

function lacking(found, source) {
  if (/^\s*\{\s*"(?:cells|nbformat|metadata)"/.test(source)) {
    const problem = "This is the file of a whole notebook; paste the code of one of its cells.";
    return { problem, type: "SyntaxError", line: 1 };
  }
  const say = (token, problem, type = "SyntaxError") => ({
    problem,
    type,
    line: lineOf(source, token.start),
  });
  const indents = found.filter(({ kind }) => kind === "indent");
  const other = indents.find(({ text }) => text.includes("\t") !== indents[0].text.includes("\t"));
  if (other) return say(other, "inconsistent use of tabs and spaces in indentation", "TabError");
  for (let i = 0; i < found.length; i += 1) {
    const [token, next] = [found[i], found[i + 1]];
    const before = found[i - 1];
    const begins = !before || before.kind === "newline" || before.kind === "indent";
    if (begins && (token.text === "%" || token.text === "!")) {
      const what = `commands that begin with ${token.text}, which belong to a notebook`;
      return say(token, lacks(what, "leave the line out here"));
    }
    if (begins && token.text === "match" && isMatch(found, i)) {
      return say(token, lacks("match statement", "write if and elif"));
    }
    if (begins && token.text === "type" && next?.kind === "name" && found[i + 2]?.text === "=") {
      return say(token, lacks("type statement", "leave it out"));
    }
    if (isProse(found, i)) {
      return say(token, "This reads as a sentence, not as Python; # before it makes it a comment.");
    }
    const named = begins && (token.text === "def" || token.text === "class") && found[i + 2];
    if (named && named.text === "[") {
      return say(
        token,
        lacks(`type parameters in ${token.text} ${next.text}[...]`, "leave them out"),
      );
    }
    if (isFormatted(token) && isCut(token.text)) {
      const what = "f-strings with the same quotes inside the braces as around them";
      return say(token, lacks(what, "write the other kind of quotes there"));
    }
    if (token.text === "import" && next?.text === "*") {
      return say(token, lacks("import *", "name what you need of the module"));
    }
    if (token.kind === "op" && /[“”‘’]/.test(token.text)) {
      return say(token, `${token.text} is not a quote in Python: write " or '.`);
    }
    if (token.text === "async") return say(token, lacks("async", "leave it out"));
    if (token.text === "with" && next?.text === "(" && hasNames(found, i + 1)) {
      return say(token, lacks("brackets around what with opens", "leave them out"));
    }
    if (token.text === "except" && next?.text === "*") {
      return say(token, lacks("except*", "write except"));
    }
    if (token.text === "/" && /^[(,]$/.test(before?.text) && /^[,)]$/.test(next?.text)) {
      return say(token, lacks("/ among a function's parameters", "leave it out"));
    }
  }
  return null;
}

/** Whether a bracket that opens has `as` in it. */
function hasNames(found, at) {
  const end = found.findIndex(({ depth }, k) => k > at && depth === found[at].depth);
  const within = end < 0 ? [] : found.slice(at, end);
  return within.some(({ text, depth }) => text === "as" && depth === found[at].depth + 1);
}

/** `match x:` and not a name: the line ends in a colon, and what follows is not an operator. */
function isMatch(found, i) {
  const end = found.findIndex((token, k) => k > i && token.kind === "newline");
  const last = found[(end < 0 ? found.length : end) - 1];
  return last.text === ":" && !/^(?:=|\.|,|:)$/.test(found[i + 1]?.text) && last !== found[i + 1];
}

/** Three words one after the other, of which no statement of Python is made. */
const isProse = (found, i) =>
  [0, 1, 2].every((k) => {
    const { kind, text } = found[i + k] ?? {};
    return kind === "name" && !WORDS.has(text) && !/^(?:match|case|type|in|is)$/.test(text);
  });

/** The bracket around a token. */
function opener(found, i) {
  for (let k = i - 1; k >= 0; k -= 1) if (found[k].depth < found[i].depth) return found[k];
  return null;
}

// ---- the last expression ----------------------------------------------------------------------

function show(found, edits) {
  let last = found.length;
  while (last > 0 && found[last - 1].kind === "newline") last -= 1;
  if (!last || found[last - 1].text === ";") return;
  let first = last;
  while (first > 0 && !isEnd(found[first - 1])) first -= 1;
  let line = first;
  while (line > 0 && found[line - 1].kind !== "newline") line -= 1;
  if (found[line].kind === "indent" || STATEMENTS.has(found[line].text)) return;
  const statement = found.slice(first, last);
  if (STATEMENTS.has(statement[0].text)) return;
  const isAssigned = ({ text, depth }, i) =>
    depth === 0 && (/^(?:=|[-+*/%&|^@]=|\*\*=|\/\/=|>>=|<<=)$/.test(text) || (text === ":" && i));
  const isLambda = statement[0].text === "lambda";
  if (!isLambda && statement.some(isAssigned)) return;
  insert(edits, statement[0].start, "__show__((", -2);
  insert(edits, statement.at(-1).end, "))", 9);
}

// ---- rewriting --------------------------------------------------------------------------------

function rewrite(found, source, edits) {
  displays(found, edits);
  dicts(found, edits);
  texts(found, edits);
  comparisons(found, edits);
  augmented(found, source, edits);
  found.forEach((token, i) => {
    const isCalled = token.kind === "name" && found[i + 1]?.text === "(" && !isOwned(found[i - 1]);
    if (isCalled && Object.hasOwn(CALLED, token.text)) replace(edits, token, CALLED[token.text]);
    const isCoded = token.text === "." && /^(?:en|de)code$/.test(found[i + 1]?.text);
    if (isCoded && found[i + 2]?.text === "(") codes(found, i, edits);
    if (token.text === "from" && found[i + 1]?.text === "__future__") {
      const end = found.findIndex(({ kind }, k) => k > i && kind === "newline");
      const stop = end < 0 ? source.length : found[end].start;
      edits.push({ start: token.start, end: stop, text: "pass", rank: 0 });
    }
  });
}

/** x += 1, of a name, an attribute or an index. */
function augmented(found, source, edits) {
  found.forEach((token, i) => {
    const [, sign] = /^([-+*/%&|^]|\*\*|\/\/)=$/.exec(token.text) ?? [];
    if (!sign || token.kind !== "op" || token.depth) return;
    let first = i;
    while (first > 0 && !isStart(found[first - 1])) first -= 1;
    const target = found.slice(first, i);
    if (!target.length || target.some(({ text }) => /[({*]/.test(text))) return;
    const end = found.findIndex((other, k) => k > i && isEnd(other));
    const last = found[(end < 0 ? found.length : end) - 1];
    const text = source.slice(target[0].start, target.at(-1).end);
    replace(edits, token, `= __augmented__("${sign}", ${text}, (`);
    insert(edits, last.end, "))", 8);
  });
}

const isEnd = ({ kind, text, depth }) => kind === "newline" || (text === ";" && depth === 0);
const isStart = (token) =>
  isEnd(token) || token.kind === "indent" || (token.text === ":" && token.depth === 0);

/** x.decode( or x.encode(, of whatever stands before it */
function codes(found, i, edits) {
  const [dot, name, bracket, inside] = found.slice(i, i + 4);
  let first = i - 1;
  while (first > 0) {
    if (/^[)\]}]$/.test(found[first].text)) {
      const { depth } = found[first];
      while (first > 0 && !(found[first].depth === depth && /^[([{]$/.test(found[first].text)))
        first -= 1;
      if (isAfterValue(found[first - 1])) first -= 1;
      else break;
    } else if (found[first - 1].text === ".") first -= 2;
    else break;
  }
  // Of x.encode().decode() the last is the outer one.
  insert(edits, found[first].start, `__${name.text}__(`, -1.7 - i / 1e7);
  edits.push({
    start: dot.start,
    end: bracket.end,
    text: inside?.text === ")" ? "" : ", ",
    rank: 0,
  });
}

const isOwned = (before) => before && (before.text === "." || before.text === "def");

const CALLS = { "[": "__list__(", "(": "__tuple__(", "{": "__set__(" };

/** [*a, b], (*a, b), {*a, b} */
function displays(found, edits) {
  found.forEach((token, i) => {
    const before = found[i - 1];
    const isStar =
      token.text === "*" && token.kind === "op" && /^(?:[[({,=]|return|yield)$/.test(before?.text);
    if (!isStar || isParameter(found, i)) return;
    if (!token.depth) return starredValue(found, i, edits);
    if (isTarget(found, i)) return;
    const at = found.indexOf(opener(found, i));
    const open = found[at];
    if (isAfterValue(found[at - 1])) {
      if (open.text === "[") starredIndex(found, at, edits);
      return;
    }
    if (edits.some(({ start, rank }) => start === open.start && rank === 0)) return;
    const close = found.find(
      (other, k) => k > i && other.depth === open.depth && /^[\])}]$/.test(other.text),
    );
    if (!close) return;
    replace(edits, open, CALLS[open.text]);
    replace(edits, close, ")");
  });
}

/** What a statement returns, yields or assigns, without brackets around it. */
function starredValue(found, i, edits) {
  let first = i;
  while (first > 0 && !/^(?:=|return|yield)$/.test(found[first - 1].text)) {
    if (isStart(found[first - 1])) return; // a target: a, *b = x
    first -= 1;
  }
  const { start } = found[first];
  if (!first || edits.some((edit) => edit.start === start && edit.text === "__tuple__(")) return;
  const end = found.findIndex((other, k) => k > i && isEnd(other));
  insert(edits, start, "__tuple__(", -1.9);
  insert(edits, found[(end < 0 ? found.length : end) - 1].end, ")", 7);
}

/** Among what is assigned to: (a, *b) = x, for i, (a, *b) in x */
function isTarget(found, i) {
  const { depth } = found[i];
  let k = i - 1;
  while (k >= 0 && !isStart(found[k]) && found[k].depth >= depth) {
    if (found[k].depth === depth && /^(?:for|in)$/.test(found[k].text))
      return found[k].text === "for";
    k -= 1;
  }
  if (depth) return !isAfterValue(found[k - 1]) && isTarget(found, k);
  const next = found
    .slice(i)
    .find((other) => isStart(other) || (other.text === "=" && !other.depth));
  return next?.text === "=";
}

/** Of a lambda: lambda x, *rest: x */
function isParameter(found, i) {
  for (let k = i - 1; k >= 0 && found[k].depth >= found[i].depth; k -= 1) {
    if (found[k].depth > found[i].depth) continue;
    if (found[k].text === ":") return false;
    if (found[k].text === "lambda") return true;
  }
  return false;
}

/** x[*places, 0] becomes x[__tuple__(*places, 0)]. */
function starredIndex(found, at, edits) {
  const open = found[at];
  const end = found.findIndex(
    (other, k) => k > at && other.depth === open.depth && other.text === "]",
  );
  const isSlice = ({ text, depth }) => text === ":" && depth === open.depth + 1;
  if (end < 0 || found.slice(at, end).some(isSlice)) return;
  if (edits.some(({ start, text }) => start === open.end && text === "__tuple__(")) return;
  insert(edits, open.end, "__tuple__(", -1.9);
  insert(edits, found[end].start, ")", 7);
}

/** {k: v, **more} and {k: v for ...} */
function dicts(found, edits) {
  found.forEach((open, i) => {
    if (open.text !== "{" || open.kind !== "op") return;
    const end = found.findIndex(
      (other, k) => k > i && other.depth === open.depth && other.text === "}",
    );
    if (end < 0) return;
    const inside = found.slice(i + 1, end);
    const entries = entriesOf(inside, open.depth + 1);
    if (inside.length && !entries.some(({ colon, stars }) => colon || stars)) return; // a set
    const isComprehension = inside.some(
      ({ text, depth }) => text === "for" && depth === open.depth + 1,
    );
    replace(edits, open, isComprehension ? "__dict__(*[" : "__dict__(");
    replace(edits, found[end], isComprehension ? "])" : ")");
    for (const { first, last, colon, stars } of entries) {
      if (stars) {
        replace(edits, first, "*(");
        insert(edits, last.end, ").items()", 6);
      } else {
        insert(edits, first.start, "(", -1.8);
        if (colon) replace(edits, colon, ",");
        insert(edits, last.end, ")", 6);
      }
    }
  });
}

/** Each entry of a display: its first and last token, its colon, or whether it is **more. */
function entriesOf(inside, depth) {
  const entries = [];
  let entry = null;
  let lambdas = 0;
  for (const token of inside) {
    const isHere = token.depth === depth;
    const isParameters = lambdas > 0; // whose commas are its own
    if (isHere && ((token.text === "," && !isParameters) || /^(?:for|async)$/.test(token.text))) {
      if (entry) entries.push(entry);
      entry = null;
      if (token.text !== ",") return entries;
    } else if (isHere && token.text === ":" && entry && !lambdas && !entry.colon) {
      entry.colon = token;
    } else {
      if (isHere && token.text === "lambda") lambdas += 1;
      if (isHere && token.text === ":" && lambdas) lambdas -= 1;
      entry ??= { first: token, stars: token.text === "**" };
      entry.last = token;
    }
  }
  if (entry) entries.push(entry);
  return entries;
}

/** What can be called or indexed: a bracket after it does not begin a display. */
function isAfterValue(token) {
  if (!token) return false;
  if (token.kind === "name")
    return !WORDS.has(token.text) && token.text !== "in" && token.text !== "is";
  return token.kind === "string" || /^[\])}]$/.test(token.text);
}

// ---- f-strings --------------------------------------------------------------------------------

const isFormatted = ({ kind, text }) => kind === "string" && /^[rR]?[fF]/.test(text);

/** Whether an f-string ends inside a brace, which only newer Pythons read on. */
const isCut = (text) => /\{[^}]*$/.test(text.replaceAll("{{", ""));

/** Each run of adjacent texts with an f-string among them becomes a sum. */
function texts(found, edits) {
  for (let i = 0; i < found.length; i += 1) {
    if (found[i].kind !== "string") continue;
    let end = i;
    while (found[end + 1]?.kind === "string") end += 1;
    const run = found.slice(i, end + 1);
    if (run.some(isFormatted)) {
      insert(edits, run[0].start, "(", -1);
      run.forEach((token, k) => {
        if (k) insert(edits, token.start, "+ ", -1);
        if (isFormatted(token)) replace(edits, token, sum(token.text));
      });
      insert(edits, run.at(-1).end, ")", 1);
    }
    i = end;
  }
}

function sum(text) {
  const [, prefix, quote] = /^([a-zA-Z]+)("""|'''|"|')/.exec(text);
  const plain = prefix.replace(/[fF]/, "");
  const literal = (piece) => {
    const closes = piece.endsWith(quote[0]) && !piece.endsWith(`\\${quote[0]}`);
    return plain + quote + (closes ? `${piece.slice(0, -1)}\\${quote[0]}` : piece) + quote;
  };
  return pieces(text.slice(prefix.length + quote.length, -quote.length), literal).join(" + ");
}

/** The parts between the quotes: texts and calls of __fstring__. */
function pieces(body, literal) {
  const found = [];
  let plain = "";
  let i = 0;
  while (i < body.length) {
    if ((body[i] === "{" || body[i] === "}") && body[i + 1] === body[i]) {
      plain += body[i];
      i += 2;
    } else if (body[i] === "{") {
      const field = readField(body, i + 1);
      if (field.debug) plain += field.debug;
      found.push(literal(plain), placeholder(field, literal));
      plain = "";
      i = field.end;
    } else {
      plain += body[i];
      i += 1;
    }
  }
  return [...found, literal(plain)];
}

function placeholder({ expression, conversion, spec, debug }, literal) {
  const edits = [];
  rewrite(tokens(expression), expression, edits);
  const shown = applied(expression, edits);
  const how = conversion || (debug && spec === null ? "r" : "");
  const format = pieces(spec ?? "", literal).join(" + ");
  return `__fstring__((${shown}), "${how}", ${format})`;
}

/** From behind a brace: expression, !r, :spec, up to the closing brace. */
function readField(body, from) {
  let depth = 0;
  let quote = null;
  let i = from;
  for (; i < body.length; i += 1) {
    const sign = body[i];
    if (quote) {
      if (sign === quote) quote = null;
    } else if (sign === '"' || sign === "'") quote = sign;
    else if ("([{".includes(sign)) depth += 1;
    else if (depth && ")]}".includes(sign)) depth -= 1;
    else if (!depth && (sign === "}" || sign === ":" || (sign === "!" && body[i + 1] !== "=")))
      break;
  }
  let expression = body.slice(from, i);
  let conversion = "";
  if (body[i] === "!") {
    conversion = body[i + 1];
    i += 2;
  }
  let spec = null;
  if (body[i] === ":") {
    const start = i + 1;
    let open = 0;
    for (i = start; i < body.length && (open || body[i] !== "}"); i += 1) {
      if (body[i] === "{") open += 1;
      if (body[i] === "}") open -= 1;
    }
    spec = body.slice(start, i);
  }
  let debug = "";
  if (/[^=!<>]=\s*$/.test(expression)) {
    debug = expression;
    expression = expression.replace(/=\s*$/, "");
  }
  return { expression, conversion, spec, debug, end: i + 1 };
}

// ---- comparisons ------------------------------------------------------------------------------

function comparisons(found, edits) {
  const depths = new Set(found.map(({ depth }) => depth));
  let number = 0;
  for (const depth of depths) {
    let chain = null;
    const finish = () => {
      if (chain) number = compared(chain, edits, number);
      chain = null;
    };
    for (let i = 0; i < found.length; i += 1) {
      const token = found[i];
      if (token.depth < depth || (token.depth === depth && isBoundary(token))) finish();
      else {
        chain ??= { operands: [[]], signs: [] };
        const isSign =
          token.depth === depth &&
          (ORDER[token.text] || EQUAL[token.text] || token.text === "in" || token.text === "is");
        if (isSign) {
          chain.signs.push(token);
          chain.operands.push([]);
        } else chain.operands.at(-1).push(token);
      }
    }
    finish();
  }
}

const isBoundary = ({ kind, text }) =>
  kind === "newline" ||
  kind === "indent" ||
  (kind === "op" && ENDS.test(text)) ||
  (kind === "name" && WORDS.has(text));

const isLiteral = (operand) => operand.length === 1 && operand[0].kind === "number";

function compared({ operands, signs }, edits, number) {
  if (!signs.some(({ text }) => ORDER[text])) return number;
  if (signs.some(({ text }) => !ORDER[text] && !EQUAL[text])) return number;
  if (operands.some((operand) => !operand.length)) return number;
  if (signs.length === 1 && isLiteral(operands[1])) return number;
  const starts = operands.map(([first]) => first.start);
  const ends = operands.map((operand) => operand.at(-1).end);
  const call = (i) => `${{ ...ORDER, ...EQUAL }[signs[i].text]}(`;
  insert(edits, starts[0], (signs.length > 1 ? "(" : "") + call(0), -1.5);
  signs.forEach((sign, i) => {
    const isLast = i === signs.length - 1;
    const name = `__c${number + i}`;
    replace(edits, sign, isLast ? "," : `, ${name} := (`);
    if (isLast) insert(edits, ends[i + 1], signs.length > 1 ? "))" : ")", 5);
    else insert(edits, ends[i + 1], `)) and ${call(i + 1)}${name} `, 5);
  });
  return number + signs.length;
}
