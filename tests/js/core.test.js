import assert from "node:assert/strict";
import { test } from "node:test";
import { readFloats, readJson } from "../../transformer_lib/widgets/core/wire.js";
import {
  attention,
  causalMask,
  entropy,
  maskedSoftmax,
  matmul,
  softmax,
  transpose,
} from "../../transformer_lib/widgets/math/linear.js";
import {
  alibiBias,
  alibiSlopes,
  applyRotary,
  rotaryAngles,
  sinusoidal,
} from "../../transformer_lib/widgets/math/positions.js";
import { close, fixture } from "./support.js";

const library = fixture("core");

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

test("sinusoidal encodings are the library's, and shift by its rotation", () => {
  for (const { n, width, options, encoding, shift } of library.sinusoidal) {
    close(sinusoidal(n, width, options), encoding);
    const later = sinusoidal(n, width, { ...options, start: options.start + 5 });
    close(matmul(sinusoidal(n, width, options), transpose(shift)), later);
  }
});

test("rotary positions are the library's", () => {
  for (const { x, options, angles, turned } of library.rotary) {
    close(rotaryAngles(x.length, x[0].length, options), angles);
    close(applyRotary(x, angles), turned);
  }
});

test("ALiBi's slopes and biases are the library's", () => {
  for (const slopes of library.alibi_slopes) close(alibiSlopes(slopes.length), slopes);
  for (const [heads, queries, keys, bias] of library.alibi_bias) {
    close(alibiBias(heads, queries, keys), bias);
  }
});

test("by hand: softmax of [0, 1] is [1, e] / (1 + e); entropy of a uniform row is ln n", () => {
  close(softmax([0, 1]), [1 / (1 + Math.E), Math.E / (1 + Math.E)], 1e-15);
  close(entropy([0.25, 0.25, 0.25, 0.25]), Math.log(4), 1e-15);
  assert.equal(entropy([0, 1, 0]), 0);
  assert.deepEqual(maskedSoftmax([5, 6], [false, false]), [0, 0]);
  assert.deepEqual(maskedSoftmax([5, 6, 7], [true, false, false]), [1, 0, 0]);
});

test("bytes are read from a view that starts in the middle of a buffer", () => {
  const buffer = new ArrayBuffer(13);
  const values = { _floats: new DataView(buffer, 5, 8), _json: new TextEncoder().encode('["ಗೆ"]') };
  values._floats.setFloat32(0, 1.5, true);
  values._floats.setFloat32(4, -2, true);
  const model = { get: (name) => values[name] };
  assert.deepEqual([...readFloats(model, "_floats")], [1.5, -2]);
  assert.deepEqual(readJson(model, "_json"), ["ಗೆ"]);
  assert.throws(() => readFloats({ get: () => new DataView(buffer, 0, 7) }, "_floats"), /7 bytes/);
  assert.throws(() => readJson({ get: () => "text" }, "_text"), /_text holds no bytes/);
});
