import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fixed,
  percent,
  percentAmong,
  precise,
  reading,
  short,
} from "../../../transformer_lib/widgets/core/numbers.js";

test("probabilities read well", () => {
  const texts = [1, 0.99999, 0.9995, 0.9994, 0.9951, 0.951, 0.6234, 0.05, 0.0005, 0.0004, 0].map(
    (share) => percent(share),
  );
  assert.deepEqual(texts, [
    "100 %",
    "> 99.9 %",
    "> 99.9 %",
    "99.9 %",
    "99.5 %",
    "95.1 %",
    "62 %",
    "5.0 %",
    "0.1 %",
    "< 0.1 %",
    "0 %",
  ]);
  for (let share = 0; share < 1; share += 0.00007)
    assert.notEqual(percent(share), "100 %", String(share));
});

test("what is one of several is never all or nothing", () => {
  assert.deepEqual(
    [1, 0.5, 0].map((share) => percentAmong(share, 3)),
    ["> 99.9 %", "50 %", "< 0.1 %"],
  );
  assert.equal(percentAmong(1, 1), "100 %");
});

test("a number of decimals that is given is kept, and nothing is rounded to 0 or 100 %", () => {
  assert.deepEqual(
    [0.871, 0.00004, 0.99997, 1, 0].map((share) => percent(share, 1)),
    ["87.1 %", "< 0.1 %", "> 99.9 %", "100.0 %", "0.0 %"],
  );
  assert.deepEqual(
    [0.231, 0.004, 0.996].map((share) => percent(share, 0)),
    ["23 %", "< 1 %", "> 99 %"],
  );
});

test("decimals: a true minus sign, no negative zero, −∞", () => {
  assert.deepEqual(
    [1.005, -0.401, -0.001, -Infinity, Infinity, 1e-9, 1e50].map((value) => fixed(value)),
    ["1.00", "−0.40", "0.00", "−∞", "∞", "0.00", "1e50"],
  );
  assert.deepEqual([fixed(-12.6, 0), fixed(-0.2, 0), fixed(0.12345, 4)], ["−13", "0", "0.1235"]);
});

test("short: significant digits without zeros at the end, whole parts as they are", () => {
  assert.deepEqual(
    [0, 12.2684, 35333.4, -0.75, 1.2e-15, 0.25, 1000, 999.96, 0.0012346].map((x) => short(x, 4)),
    ["0", "12.27", "35,333", "−0.75", "1.2e−15", "0.25", "1,000", "1,000", "0.001235"],
  );
  assert.deepEqual(
    [0, -0, 12, 0.042, 0.001, 4.26e-6, 1e-7, -3e-5, 99999, 123456, 1.23e8].map((x) => short(x)),
    ["0", "0", "12", "0.042", "0.001", "4.3e−6", "1e−7", "−3e−5", "99,999", "123,456", "1.2e8"],
  );
  assert.deepEqual([short(Number.NaN), short(-1e-9 * 0)], ["NaN", "0"]);
});

test("a reading has two decimals, or two significant digits where those would be lost", () => {
  assert.deepEqual(
    [3.0445, 0.52, 0.0995, 0.041, 0.00412, 0.00003, 3.1e-9, 0, 22.64, 123.4, -0.5].map((value) =>
      reading(value),
    ),
    ["3.04", "0.52", "0.10", "0.041", "0.0041", "3e−5", "3e−9", "0", "22.6", "123", "−0.50"],
  );
});

test("precise keeps the zeros at the end", () => {
  assert.deepEqual(
    [1, 0.03, 10, 0.5, 123.4, 1e-50].map((value) => precise(value)),
    ["1.0", "0.030", "10", "0.50", "123", "1e−50"],
  );
  assert.deepEqual([precise(0.12345, 3), precise(-123), precise(-0.5)], ["0.123", "−123", "−0.50"]);
});
