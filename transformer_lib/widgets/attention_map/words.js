// The words as text, above the map: the one that asks and the one that is asked are marked.
//
//   const line = wordLine(queries, keys);   line.element   line.mark(query, key)

import { clip, element, showToken } from "../core/dom.js";

export function wordLine(queries, keys) {
  const same = queries.length === keys.length && queries.every((token, i) => token === keys[i]);
  const wordsOf = (tokens) =>
    tokens.map((token) => element("bdi", { class: "afm-marked-word" }, clip(showToken(token), 24)));
  const asking = wordsOf(queries);
  const asked = same ? asking : wordsOf(keys);
  const lineOf = (words) => element("p", { class: "afm-words" }, ...words.flatMap((w) => [w, " "]));
  // The grid's own headers name the words to everybody; this is for the eye.
  const box = element("div", { class: "afm-word-lines", "aria-hidden": "true" }, lineOf(asking));
  if (!same) box.append(lineOf(asked));

  let marked = [];
  return {
    element: box,
    mark(query, key) {
      for (const word of marked) word.classList.remove("afm-asking", "afm-asked");
      marked = [asking[query], asked[key]];
      marked[0].classList.add("afm-asking");
      marked[1].classList.add("afm-asked");
    },
  };
}
