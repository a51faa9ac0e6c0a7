// Byte-pair encoding of a short text, with every merge kept. The library's own is bpe.py; tests hold
// the two equal, ties included.
//
//   splitWords("mary gave") -> ["mary", " gave"]
//   const learned = learn("rose roses");   learned.merges -> [{ pair: [a, b], count, created }, ...]
//   const words = after(learned, 2);       the ids of each word's tokens after two merges
//   pairsOf(words) -> [{ pair, count }]    the most frequent first, as they are merged
//   shown(learned.tokens[id]) -> "ros", and bytes that are not a whole character as "\xe0"
//   const { encode, bytesOf } = encoder(merges);   encode("rose") -> the ids of each word's tokens

const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const PUNCTUATION = "!-/:-@\\[-\\x60{-~¡«»¿‐-‧‰-⁞।॥、-〃〈-】！，．：；？";
const WORDS = new RegExp(
  ` ?[^${SPACE}${PUNCTUATION}]+| ?[${PUNCTUATION}]+|[${SPACE}]+(?= [^${SPACE}])|[${SPACE}]+`,
  "gu",
);
// GPT-2's own words: letters, digits or other signs, with the blank before them. Here \s would be
// another white space than in Python.
const GPT2_WORDS = new RegExp(
  `'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^${SPACE}\\p{L}\\p{N}]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`,
  "gu",
);

// Among equally frequent pairs, bytes that Latin-1 can show come before the others.
const canBeShown = (byte) =>
  (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte < 0x100 && byte !== 0xad);
const ALL = Array.from({ length: 256 }, (_, byte) => byte);
const BYTES = [...ALL.filter(canBeShown), ...ALL.filter((byte) => !canBeShown(byte))];
const RANK = new Map(BYTES.map((byte, rank) => [byte, rank]));
const MANY = 2 ** 21; // more than there are tokens: a pair as one number

export function splitWords(text) {
  return text.match(WORDS) ?? [];
}

export function splitAsGpt2(text) {
  return text.match(GPT2_WORDS) ?? [];
}

/** The ids with every occurrence of a pair, from the left, replaced. */
export function merge(ids, [left, right], created) {
  const merged = [];
  for (let i = 0; i < ids.length; i += 1) {
    if (ids[i] === left && ids[i + 1] === right) {
      merged.push(created);
      i += 1;
    } else merged.push(ids[i]);
  }
  return merged;
}

/** Adds to the counts of the pairs of neighbors in a word. */
function count(counts, ids, times) {
  for (let i = 1; i < ids.length; i += 1) {
    const key = ids[i - 1] * MANY + ids[i];
    counts.set(key, (counts.get(key) ?? 0) + times);
  }
}

const pairOf = (key) => [Math.floor(key / MANY), key % MANY];

/** All pairs, the one that is merged next first. */
export function pairsOf(words) {
  const counts = new Map();
  for (const ids of words) count(counts, ids, 1);
  return [...counts]
    .sort(([a, n], [b, m]) => m - n || a - b)
    .map(([key, times]) => ({ pair: pairOf(key), count: times }));
}

/** All merges of pairs that occur at least `least` times, in their order. */
export function learn(text, least = 2) {
  const encoder = new TextEncoder();
  const idsOf = (word) => Array.from(encoder.encode(word), (byte) => RANK.get(byte));
  const split = splitWords(text);
  const different = new Map(); // each word once: a merge looks only at those that hold its pair
  for (const word of split) {
    const known = different.get(word);
    if (known) known.times += 1;
    else different.set(word, { ids: idsOf(word), times: 1 });
  }
  const counts = new Map();
  for (const { ids, times } of different.values()) count(counts, ids, times);
  const tokens = BYTES.map((byte) => [byte]);
  const merges = [];
  for (;;) {
    let [best, most] = [null, Math.max(1, least)];
    for (const [key, times] of counts) {
      if (times > most || (times === most && (best === null || key < best)))
        [best, most] = [key, times];
    }
    if (best === null) return { first: split.map(idsOf), tokens, merges };
    const [pair, created] = [pairOf(best), tokens.length];
    merges.push({ pair, count: most, created });
    tokens.push([...tokens[pair[0]], ...tokens[pair[1]]]);
    for (const word of different.values()) {
      const merged = merge(word.ids, pair, created);
      if (merged.length === word.ids.length) continue;
      count(counts, word.ids, -word.times);
      count(counts, merged, word.times);
      word.ids = merged;
    }
  }
}

/** The ids of each word's tokens after so many merges. */
export function after({ first, merges }, many) {
  return merges
    .slice(0, many)
    .reduce((words, { pair, created }) => words.map((ids) => merge(ids, pair, created)), first);
}

/** A tokenizer by its merges: in their order, two ids each (a Uint16Array). The first 256 ids are the
 * bytes, as `learn` and GPT-2 number them, or with `plain` as they come. */
export function encoder(merges, { split = splitWords, plain = false } = {}) {
  const bytes = plain ? ALL : BYTES;
  const idOfByte = plain ? ALL : Array.from(ALL, (byte) => RANK.get(byte));
  const size = 256 + merges.length / 2;
  const created = new Map(); // a pair of ids -> the id that they become, which is also their turn
  for (let id = 256; id < size; id += 1)
    created.set(merges[2 * id - 512] * MANY + merges[2 * id - 511], id);
  const utf8 = new TextEncoder();

  function encodeWord(word) {
    let ids = Array.from(utf8.encode(word), (byte) => idOfByte[byte]);
    for (;;) {
      let [first, at] = [size, 0];
      for (let i = 1; i < ids.length; i += 1) {
        const id = created.get(ids[i - 1] * MANY + ids[i]) ?? size;
        if (id < first) [first, at] = [id, i];
      }
      if (first === size) return ids;
      ids = merge(ids, [ids[at - 1], ids[at]], first);
    }
  }

  const bytesOf = (id) =>
    id < 256 ? [bytes[id]] : [...bytesOf(merges[2 * id - 512]), ...bytesOf(merges[2 * id - 511])];

  return { size, encode: (text) => split(text).map(encodeWord), bytesOf };
}

/** Bytes as text; those that are not a whole character as in Python, "\xe0". */
export function shown(bytes) {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    let character = null;
    for (let size = 1; size <= 4 && i + size <= bytes.length && character === null; size += 1) {
      try {
        character = decoder.decode(Uint8Array.from(bytes.slice(i, i + size)));
        i += size;
      } catch {
        // not yet a whole character
      }
    }
    if (character === null) {
      character = `\\x${bytes[i].toString(16).padStart(2, "0")}`;
      i += 1;
    }
    text += character;
  }
  return text;
}
