// Which sentences belong to the book's Kannada grammar, what they mean, and what is wrong with others:
// equal to transformer_lib/data/kannada (tested on sentences and on what is none).
//
//   const grammar = kannada(tables);            // transformer_lib/data/kannada/tables.py
//   grammar.find("mēri")                        -> a word of the tables, or undefined; script or Latin
//   grammar.find("susange")                     with or without its marks, where that is unambiguous
//   grammar.nearest("kottallu")                 -> up to three words that are written almost so
//   grammar.problem(words)                      -> null for a sentence of the grammar, or what is wrong
//   grammar.translate(words)                    -> { words: ["She", "gave", ...], alignment: [0, 3, ...] }

const ORDER = { yesterday: 0, subject: 1, receiver: 2, object: 3, place: 3, verb: 4 };
const NAMED = { yesterday: "a time", object: "an object" };
const named = (role) => NAMED[role] ?? `a ${role}`;

/** Small letters without marks and joiners, as somebody writes who has no marks at hand. */
function plain(text) {
  return text
    .normalize("NFD")
    .replace(/[\u0300-\u036f\u200c\u200d]/g, "")
    .toLowerCase()
    .replace(/m(?=[dtkgcj])/g, "n") // the sign ṁ before these
    .replace(/sh/g, "s")
    .replace(/ch/g, "c");
}

/** How many letters must be put in, left out or exchanged. */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const exchanged = row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(exchanged, row[j] + 1, next[j - 1] + 1));
    }
    row = next;
  }
  return row.at(-1);
}

export function kannada({ words, verbs, people, pronouns, endings }) {
  const exact = new Map(
    words.flatMap((word) => [
      [word.kannada, word],
      [word.latin, word],
    ]),
  );
  const loose = new Map();
  for (const word of words) {
    const key = plain(word.latin);
    loose.set(key, loose.has(key) ? null : word); // null: two words differ in their marks only
  }
  const verbForm = (verb, ending, past) =>
    words.find((word) => word.verb === verb && word.ending === ending && word.past === past);
  const nounOf = (thing) => words.find((word) => word.thing === thing);

  function find(text) {
    const known = text.normalize("NFC");
    return (
      exact.get(known) ?? exact.get(known.toLowerCase()) ?? loose.get(plain(known)) ?? undefined
    );
  }

  function nearest(text) {
    const wanted = plain(text);
    return words
      .map((word) => [
        distance(wanted, plain(word.latin)) / Math.max(wanted.length, word.latin.length),
        word,
      ])
      .filter(([far]) => far <= 0.5)
      .sort(([one], [other]) => one - other)
      .slice(0, 3)
      .map(([, word]) => word);
  }

  function problemOfRoles(sentence) {
    const last = sentence.at(-1);
    const verb = sentence.find((word) => word.role === "verb");
    if (last.role !== "verb") {
      const fix = verb ? `Put ${verb.latin} last.` : "Add a verb.";
      return `there is no verb at the end: the last word, ${last.latin}, is ${named(last.role)}. ${fix}`;
    }
    for (const role of Object.keys(ORDER)) {
      const same = sentence.filter((word) => word.role === role).map((word) => word.latin);
      if (same.length > 1) {
        return `there is more than one ${role}: ${same.join(" and ")}. A sentence has at most one; leave one out.`;
      }
    }
    for (let i = 1; i < sentence.length; i += 1) {
      const [before, after] = [sentence[i - 1], sentence[i]];
      if (ORDER[before.role] > ORDER[after.role]) {
        return `${after.latin}, ${named(after.role)}, comes after ${before.latin}, ${named(before.role)}. The order is yesterday, subject, receiver, object (or place), verb.`;
      }
    }
    return null;
  }

  function problemOfObject(sentence, found) {
    const last = sentence.at(-1);
    const verb = verbs[last.verb];
    const [wanted, other] = verb.goes ? ["place", "object"] : ["object", "place"];
    const nouns = verb.objects.map((thing) => nounOf(thing).latin);
    const oneOf = `${nouns.slice(0, -1).join(", ")} or ${nouns.at(-1)}`;
    if (found[other]) {
      return `${last.latin} (${last.verb}) takes ${named(wanted)}, and ${found[other].latin} (${found[other].thing}) is ${named(other)}. Try ${oneOf}.`;
    }
    if (!found[wanted]) {
      return `${last.latin} (${last.verb}) needs ${named(wanted)} before it: ${oneOf}.`;
    }
    if (!verb.objects.includes(found[wanted].thing)) {
      return `in this grammar one does not ${last.verb} ${found[wanted].latin} (${found[wanted].thing}). ${last.latin} takes ${oneOf}.`;
    }
    if (found.receiver && !verb.receiver) {
      return `${found.receiver.latin} is a receiver, and ${last.latin} (${last.verb}) has none. Leave it out, or take another verb.`;
    }
    return null;
  }

  const subjectOf = (found) => found.subject?.person ?? pronouns[found.verb.ending];

  function problemOfAgreement(found) {
    const { verb, yesterday, subject, receiver } = found;
    if (yesterday && !verb.past) {
      const past = verbForm(verb.verb, verb.ending, true).latin;
      return `${yesterday.latin} means yesterday, but ${verb.latin} is not past. Take ${past}, or leave ${yesterday.latin} out.`;
    }
    if (!subject && !verb.ending) {
      return `there is no subject, and the negative ${verb.latin} has no ending that tells who. Begin with a subject.`;
    }
    const who = people[subjectOf(found)];
    if (verb.ending && verb.ending !== who.ending) {
      const right = verbForm(verb.verb, who.ending, verb.past).latin;
      return `the ending -${endings[verb.ending][verb.past ? 1 : 0]} of ${verb.latin} says ${verb.ending}; the subject is ${subject.latin} (${who.english}). Take ${right}, or another subject.`;
    }
    if (receiver) {
      const both = [who.ending, people[receiver.person].ending];
      const self = receiver.person === subjectOf(found);
      if (self || both.every((ending) => ending === "I" || ending === "we")) {
        return `${receiver.latin} (${receiver.gloss}) is the subject itself. Choose somebody else.`;
      }
    }
    return null;
  }

  function problem(sentence) {
    if (sentence.length === 0) return "there are no words. Choose an object and a verb at least.";
    const found = Object.fromEntries(sentence.map((word) => [word.role, word]));
    return (
      problemOfRoles(sentence) ?? problemOfObject(sentence, found) ?? problemOfAgreement(found)
    );
  }

  function translate(sentence) {
    const found = Object.fromEntries(sentence.map((word) => [word.role, word]));
    const { verb } = found;
    const at = (role) => sentence.indexOf(found[role]);
    const who = people[subjectOf(found)];
    const third = who.ending === "he" || who.ending === "she";
    const parts = [[who.english, found.subject ? at("subject") : at("verb")]];
    if (verb.ending) {
      const present = third ? verbs[verb.verb].s : verb.verb;
      parts.push([verb.past ? verbs[verb.verb].past : present, at("verb")]);
    } else {
      const auxiliary = verb.past ? "did" : third ? "does" : "do";
      parts.push([`${auxiliary} not ${verb.verb}`, at("verb")]);
    }
    for (const role of ["object", "place", "receiver", "yesterday"]) {
      if (found[role]) parts.push([found[role].gloss, at(role)]);
    }
    const result = { words: [], alignment: [] };
    for (const [english, place] of parts) {
      for (const word of english.split(" ")) {
        result.words.push(word);
        result.alignment.push(place);
      }
    }
    return result;
  }

  return { words, find, nearest, problem, translate };
}
