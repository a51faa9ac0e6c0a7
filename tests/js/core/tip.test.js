import assert from "node:assert/strict";
import { test } from "node:test";
import { tipPlace } from "../../../transformer_lib/widgets/core/pointing.js";

const LABEL = { width: 100, height: 20, gap: 2, clientWidth: 300, highest: 50 };

test("the label at the pointer is centered above what is pointed at", () => {
  assert.deepEqual(tipPlace({ ...LABEL, x: 150, top: 90, bottom: 110 }), { left: 100, top: 68 });
});

test("below it, where it would hide the labels on top", () => {
  assert.deepEqual(tipPlace({ ...LABEL, x: 150, top: 50, bottom: 70 }), { left: 100, top: 72 });
});

test("never past the sides, nor under a finger", () => {
  assert.equal(tipPlace({ ...LABEL, x: 4, top: 90, bottom: 110 }).left, 0);
  assert.equal(tipPlace({ ...LABEL, x: 299, top: 90, bottom: 110 }).left, 200);
  const finger = { ...LABEL, highest: 0, gap: 36, x: 150 };
  assert.equal(tipPlace({ ...finger, top: 90, bottom: 97 }).top, 34);
  assert.equal(tipPlace({ ...finger, top: 40, bottom: 47 }).top, 0);
});
