// Text with a little markup: *italic*, **bold** and `code`, made into elements, never into HTML.
//
//   node.append(...rich("Whom does *gave* score highest?"))
//   parseMarkup("*a* b") -> [{ kind: "em", parts: [{ kind: "text", text: "a" }] }, { kind: "text", ... }]
//   plain("*a* b") -> "a b"
//
// A star with a space inside it is a star (2 * 3 * 4), and so is one without its partner. A backslash
// takes away what a star or a backtick means: \*.

import { element } from "./dom.js";

const MARK =
  /\\([\\*`])|`([^`]+)`|\*\*(?=[^\s*])((?:[^*\\]|\\.|\*(?!\*))*?[^\s*\\]\*?)\*\*|\*(?=[^\s*])((?:[^*\\]|\\.)*?[^\s*\\])\*/gu;

/** What a text with markup is made of. */
export function parseMarkup(text) {
  const parts = [];
  const add = (words) => {
    const last = parts.at(-1);
    if (last?.kind === "text") last.text += words;
    else if (words) parts.push({ kind: "text", text: words });
  };
  let at = 0;
  for (const found of text.matchAll(MARK)) {
    add(text.slice(at, found.index));
    const [whole, escaped, code, strong, em] = found;
    if (escaped) add(escaped);
    else if (code) parts.push({ kind: "code", parts: [{ kind: "text", text: code }] });
    else if (strong) parts.push({ kind: "strong", parts: parseMarkup(strong) });
    else parts.push({ kind: "em", parts: parseMarkup(em) });
    at = found.index + whole.length;
  }
  add(text.slice(at));
  return parts;
}

/** The text and elements of a text with markup. */
export function rich(text) {
  return parseMarkup(text).map(made);
}

/** A text without its markup. */
export function plain(text) {
  const words = (part) => part.text ?? part.parts.map(words).join("");
  return parseMarkup(text).map(words).join("");
}

function made({ kind, text, parts }) {
  return kind === "text" ? text : element(kind, {}, ...parts.map(made));
}
