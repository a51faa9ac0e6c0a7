// MicroPython's errors in Python's words, and the reader's own line.

const REWORDED = [
  [/^name '(.+)' isn't defined$/, "name '$1' is not defined"],
  [/^local variable referenced before assignment$/, "a name is used before it is given a value"],
  [/^divide by zero$/, "division by zero"],
  [/^'(.+)' object isn't (.+)$/, "'$1' object is not $2"],
  [/^can't convert '(.+)' object to str implicitly$/, 'can only concatenate str (not "$1") to str'],
  [/takes 1 positional arguments but/, "takes 1 positional argument but"],
  [
    /^function takes (\d+) positional arguments but (\d+) were given$/,
    "takes $1 arguments, and $2 were given",
  ],
  [
    /^only slices with step=1.*/,
    "this page's Python has no steps in slices of texts and tuples; slice a list.",
  ],
  [
    /^(?:module '(?!torch)|'module' object).* has no attribute '(.+)'$/,
    "this page's Python has no $1; `make lab` or Colab has all of Python.",
  ],
  [/^can't import name (.+)$/, "cannot import name '$1'"],
  [/^no module named '(.+)'$/, "No module named '$1'"],
];
const SIGNS = {
  add: "+", sub: "-", mul: "*", truediv: "/", floordiv: "//", mod: "%", pow: "**", matmul: "@",
  and: "&", or: "|", xor: "^",
}; // biome-ignore format: a table
const ORDER = { lt: "<", gt: ">", le: "<=", ge: ">=" };

/** { type, message, line } of what was raised in the cell; line is null where Python gave none. */
export function readError(type, message, trace, cell) {
  const frames = [...trace.matchAll(/File "(.+?)", line (\d+)/g)].filter(
    ([, file]) => file === cell,
  );
  const line = frames.length ? Number(frames.at(-1)[2]) : null;
  if (type === "RuntimeError" && /^(maximum recursion depth|pystack exhausted)/.test(message)) {
    const text =
      "maximum recursion depth exceeded (some 100 calls here): does the function call itself without an end?";
    return { type: "RecursionError", message: text, line };
  }
  if (type === "MemoryError") return { type, message: memory(message), line };
  if (type === "SystemExit" || type === "KeyboardInterrupt")
    return { type, message: "stopped", line };
  return { type, message: reworded(message), line };
}

function memory(message) {
  const bytes = /allocating (\d+) bytes/.exec(message);
  const much = bytes
    ? `this asks for ${Math.ceil(bytes[1] / 1e6).toLocaleString("en")} MB`
    : "this needs more memory";
  return bytes ? `${much}, which the page does not have` : `${much} than the page has`;
}

function reworded(message) {
  const types = /^unsupported types? for __(\w+?)__: '(.+?)'(?:, '(.+?)')?$/.exec(message);
  if (types) {
    const [, name, one, other] = types;
    const sign = SIGNS[name] ?? SIGNS[name.replace(/^[ir]/, "")];
    if (sign) return `unsupported operand type(s) for ${sign}: '${one}' and '${other}'`;
    if (ORDER[name]) {
      return `'${ORDER[name]}' not supported between instances of '${one}' and '${other}'`;
    }
  }
  return REWORDED.reduce((text, [pattern, words]) => text.replace(pattern, words), message);
}
