import assert from "node:assert/strict";
import { test } from "node:test";
import { leastMove, plan, scrollTo, standAt } from "../../../transformer_lib/widgets/core/place.js";

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
  assert.deepEqual(plan({ figure, boxes: [box(400, 500)], phrase, view }), {
    by: 0,
    leaves: false,
  });
  assert.deepEqual(plan({ figure, boxes: [], phrase, view }), { by: 0, leaves: false });
});

test("figure and phrase in one window, if both have room; else what has changed and the phrase", () => {
  const phrase = box(600, 620);
  const figure = box(700, 1300); // 600 high: it needs 508 more, and the phrase can give 536
  assert.deepEqual(plan({ figure, boxes: [box(1200, 1290)], phrase, view }), {
    by: 508,
    leaves: false,
  });
  const tall = box(700, 1900);
  assert.deepEqual(plan({ figure: tall, boxes: [box(900, 1000)], phrase, view }), {
    by: 208,
    leaves: false,
  });
});

test("where there is no room for both, the phrase is left, and it is said so", () => {
  const phrase = box(600, 620);
  const low = plan({ figure: box(2000, 2400), boxes: [box(2100, 2200)], phrase, view });
  assert.deepEqual(low, { by: 2200 - 428, leaves: true }); // the whole figure, in the middle
  const tall = plan({ figure: box(-3000, -1000), boxes: [box(-1500, -1400)], phrase, view });
  assert.deepEqual(tall, { by: -1450 - 428, leaves: true }); // the change in the middle
  assert.equal(plan({ figure: box(2000, 2400), boxes: [], phrase: null, view }).leaves, false);
});

test("of changes that no window holds, one must be seen", () => {
  const figure = box(-900, 900);
  const far = plan({ figure, boxes: [box(-800, -700), box(850, 890)], phrase: box(80, 100), view });
  assert.notEqual(far.by, 0);
  const one = plan({ figure, boxes: [box(-800, -700), box(350, 390)], phrase: box(80, 100), view });
  assert.deepEqual(one, { by: 0, leaves: false });
  const pressed = { ...box(350, 390), isControl: true }; // which is not what it has done
  const done = plan({ figure, boxes: [box(-800, -700), pressed], phrase: box(80, 100), view });
  assert.notEqual(done.by, 0);
});

test("the figure stands where it leaves the paragraph free, or at least the phrase", () => {
  const high = { wanted: 700, height: 800 };
  const above = standAt({ paragraph: box(100, 200), phrase: box(150, 170), ...high });
  assert.deepEqual(above, { side: "bottom", high: 400 });
  const below = standAt({ paragraph: box(600, 700), phrase: box(600, 620), ...high });
  assert.deepEqual(below, { side: "top", high: 400 });
  const middle = standAt({ paragraph: box(380, 450), phrase: box(400, 420), ...high });
  assert.deepEqual(middle, { side: "bottom", high: 350 });
  const tall = standAt({ paragraph: box(100, 700), phrase: box(600, 620), ...high });
  assert.equal(tall.side, "top");
  const kept = standAt({
    paragraph: box(420, 450),
    phrase: box(420, 450),
    ...high,
    before: "bottom",
  });
  assert.deepEqual(kept, { side: "bottom", high: 350 }); // though there is more room above
  assert.equal(
    standAt({ paragraph: box(100, 200), phrase: box(150, 170), wanted: 90, height: 800 }).high,
    90,
  );
});

test("the figure beside the text is scrolled to what has changed, or to as much as there is room for", () => {
  const panel = { top: 400, bottom: 800 };
  assert.equal(scrollTo([], panel), 0);
  assert.equal(scrollTo([box(900, 1000)], panel), 350); // in the middle
  const some = scrollTo([box(500, 600), box(700, 750), box(1500, 1600)], panel);
  assert.ok(500 - some >= 400 && 750 - some <= 800);
  assert.equal(scrollTo([box(300, 900)], panel), -100); // its top
});
