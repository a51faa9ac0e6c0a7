import assert from "node:assert/strict";
import { test } from "node:test";

import { between, compute } from "../../transformer_lib/widgets/rotary_arrows/model.js";
import { close, fixture } from "./support.js";

const { arrows, farthest, cases } = fixture("rotary_arrows");
const spread = (scores) => Math.max(...scores) - Math.min(...scores);

test("turned and added arrows, and their scores, are the library's", () => {
  for (const { settings, turned, added } of cases) {
    for (const [expected, add] of [
      [turned, false],
      [added, true],
    ]) {
      const now = compute({ ...settings, arrows, add }, farthest);
      close(now.query, expected.query);
      close(now.key, expected.key);
      close(now.scores, expected.scores);
      assert.equal(now.score, now.scores[settings.before]);
      assert.equal(now.offset, settings.key_position - settings.query_position);
    }
  }
});

test("words before the text change a score where positions are added, and not where they turn", () => {
  const settings = { arrows, query_position: 5, key_position: 2, before: 0, speed: 0.3 };
  assert.ok(spread(compute({ ...settings, add: false }, 100).scores) < 1e-9);
  assert.ok(spread(compute({ ...settings, add: true }, 100).scores) > 1);
});

test("the side counts: three back is not three on", () => {
  const at = (query_position, key_position) =>
    compute({ arrows, query_position, key_position, before: 0, speed: 0.3, add: false }, 0).score;
  close(at(5, 2), at(25, 22), 1e-12);
  assert.ok(Math.abs(at(5, 2) - at(2, 5)) > 0.1);
});

test("the angle between two arrows, by hand", () => {
  close(between([1, 0], [0, 2]), Math.PI / 2, 1e-12);
  close(between([1, 0], [-3, 0]), Math.PI, 1e-12);
  close(between([0, -1], [1, 0]), Math.PI / 2, 1e-12);
  assert.equal(between([0, 0], [1, 1]), 0);
});
