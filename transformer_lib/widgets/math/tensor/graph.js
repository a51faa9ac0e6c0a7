// How a tensor was computed, so that gradients can flow back: reverse mode, as in torch.autograd.
//
//   record("MulBackward0", result, [a, b], (grad) => [mul(grad, b), mul(grad, a)], [a, b])
//
// The last list names what the way back reads: a write into it afterwards is refused.

import { count, dense, fail, fresh, same, sizes, Tensor, wrap } from "./tensor.js";

const mode = { isOn: true };

export const isGradOn = () => mode.isOn;
export function setGrad(isOn) {
  const before = mode.isOn;
  mode.isOn = isOn;
  return before;
}

export function record(name, result, inputs, back, saved = []) {
  const needed = mode.isOn && inputs.some((x) => x instanceof Tensor && x.requiresGrad);
  if (!needed || !result.isFloat) return result;
  result.requiresGrad = true;
  const versions = saved
    .filter((x) => x instanceof Tensor)
    .map(({ storage }) => ({ storage, version: storage.version }));
  const edges = inputs.map((x) => x?.node ?? null);
  const needs = inputs.map((x) => x instanceof Tensor && x.requiresGrad); // now, not later
  result.node = { name, inputs, edges, needs, back, versions };
  return result;
}

/** Sum a gradient over what was broadcast. */
export function reduceTo(grad, shape) {
  if (same(grad.shape, shape)) return grad;
  const more = grad.shape.length - shape.length;
  const numbers = dense(grad);
  const total = new Float64Array(count(shape));
  const index = new Int32Array(grad.shape.length);
  const steps = new Int32Array(grad.shape.length);
  let step = 1;
  for (let d = shape.length - 1; d >= 0; d -= 1) {
    steps[d + more] = shape[d] === 1 ? 0 : step;
    step *= shape[d];
  }
  let at = 0;
  for (let i = 0; i < numbers.length; i += 1) {
    total[at] += numbers[i];
    for (let d = grad.shape.length - 1; d >= 0; d -= 1) {
      index[d] += 1;
      at += steps[d];
      if (index[d] < grad.shape[d]) break;
      at -= steps[d] * grad.shape[d];
      index[d] = 0;
    }
  }
  const result = fresh(shape, grad.dtype);
  result.storage.data.set(total);
  const { shape: large } = grad;
  return record("SumBackward1", result, [grad], (g) => [spread(g, large)]);
}

/** The way back of a sum: the gradient again for every number of a larger shape. */
function spread(grad, shape) {
  const more = shape.length - grad.shape.length;
  const strides = shape.map((_, d) => {
    const size = grad.shape[d - more];
    return d < more || size === 1 ? 0 : grad.strides[d - more];
  });
  const result = new Tensor(grad.storage, grad.dtype, shape, strides, grad.offset);
  return record("ExpandBackward0", result, [grad], (g) => [reduceTo(g, grad.shape)]);
}

function plus(a, b) {
  const numbers = dense(a).slice();
  const more = dense(b);
  for (let i = 0; i < numbers.length; i += 1) numbers[i] += more[i];
  return record("AddBackward0", wrap(numbers, a.shape, a.dtype), [a, b], (g) => [g, g]);
}

function seed(output, grad) {
  if (!output.requiresGrad) {
    fail("element 0 of tensors does not require grad and does not have a grad_fn");
  }
  if (grad) {
    if (same(grad.shape, output.shape)) return grad;
    const shapes = `grad_output[0] has a shape of torch.Size(${sizes(grad.shape)}) and output[0] has a shape of torch.Size(${sizes(output.shape)})`;
    fail(`Mismatch in shape: ${shapes}.`);
  }
  if (output.numel !== 1) fail("grad can be implicitly created only for scalar outputs");
  const one = fresh(output.shape, output.dtype);
  one.storage.data[0] = 1;
  return one;
}

/** What each tensor that `wanted` picks gets, as a Map. */
function flow(outputs, grads, wanted, { keep, create }) {
  const order = [];
  const seen = new Set();
  const visit = (node) => {
    const path = [[node, 0]];
    seen.add(node);
    while (path.length) {
      const top = path[path.length - 1];
      const next = top[0].edges[top[1]];
      if (top[1] >= top[0].edges.length) {
        order.push(top[0]);
        path.pop();
      } else {
        top[1] += 1;
        if (next && !seen.has(next)) {
          seen.add(next);
          path.push([next, 0]);
        }
      }
    }
  };
  const held = new Map(); // node -> the gradient of its result
  const found = new Map(); // tensor -> its gradient
  const add = (map, key, grad) => map.set(key, map.has(key) ? plus(map.get(key), grad) : grad);
  const reach = (tensor, node, grad) => {
    if (wanted(tensor, node)) add(found, tensor, grad);
    if (node) add(held, node, grad);
  };
  const before = setGrad(create);
  try {
    outputs.forEach((output, i) => {
      if (output.node && !seen.has(output.node)) visit(output.node);
      reach(output, output.node, seed(output, grads?.[i]));
    });
    for (const node of order.reverse()) {
      if (!held.has(node)) continue;
      if (!node.back) {
        fail(
          "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward.",
        );
      }
      if (node.versions.some(({ storage, version }) => storage.version !== version)) {
        fail(
          "one of the variables needed for gradient computation has been modified by an inplace operation",
        );
      }
      const given = node.back(held.get(node));
      node.inputs.forEach((input, i) => {
        if (given[i] && node.needs[i]) reach(input, node.edges[i], given[i]);
      });
      if (!keep && node.versions.length) node.back = null;
    }
  } finally {
    setGrad(before);
  }
  return found;
}

export function backward(output, grad, keep, create) {
  const leaf = (tensor, node) => !node && tensor.requiresGrad;
  const options = { keep: keep ?? create ?? false, create: create ?? false };
  const wanted = (tensor, node) => leaf(tensor, node) || tensor.keepsGrad;
  for (const [tensor, got] of flow([output], [grad], wanted, options)) {
    tensor.grad = tensor.grad
      ? plus(tensor.grad, got)
      : wrap(dense(got).slice(), got.shape, got.dtype);
  }
}

/** torch.autograd.grad */
export function gradOf(outputs, inputs, grads, keep, create, allowUnused) {
  const wanted = new Set(inputs);
  for (const input of inputs) {
    if (!input.requiresGrad) fail("One of the differentiated Tensors does not require grad");
  }
  const options = { keep: keep ?? create ?? false, create: create ?? false };
  const found = flow(outputs, grads, (tensor) => wanted.has(tensor), options);
  return inputs.map((input) => {
    if (found.has(input)) return found.get(input);
    if (allowUnused) return null;
    return fail(
      "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.",
    );
  });
}

/** Under PyTorch's names. */
export const GRADIENTS = { backward, grad: gradOf };
