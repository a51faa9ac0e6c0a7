// The little markup of texts that chapters write: *italic*, **bold**, `code`. Elements and text only.
//
//   node.append(...marked("Make *gave* long."))        parse("a *b*") -> [["text", "a "], ["em", "b"]]

import { element } from "./dom.js";

const MARK = /\*\*([^*]+)\*\*|\*([^*\s](?:[^*]*[^*\s])?)\*|\x60([^\x60]+)\x60/g;

/** Pairs of a kind (text, strong, em, code) and its text. */
export function parse(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(MARK)) {
    if (match.index > at) parts.push(["text", text.slice(at, match.index)]);
    const kind = ["strong", "em", "code"].find((_, i) => match[i + 1] !== undefined);
    parts.push([kind, match[1] ?? match[2] ?? match[3]]);
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push(["text", text.slice(at)]);
  return parts;
}

/** The same as nodes. */
export function marked(text) {
  return parse(text).map(([kind, part]) => (kind === "text" ? part : element(kind, {}, part)));
}

/** The text without its marks, for names that are only read out. */
export function plain(text) {
  return parse(text)
    .map(([, part]) => part)
    .join("");
}
