// Where a model's numbers are kept, and how they are multiplied: in JavaScript, everywhere.
//
//   const { numbers, multiply, clear } = PLAIN;
//   numbers(12)     a Float32Array of zeros        clear()     no model needs its numbers any more
//
// simd.js makes another one, which is faster and whose sums are of 32 bits.

import { multiply } from "./product.js";

export const PLAIN = {
  isFast: false,
  numbers: (count) => new Float32Array(count),
  clear() {},
  multiply,
};
