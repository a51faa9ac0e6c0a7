import assert from "node:assert/strict";
import { test } from "node:test";
import { csvText } from "../../../transformer_lib/widgets/core/figure.js";

test("CSV is quoted where needed, and no cell becomes a formula", () => {
  assert.equal(
    csvText([
      ["a", 0.5],
      ['say "hi", you\n', -1e-7],
    ]),
    'a,0.5\r\n"say ""hi"", you\n",-1e-7\r\n',
  );
  assert.equal(csvText([["=1+1", "@x", "-a"]]), "'=1+1,'@x,'-a\r\n");
});
