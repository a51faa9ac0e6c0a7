import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { exported, imported, note } from "../../../transformer_lib/widgets/write/page/progress.js";

/** localStorage, as far as it is asked. */
function storage(entries = {}) {
  const methods = {
    getItem: (key) => held[key] ?? null,
    setItem(key, value) {
      held[key] = value;
    },
  };
  const held = Object.assign(Object.create(methods), entries);
  return held;
}

beforeEach(() => {
  globalThis.document = { dispatchEvent() {} };
});

test("what one browser saves, another one has", () => {
  globalThis.localStorage = storage({
    "afm-answered": '["01/check_a"]',
    "afm-written:/book/chapters/01.html:01/check_a": "def a(x):\n    return x",
    other: "not the book's",
  });
  const file = exported(globalThis.localStorage);
  assert.ok(!file.includes("not the book's"));
  globalThis.localStorage = storage({
    "afm-answered": '["02/check_b"]',
    "afm-written:/C:/copy/chapters/01.html:01/check_c": "mine",
  });
  imported(file, globalThis.localStorage, "/C:/copy/book/index.html");
  const { localStorage } = globalThis;
  assert.deepEqual(JSON.parse(localStorage["afm-answered"]), ["02/check_b", "01/check_a"]);
  assert.equal(
    localStorage["afm-written:/C:/copy/chapters/01.html:01/check_a"],
    "def a(x):\n    return x",
  );
  assert.equal(localStorage["afm-written:/C:/copy/chapters/01.html:01/check_c"], "mine");
});

test("a page's path may have a colon in it", () => {
  const key = "afm-written:/C:/book/chapters/01.html:01/check_a";
  globalThis.localStorage = storage({ [key]: "mine" });
  assert.deepEqual(JSON.parse(exported(globalThis.localStorage)).written, [
    { page: "chapters/01.html", name: "01/check_a", text: "mine" },
  ]);
});

for (const kept of ['{"a": 1}', "5", "true", '"text"', "[5]"]) {
  test(`what others have kept under the name is no answer: ${kept}`, () => {
    globalThis.localStorage = storage({ "afm-answered": kept });
    note("01/check_a");
    assert.equal(globalThis.localStorage["afm-answered"], '["01/check_a"]');
  });
}

test("what was written here already is not replaced", () => {
  const key = "afm-written:/chapters/01.html:a";
  globalThis.localStorage = storage({ [key]: "here" });
  const file = JSON.stringify({
    answered: [],
    written: [{ page: "chapters/01.html", name: "a", text: "there" }],
  });
  imported(file, globalThis.localStorage, "/chapters/02.html");
  assert.equal(globalThis.localStorage[key], "here");
});

for (const text of [
  "",
  "{}",
  "null",
  '{"answered": [1], "written": []}',
  '{"answered": [], "written": [{}]}',
]) {
  test(`another file is refused: ${text}`, () => {
    globalThis.localStorage = storage();
    assert.throws(
      () => imported(text, globalThis.localStorage, "/a/b.html"),
      /not a file that was saved/,
    );
  });
}
