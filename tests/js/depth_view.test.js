import assert from "node:assert/strict";
import { test } from "node:test";

import { asRatio, shownLines, spread } from "../../transformer_lib/widgets/depth_view/model.js";

test("the lines that are on, at this depth and start, in the arrangements' order", () => {
  const line = (key, depth, start) => ({ key, depth, start, gradient: [depth, start] });
  const lines = [line("post", 6, 0), line("pre", 6, 0), line("pre", 12, 0), line("pre", 6, 1)];
  const arrangements = { pre: "pre-norm", post: "post-norm", no_norm: "no norm" };
  const how = { depth: 6, start: 0, quantity: "gradient" };
  const names = (on) => shownLines(lines, arrangements, { ...how, on }).map(({ name }) => name);
  assert.deepEqual(names({ pre: true, post: true, no_norm: true }), ["pre-norm", "post-norm"]);
  assert.deepEqual(names({ post: true }), ["post-norm"]);
  const [found] = shownLines(lines, arrangements, { ...how, start: 1, on: { pre: true } });
  assert.deepEqual(found.values, [6, 1]);
});

test("a ratio is said from its larger side", () => {
  assert.equal(asRatio(46.4), "46 to 1");
  assert.equal(asRatio(1 / 2096), "1 to 2,096");
  assert.equal(asRatio(1), "1 to 1");
});

test("labels keep apart, in their order and within the limits", () => {
  const placed = spread([100, 98, 30, 101], 15, 20, 110);
  const order = [2, 1, 0, 3];
  for (let i = 1; i < 4; i += 1) assert.ok(placed[order[i]] - placed[order[i - 1]] >= 15 - 1e-9);
  assert.ok(Math.max(...placed) <= 110);
  assert.equal(spread([40, 80], 15, 20, 110)[1], 80);
});
