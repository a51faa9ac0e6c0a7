import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest, parse, valueAt } from "../../transformer_lib/widgets/time_lapse/model.js";
import { close } from "./support.js";

test("a value between two that were logged lies on the line between them", () => {
  const curve = { step: [0, 20, 40], loss: [3, 1, 2] };
  close(
    [0, 10, 20, 35, 40, 90].map((step) => valueAt(curve, "loss", step)),
    [3, 2, 1, 1.75, 2, 2],
  );
});

test("a chain is written in letters, and what is wrong with it is said", () => {
  assert.deepEqual(parse(" Ab c", "abc", 12), [0, 1, 2]);
  assert.equal(parse("abd", "abc", 12), "“d” is not a state; write a, b, c.");
  assert.equal(parse("a", "abc", 12), "Write two letters at least.");
  assert.equal(parse("aaaa", "abc", 3), "That is 4 letters; 3 fit.");
});

test("the moment that is nearest", () => {
  assert.equal(nearest([0, 10, 40], 24), 10);
  assert.equal(nearest([0, 10, 40], 1000), 40);
});
