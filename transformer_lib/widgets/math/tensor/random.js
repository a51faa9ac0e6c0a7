// Random numbers as PyTorch draws them on a processor: the same generator (MT19937), and from its
// numbers the same tensors.

import { assign } from "./elementwise.js";
import { dense, fail, fresh, numberOf, wrap } from "./tensor.js";

const [N, M] = [624, 397];
export const DEFAULT_SEED = 67280421310721n;

export class Generator {
  constructor() {
    this.seed(DEFAULT_SEED);
  }

  seed(seed) {
    const state = new Uint32Array(N);
    state[0] = Number(BigInt.asUintN(32, BigInt(seed)));
    for (let i = 1; i < N; i += 1) {
      const last = state[i - 1] ^ (state[i - 1] >>> 30);
      state[i] = Math.imul(1812433253, last) + i;
    }
    this.state = state;
    this.at = N;
    this.cached = null; // the second of two normal numbers that were drawn together
    return this;
  }

  /** What it is now, for restore. */
  kept() {
    return { state: this.state.slice(), at: this.at, cached: this.cached };
  }

  restore({ state, at, cached }) {
    Object.assign(this, { state: state.slice(), at, cached });
  }

  /** 32 random bits. */
  next() {
    const { state } = this;
    if (this.at === N) {
      for (let i = 0; i < N; i += 1) {
        const after = i + 1 < N ? i + 1 : 0;
        const far = i + M < N ? i + M : i + M - N;
        const mixed = (state[i] & 0x80000000) | (state[after] & 0x7fffffff);
        state[i] = state[far] ^ (mixed >>> 1) ^ (mixed & 1 ? 0x9908b0df : 0);
      }
      this.at = 0;
    }
    let y = state[this.at];
    this.at += 1;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  next64() {
    return (BigInt(this.next()) << 32n) | BigInt(this.next());
  }

  /** From 0 to below 1. */
  uniform(dtype) {
    if (dtype === "float32") return (this.next() & 0xffffff) / 2 ** 24;
    const high = this.next() & 0x1fffff;
    return (high * 2 ** 32 + this.next()) / 2 ** 53;
  }

  normal() {
    if (this.cached !== null) {
      const value = this.cached;
      this.cached = null;
      return value;
    }
    const [u1, u2] = [this.uniform("float64"), this.uniform("float64")];
    const r = Math.sqrt(-2 * Math.log1p(-u2));
    this.cached = r * Math.sin(2 * Math.PI * u1);
    return r * Math.cos(2 * Math.PI * u1);
  }
}

const usual = new Generator();

export function manual_seed(seed, generator) {
  const number = BigInt(seed);
  if (number < -(1n << 63n) || number >= 1n << 64n) {
    fail("Overflow when unpacking long long");
  }
  return (generator ?? usual).seed(number);
}

export const initial = () => usual;

/** Sixteen uniform numbers become sixteen normal ones. */
function boxMuller(data, at, mean, std) {
  for (let j = at; j < at + 8; j += 1) {
    const radius = Math.sqrt(-2 * Math.log(1 - data[j]));
    const theta = 2 * Math.PI * data[j + 8];
    data[j] = radius * Math.cos(theta) * std + mean;
    data[j + 8] = radius * Math.sin(theta) * std + mean;
  }
}

/** As above, rounded at each step. */
function boxMullerSingle(data, at, mean, std) {
  const round = Math.fround;
  const circle = round(2 * Math.PI);
  for (let j = at; j < at + 8; j += 1) {
    const radius = round(Math.sqrt(round(-2 * round(Math.log(round(1 - data[j]))))));
    const theta = round(circle * data[j + 8]);
    data[j] = round(round(radius * round(Math.cos(theta))) * std) + mean;
    data[j + 8] = round(round(radius * round(Math.sin(theta))) * std) + mean;
  }
}

function fillUniform(data, from, dtype, generator) {
  if (dtype === "float32") {
    for (let i = from; i < data.length; i += 1) data[i] = (generator.next() & 0xffffff) / 16777216;
  } else for (let i = from; i < data.length; i += 1) data[i] = generator.uniform(dtype);
}

function fillNormal(data, dtype, mean, std, generator) {
  if (data.length < 16) {
    for (let i = 0; i < data.length; i += 1) data[i] = generator.normal() * std + mean;
    return;
  }
  const turn = dtype === "float32" ? boxMullerSingle : boxMuller;
  fillUniform(data, 0, dtype, generator);
  for (let i = 0; i + 16 <= data.length; i += 16) turn(data, i, mean, std);
  if (data.length % 16) {
    fillUniform(data, data.length - 16, dtype, generator);
    turn(data, data.length - 16, mean, std);
  }
}

function requireFloat(dtype, name) {
  if (dtype === "float32" || dtype === "float64") return;
  const titles = { int64: "Long", bool: "Bool" };
  fail(`"${name}" not implemented for '${titles[dtype]}'`, "NotImplementedError");
}

export function randn(shape, dtype, generator) {
  const result = fresh(shape, dtype ?? "float32");
  requireFloat(result.dtype, "normal_kernel_cpu");
  fillNormal(result.storage.data, result.dtype, 0, 1, generator ?? usual);
  return result;
}

export function rand(shape, dtype, generator) {
  const result = fresh(shape, dtype ?? "float32");
  requireFloat(result.dtype, "check_uniform_bounds");
  const { data } = result.storage;
  fillUniform(data, 0, result.dtype, generator ?? usual);
  return result;
}

export function randint(low, high, shape, dtype, generator) {
  if (low >= high) {
    fail(`random_ expects 'from' to be less than 'to', but got from=${low} >= to=${high}`);
  }
  const range = high - low;
  const source = generator ?? usual;
  const result = fresh(shape, dtype ?? "int64");
  const { data } = result.storage;
  const draw =
    range < 2 ** 32 ? () => source.next() % range : () => Number(source.next64() % BigInt(range));
  for (let i = 0; i < data.length; i += 1) data[i] = draw() + low;
  return result;
}

export function randperm(n, generator, dtype) {
  const source = generator ?? usual;
  const data = Float64Array.from({ length: n }, (_, i) => i);
  for (let i = 0; i < n - 1; i += 1) {
    const other = i + (source.next() % (n - i));
    [data[i], data[other]] = [data[other], data[i]];
  }
  const result = wrap(data, [n], "int64");
  return dtype && dtype !== "int64" ? assign(fresh([n], dtype), result) : result;
}

export function normal_(x, mean, std, generator) {
  requireFloat(x.dtype, "normal_kernel_cpu");
  const numbers = dense(x).slice();
  fillNormal(numbers, x.dtype, numberOf(mean ?? 0), numberOf(std ?? 1), generator ?? usual);
  return assign(x, wrap(numbers, x.shape, x.dtype), "normal_");
}

export function uniform_(x, from, to, generator) {
  requireFloat(x.dtype, "check_uniform_bounds");
  const round = x.dtype === "float32" ? Math.fround : Number;
  const [low, high] = [round(numberOf(from ?? 0)), round(numberOf(to ?? 1))];
  const source = generator ?? usual;
  const numbers = dense(x).slice();
  for (let i = 0; i < numbers.length; i += 1) {
    numbers[i] = round(source.uniform(x.dtype) * round(high - low)) + low;
  }
  return assign(x, wrap(numbers, x.shape, x.dtype), "uniform_");
}

/** Under PyTorch's names. */
export const RANDOM = { manual_seed, normal_, rand, randint, randn, randperm, uniform_ };
