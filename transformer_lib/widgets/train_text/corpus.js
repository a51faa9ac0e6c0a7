// A reader's text as a model gets it: characters as numbers, and a tenth that is held out.
//
//   const { text, alphabet, training, heldOut, rare } = readText(raw, limits);
//   readText("", limits).problem           why nothing can be learned from it, as a sentence
//   levels({ alphabet, training, heldOut })     { chance, unigram, bigram }: losses on the held-out part
//   const { ids, stranger } = encode("rose", alphabet)       stranger: a character that it lacks
//   compare("rose and", corpus) -> { words: 2, known: 1, copied: 5 }
//
// A character is a code point, so that 👍 is one. Line ends become \n, composed letters one character
// (é), other control characters are left out. Of an alphabet that is larger than `limits.alphabet`,
// the rarest characters become one sign, RARE.

import { grouped } from "../core/numbers.js";

export const RARE = "\ufffd";

/** `limits`: { least, most, alphabet, judged }: of characters; `judged`, of the held-out part. */
export function readText(raw, { least, most, alphabet: room, judged }) {
  if (raw.length > 2 * most) return { problem: tooLong(most) }; // a character takes 2 at most
  if (raw.includes("\0")) {
    return {
      problem:
        "This holds null bytes, so it is not plain text. (A PDF or a Word file? Save it as text.)",
    };
  }
  const text = [...cleaned(raw)];
  if (text.length > most) return { problem: tooLong(most) };
  const counts = new Map();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  const visible = [...counts.keys()].filter((letter) => letter.trim());
  if (visible.length === 0) return { problem: "There is no text yet. Write or paste one." };
  if (visible.length === 1) {
    return { problem: "This text repeats one single character, so there is nothing to guess." };
  }
  if (text.length < least) {
    return {
      problem: `This text has ${grouped(text.length)} characters. Below ${grouped(least)} there is too little to learn.`,
    };
  }
  const ranked = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
  const kept = ranked.length > room ? [...ranked.slice(0, room - 1), RARE] : ranked;
  const alphabet = [...new Set(kept)].sort();
  const { ids, rare } = numbered(text, alphabet);
  const cut = Math.floor(0.9 * ids.length);
  return {
    text: text.join(""),
    alphabet,
    training: ids.subarray(0, cut),
    heldOut: ids.subarray(cut, cut + judged),
    characters: text.length,
    different: counts.size,
    rare: ranked.length > room ? rare : 0,
  };
}

export const tooLong = (most) =>
  `This text has more than the ${grouped(most)} characters that the page takes. Take a part of it, or train on your machine.`;

function cleaned(raw) {
  return (raw.toWellFormed?.() ?? raw)
    .replace(/\r\n?/g, "\n")
    .normalize("NFC")
    .replace(/\ufeff|[^\P{Cc}\n\t]/gu, "");
}

function numbered(text, alphabet) {
  const places = new Map(alphabet.map((letter, i) => [letter, i]));
  const other = places.get(RARE);
  const ids = new Int32Array(text.length);
  let rare = 0;
  text.forEach((letter, i) => {
    const id = places.get(letter) ?? other;
    if (id === other) rare += 1;
    ids[i] = id;
  });
  return { ids, rare };
}

/** How much of what a model has written stands in the text: whole words, and the longest piece that
 * is copied, in characters, from the part that it learns from. */
export function compare(written, { text, training, alphabet }) {
  const words = wordsOf(written).slice(0, -1); // the last may be cut off
  const all = new Set(wordsOf(text));
  const letters = [...written];
  const learned = Array.from(training, (id) => alphabet[id]).join("");
  let copied = 0;
  for (let from = 0; from + copied < letters.length; from += 1) {
    while (
      from + copied < letters.length &&
      learned.includes(letters.slice(from, from + copied + 1).join(""))
    ) {
      copied += 1;
    }
  }
  return { words: words.length, known: words.filter((word) => all.has(word)).length, copied };
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{M}\p{N}'’]+/gu) ?? [];

/** What a reader writes for the model to go on with. */
export function encode(text, alphabet) {
  const letters = [...cleaned(text)];
  const ids = letters.map((letter) => alphabet.indexOf(letter));
  const at = ids.indexOf(-1);
  return at < 0 ? { ids } : { stranger: letters[at] };
}

/** The losses, in nats a character, of readers who count: nothing, single characters, pairs of them.
 *
 * Each is counted in the training part, and is 1 more often than it is there for none to be
 * impossible; the losses are those of the held-out part, but for its first character. */
export function levels({ alphabet, training, heldOut }) {
  const size = alphabet.length;
  const single = new Float64Array(size).fill(1);
  const pairs = new Float64Array(size * size).fill(1);
  const befores = new Float64Array(size).fill(size);
  training.forEach((id, i) => {
    single[id] += 1;
    if (i === 0) return;
    pairs[training[i - 1] * size + id] += 1;
    befores[training[i - 1]] += 1;
  });
  let [unigram, bigram] = [0, 0];
  for (let i = 1; i < heldOut.length; i += 1) {
    const [before, id] = [heldOut[i - 1], heldOut[i]];
    unigram -= Math.log(single[id] / (training.length + size));
    bigram -= Math.log(pairs[before * size + id] / befores[before]);
  }
  const asked = heldOut.length - 1;
  return { chance: Math.log(size), unigram: unigram / asked, bigram: bigram / asked };
}
