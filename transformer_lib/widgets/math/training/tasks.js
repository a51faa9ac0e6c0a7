// Small languages of which everything is known: what can be known of a text, and from where.
//
//   const { words, tokens, positions, chance, plateau, text } = TASKS.repeats;
//   const { ids, known, sources } = text(draw);     draw() -> 0 <= x < 1, core/random.js
//   TASKS.repeats.example(draw)                     a text that is good to look at
//
// `known[t]`: whoever has read the tokens before token t knows it for certain, so that is what a model
// is asked for, and the loss of a perfect one is exactly FLOOR. `sources[t]` are the places where it
// stands to be copied. `chance` is the loss of who knows nothing and gives every word the same chance;
// `plateau` that of who knows which words the answer is among, but does not look up which (null where
// there is no such way to do it by halves), and `plateauName` says so.

export const FLOOR = 0; // −ln 1

const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"];
const DIGITS = [..."0123456789"];
const PEOPLE = ["mary", "john", "susan", "peter", "ravi"];
const GIFTS = ["roses", "books", "cups", "pens", "coins"];

const below = (n, draw) => Math.floor(n * draw());

/** So many of 0 … n − 1, each at most once, in a random order (Fisher and Yates). */
function drawn(count, n, draw) {
  const all = Array.from({ length: n }, (_, i) => i);
  for (let i = 0; i < count; i += 1) {
    const j = i + below(n - i, draw);
    const kept = all[i];
    all[i] = all[j];
    all[j] = kept;
  }
  return all.slice(0, count);
}

/** Different letters, then the same again and again: c a f c a f c …; how many they are is drawn. */
function repeats({ letters = 10, tokens = 24, least = 3, most = 10 } = {}) {
  const periods = Array.from({ length: most - least + 1 }, (_, i) => least + i);
  const asked = periods.map((period) => tokens - period - 1);
  const among = periods.map((period, i) => asked[i] * Math.log(period - 1));
  function round(period, draw) {
    const order = drawn(period, letters, draw);
    const ids = Array.from({ length: tokens }, (_, t) => order[t % period]);
    return {
      ids,
      known: ids.map((_, t) => t > period),
      sources: ids.map((_, t) => places(t, (s) => t > period && s % period === t % period)),
    };
  }
  return {
    words: LETTERS.slice(0, letters),
    tokens,
    positions: "rotary",
    chance: Math.log(letters),
    plateau: total(among) / total(asked),
    plateauName: "knows the letters, not their order",
    text: (draw) => round(least + below(most - least + 1, draw), draw),
    example: (draw) => round(6, draw), // four rounds of six: short enough to see, long enough to read
  };
}

/** Letters with a digit each, then questions: which digit went with this letter? a 4 d 1 … d 1 a 4 …
 *
 * Digits and questions are drawn one by one, so that some come twice: where each came once, a model
 * could rule out what was answered already, and stops at that. */
function pairs({ letters = 10, digits = 8, count = 6 } = {}) {
  function text(draw) {
    const keys = drawn(count, letters, draw);
    const values = keys.map(() => letters + below(digits, draw));
    const asked = keys.map(() => below(count, draw));
    const ids = [...keys.keys(), ...asked].flatMap((i) => [keys[i], values[i]]);
    const isAnswer = (t) => t >= 2 * count && t % 2 === 1;
    return {
      ids,
      known: ids.map((_, t) => isAnswer(t)),
      sources: ids.map((_, t) =>
        places(t, (s) => isAnswer(t) && s % 2 === 1 && ids[s - 1] === ids[t - 1]),
      ),
    };
  }
  return {
    words: [...LETTERS.slice(0, letters), ...DIGITS.slice(0, digits)],
    tokens: 4 * count,
    positions: "rotary",
    chance: Math.log(letters + digits),
    plateau: amongValues(count, digits),
    plateauName: "knows the digits, not whose they are",
    text,
    example: text,
  };
}

/** Different digits, then the same digits in order: 7 2 9 4 2 4 7 9. */
function sort({ digits = 10, count = 8 } = {}) {
  function text(draw) {
    const first = drawn(count, digits, draw);
    const ids = [...first, ...first.toSorted((a, b) => a - b)];
    return {
      ids,
      known: ids.map((_, t) => t >= count),
      sources: ids.map((id, t) => places(t, (s) => t >= count && s < count && ids[s] === id)),
    };
  }
  return {
    words: DIGITS.slice(0, digits),
    tokens: 2 * count,
    positions: "learned",
    chance: Math.log(digits),
    plateau: null,
    plateauName: "",
    text,
    example: text,
  };
}

/** Things change hands; who has this one now? give roses to mary, give roses to john, who has roses john
 *
 * At first each of some things is given to anybody, then to anybody who does not have it. So at any
 * time its owner is any of the people, each as probably, whoever the others' owners are. */
function owner({ people = PEOPLE, gifts = GIFTS, count = 3, sentences = 9 } = {}) {
  const words = ["give", "to", "who", "has", ...people, ...gifts];
  const [give, to, who, has, firstPerson] = [0, 1, 2, 3, 4];
  const firstGift = firstPerson + people.length;
  function text(draw) {
    const things = drawn(count, gifts.length, draw);
    const owners = new Map();
    const named = new Map(); // the places of a thing's owner, since it was given last
    const [ids, known, sources] = [[], [], []];
    for (let s = 0; s < sentences; s += 1) {
      const thing = s < count ? things[s] : things[below(count, draw)];
      const asks = s === sentences - 1 || (s >= count && draw() < 0.6);
      if (!asks) {
        owners.set(thing, another(owners.get(thing), people.length, draw));
        named.set(thing, []);
      }
      const gift = firstGift + thing;
      ids.push(...(asks ? [who, has, gift] : [give, gift, to]), firstPerson + owners.get(thing));
      known.push(false, false, false, asks);
      sources.push([], [], [], asks ? [...named.get(thing)] : []);
      named.get(thing).push(ids.length - 1);
    }
    return { ids, known, sources };
  }
  return {
    words,
    tokens: 4 * sentences,
    positions: "rotary",
    chance: Math.log(words.length),
    plateau: amongValues(count, people.length),
    plateauName: "names some owner",
    text,
    example: text,
  };
}

/** Any of 0 … n − 1 but `one`, which may be undefined. */
function another(one, n, draw) {
  if (one === undefined) return below(n, draw);
  return (one + 1 + below(n - 1, draw)) % n;
}

/** The loss of who knows the values of `count` keys, each one of `values`, but not which is whose. */
function amongValues(count, values) {
  const others = count - 1; // of them each has the asked key's value with a chance of 1 / values
  const alike = Array.from(
    { length: count },
    (_, k) => choose(others, k) * (1 / values) ** k * (1 - 1 / values) ** (others - k),
  );
  return Math.log(count) - total(alike.map((chance, k) => chance * Math.log(1 + k)));
}

/** How many ways there are to choose k of n. */
const choose = (n, k) => (k === 0 ? 1 : (choose(n - 1, k - 1) * n) / k);

const total = (values) => values.reduce((sum, value) => sum + value, 0);

/** The places before t where it is so. */
function places(t, isSo) {
  return Array.from({ length: t }, (_, s) => s).filter(isSo);
}

export const TASKS = { repeats: repeats(), pairs: pairs(), owner: owner(), sort: sort() };
