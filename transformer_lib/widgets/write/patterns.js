// Python's regular expressions by JavaScript's.
//
//   searched("(\\w)-", 0, "a-b", "", 0)   ->   [0, "-", "a-", "a"]: where it begins, the names of the
//                                            groups, what is found, the groups; [] for nothing

import { fail } from "../math/tensor/tensor.js";

const [I, M, S] = [2, 8, 16];
const LETTER = "\\p{L}\\p{N}_"; // of any writing
const [IS, WAS] = [`(?=[${LETTER}])`, `(?<=[${LETTER}])`];
const [IS_NOT, WAS_NOT] = [IS.replace("=", "!"), WAS.replace("=", "!")];
const ESCAPES = {
  w: `[${LETTER}]`, W: `[^${LETTER}]`, d: "\\p{Nd}", D: "\\P{Nd}", A: "(?<![^])", Z: "(?![^])",
  b: `(?:${WAS}${IS_NOT}|${WAS_NOT}${IS})`, B: `(?:${WAS}${IS}|${WAS_NOT}${IS_NOT})`,
}; // biome-ignore format: a table
const WITHIN = { w: LETTER, d: "\\p{Nd}", D: "\\P{Nd}" };
const PARTS = /\\(.)|\(\?P=(\w+)\)|\(\?P<(\w+)>|\((?!\?)|\[\^?\]?|./gsu;

/** The same for JavaScript, and the names of the groups, "-" for those without one. */
function translated(pattern, flags) {
  let isWithin = false;
  const names = [];
  const text = pattern.replace(PARTS, (part, sign, again, name) => {
    if (sign) {
      if (isWithin && sign === "W") fail("this page's Python has no \\W within [ ]", "ValueError");
      const isKept = /[\w^$\\.*+?()[\]{}|/]/.test(sign) || (isWithin && sign === "-");
      return isKept ? ((isWithin ? WITHIN : ESCAPES)[sign] ?? part) : sign;
    }
    if (isWithin) {
      if (part === "]") isWithin = false;
      else if (name || part[0] === "(") return part;
      return part[0] === "[" ? `\\${part}` : part;
    }
    if (part[0] === "[") {
      isWithin = true;
      return part.replace("]", "\\]");
    }
    if (part === "(" || name) names.push(name ?? "-");
    if (again) return `\\k<${again}>`;
    if (name) return `(?<${name}>`;
    if (part === "]") return "\\]";
    return part === "$" && !(flags & M) ? "(?=\\n?(?![^]))" : part;
  });
  return [text, names.join(" ")];
}

export function searched(pattern, flags, text, anchor, start) {
  const how = `u${flags & I ? "i" : ""}${flags & S ? "s" : ""}${flags & M ? "m" : ""}`;
  const [plain, names] = translated(pattern, flags);
  const whole = anchor === "^$" ? `(?:${plain})(?![^])` : plain;
  const regex = new RegExp(whole, `${how}${anchor ? "y" : "g"}`);
  // Python counts letters, of which some are two halves here.
  const isWide = /[\u{10000}-\u{10ffff}]/u.test(text);
  regex.lastIndex = isWide ? [...text].slice(0, start).join("").length : start;
  const found = regex.exec(text);
  if (!found) return [];
  const at = isWide ? [...text.slice(0, found.index)].length : found.index;
  return [at, names, ...Array.from(found, (group) => group ?? null)];
}

/** The text that takes the place of what was found: \1, \g<name>. */
export const filled = (text, names, groups) =>
  text.replace(/\\(?:g<(\w+)>|(\d)|(.))/g, (written, name, digit, sign) => {
    if (sign) return { n: "\n", t: "\t", "\\": "\\" }[sign] ?? written;
    return groups[names.split(" ").indexOf(name) + 1 || Number(name ?? digit)];
  });
