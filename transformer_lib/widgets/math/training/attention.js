// Causal attention that learns: every head of every text of the batch, forward and backward.
//
//   const mixed = attend(tape, q, k, v, { heads: 2, tokens: 24, rotary: true });
//   tape.steps.at(-1).weights          // of the last forward: [batch, heads, tokens, tokens]
//
// The whole square of weights is computed and the half above the diagonal thrown away: for texts of
// a few dozen tokens that costs less than to avoid it.

export function attend(tape, q, k, v, { heads, tokens, rotary }) {
  const d = q.columns;
  const size = d / heads;
  const square = tokens * tokens;
  const scale = 1 / Math.sqrt(size);
  const { multiply } = tape;
  const y = tape.tensor(q.rows, d);
  const weights = tape.numbers((q.rows / tokens) * heads * square);
  const wanted = tape.numbers(square); // the derivatives by the weights of one head
  const turn = rotary ? rotation(d, size, tokens) : () => {};
  const views = [];
  for (let r = 0; r < q.rows; r += tokens) {
    for (let h = 0; h < heads; h += 1) {
      const of = (numbers) => numbers.subarray(r * d + h * size);
      views.push({
        q: of(q.data),
        k: of(k.data),
        v: of(v.data),
        y: of(y.data),
        dq: of(q.grad),
        dk: of(k.grad),
        dv: of(v.grad),
        dy: of(y.grad),
        p: weights.subarray(square * views.length, square * (views.length + 1)),
      });
    }
  }
  tape.steps.push({
    result: y,
    weights,
    forward() {
      turn(q.data, 1);
      turn(k.data, 1);
      for (const one of views) {
        multiply(one.p, tokens, one.q, d, 1, one.k, 1, d, tokens, tokens, size, false);
        softmax(one.p, tokens, scale);
        multiply(one.y, d, one.p, tokens, 1, one.v, d, 1, tokens, size, tokens, false);
      }
    },
    backward() {
      for (const one of views) {
        multiply(wanted, tokens, one.dy, d, 1, one.v, 1, d, tokens, tokens, size, false);
        multiply(one.dv, d, one.p, 1, tokens, one.dy, d, 1, tokens, size, tokens, true);
        softmaxBackward(wanted, one.p, tokens, scale);
        multiply(one.dq, d, wanted, tokens, 1, one.k, d, 1, tokens, size, tokens, true);
        multiply(one.dk, d, wanted, 1, tokens, one.q, d, 1, tokens, size, tokens, true);
      }
      turn(q.grad, -1); // what was turned there is turned back
      turn(k.grad, -1);
    },
  });
  return y;
}

/** Rotary positions, in place: pair i of token t is turned by the angle t / 10000^(2i / size). */
function rotation(d, size, tokens) {
  const pairs = size / 2;
  const cosines = new Float64Array(tokens * pairs);
  const sines = new Float64Array(tokens * pairs);
  for (let t = 0; t < tokens; t += 1) {
    for (let i = 0; i < pairs; i += 1) {
      const angle = t * 10000 ** (-i / pairs);
      cosines[t * pairs + i] = Math.cos(angle);
      sines[t * pairs + i] = Math.sin(angle);
    }
  }
  return (numbers, direction) => {
    for (let first = 0; first < numbers.length; first += d) {
      const row = ((first / d) % tokens) * pairs;
      for (let one = first; one < first + d; one += size) {
        for (let i = 0; i < pairs; i += 1) {
          const at = one + 2 * i;
          const x = numbers[at];
          const y = numbers[at + 1];
          const cosine = cosines[row + i];
          const sine = direction * sines[row + i];
          numbers[at] = x * cosine - y * sine;
          numbers[at + 1] = x * sine + y * cosine;
        }
      }
    }
  };
}

/** From scores to weights, in place: row i sees the columns 0 … i. */
function softmax(p, tokens, scale) {
  for (let i = 0; i < tokens; i += 1) {
    const first = i * tokens;
    const end = first + i + 1;
    let top = Number.NEGATIVE_INFINITY;
    for (let j = first; j < end; j += 1) if (p[j] > top) top = p[j];
    let sum = 0;
    for (let j = first; j < end; j += 1) {
      const power = Math.exp((p[j] - top) * scale);
      p[j] = power;
      sum += power;
    }
    for (let j = first; j < end; j += 1) p[j] /= sum;
    for (let j = end; j < first + tokens; j += 1) p[j] = 0;
  }
}

/** From the derivatives by the weights p to those by the scores, in place. */
function softmaxBackward(wanted, p, tokens, scale) {
  for (let first = 0; first < p.length; first += tokens) {
    let mean = 0;
    for (let j = first; j < first + tokens; j += 1) mean += wanted[j] * p[j];
    for (let j = first; j < first + tokens; j += 1) wanted[j] = p[j] * (wanted[j] - mean) * scale;
  }
}
