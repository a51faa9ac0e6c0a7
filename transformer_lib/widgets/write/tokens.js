// Python's text as tokens, as far as source.js needs them.
//
//   tokens("x[0] < 3  # less")   ->   [{ kind: "name", text: "x", start: 0, end: 1, depth: 0 }, ...]
//
// kind: name, number, string, op, newline (the end of a logical line) and indent (what a line begins
// with, where there is something). Comments and blank lines are left out. A bracket has the depth of
// what is around it. An unclosed text or bracket is left to Python itself to complain about.

const PARTS =
  /(?<space>[ \t\f]+|\\\r?\n)|(?<comment>#[^\n]*)|(?<newline>\r?\n)|(?<string>[rRbBuUfF]{0,2}(?:"""|'''|"|'))|(?<number>0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?[jJ]?)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<op>\*\*=|\/\/=|>>=|<<=|\.\.\.|->|:=|[-+*/%&|^@=!<>]=|\*\*|\/\/|<<|>>|.)/suy;

export function tokens(source) {
  const found = [];
  let depth = 0;
  let at = 0;
  let isStart = true; // of a logical line
  let indent = null; // of this line, if it has code
  while (at < source.length) {
    PARTS.lastIndex = at;
    const { groups } = PARTS.exec(source);
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    let text = groups[kind];
    if (kind === "string") text += closing(source, at + text.length, text);
    const end = at + text.length;
    if (kind === "newline") {
      if (!depth && !isStart) found.push({ kind, text, start: at, end, depth });
      isStart ||= !depth;
      indent = null;
    } else if (kind === "space" && isStart && !text.startsWith("\\")) {
      indent = { kind: "indent", text, start: at, end, depth };
    } else if (kind !== "space" && kind !== "comment") {
      if (isStart && indent) found.push(indent);
      if (")]}".includes(text)) depth = Math.max(0, depth - 1);
      found.push({ kind, text, start: at, end, depth });
      if (kind === "op" && "([{".includes(text)) depth += 1;
      isStart = false;
    }
    at = end;
  }
  return found;
}

/** The rest of a text that begins at `at`, its quotes included. */
function closing(source, at, opening) {
  const quote = opening.match(/("""|'''|"|')$/)[0];
  for (let i = at; i < source.length; i += 1) {
    if (source[i] === "\\") i += 1;
    else if (source.startsWith(quote, i)) return source.slice(at, i + quote.length);
    else if (source[i] === "\n" && quote.length === 1) return source.slice(at, i);
  }
  return source.slice(at);
}
