import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest, valueAt } from "../../transformer_lib/widgets/time_lapse/model.js";
import { close } from "./support.js";

test("a value between two that were logged lies on the line between them", () => {
  const curve = { step: [0, 20, 40], loss: [3, 1, 2] };
  close(
    [0, 10, 20, 35, 40, 90].map((step) => valueAt(curve, "loss", step)),
    [3, 2, 1, 1.75, 2, 2],
  );
});

test("the moment that is nearest", () => {
  assert.equal(nearest([0, 10, 40], 24), 10);
  assert.equal(nearest([0, 10, 40], 1000), 40);
});
