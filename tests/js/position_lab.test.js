import assert from "node:assert/strict";
import { test } from "node:test";

import { dot } from "../../transformer_lib/widgets/math/linear.js";
import { applyRotary } from "../../transformer_lib/widgets/math/positions.js";
import { METHODS, methodNamed, VIEWS } from "../../transformer_lib/widgets/position_lab/methods.js";
import {
  compute,
  effect,
  movable,
  pairsToShow,
  settled,
  spreadAt,
} from "../../transformer_lib/widgets/position_lab/model.js";
import {
  randomProjections,
  wavelengths,
} from "../../transformer_lib/widgets/position_lab/vectors.js";
import { close, fixture } from "./support.js";

const library = fixture("position_lab");
const TABLE = [
  [1, 2],
  [0, 1],
  [3, -1],
  [2, 2],
  [1, 1],
];
const settings = (more = {}) => ({
  method: "sinusoidal",
  d_model: 8,
  base: 10000,
  n_positions: 11,
  position: 2,
  offset: 3,
  pair: 0,
  projected: false,
  own_angle: false,
  n_heads: 8,
  head: 1,
  ...more,
});
const fromCase = ({ n, width, base, position, offset }) => ({
  n_positions: n,
  d_model: width,
  base,
  position,
  offset,
});

test("sinusoidal: rows, products and the shifted row are the library's", () => {
  for (const { rows, scores, turned, ...rest } of library.sinusoidal) {
    const lab = compute(settings(fromCase(rest)), TABLE);
    close(lab.rows, rows);
    close(lab.scores, scores);
    close(lab.turned, turned);
    close(lab.turned, lab.arrived, 1e-12);
    assert.ok(lab.missed < 1e-12 && lab.spread < 1e-9);
  }
});

test("rotary: the turned vectors and their products are the library's", () => {
  for (const { rows, scores, ...rest } of library.rotary) {
    const lab = compute(settings({ method: "rotary", ...fromCase(rest) }), TABLE);
    close(lab.queries, rows);
    close(lab.scores, scores);
    assert.ok(lab.missed < 1e-12 && lab.spread < 1e-9);
  }
});

test("ALiBi: biases, and the weights over equal scores, are the library's", () => {
  for (const { heads, n, head, scores, weights } of library.alibi) {
    const lab = compute(
      settings({ method: "alibi", n_heads: heads, n_positions: n, head, position: 0 }),
      TABLE,
    );
    close(lab.scores, scores);
    close(lab.weights, weights);
  }
});

test("random projections break the sinusoidal distance, but not the rotary one", () => {
  const [sinus, rotary] = ["sinusoidal", "rotary"].map((method) =>
    compute(settings({ method, projected: true }), TABLE),
  );
  assert.ok(sinus.missed < 1e-12, "the encoding itself still shifts");
  assert.ok(sinus.spread > 0.1, `spread ${sinus.spread}`);
  assert.ok(rotary.spread < 1e-9, `spread ${rotary.spread}`);
});

test("projected scores are (W_Q x)·(W_K y), rotary turned after the projection", () => {
  const [wq, wk] = randomProjections(8);
  const { rows } = methodNamed("sinusoidal").encode(settings(), TABLE, 0, 11);
  const lab = compute(settings({ projected: true }), TABLE);
  const apply = (w, x) => w.map((row) => dot(row, x));
  close(lab.scores[2][5], dot(apply(wq, rows[2]), apply(wk, rows[5])), 1e-12);
  const word = [0, 1, 0, 1, 0, 1, 0, 1];
  const { angles } = { angles: wavelengths(8, 10000).map((wave) => (2 * Math.PI * 5) / wave) };
  const key = applyRotary([apply(wk, word)], [angles])[0];
  close(compute(settings({ method: "rotary", projected: true }), TABLE).keys[5], key, 1e-12);
});

test("the bug, a cosine with its own angle, fails both tests", () => {
  const lab = compute(settings({ own_angle: true }), TABLE);
  assert.ok(lab.missed > 0.1 && lab.spread > 0.1);
  const right = compute(settings(), TABLE);
  close(
    lab.rows.map((row) => row[2]),
    right.rows.map((row) => row[2]),
    1e-15,
  ); // sines are right
});

