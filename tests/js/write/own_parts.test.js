import assert from "node:assert/strict";
import test, { before } from "node:test";
import { close, fixture } from "../support.js";
import { begin } from "./python.js";

const { engine, machine, packed, programs, words, cases } = fixture("write_machine");
let python = null;

before(async () => {
  python = await begin();
  python.readEngine(engine);
  python.readMachine(
    machine,
    packed.map((bytes) => Uint8Array.from(bytes).buffer),
  );
});

function put({ text, call, program }) {
  const code = `${text}\n\n${call}\n`;
  return python.tryIn(code, { namespace: "mine", program: programs[program], words, head: [2, 0] });
}

for (const one of cases.filter(({ error }) => !error)) {
  test(`as many answers are right as in the notebook: ${one.call}`, () => {
    const { tried, error } = put(one);
    assert.equal(error, undefined);
    assert.equal(tried.right, one.right);
    assert.equal(tried.of, machine.facts.prompts.length);
    assert.equal(tried.said, one.said);
    close(tried.probability, one.chance, 2e-3);
    close(Array.from(tried.weights.subarray(-words.length)), one.row, 2e-3);
  });
}

for (const one of cases.filter(({ error }) => error)) {
  test(`refused in the notebook's words: ${one.call}`, () => {
    const { tried, error } = put(one);
    assert.equal(tried, undefined);
    assert.equal(error.type, one.error.type);
    assert.equal(error.message, one.error.message);
  });
}

test("an error has the reader's own line, and PyTorch's words", () => {
  const text = "def outside(q, k):\n    scores = q @ k\n    return scores";
  const { error } = put({ text, call: "machine.using(attention_weights=outside)", program: 0 });
  assert.equal(error.line, 2);
  assert.match(error.message, /mat1 and mat2 shapes cannot be multiplied \(1x12 and 1x12\)/);
});

test("the page's layers have their parameters as before", () => {
  const { text, error } = python.run(`from torch import nn
layer = nn.Linear(2, 1)
layer(layer.weight).sum().backward()
len([one.grad for one in layer.parameters()])`);
  assert.equal(error, undefined);
  assert.equal(text, "2\n");
});

test("a text that puts nothing in is told how", () => {
  const { error } = put({ text: "x = 3", call: "", program: 0 });
  assert.match(error.message, /machine\.using\(attention_weights=mine\)/);
});

test("a loop without an end is ended", { timeout: 60_000 }, () => {
  const text = "def mine(q, k):\n    while True:\n        pass";
  const { now } = performance;
  performance.now = () => 50 * now.call(performance); // the 10 s that it has are over sooner
  const { error } = put({ text, call: "machine.using(attention_weights=mine)", program: 0 });
  performance.now = now;
  assert.equal(error.type, "TimeoutError");
  assert.equal(put(cases[0]).tried.right, cases[0].right); // and the page goes on
});
