import assert from "node:assert/strict";
import test, { before } from "node:test";
import { judge } from "../../../transformer_lib/widgets/write/page/choice.js";
import { prepare } from "../../../transformer_lib/widgets/write/source.js";
import { fixture } from "../support.js";
import { begin } from "./python.js";

const prepared = (text) => prepare(text).code;
let python = null;
const { engine, exercises } = fixture("write_checks");

before(async () => {
  python = await begin();
  const [shims, ...modules] = engine;
  python.readEngine([prepared(shims), ...modules.map(([name, text]) => [name, prepared(text)])]);
  for (const { check, program } of exercises) {
    const modules = program.modules.map(([name, text]) => [name, prepared(text)]);
    const { error } = python.lay({ modules, context: prepared(program.context) }, check);
    assert.equal(error, undefined, check);
  }
});

const said = (check, text, name = "answer") =>
  python.check(text, { namespace: check, name, call: `${check}(${name})` });

test("the page says of an answer what the notebook says", () => {
  let count = 0;
  for (const { check, stub, answers } of exercises) {
    assert.deepEqual(said(check, ...stub).verdict, { passed: null, text: "not attempted yet" });
    for (const [text, passed, diagnosis] of answers) {
      count += 1;
      assert.deepEqual(said(check, text).verdict, { passed, text: diagnosis }, text);
    }
  }
  assert.ok(count > 20);
});

test("an answer that does not run is an error with its line", () => {
  const { error, verdict } = said(
    "check_one_output",
    "def answer(x, i):\n    return x\n\nnothing\n",
  );
  assert.deepEqual([error.type, error.line], ["NameError", 4]);
  assert.equal(verdict, undefined); // the one before it is not judged in its place
});

test("a choice is judged by the sentences of its check", () => {
  const asked = {
    right: ["1", "3"],
    said: { 1: "3 is missing.", 2: "2 does not belong: why.", 3: "" },
    missing: { 1: "1 is missing: it sees word 5.", 3: "3 is missing." },
    praise: "Right.",
  };
  assert.deepEqual(judge(asked, []), { passed: null, text: "not attempted yet" });
  assert.deepEqual(judge(asked, ["1", "2"]), { passed: false, text: "2 does not belong: why." });
  assert.deepEqual(judge(asked, ["3"]), { passed: false, text: "1 is missing: it sees word 5." });
  assert.deepEqual(judge(asked, ["1", "3"]), { passed: true, text: "Right." });
});
