// PyTorch's names, as code outside of this folder calls them:
//
//   call("softmax", [x, -1])      -> a Tensor, a number, a text, or a list of them
//
// The arguments are those that python/torch.py lists, in that order: whole floats of Python come as
// Real, what is left out as null. A name with _ at its end writes into its first argument.

import { CREATION } from "./creation.js";
import { DECOMPOSITIONS } from "./decompositions.js";
import { assign, clone, ELEMENTWISE, to } from "./elementwise.js";
import { FUNCTIONAL } from "./functional.js";
import { GRADIENTS, isGradOn, setGrad } from "./graph.js";
import { INDEXING } from "./indexing.js";
import { repr, setPrintoptions } from "./printing.js";
import { PRODUCTS } from "./products.js";
import { Generator, RANDOM } from "./random.js";
import { REDUCTIONS } from "./reductions.js";
import { SHAPES } from "./shapes.js";
import { dense, fail, isScalar, kindOf, same } from "./tensor.js";

const OPERATIONS = {
  ...ELEMENTWISE,
  ...SHAPES,
  ...CREATION,
  ...RANDOM,
  ...REDUCTIONS,
  ...INDEXING,
  ...PRODUCTS,
  ...DECOMPOSITIONS,
  ...FUNCTIONAL,
  ...GRADIENTS,
  repr,
  item,
  tolist,
  truth,
  equal,
  generator: () => new Generator(),
  set_printoptions: setPrintoptions,
  set_grad: setGrad,
  is_grad_on: isGradOn,
  shape: (x) => x.shape,
  stride: (x) => x.strides,
  numel: (x) => x.numel,
  is_contiguous: (x) => x.isContiguous,
  requires_grad_: requireGrad,
  retain_grad,
  share,
  // As PyTorch names them where operations are recorded.
  float: (x) => to(x, "float32"),
  double: (x) => to(x, "float64"),
  long: (x) => to(x, "int64"),
  bool: (x) => to(x, "bool"),
};

export const NAMES = Object.keys(OPERATIONS);

export function call(name, given) {
  if (OPERATIONS[name]) return OPERATIONS[name](...given);
  const plain = name.slice(0, -1);
  if (!name.endsWith("_") || !OPERATIONS[plain]) fail(`there is no ${name}`, "AttributeError");
  const [x, ...others] = given;
  return assign(x, OPERATIONS[plain](clone(x), ...others), name); // gradients read x as it was
}

function item(x) {
  if (x.numel !== 1) fail(`a Tensor with ${x.numel} elements cannot be converted to Scalar`);
  return dense(x)[0];
}

/** The numbers row by row; Python nests them by the shape. */
function tolist(x) {
  return Array.from(dense(x));
}

function truth(x) {
  if (x.numel > 1) fail("Boolean value of Tensor with more than one value is ambiguous");
  if (x.numel === 0) fail("Boolean value of Tensor with no values is ambiguous");
  return dense(x)[0] !== 0;
}

function equal(a, b) {
  if (isScalar(b)) {
    const type = { bool: "bool", int64: "int", float32: "float" }[kindOf(b)];
    fail(`equal(): argument 'other' (position 2) must be Tensor, not ${type}`, "TypeError");
  }
  if (!same(a.shape, b.shape)) return false;
  const [one, other] = [dense(a), dense(b)];
  return one.every((value, i) => value === other[i]);
}

function requireGrad(x, needed) {
  if (!x.isFloat && needed) {
    fail("only Tensors of floating point dtype can require gradients");
  }
  if (x.node && !needed) {
    fail(
      "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().",
    );
  }
  x.requiresGrad = needed;
  return x;
}

function retain_grad(x) {
  x.keepsGrad = true;
  return x;
}

/** x.data = y: x looks at the numbers of y. */
function share(x, y) {
  const { storage, dtype, shape, strides, offset } = y;
  return Object.assign(x, { storage, dtype, shape, strides, offset });
}
