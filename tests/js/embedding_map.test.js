import assert from "node:assert/strict";
import { test } from "node:test";

import { nameSpots, nearest, onMap } from "../../transformer_lib/widgets/embedding_map/model.js";
import { fixture } from "./support.js";

test("the nearest words are the library's, in its order", () => {
  for (const { count, cosines, nearest: right } of fixture("embedding_map").cases) {
    right.forEach((order, i) => {
      assert.deepEqual(
        nearest(cosines, count, i).map(([j]) => j),
        order,
      );
    });
  }
});

test("each pair of directions has its own columns", () => {
  const places = Float32Array.from({ length: 12 }, (_, i) => i);
  assert.deepEqual(onMap(places, 4, 0), [
    [0, 1],
    [4, 5],
    [8, 9],
  ]);
  assert.deepEqual(onMap(places, 4, 1), [
    [2, 3],
    [6, 7],
    [10, 11],
  ]);
});

test("no name lies on another, on a mark or outside; where there is no room there is none", () => {
  const points = Array.from({ length: 40 }, (_, i) => [
    100 + 90 * Math.sin(i * i),
    100 + 90 * Math.cos(3 * i),
  ]);
  const widths = points.map(() => 34);
  const spots = nameSpots(
    points,
    widths,
    points.map((_, i) => 39 - i),
    200,
  );
  const boxes = spots.flatMap((spot) =>
    spot ? [[spot[0] - 17, spot[1] - 11.5, spot[0] + 17, spot[1] + 2.5]] : [],
  );
  assert.ok(boxes.length > 5);
  assert.ok(boxes.length < 40);
  assert.ok(spots[39], "the first in order chooses first");
  boxes.forEach(([left, top, right, bottom], n) => {
    assert.ok(left >= 0 && top >= 0 && right <= 200 && bottom <= 200);
    for (const other of boxes.slice(0, n))
      assert.ok(right < other[0] || left > other[2] || bottom < other[1] || top > other[3]);
    for (const [x, y] of points)
      assert.ok(right < x - 5 || left > x + 5 || bottom < y - 5 || top > y + 5);
  });
});
