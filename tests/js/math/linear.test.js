import assert from "node:assert/strict";
import { test } from "node:test";
import {
  attention,
  causalMask,
  entropy,
  maskedSoftmax,
  softmax,
} from "../../../transformer_lib/widgets/math/linear.js";
import { close, fixture } from "../support.js";

const library = fixture("math");

test("softmax with a temperature is the library's", () => {
  assert.equal(library.softmax.length, 12);
  for (const { scores, temperature, weights } of library.softmax) {
    close(softmax(scores, temperature), weights);
  }
});

for (const { name, q, k, v, options, weights, output } of library.attention) {
  test(`attention is the library's: ${name}`, () => {
    const mine = attention(q, k, v, options);
    close(mine.weights, weights);
    close(mine.output, output);
  });
}

test("the causal mask is the library's, with fewer and more queries than keys", () => {
  for (const [queries, keys, mask] of library.causal) {
    assert.deepEqual(causalMask(queries, keys), mask);
  }
});

test("by hand: softmax of [0, 1] is [1, e] / (1 + e); entropy of a uniform row is ln n", () => {
  close(softmax([0, 1]), [1 / (1 + Math.E), Math.E / (1 + Math.E)], 1e-15);
  close(entropy([0.25, 0.25, 0.25, 0.25]), Math.log(4), 1e-15);
  assert.equal(entropy([0, 1, 0]), 0);
  assert.deepEqual(maskedSoftmax([5, 6], [false, false]), [0, 0]);
  assert.deepEqual(maskedSoftmax([5, 6, 7], [true, false, false]), [1, 0, 0]);
});
