import assert from "node:assert/strict";
import { test } from "node:test";
import { gifts } from "../../../transformer_lib/widgets/math/gifts.js";
import { close, fixture } from "../support.js";

const known = fixture("gifts");

for (const { name, config, stories } of known) {
  test(`after every word, what may come is the library's: ${name}`, () => {
    const grammar = gifts(config);
    for (const { words, next } of stories) {
      for (const [end, right] of next.entries()) {
        const { allowed, problem } = grammar.read(words.slice(0, end));
        assert.equal(problem, null);
        assert.deepEqual([...allowed.keys()].sort(), Object.keys(right).sort());
        for (const [word, chance] of allowed) close(chance, right[word]);
      }
    }
  });
  test(`it knows who has what: ${name}`, () => {
    const grammar = gifts(config);
    for (const { words, answers } of stories) {
      for (const [at, answer] of Object.entries(answers)) {
        const before = words.slice(0, Number(at));
        const gift = before.findLast((word) => config.gifts.includes(word));
        assert.equal(grammar.read(before).owners.get(gift), answer);
      }
    }
  });
}

test("a word that does not belong there is named, with those that do", () => {
  const grammar = gifts({ ...known[0].config, the: 0 });
  const { problem, allowed } = grammar.read(["<story>", "mary", "has", "gave", "roses"]);
  assert.deepEqual(problem, { at: 3, word: "gave", wanted: [...known[0].config.gifts] });
  assert.equal(allowed.size, 0);
  assert.equal(grammar.read(["mary"]).problem.at, 0);
  assert.equal(grammar.read(["<story>", "<story>"]).problem.at, 1);
});

test("how often a gift was given, and where a sentence begins", () => {
  const config = { ...known[2].config, the: 0, kindly: 0, today: 0, so: 0, now: 0 };
  const words = "<story> ann has cup at first . ann gave it to bo . bo gave cup".split(" ");
  const { moves, owners, start } = gifts(config).read(words);
  assert.deepEqual([moves.get("cup"), owners.get("cup"), start], [1, "bo", 13]);
});
