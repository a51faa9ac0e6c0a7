import assert from "node:assert/strict";
import { test } from "node:test";
import { kannada } from "../../../transformer_lib/widgets/math/kannada.js";
import { fixture } from "../support.js";

const library = fixture("kannada");
const grammar = kannada(library.tables);
const wordsOf = (row) => row.map((word) => grammar.find(word));

test("sentences of the grammar are known, translated and aligned as the library does", () => {
  for (const [source, target, alignment] of library.sentences) {
    const words = wordsOf(source.split(" "));
    assert.equal(grammar.problem(words), null, source);
    const found = grammar.translate(words);
    assert.equal(found.words.join(" "), target);
    assert.deepEqual(
      found.alignment.map((place) => [place]),
      alignment,
    );
  }
});

test("other rows of words are told from sentences as the library does", () => {
  const verdicts = library.others.map(({ words, sentence }) => {
    assert.equal(grammar.problem(wordsOf(words)) === null, sentence, words.join(" "));
    return sentence;
  });
  assert.ok(verdicts.includes(true) && verdicts.includes(false));
});

test("a problem names the words and what would be right", () => {
  const problem = (text) => grammar.problem(wordsOf(text.split(" ")));
  assert.match(
    problem("avanu hālannu kuḍidaḷu"),
    /says she; the subject is avanu \(He\). Take kuḍidanu/,
  );
  assert.match(problem("mēri koṭṭaḷu"), /needs an object before it: haṇṇannu, /);
  assert.match(problem("koṭṭaḷu mēri"), /no verb at the end.*Put koṭṭaḷu last/);
  assert.match(problem("mēri śālege koṭṭaḷu"), /takes an object, and śālege \(school\) is a place/);
  assert.match(problem("ninne mēri hālannu kuḍiyuttāḷe"), /Take kuḍidaḷu/);
  assert.match(problem("hālannu kuḍiyalilla"), /no ending that tells who/);
  assert.match(problem("mēri mērige hūvannu koṭṭaḷu"), /is the subject itself/);
  assert.match(problem("mēri ravi hūvannu koṭṭaḷu"), /more than one subject: mēri and ravi/);
  assert.match(grammar.problem([]), /no words/);
});

test("words are found in script, in Latin letters, and without marks where nothing else is meant", () => {
  assert.equal(grammar.find("ಮೇರಿ").latin, "mēri");
  assert.equal(grammar.find("Mēri").latin, "mēri");
  assert.equal(grammar.find("meri").latin, "mēri");
  assert.equal(grammar.find("susange").gloss, "to Susan");
  assert.equal(grammar.find("tindalu").latin, "tiṁdaḷu");
  assert.equal(grammar.find("shalege").gloss, "to the school");
  assert.equal(grammar.find("xyz"), undefined);
  assert.deepEqual(
    grammar
      .nearest("kottallu")
      .map((word) => word.latin)
      .slice(0, 1),
    ["koṭṭaḷu"],
  );
  assert.deepEqual(grammar.nearest("zzzzzzzzzzzz"), []);
});
