import { test } from "node:test";
import { matmul } from "../../../transformer_lib/widgets/math/linear.js";
import {
  alibiBias,
  alibiSlopes,
  applyRotary,
  rotaryAngles,
  sinusoidal,
} from "../../../transformer_lib/widgets/math/positions.js";
import { close, fixture } from "../support.js";

const library = fixture("math");

test("sinusoidal encodings are the library's, and shift by its rotation", () => {
  for (const { n, width, options, encoding, shift } of library.sinusoidal) {
    close(sinusoidal(n, width, options), encoding);
    const later = sinusoidal(n, width, { ...options, start: options.start + 5 });
    close(matmul(sinusoidal(n, width, options), shift), later);
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
    close(
      alibiSlopes(heads).map((slope) => alibiBias(slope, queries, keys)),
      bias,
    );
  }
});
