// The grammar of the gift stories, equal to transformer_lib/data/gifts (tested to 1e-6): which words may
// come next, with their probabilities, and who has what.
//
//   const grammar = gifts(config);              // the fields of data.gifts.Grammar, by name
//   const now = grammar.read(["<story>", "mary", "has"]);
//   now.allowed      Map: word -> probability of the words that may follow ("<story>": the story is whole)
//   now.owners       Map: gift -> person, as the story says it so far       now.moves   gift -> times given
//   now.start        where the sentence that is not finished begins
//   now.problem      null, or { at, word, wanted }: the first word that does not belong there

const STORY = "<story>";
const RULES = ["give", "give_it", "ask", "swap"];

/** The words of each rule; one that ends in ? is optional, with a chance of its own. */
const PATTERNS = {
  at_first: "X has the? O at first .",
  give: "X kindly? gave the? O to Y today? .",
  give_it: "X kindly? gave it to Y today? .",
  ask: "so? who has the? O now? ? X .",
  swap: "X and Y kindly? swapped all gifts today? .",
};

export function gifts(config) {
  const { people, gifts: all, n_gifts: first, n_sentences: then } = config;

  /** Words with their chances: [["mary", 1], ["kindly", 0.3], ...] */
  function sentence(rule, names) {
    const words = PATTERNS[rule].split(" ").map((word) => {
      const optional = word.length > 1 && word.endsWith("?");
      return optional ? [word.slice(0, -1), config[word.slice(0, -1)] ?? 0] : [word, 1];
    });
    return words.map(([word, chance]) => [names[word] ?? word, chance]);
  }

  /** What may be said by a rule now: sentences with what they change. */
  function sentences(rule, { owners, latest }) {
    const others = (name) => people.filter((person) => person !== name);
    const make = (names, effect = {}) => ({ words: sentence(rule, names), ...effect });
    if (rule === "at_first") {
      return all
        .filter((O) => !owners.has(O))
        .flatMap((O) => people.map((X) => make({ O, X }, { gift: O, to: X })));
    }
    if (rule === "swap") {
      return people.flatMap((X) => others(X).map((Y) => make({ X, Y }, { swapped: [X, Y] })));
    }
    const told = rule === "give_it" ? [latest] : [...owners.keys()];
    return told.flatMap((O) => {
      const X = owners.get(O);
      if (rule === "ask") return [make({ O, X }, { gift: O, to: X })];
      return others(X).map((Y) => make({ O, X, Y }, { gift: O, to: Y, moved: true }));
    });
  }

  /** All sentences that may come as number `number`, from 0, with their probabilities. */
  function possible(world, number) {
    if (number === first + then) return [{ words: [[STORY, 1]], chance: 1, place: 0 }];
    const rules = number < first ? [["at_first", 1]] : RULES.map((rule) => [rule, config[rule]]);
    return rules
      .filter(([, chance]) => chance > 0)
      .flatMap(([rule, chance]) => {
        const found = sentences(rule, world);
        return found.map((one) => ({ ...one, chance: chance / found.length, place: 0 }));
      });
  }

  /** How the sentences may go on: each with the word that is said next. */
  function steps(open) {
    return open.flatMap((one) => {
      const found = [];
      let left = one.chance;
      for (let at = one.place; at < one.words.length && left > 0; at += 1) {
        const [word, chance] = one.words[at];
        if (chance > 0) found.push({ ...one, word, chance: left * chance, place: at + 1 });
        left *= 1 - chance;
      }
      return found;
    });
  }

  function follow(world, { gift, to, moved, swapped }) {
    if (gift) {
      world.owners.set(gift, to);
      world.latest = gift;
      if (moved) world.moves.set(gift, (world.moves.get(gift) ?? 0) + 1);
    }
    if (!swapped) return;
    const [one, other] = swapped;
    for (const [name, owner] of world.owners) {
      if (swapped.includes(owner)) world.owners.set(name, owner === one ? other : one);
    }
  }

  function read(words) {
    const world = { owners: new Map(), moves: new Map(), latest: null };
    let [number, start] = [-1, 0];
    let next = steps([{ words: [[STORY, 1]], chance: 1, place: 0 }]);
    for (const [at, word] of words.entries()) {
      const fitting = next.filter((step) => step.word === word);
      if (!fitting.length || (at > 0 && word === STORY)) {
        const wanted = at > 0 ? next.filter((step) => step.word !== STORY) : next;
        const problem = { at, word, wanted: [...new Set(wanted.map((step) => step.word))] };
        return { ...world, start, allowed: new Map(), problem };
      }
      if (word === STORY || word === ".") {
        follow(world, fitting[0]);
        number += 1;
        start = at + 1;
        next = steps(possible(world, number));
      } else {
        next = steps(fitting);
      }
    }
    const total = next.reduce((sum, { chance }) => sum + chance, 0);
    const allowed = new Map();
    for (const { word, chance } of next)
      allowed.set(word, (allowed.get(word) ?? 0) + chance / total);
    return { ...world, start, allowed, problem: null };
  }

  return { read };
}
