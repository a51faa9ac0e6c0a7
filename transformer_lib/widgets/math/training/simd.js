// The same matrix product, four numbers at a time, for whoever trains long enough to want it.
//
//   const machine = simd(64);                   // megabytes of room; null where it cannot be had
//   const model = transformer({ ..., machine });
//
// JavaScript has no operation on four numbers at once; WebAssembly does, in all of today's browsers.
// So the two inner loops of `multiply` are written here as a WebAssembly module, put together from the
// lists of operations below. Nothing else knows of it: where it is missing, machine.js computes the
// same in JavaScript, in five times the time.
//
// Two loops are enough, since of any product in training either B's columns lie side by side (bj = 1:
// a number of A times a piece of a row of B), or rows of A and columns of B both run along memory
// (at = bt = 1: pieces of both, and at the end the sum of each four). What the tiles leave over at the
// right and at the bottom goes to the loops of product.js.

import { multiply } from "./product.js";

const ROWS = 4; // of a tile of the first loop, by two pieces of four columns
const PAIR = 2; // rows of a tile of the second, by four columns

export function simd(megabytes) {
  let compiled = null;
  const memory = makeMemory(megabytes);
  try {
    if (!memory) return null;
    const module = new WebAssembly.Module(bytesOf(program()));
    compiled = new WebAssembly.Instance(module, { room: { memory } }).exports;
  } catch {
    return null; // an old browser, or a page that forbids it
  }
  let free = 0;
  return {
    isFast: true,
    numbers(count) {
      const end = free + 16 * Math.ceil(count / 4);
      if (end > memory.buffer.byteLength) {
        throw new Error(`the model takes more than the ${megabytes} MB that it was given`);
      }
      const made = new Float32Array(memory.buffer, free, count);
      free = end;
      return made;
    },
    clear() {
      new Uint8Array(memory.buffer, 0, free).fill(0);
      free = 0;
    },
    multiply(c, ci, a, ai, at, b, bt, bj, n, m, k, add) {
      const spread = bj === 1 && k > 0;
      if (!spread && !(at === 1 && bt === 1 && k > 0 && k % 4 === 0)) {
        multiply(c, ci, a, ai, at, b, bt, bj, n, m, k, add);
        return;
      }
      const rows = n - (n % (spread ? ROWS : PAIR));
      const columns = m - (m % (spread ? 8 : 4));
      const [from, left, right] = [c.byteOffset, a.byteOffset, b.byteOffset];
      if (rows && columns) {
        const sum = add ? 1 : 0;
        if (spread)
          compiled.spread(from, ci * 4, left, ai * 4, at * 4, right, bt * 4, rows, columns, k, sum);
        else compiled.along(from, ci * 4, left, ai * 4, right, bj * 4, rows, columns, k, sum);
      }
      if (columns < m && rows) {
        const rest = m - columns;
        multiply(
          c.subarray(columns),
          ci,
          a,
          ai,
          at,
          b.subarray(columns * bj),
          bt,
          bj,
          rows,
          rest,
          k,
          add,
        );
      }
      if (rows < n) {
        multiply(
          c.subarray(rows * ci),
          ci,
          a.subarray(rows * ai),
          ai,
          at,
          b,
          bt,
          bj,
          n - rows,
          m,
          k,
          add,
        );
      }
    },
  };
}

function makeMemory(megabytes) {
  try {
    const pages = 16 * megabytes;
    return new WebAssembly.Memory({ initial: pages, maximum: pages });
  } catch {
    return null;
  }
}

// --- The module. A function is a list of operations, as the text format of WebAssembly has them:
// ["local.get", 3], ["i32.add"]; a list within a list is put in its place.

const I32 = 0x7f;
const V128 = 0x7b;
const VECTOR = 0xfd; // before each operation on four numbers
const OPERATIONS = {
  loop: [0x03, 0x40],
  if: [0x04, 0x40],
  else: [0x05],
  end: [0x0b],
  br_if: [0x0d],
  "local.get": [0x20],
  "local.set": [0x21],
  "local.tee": [0x22],
  "i32.const": [0x41],
  "i32.lt_u": [0x49],
  "i32.add": [0x6a],
  "i32.sub": [0x6b],
  "i32.mul": [0x6c],
  "v128.load": [VECTOR, 0x00, 2], // 2: addresses are multiples of 2² bytes
  "v128.load32_splat": [VECTOR, 0x09, 2],
  "v128.store": [VECTOR, 0x0b, 2],
  "v128.const": [VECTOR, 0x0c],
  "i8x16.shuffle": [VECTOR, 0x0d],
  "f32x4.add": [VECTOR, 0xe4, 0x01],
  "f32x4.mul": [VECTOR, 0xe6, 0x01],
};

