import assert from "node:assert/strict";
import { test } from "node:test";
import { leastMove, plan } from "../../../transformer_lib/widgets/core/place.js";

const view = { top: 64, bottom: 792 };
const box = (top, bottom) => ({ top, bottom });

test("the least scrolling that brings a box into view", () => {
  assert.equal(leastMove(box(100, 200), view), 0);
  assert.equal(leastMove(box(700, 892), view), 100);
  assert.equal(leastMove(box(14, 100), view), -50);
  assert.equal(leastMove(box(164, 2000), view), 100); // too high: its top
});

test("what is seen stays where it is", () => {
  const phrase = box(70, 90);
  const figure = box(300, 1500);
  assert.deepEqual(plan({ figure, changed: box(400, 500), phrase, view }), {
    by: 0,
    leaves: false,
  });
  assert.deepEqual(plan({ figure, changed: null, phrase, view }), { by: 0, leaves: false });
});

test("figure and phrase in one window, if both have room; else what has changed and the phrase", () => {
  const phrase = box(600, 620);
  const figure = box(700, 1300); // 600 high: it needs 508 more, and the phrase can give 536
  assert.deepEqual(plan({ figure, changed: box(1200, 1290), phrase, view }), {
    by: 508,
    leaves: false,
  });
  const tall = box(700, 1900);
  assert.deepEqual(plan({ figure: tall, changed: box(900, 1000), phrase, view }), {
    by: 208,
    leaves: false,
  });
});

test("where there is no room for both, the phrase is left, and it is said so", () => {
  const phrase = box(600, 620);
  const low = plan({ figure: box(2000, 2400), changed: box(2100, 2200), phrase, view });
  assert.deepEqual(low, { by: 2200 - 428, leaves: true }); // the whole figure, in the middle
  const tall = plan({ figure: box(-3000, -1000), changed: box(-1500, -1400), phrase, view });
  assert.deepEqual(tall, { by: -1450 - 428, leaves: true }); // the change in the middle
  assert.equal(plan({ figure: box(2000, 2400), changed: null, phrase: null, view }).leaves, false);
});
