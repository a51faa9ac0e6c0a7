import assert from "node:assert/strict";
import test from "node:test";
import { fixture } from "../support.js";
import { begin } from "./python.js";

// What the chapters use of PyTorch, and the page does not have.
const LACKING = new Set(
  "MultiheadAttention MultiHeadAttention bfloat16 cdist dropout eigvalsh float16 int inv lstsq matrix_rank optim qr special det".split(
    " ",
  ),
);

test("cells of chapters 01 to 05 print in the page what they print in the notebook", async () => {
  const python = await begin();
  const counts = { open: 0, same: 0, without: 0 };
  const wrong = [];
  for (const { name, cells, taken } of fixture("write_cells")) {
    const missing = new Set(taken); // names that are not there, and what is made of them
    let isBehind = false; // numbers were not drawn, and the next ones are others until a seed is set
    for (const [i, { code, open, many, wanted }] of cells.entries()) {
      isBehind = (isBehind || many) && !(code.includes("manual_seed") && !many);
      if (many) {
        for (const [, made] of code.matchAll(/^(?:def )?(\w+)/gm)) missing.add(made);
        continue;
      }
      const { text, error } = python.run(code, name);
      const reason = error && whyNot(error, missing);
      if (error) for (const made of namesOf(code)) missing.add(made);
      if (!open) continue;
      counts.open += 1;
      if (!error && text === wanted) counts.same += 1;
      else if (reason || isBehind) counts.without += 1;
      else wrong.push(`${name}, code cell ${i}: ${JSON.stringify(error ?? { text, wanted })}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.equal(counts.same + counts.without, counts.open);
  assert.ok(counts.same >= 60, JSON.stringify(counts));
  console.log(JSON.stringify(counts));
});

/** The name that a cell wants and the page does not have. */
function whyNot({ type, message }, missing) {
  const lacking = /this page's tensors have no (?:more of )?([\w.]+);/.exec(message);
  if (lacking) return LACKING.has(lacking[1]) ? lacking[1] : null;
  const unknown = type === "NameError" && /^name '(\w+)' is not defined$/.exec(message);
  return unknown && missing.has(unknown[1]) ? unknown[1] : null;
}

/** What a cell would have made: assigned names, functions, loops' names. */
function namesOf(code) {
  const found = [...code.matchAll(/^ *(?:def (\w+)|for ([\w, ]+) in|([\w., ]+?)(?:: \w+)? = )/gm)];
  return found.flatMap(([, ...names]) =>
    names.filter(Boolean).flatMap((text) => text.split(/\W+/)),
  );
}
