import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ENDINGS,
  inOrder,
  ROLES,
  share,
  sourceIds,
} from "../../transformer_lib/widgets/translator/model.js";
import { close, fixture } from "./support.js";

const { tables } = fixture("kannada");

test("every word of the grammar can be chosen from a menu", () => {
  const offered = Object.values(ROLES).flatMap(({ roles }) => roles);
  const endings = ENDINGS.map(({ ending }) => ending);
  for (const word of tables.words) {
    assert.ok(
      word.role === "verb" ? endings.includes(word.ending) : offered.includes(word.role),
      word.latin,
    );
  }
});

test("words are put in the grammar's order, and the given list is left alone", () => {
  const roles = ["verb", "object", "subject", "yesterday", "receiver"];
  const words = roles.map((role) => ({ role }));
  assert.deepEqual(
    inOrder(words).map(({ role }) => role),
    ["yesterday", "subject", "receiver", "object", "verb"],
  );
  assert.equal(words[0].role, "verb");
});

test("what the heads read together is their mean", () => {
  close(share([Float32Array.of(1, 0), Float32Array.of(0.5, 0.5)]), [0.75, 0.25]);
});

test("a word that the model does not know is named", () => {
  const idOf = sourceIds(["<pad>", "ಮೇರಿ"]);
  assert.equal(idOf("ಮೇರಿ"), 1);
  assert.throws(() => idOf("ರವಿ"), /the model does not know ರವಿ/);
});
