import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMarkup, plain } from "../../../transformer_lib/widgets/core/markup.js";

/** The markup as one line: [em a] for *a*. */
const shown = (text) => {
  const line = (part) => part.text ?? `[${part.kind} ${part.parts.map(line).join("")}]`;
  return parseMarkup(text).map(line).join("");
};

test("italic, bold and code", () => {
  assert.equal(shown("Whom does *gave* score?"), "Whom does [em gave] score?");
  assert.equal(shown("**all** of `x*y*` it"), "[strong all] of [code x*y*] it");
  assert.equal(shown("*a* and *b c*, **d *e* f**"), "[em a] and [em b c], [strong d [em e] f]");
});

test("a star that marks nothing stays a star", () => {
  for (const text of ["2 * 3 * 4", "a*", "*", "**", "* a*", "`", "", "<b>&lt;</b>"]) {
    assert.equal(shown(text), text);
  }
  assert.equal(shown("\\*a\\* \\`b\\` \\n"), "*a* `b` \\n");
});

test("plain text", () => {
  assert.equal(plain("Does **gave *win*** in `S`?"), "Does gave win in S?");
});

test("a long text without partners is read at once", () => {
  const start = performance.now();
  parseMarkup("*a ".repeat(3000));
  parseMarkup("**".repeat(5000));
  assert.ok(performance.now() - start < 2000);
});