test("a learned table has no rows beyond its own, and no rotation", () => {
  const lab = compute(settings({ method: "learned", position: 0, offset: 2 }), TABLE);
  assert.equal(lab.reach, 5);
  assert.equal(lab.scores.length, 5);
  assert.ok(lab.missed > 0.1);
  const now = settled(settings({ method: "learned", position: 9, offset: 30, pair: 7 }), TABLE);
  assert.deepEqual([now.position, now.offset, now.pair], [0, 4, 0]);
});

test("settings are moved inside of what the others allow, and left alone where they fit", () => {
  assert.deepEqual(settled(settings(), TABLE), settings());
  assert.equal(settled(settings({ position: 10 }), TABLE).position, 7);
  assert.equal(settled(settings({ position: 0, offset: -4 }), TABLE).position, 4);
  assert.equal(settled(settings({ head: 9, n_heads: 3 }), TABLE).head, 2);
  assert.deepEqual(movable(11, 3), [0, 7]);
  assert.deepEqual(movable(11, -3), [3, 10]);
});

test("small helpers, by hand", () => {
  close(wavelengths(4, 10000), [2 * Math.PI, 200 * Math.PI], 1e-12);
  assert.deepEqual(pairsToShow(16, 2), [0, 2, 4, 8, 11, 15]);
  assert.deepEqual(pairsToShow(1, 0), [0]);
  assert.deepEqual(pairsToShow(3, 1), [0, 1, 2]);
  assert.equal(
    spreadAt(
      [
        [1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
      ],
      1,
    ),
    4,
  );
  assert.equal(
    spreadAt(
      [
        [1, 2],
        [4, 5],
      ],
      -1,
    ),
    0,
  );
  assert.match(effect("base", settings(), wavelengths(8, 10000)), /6,283 positions/);
  assert.equal(effect("", settings(), null), "");
  assert.match(effect("position", settings(), wavelengths(8, 10000)), /hands/);
  for (const name of ["base", "d_model"]) assert.equal(effect(name, settings(), null), "");
  assert.match(effect("position", settings({ method: "alibi" }), null), /same/);
});

test("the methods are those that Python lists, and every entry says what it needs", () => {
  assert.deepEqual(
    METHODS.map(({ name }) => name),
    library.methods,
  );
  assert.deepEqual(Object.keys(VIEWS), library.views);
  const views = Object.values(VIEWS).filter(Boolean);
  for (const method of METHODS) {
    for (const { panels } of views) assert.ok(panels.some((name) => method.panels.includes(name)));
    assert.match(method.hint, /^Try: /);
    assert.equal(typeof (method.encode ?? method.bias), "function", method.name);
    assert.ok(method.label && method.measured && method.titles.scores, method.name);
    assert.ok(method.panels.includes("scores") && method.panels.includes("distance"));
    const lab = compute(settings({ method: method.name, position: 0, offset: 1 }), TABLE);
    if (method.encode) {
      assert.equal(lab.rows[0].length, method.width(settings(), TABLE), method.name);
      assert.ok(method.hands.every((name) => lab[name]) && method.rowName(1) && method.titles.code);
    }
    assert.equal(lab.reach, method.rows(settings(), TABLE), method.name);
  }
});

test("a method more is an entry more", () => {
  const none = {
    ...methodNamed("sinusoidal"),
    name: "none",
    encode: (_settings, _table, _start, count) => {
      const rows = Array.from({ length: count }, () => [1, 0]);
      return { rows, queries: rows, keys: rows };
    },
    width: () => 2,
    effects: { offset: "The distance changes nothing." },
  };
  METHODS.push(none);
  try {
    const lab = compute(settings({ method: "none" }), TABLE);
    assert.equal(lab.scores[2][5], 1);
    assert.equal(lab.spread, 0);
    assert.equal(settled(settings({ method: "none", pair: 3 }), TABLE).pair, 0);
    assert.match(effect("offset", settings({ method: "none" }), null), /changes nothing/);
  } finally {
    METHODS.pop();
  }
});
