// The computing behind the translator's view, tested under node.

// The menus, in the order of a sentence; `none`: a sentence may do without.
export const ROLES = {
  when: { roles: ["yesterday"], none: true },
  subject: { roles: ["subject"], none: true },
  receiver: { roles: ["receiver"], none: true },
  what: { roles: ["object", "place"], none: true },
  verb: { roles: ["verb"], none: false },
};
const ORDER = ["yesterday", "subject", "receiver", "object", "place", "verb"];

/**
 * What a click on a word offers: groups of words that can stand in its place. Of a verb its other
 * endings and times, and then other verbs that are otherwise alike.
 */
export function alternatives(word, words) {
  const [name, { roles, none }] = Object.entries(ROLES).find(([, { roles }]) =>
    roles.includes(word.role),
  );
  if (name !== "verb") {
    return { none, groups: [{ name, words: words.filter(({ role }) => roles.includes(role)) }] };
  }
  const verbs = words.filter(({ role }) => role === "verb");
  const alike = (one) => one.ending === word.ending && one.past === word.past;
  return {
    none,
    groups: [
      { name: "the same verb", words: verbs.filter(({ verb }) => verb === word.verb) },
      {
        name: "another verb",
        words: verbs.filter((one) => one.verb !== word.verb && alike(one)),
      },
    ],
  };
}

/** What a sentence can still get: groups of words of the roles that nobody in it has. */
export function missing(sentence, words) {
  return Object.entries(ROLES)
    .filter(([, { roles }]) => !sentence.some(({ role }) => roles.includes(role)))
    .map(([name, { roles }]) => ({
      name,
      words: words.filter(({ role }) => roles.includes(role)),
    }));
}

/** The sentence with one word more, before the first that comes after it in the grammar. */
export function withWord(sentence, word) {
  const place = (one) => ORDER.indexOf(one.role);
  const found = sentence.findIndex((one) => place(one) > place(word));
  const at = found < 0 ? sentence.length : found;
  return [...sentence.slice(0, at), word, ...sentence.slice(at)];
}

/** The words in another order, never that in which they come. `random()` from 0 to 1. */
export function shuffled(words, random) {
  const mixed = [...words];
  for (let i = mixed.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  const same = mixed.every((word, i) => word === words[i]);
  return same ? [...mixed.slice(1), ...mixed.slice(0, 1)] : mixed;
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

const GAP = 10; // between two words
const RIBBONS = 104; // between the two sentences
const BETWEEN = 72; // the least between them where they stand side by side

/**
 * Where the words of two sentences stand: `above` and `below` are their widths, `tall` their two
 * heights. One sentence above the other where there is room, else side by side, read downward.
 */
export function places(above, below, tall, width) {
  const needs = (widths) => widths.reduce((sum, one) => sum + one + GAP, -GAP);
  const rows = Math.max(needs(above), needs(below)) <= width;
  const line = (widths, y, height) => {
    let x = Math.max(0, (width - needs(widths)) / 2);
    return widths.map((w) => {
      const box = { x, y, width: w, height };
      x += w + GAP;
      return box;
    });
  };
  if (rows) {
    const from = line(above, 0, tall[0]);
    const to = line(below, tall[0] + RIBBONS, tall[1]);
    return { rows, from, to, height: tall[0] + RIBBONS + tall[1] };
  }
  const column = (widths, height, right) => {
    const most = Math.max(...widths, 0);
    const x = right ? width - most : 0;
    return widths.map((_, i) => ({ x, y: i * (height + GAP), width: most, height }));
  };
  const room = width - BETWEEN - Math.max(...below, 0);
  const from = column(
    above.map((w) => Math.min(w, room)),
    tall[0],
    false,
  );
  const to = column(below, tall[1], true);
  const ends = [...from, ...to].map(({ y, height }) => y + height);
  return { rows, from, to, height: Math.max(...ends, 0) };
}

/** The middle line of a ribbon from one box to another. */
export function ribbon(from, to, rows) {
  const number = (value) => Number(value.toFixed(1));
  if (rows) {
    const [x1, y1] = [from.x + from.width / 2, from.y + from.height];
    const [x2, y2] = [to.x + to.width / 2, to.y];
    const middle = (y1 + y2) / 2;
    return `M${[x1, y1].map(number)} C${[x1, middle, x2, middle, x2, y2].map(number)}`;
  }
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const middle = (x1 + x2) / 2;
  return `M${[x1, y1].map(number)} C${[middle, y1, middle, y2, x2, y2].map(number)}`;
}
