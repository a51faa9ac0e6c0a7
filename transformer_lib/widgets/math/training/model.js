// A small Transformer that learns in the page: its parts put together, and its first weights.
//
//   const model = transformer({ vocabulary: 10, tokens: 24, batch: 16, width: 32, layers: 2 });
//   model.ids.set(...);  model.targets.set(...);     // [batch, tokens]; target −1: not asked
//   const loss = model.forward();
//   model.backward();                                // then an optimizer's step
//   model.probabilities                              // [batch, tokens, vocabulary]
//   model.attention[layer]                           // [batch, heads, tokens, tokens]
//   model.parameters                                 // Map: the name in PyTorch -> { data, grad, … }
//
// It is pre-norm, with RMSNorm, without biases; the matrices that write into the residual stream and
// the output's begin at zero, so that the model begins by knowing nothing, at the loss of chance.

import { normal } from "../../core/random.js";
import { attend } from "./attention.js";
import {
  crossEntropy,
  embed,
  linear,
  makeTape,
  norm,
  place,
  reluSquared,
  smear,
} from "./layers.js";
import { PLAIN } from "./machine.js";

/** `hidden`: the width of feed-forward layers, 0 for none. `reach`: of the smear, 0 for none.
 * `positions`: "rotary" or "learned". */
export function transformer({
  vocabulary,
  tokens,
  batch,
  width,
  layers = 1,
  heads = 1,
  hidden = 0,
  reach = 0,
  positions = "rotary",
  seed = 1,
  machine = PLAIN,
}) {
  const tape = makeTape(machine);
  const draw = normal(seed);
  const parameters = new Map();
  // A "table" is not a matrix that turns vectors into vectors: Muon leaves it to Adam.
  function parameter(name, rows, columns, spread, table = false) {
    const made = { ...tape.tensor(rows, columns), table };
    for (let i = 0; i < made.data.length; i += 1) made.data[i] = spread === 0 ? 0 : spread * draw();
    parameters.set(name, made);
    return made;
  }
  const ids = new Int32Array(batch * tokens);
  const targets = new Int32Array(batch * tokens).fill(-1);
  const inner = 1 / Math.sqrt(width);
  let x = embed(tape, ids, parameter("embedding.weight", vocabulary, width, 0.3, true));
  if (reach) {
    const shares = parameter("embedding.smear.weights", reach, width, 0, true);
    shares.data.fill(0.5);
    x = smear(tape, x, shares, tokens);
  }
  if (positions === "learned") {
    x = place(
      tape,
      x,
      parameter("embedding.positions.table.weight", tokens, width, 0.3, true),
      tokens,
    );
  }
  for (let l = 0; l < layers; l += 1) {
    const normed = norm(tape, x);
    const [q, k, v] = ["query", "key", "value"].map((name) =>
      linear(
        tape,
        normed,
        parameter(`blocks.${l}.attention.${name}.weight`, width, width, 0.3 * inner),
      ),
    );
    const mixed = attend(tape, q, k, v, { heads, tokens, rotary: positions === "rotary" });
    x = linear(tape, mixed, parameter(`blocks.${l}.attention.output.weight`, width, width, 0), x);
    if (!hidden) continue;
    const thinking = `blocks.${l}.feed_forward`;
    const expand = parameter(`${thinking}.expand.weight`, hidden, width, 0.5 * inner);
    const wide = reluSquared(tape, linear(tape, norm(tape, x), expand));
    x = linear(tape, wide, parameter(`${thinking}.contract.weight`, width, hidden, 0), x);
  }
  const head = parameter("head.weight", vocabulary, width, 0, true);
  const logits = linear(tape, norm(tape, x), head);
  const { steps } = tape;
  return {
    ids,
    targets,
    parameters,
    vocabulary,
    tokens,
    heads,
    attention: steps.filter((step) => step.weights).map((step) => step.weights),
    probabilities: logits.data,
    /** The loss of `ids` and `targets`: the mean over the targets, in nats. */
    forward() {
      for (const step of steps) step.forward();
      return crossEntropy(logits, targets);
    },
    /** After `forward`: every parameter's `grad`. */
    backward() {
      for (const { grad } of parameters.values()) grad.fill(0);
      for (const { result } of steps) if (result !== logits) result.grad.fill(0);
      for (let i = steps.length - 1; i >= 0; i -= 1) steps[i].backward();
    },
  };
}
