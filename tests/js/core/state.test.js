import assert from "node:assert/strict";
import { test } from "node:test";

import { holds, labels, readLink, readValue } from "../../../transformer_lib/widgets/core/state.js";

const TEXTS = { words: ["mary", "the", "roses", "the", "a, b"] };

test("tokens that repeat are numbered, as in Python", () => {
  assert.deepEqual(labels(TEXTS.words), ["mary", "the", "roses", "the#2", "a, b"]);
  assert.deepEqual(labels(["a", "a", "a#2", "a"]), ["a", "a#3", "a#2", "a#4"]);
});

test("a link is a name and settings in order", () => {
  assert.deepEqual(readLink("#set:painter;reset;layers=2;follow=a%3B%20b;sign=a=b;odd=50%"), {
    name: "painter",
    settings: [
      ["reset", ""],
      ["layers", "2"],
      ["follow", "a; b"],
      ["sign", "a=b"],
      ["odd", "50%"],
    ],
  });
});

test("values are read, or refused", () => {
  const cases = [
    [
      { kind: "flag" },
      { on: true, off: false, yes: undefined, "": undefined, constructor: undefined },
    ],
    [{ kind: "action" }, { "": true, on: undefined }],
    [
      { kind: "option", values: { rotary: "rotary", first: 0 } },
      { rotary: "rotary", first: 0, toString: undefined },
    ],
    [
      { kind: "number", low: 1, high: 6, multiple: 1, none: "all" },
      { 1: 1, 6: 6, 7: undefined, 1.5: undefined, "": undefined, all: null, "0x2": undefined },
    ],
    [
      { kind: "number", low: null, high: null, multiple: 0, none: "" },
      {
        "−1.5": -1.5,
        "1e3": 1000,
        ".5": 0.5,
        "1e400": undefined,
        Infinity: undefined,
        NaN: undefined,
        "": undefined,
      },
    ],
    [
      { kind: "number", low: 2, high: 9, multiple: 2, none: "" },
      { 4: 4, 5: undefined },
    ],
    [
      { kind: "numbers", count: 2, whole: false, low: null },
      { "1,-2.5": [1, -2.5], 1: undefined, "1,2,3": undefined, "1,": undefined },
    ],
    [
      { kind: "numbers", count: 2, whole: true, low: 0 },
      { "1,2": [1, 2], "1,-2": undefined },
    ],
    [
      { kind: "token", of: "words", first: 0 },
      { roses: 2, the: 1, "the#2": 3, 4: 4, 5: undefined, "-1": undefined, you: undefined },
    ],
    [
      { kind: "token", of: "words", first: 1 },
      { mary: undefined, 0: undefined, the: 1 },
    ],
    [
      { kind: "pair", rows: "words", columns: "words" },
      { "mary,the#2": [0, 3], "a, b,roses": [4, 2], "mary,": undefined, mary: undefined },
    ],
  ];
  for (const [key, values] of cases) {
    for (const [text, expected] of Object.entries(values)) {
      assert.deepEqual(readValue(key, text, TEXTS), expected, `${key.kind} ${text}`);
    }
  }
});

test("conditions hold together; equality has the tolerance of two decimals", () => {
  const facts = { a: 1, b: 2, c: 1.004, d: Number.NaN };
  const yes = [
    ["a", "<", 2],
    ["a", "<", "b"],
    ["a", "=", "c"],
    ["c", "<=", 1],
    ["a", ">=", "c"],
    ["c", ">", "a"],
  ];
  const no = [
    ["a", ">", 1],
    ["a", "=", "b"],
    ["b", "<=", "c"],
    ["d", "=", 1],
    ["a", "<", "d"],
    ["none", "<", 1],
  ];
  assert.ok(holds(yes, facts));
  for (const one of no) assert.ok(!holds([one], facts), one.join(" "));
  assert.ok(!holds([...yes, no[0]], facts));
});