/** A whole number in the bytes of LEB128, signed where it is a constant. */
function leb(value, signed = false) {
  const bytes = [];
  let left = value;
  for (;;) {
    const low = left & 0x7f;
    left >>= 7;
    const sign = signed && low & 0x40;
    if ((left === 0 && !sign) || (left === -1 && sign)) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

function encode(list) {
  return list.flatMap(([name, ...values]) => {
    if (Array.isArray(name)) return encode([name, ...values]);
    const code = OPERATIONS[name];
    if (name === "i8x16.shuffle") return [...code, ...values[0]];
    if (name === "v128.const") return [...code, ...new Array(16).fill(0)];
    return [...code, ...values.flatMap((value) => leb(value, name === "i32.const"))];
  });
}

/** { memory, functions: [{ name, numbers: count of arguments, locals: [types], body }] } as a module. */
function bytesOf(functions) {
  const list = (items) => [...leb(items.length), ...items.flat()];
  const section = (id, content) => [id, ...leb(content.length), ...content];
  const text = (name) => list([...name].map((letter) => [letter.charCodeAt(0)]));
  const types = functions.map((one) => [0x60, ...list(Array(one.numbers).fill([I32])), 0]);
  const code = functions.map(({ locals, body }) => {
    const declared = list(locals.map((type) => [1, type]));
    const whole = [...declared, ...encode(body), ...OPERATIONS.end];
    return [...leb(whole.length), ...whole];
  });
  const maximum = leb(65536);
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, list(types)),
    ...section(2, list([[...text("room"), ...text("memory"), 0x02, 0x01, ...leb(0), ...maximum]])),
    ...section(3, list(functions.map((_, i) => leb(i)))),
    ...section(7, list(functions.map(({ name }, i) => [...text(name), 0x00, ...leb(i)]))),
    ...section(10, list(code)),
  ]);
}

/** Names for arguments and locals, and what is written of them often. */
function names(numbers, whole, vectors) {
  const all = [...numbers, ...whole, ...vectors];
  const at = (name) => all.indexOf(name);
  const get = (name) => ["local.get", at(name)];
  return {
    locals: [...whole.map(() => I32), ...vectors.map(() => V128)],
    numbers: numbers.length,
    get,
    set: (name, ...body) => [...body, ["local.set", at(name)]],
    tee: (name, ...body) => [...body, ["local.tee", at(name)]],
    /** name += by, where `by` is an argument or a number. */
    move: (name, by) => [
      get(name),
      typeof by === "number" ? ["i32.const", by] : get(by),
      ["i32.add"],
      ["local.set", at(name)],
    ],
    /** do { body } while (--count) */
    times: (count, body) => [
      ["loop"],
      ...body,
      get(count),
      ["i32.const", 1],
      ["i32.sub"],
      ["local.tee", at(count)],
      ["br_if", 0],
      ["end"],
    ],
  };
}

const zero = ["v128.const"];
const range = (count) => Array.from({ length: count }, (_, i) => i);

const program = () => [spreadLoop(), alongLoop()];

/** Store or add the vector that `value` leaves, at the address `to` plus an offset. */
function storing({ get }, to, offset, value) {
  return [
    get("add"),
    ["if"],
    ...[get(to), ...value, get(to), ["v128.load", offset], ["f32x4.add"], ["v128.store", offset]],
    ["else"],
    ...[get(to), ...value, ["v128.store", offset]],
    ["end"],
  ];
}

/** Rows of C by fours, columns by eights: for each t, four numbers of A, each times eight of B. */
function spreadLoop() {
  const sums = range(ROWS).flatMap((r) => [`s${r}0`, `s${r}1`]);
  const v = names(
    ["c", "ci", "a", "ai", "at", "b", "bt", "n", "m", "k", "add"],
    ["j", "t", "x", "y", "to", "from"],
    [...sums, "p", "q", "one"],
  );
  const { get, set, move, times } = v;
  const plus = (sum, piece) =>
    set(sum, get(sum), get("one"), get(piece), ["f32x4.mul"], ["f32x4.add"]);
  const inner = [
    ...set("p", get("y"), ["v128.load", 0]),
    ...set("q", get("y"), ["v128.load", 16]),
    ...set("from", get("x")),
    ...range(ROWS).flatMap((r) => [
      ...set("one", get("from"), ["v128.load32_splat", 0]),
      ...plus(`s${r}0`, "p"),
      ...plus(`s${r}1`, "q"),
      ...(r < ROWS - 1 ? move("from", "ai") : []),
    ]),
    ...move("x", "at"),
    ...move("y", "bt"),
  ];
  const tile = [
    ...sums.flatMap((sum) => set(sum, zero)),
    ...set("x", get("a")),
    ...set("y", get("b"), get("j"), ["i32.const", 4], ["i32.mul"], ["i32.add"]),
    ...set("t", get("k")),
    ...times("t", inner),
    ...set("to", get("c"), get("j"), ["i32.const", 4], ["i32.mul"], ["i32.add"]),
    ...range(ROWS).flatMap((r) => [
      ...storing(v, "to", 0, [get(`s${r}0`)]),
      ...storing(v, "to", 16, [get(`s${r}1`)]),
      ...move("to", "ci"),
    ]),
  ];
  return { name: "spread", numbers: v.numbers, locals: v.locals, body: rowsOf(v, ROWS, 8, tile) };
}

