import assert from "node:assert/strict";
import { test } from "node:test";
import { inside } from "../../../transformer_lib/widgets/core/plane.js";

test("a moved point stays inside the plane, on hundredths", () => {
  assert.deepEqual(inside([0.123456, -0.999999], 2), [0.12, -1]);
  assert.deepEqual(inside([7, -7], 2), [2, -2]);
});
