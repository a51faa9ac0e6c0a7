import assert from "node:assert/strict";
import test from "node:test";
import { formatted } from "../../../transformer_lib/widgets/math/tensor/format.js";
import { Slice } from "../../../transformer_lib/widgets/math/tensor/indexing.js";
import { call } from "../../../transformer_lib/widgets/math/tensor/operations.js";
import { dense, Real, Tensor, wrap } from "../../../transformer_lib/widgets/math/tensor/tensor.js";
import { fixture } from "../support.js";

const { calls, names, printed, random, programs, gradients, corners, formats, matrices } =
  fixture("tensor");
const number = (value) =>
  typeof value === "string"
    ? Number(value.replace("inf", "Infinity").replace("nan", "NaN"))
    : Number(value);

/** What a fixture holds, as call() takes it; pool: the tensors that ["#", i] names. */
function decode(value, pool = []) {
  if (Array.isArray(value)) {
    if (value[0] === "#") return pool[value[1]];
    if (value[0] === "gt") return call("gt", [pool[value[1]], 1]);
    return value.map((part) => decode(part, pool));
  }
  if (value === null || typeof value !== "object") return value;
  if (value.slice) return new Slice(...value.slice);
  if ("real" in value)
    return Number.isInteger(number(value.real)) ? new Real(number(value.real)) : number(value.real);
  const call_ = {
    float32: Float32Array,
    float64: Float64Array,
    int64: Float64Array,
    bool: Uint8Array,
  };
  return wrap(call_[value.dtype].from(value.t, number), value.shape, value.dtype);
}

function closeTo(actual, expected, where, tolerance) {
  if (Array.isArray(expected)) {
    assert.equal(actual.length, expected.length, where);
    expected.forEach((part, i) => closeTo(actual[i], part, `${where}[${i}]`, tolerance));
    return;
  }
  if ("value" in expected) return assert.deepEqual(actual, expected.value, where);
  assert.ok(actual instanceof Tensor, where);
  assert.deepEqual([actual.shape, actual.dtype], [expected.shape, expected.dtype], where);
  const right = expected.t.map(number);
  const exact = expected.dtype === "int64" || expected.dtype === "bool";
  const most = exact ? 0 : (tolerance ?? (expected.dtype === "float64" ? 1e-12 : 2e-6));
  Array.from(dense(actual)).forEach((value, i) => {
    const fits =
      Object.is(value, right[i]) ||
      Math.abs(value - right[i]) <= most * Math.max(1, Math.abs(right[i]));
    assert.ok(fits, `${where}: number ${i} is ${value}, not ${right[i]}`);
  });
  if (expected.text) assert.equal(call("repr", [decode(expected)]), expected.text, where);
}

function outcome(name, args, pool) {
  try {
    return { result: call(name, decode(args, pool)) };
  } catch (error) {
    if (!error.type) throw error;
    return { error: [error.type, error.message] };
  }
}

/** All that differs at once, by name: a list is worth more than its first line. */
function none(problems) {
  const few = problems.slice(0, 40).join("\n");
  assert.equal(problems.length, 0, `${problems.length} differ:\n${few}`);
}

function tried(work, problems) {
  try {
    work();
  } catch (error) {
    problems.push(error.message.split("\n").slice(0, 6).join(" | "));
  }
}

function compare(got, expected, where, tolerance) {
  if (expected.error) {
    assert.ok(got.error, `${where}: PyTorch raises ${expected.error}`);
    assert.deepEqual(got.error, expected.error, where);
  } else {
    assert.ok(!got.error, `${where}: ${got.error}, and PyTorch gives a result`);
    closeTo(got.result, expected.result, where, tolerance);
  }
}

test("every name gives what PyTorch gives, or raises what it raises", () => {
  const problems = [];
  for (const { name, args, ...expected } of calls) {
    const where = `${name}(${JSON.stringify(args).slice(0, 260)})`;
    tried(() => compare(outcome(name, args), expected, where), problems);
  }
  none(problems);
  const tested = new Set(calls.map(({ name }) => name));
  assert.ok(names.length > 130 && tested.size > 120, `${tested.size} of ${names.length} names`);
});