/** Rows of C by twos, columns by fours: for each four t, pieces of two rows of A and four columns of B. */
function alongLoop() {
  const sums = range(PAIR).flatMap((r) => range(4).map((q) => `s${r}${q}`));
  const v = names(
    ["c", "ci", "a", "ai", "b", "bj", "n", "m", "k", "add"],
    ["j", "t", "x", "y", "to", "from"],
    [...sums, "p", "q", "one"],
  );
  const { get, set, move, times } = v;
  const plus = (sum, piece) =>
    set(sum, get(sum), get("one"), get(piece), ["f32x4.mul"], ["f32x4.add"]);
  const inner = [
    ...set("p", get("x"), ["v128.load", 0]),
    ...set("q", get("x"), get("ai"), ["i32.add"], ["v128.load", 0]),
    ...set("from", get("y")),
    ...range(4).flatMap((q) => [
      ...set("one", get("from"), ["v128.load", 0]),
      ...plus(`s0${q}`, "p"),
      ...plus(`s1${q}`, "q"),
      ...(q < 3 ? move("from", "bj") : []),
    ]),
    ...move("x", 16),
    ...move("y", 16),
    ...set("t", get("t"), ["i32.const", 3], ["i32.sub"]), // and one more below: four at a time
  ];
  // Four sums of four, turned on their side: [s0 s1 s2 s3], each the sum of its own four.
  const pick = (...lanes) => [
    "i8x16.shuffle",
    lanes.flatMap((lane) => range(4).map((i) => 4 * lane + i)),
  ];
  const folded = (x, y) => [
    ...[get(x), get(y), pick(0, 4, 1, 5)],
    ...[get(x), get(y), pick(2, 6, 3, 7)],
    ["f32x4.add"],
  ];
  const total = (r) => [
    ...set("p", ...folded(`s${r}0`, `s${r}1`)),
    ...set("q", ...folded(`s${r}2`, `s${r}3`)),
    ...set(
      "one",
      ...[get("p"), get("q"), pick(0, 1, 4, 5)],
      ...[get("p"), get("q"), pick(2, 3, 6, 7)],
      ["f32x4.add"],
    ),
  ];
  const tile = [
    ...sums.flatMap((sum) => set(sum, zero)),
    ...set("x", get("a")),
    ...set("y", get("b"), get("j"), get("bj"), ["i32.mul"], ["i32.add"]),
    ...set("t", get("k")),
    ...times("t", inner),
    ...set("to", get("c"), get("j"), ["i32.const", 4], ["i32.mul"], ["i32.add"]),
    ...range(PAIR).flatMap((r) => [
      ...total(r),
      ...storing(v, "to", 0, [get("one")]),
      ...move("to", "ci"),
    ]),
  ];
  return { name: "along", numbers: v.numbers, locals: v.locals, body: rowsOf(v, PAIR, 4, tile) };
}

/** All tiles of so many rows and columns, row of tiles by row of tiles. */
function rowsOf({ get, set, tee }, rows, columns, tile) {
  return [
    ["loop"],
    ...set("j", ["i32.const", 0]),
    ["loop"],
    ...tile,
    ...tee("j", get("j"), ["i32.const", columns], ["i32.add"]),
    get("m"),
    ["i32.lt_u"],
    ["br_if", 0],
    ["end"],
    ...set("a", get("a"), get("ai"), ["i32.const", rows], ["i32.mul"], ["i32.add"]),
    ...set("c", get("c"), get("ci"), ["i32.const", rows], ["i32.mul"], ["i32.add"]),
    ...tee("n", get("n"), ["i32.const", rows], ["i32.sub"]),
    ["br_if", 0],
    ["end"],
  ];
}
