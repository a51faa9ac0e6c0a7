import assert from "node:assert/strict";
import { test } from "node:test";
import {
  alternatives,
  missing,
  places,
  ROLES,
  ribbon,
  share,
  shuffled,
  sourceIds,
  withWord,
} from "../../transformer_lib/widgets/translator/model.js";
import { close, fixture } from "./support.js";

const { tables } = fixture("kannada");
const find = (latin) => tables.words.find((word) => word.latin === latin);
const gave = ["mēri", "gulābigaḷannu", "koṭṭaḷu"].map(find);

test("every word of the grammar can be put in somebody's place", () => {
  const roles = Object.values(ROLES).flatMap(({ roles }) => roles);
  for (const word of tables.words) {
    assert.ok(roles.includes(word.role), word.latin);
    const { groups } = alternatives(word, tables.words);
    assert.ok(groups[0].words.includes(word), word.latin);
  }
});

test("a noun offers all of its role; a verb its forms, and verbs that are otherwise alike", () => {
  const nouns = alternatives(gave[1], tables.words);
  assert.ok(nouns.none);
  assert.deepEqual(
    nouns.groups.map(({ words }) => words.length),
    [20],
  );
  const verbs = alternatives(gave[2], tables.words);
  assert.ok(!verbs.none);
  assert.deepEqual(
    verbs.groups.map(({ words }) => words.length),
    [12, 10],
  );
  assert.ok(verbs.groups[1].words.every(({ ending, past }) => ending === "she" && past));
});

test("what is missing can be added, where the grammar has it; the given list is left alone", () => {
  const groups = missing(gave, tables.words);
  assert.deepEqual(
    groups.map(({ name }) => name),
    ["when", "receiver"],
  );
  const whole = withWord(withWord(gave, find("ninne")), find("ravige"));
  assert.deepEqual(
    whole.map(({ latin }) => latin),
    ["ninne", "mēri", "ravige", "gulābigaḷannu", "koṭṭaḷu"],
  );
  assert.deepEqual(
    withWord([], find("koṭṭaḷu")).map(({ latin }) => latin),
    ["koṭṭaḷu"],
  );
  assert.equal(gave.length, 3);
});

test("shuffled words are the same words, and never in the same order", () => {
  for (const value of [0, 0.3, 0.6, 0.999]) {
    const mixed = shuffled(["a", "b", "c"], () => value);
    assert.notDeepEqual(mixed, ["a", "b", "c"]);
    assert.deepEqual([...mixed].sort(), ["a", "b", "c"]);
  }
  assert.deepEqual(
    shuffled(["a"], () => 0),
    ["a"],
  );
});

test("sentences stand above one another where there is room, and else side by side", () => {
  const wide = places([60, 100, 44], [50, 50], [72, 44], 300);
  assert.ok(wide.rows);
  assert.deepEqual(wide.from[0], { x: 38, y: 0, width: 60, height: 72 });
  assert.equal(wide.from[1].x, 108);
  assert.ok(wide.to.every(({ y }) => y > 72));
  assert.equal(wide.height, wide.to[0].y + 44);
  const narrow = places([60, 100, 44], [50, 50], [72, 44], 223);
  assert.ok(!narrow.rows);
  assert.deepEqual(narrow.from[1], { x: 0, y: 82, width: 100, height: 72 });
  assert.deepEqual(narrow.to[1], { x: 173, y: 54, width: 50, height: 44 });
  assert.equal(narrow.height, 236);
  const tight = places([400], [50], [72, 44], 223);
  assert.equal(tight.from[0].width, 101); // so that there is room for ribbons
  assert.equal(places([], [], [72, 44], 223).height, 220);
});

test("a ribbon leads from the one edge to the other", () => {
  const [from, to] = [
    { x: 0, y: 0, width: 40, height: 72 },
    { x: 100, y: 172, width: 60, height: 44 },
  ];
  assert.equal(ribbon(from, to, true), "M20,72 C20,122,130,122,130,172");
  assert.equal(ribbon(from, to, false), "M40,36 C70,36,70,194,100,194");
});

test("what the heads read together is their mean", () => {
  close(share([Float32Array.of(1, 0), Float32Array.of(0.5, 0.5)]), [0.75, 0.25]);
});

test("a word that the model does not know is named", () => {
  const idOf = sourceIds(["<pad>", "ಮೇರಿ"]);
  assert.equal(idOf("ಮೇರಿ"), 1);
  assert.throws(() => idOf("ರವಿ"), /the model does not know ರವಿ/);
});
