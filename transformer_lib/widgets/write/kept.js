// Keeps in the browser what a reader has written: text by a name, on this page only.
//
// A page may be forbidden to keep anything, and a browser's room may be full: then nothing is kept.

const key = (name) => `afm-written:${location.pathname}:${name}`;

function tried(work) {
  try {
    return work();
  } catch {
    return null;
  }
}

/** The name of what has none, such as a cell of the book: by its text, so that it goes with that. */
export function nameOfCell(code) {
  let sum = 0;
  for (const sign of code) sum = (Math.imul(sum, 31) + sign.codePointAt(0)) | 0;
  return `cell ${(sum >>> 0).toString(36)}`;
}

export const recall = (name) => tried(() => localStorage.getItem(key(name)));
export const keep = (name, text) => tried(() => localStorage.setItem(key(name), text));
export const drop = (name) => tried(() => localStorage.removeItem(key(name)));
