// The computing behind the translator's view, tested under node.

// The menus, in the order of a sentence; `none`: a sentence may do without.
export const ROLES = {
  when: { roles: ["yesterday"], none: true },
  subject: { roles: ["subject"], none: true },
  receiver: { roles: ["receiver"], none: true },
  what: { roles: ["object", "place"], none: true },
};
const ORDER = ["yesterday", "subject", "receiver", "object", "place", "verb"];

export const ENDINGS = [
  ...["I", "we", "he", "she", "they"].map((ending) => ({ ending, text: ending })),
  { ending: "", text: "none, a negative" },
];

/** Words in the order of the grammar. */
export function inOrder(words) {
  return [...words].sort((one, other) => ORDER.indexOf(one.role) - ORDER.indexOf(other.role));
}

/** The mean of rows of weights. */
export function share(rows) {
  return Array.from(rows[0], (_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
}

/** From a word in Kannada script to its id. */
export function sourceIds(tokens) {
  const ids = new Map(tokens.map((token, id) => [token, id]));
  return (word) => {
    if (!ids.has(word)) throw new Error(`the model does not know ${word}`);
    return ids.get(word);
  };
}