test("singular values are PyTorch's, and with the directions they make the matrix again", () => {
  for (const { x, values } of matrices) {
    const [matrix, most] = [decode(x), x.dtype === "float64" ? 1e-12 : 3e-6];
    const [u, s, vh] = call("svd", [matrix]);
    closeTo(s, values, "values", most);
    const again = call("matmul", [call("mul", [u, s]), vh]);
    closeTo(again, x, "u s vh", 10 * most);
    const square = call("eye", [s.shape[0], null, x.dtype]);
    const squares = [call("matmul", [call("mT", [u]), u]), call("matmul", [vh, call("mT", [vh])])];
    for (const each of squares) {
      const off = call("amax", [call("abs", [call("sub", [each, square])]), null, false]);
      assert.ok(dense(off)[0] < most, JSON.stringify(x));
    }
  }
});

test("a tensor is printed as PyTorch prints it", () => {
  const problems = [];
  for (const { x, options, text } of printed) {
    call("set_printoptions", [null, null, null, null, "default", null]);
    const { precision = null, linewidth = null, sci_mode = null } = options;
    call("set_printoptions", [precision, null, null, linewidth, null, sci_mode]);
    tried(() => assert.equal(call("repr", [decode(x)]), text), problems);
  }
  call("set_printoptions", [null, null, null, null, "default", null]);
  none(problems);
});

test("random numbers are PyTorch's: bit for bit, and normal ones to the last digits", () => {
  for (const { seed, draws } of random) {
    call("manual_seed", [seed, null]);
    for (const [name, shape, dtype, expected] of draws) {
      const drawn = {
        randn: () => call("randn", [shape, dtype, null]),
        rand: () => call("rand", [shape, dtype, null]),
        randint: () => call("randint", [-3, 11, shape, null, null]),
        randperm: () => call("randperm", [shape[0], null, null]),
      }[name]();
      const last = dtype === "float32" ? 5e-7 : 1e-14;
      closeTo(drawn, expected, `${name} ${shape} after ${seed}`, name === "randn" ? last : 0);
    }
  }
});

test("random programs give what they give in PyTorch, line by line", () => {
  const problems = [];
  let errors = 0;
  for (const { start, lines, pool: right } of programs) {
    const pool = start.map((x) => decode(x));
    tried(() => {
      for (const { name, args, ...expected } of lines) {
        const got = outcome(name, args, pool);
        const where = JSON.stringify(lines.map((line) => [line.name, line.args])).slice(0, 900);
        compare(got, expected, `${name} of ${where}`, 1e-4);
        if (got.error) errors += 1;
        else pool.push(got.result);
      }
      right.forEach((x, i) => closeTo(pool[i], x, `tensor ${i} at the end`, 1e-4));
    }, problems);
  }
  none(problems);
  assert.ok(
    programs.length > 1500 && errors > 100,
    `${programs.length} programs, ${errors} errors`,
  );
});

test("gradients are PyTorch's", () => {
  const problems = [];
  for (const { start, lines, grads, error } of [...gradients, ...corners]) {
    tried(() => {
      const leaves = start.map((x) => call("requires_grad_", [decode(x), true]));
      const pool = [...leaves];
      const where = JSON.stringify(lines);
      let said;
      try {
        for (const [name, args] of lines) pool.push(call(name, decode(args, pool)));
        call("backward", [call("sum", [pool.at(-1), null, false, null]), null, null, null]);
      } catch ({ message }) {
        said = message;
      }
      assert.equal(said, error?.slice(0, said?.length), where); // PyTorch says more
      grads?.forEach((grad, i) => {
        if (!grad.t.length) assert.equal(leaves[i].grad, null);
        else closeTo(leaves[i].grad, grad, `gradient ${i} of ${where}`, 1e-4);
      });
    }, problems);
  }
  none(problems);
  assert.ok(gradients.length > 300);
});

test("format() writes what Python writes", () => {
  const problems = [];
  for (const [kind, value, spec, text] of formats) {
    const given = kind === "float" ? number(value) : kind === "int" ? BigInt(value) : value;
    tried(() => assert.equal(formatted(given, spec), text, `${value}:${spec}`), problems);
  }
  none(problems);
});
