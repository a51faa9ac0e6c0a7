import assert from "node:assert/strict";
import { test } from "node:test";

import { inside } from "../../transformer_lib/widgets/core/plane.js";
import { lookUp } from "../../transformer_lib/widgets/soft_dictionary/view.js";
import { close, fixture } from "./support.js";

test("weights and answers are the library's", () => {
  for (const { keys, values, query, temperature, weights, answer } of fixture("soft_dictionary")
    .cases) {
    const found = lookUp(keys, values, query, temperature);
    close(found.weights, weights);
    close(found.answer, answer);
  }
});

test("a moved point stays inside the plane, on hundredths", () => {
  assert.deepEqual(inside([0.123456, -0.999999], 2), [0.12, -1]);
  assert.deepEqual(inside([7, -7], 2), [2, -2]);
});
