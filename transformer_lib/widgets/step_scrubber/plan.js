// Where each matrix of the strip is drawn. From left to right: X; what is made of it; the scores and
// what becomes of them; the heads' outputs; all of them side by side; Y. What a step works on, and what
// it makes, is large enough for numbers. All else is small, above it or in a column of its own.
//
//   const { width, height, places } = planStrip({ step, head, sizes, texts, room });
//     sizes: { tokens, dModel, dHead, heads }
//     texts: { words, features, outputs, name(id, large, step) }      widths in pixels
//     room: the width that there is; the strip may be wider
//     height: heightOf(the same), if it is known; every step has it
//   places: [{ id, x, y, rows, columns, cell: [width, height], large, numbered, labels, header }]
//     x, y: the corner of the cells; labels, header: the room for names beside and above, 0 for none
//   planPaper({ sizes, texts, room })    all of them large, in lines

import { headOf, resultOf, STEPS, sourcesOf, stepOf } from "./model.js";

export const NAME = 18; // the line above a matrix
export const EDGE = 15; // its sizes, below it and at its right
const SMALL_NAME = 15;
const GAPS = { far: 11, near: 18, narrow: 13, level: 7 };
const CELLS = { least: 27, most: 40, tall: 24, mask: 18 }; // three digits fit into the least
const TALLEST = 320; // of a matrix with many rows
const SMALL = { cell: 6, side: 40 };
const WIDE_ENOUGH = 500; // for air, and for a result whose rows are named at its left only

/** The columns of the strip at a step, each from top to bottom. */
function columnsAt(step, heads) {
  const from = (first, ...ids) => (step >= first ? ids : []);
  return [
    ["x"],
    ["W_Q", "q", ...from(1, "W_K", "k"), ...from(2, "W_V", "v")],
    step === 5 ? ["mask"] : [],
    [
      ...from(3, "scores"),
      ...from(4, "scaled"),
      ...from(6, "mask"),
      ...from(5, "masked"),
      ...from(6, "weights"),
    ],
    from(7, ...sourcesOf(8, heads)),
    from(8, "concat"),
    from(9, "W_O", "y"),
  ].filter((ids) => ids.length);
}

/** What has the rows of the result, and is drawn at its height. */
const LEVEL = { 0: ["x"], 1: ["x"], 2: ["x"], 5: ["mask"], 7: ["v", "weights"], 9: ["concat"] };

function shapeOf(id, { tokens, dModel, dHead, heads }) {
  const kind = headOf(id) === null ? id : "z";
  const words = [tokens, tokens];
  return (
    {
      x: [tokens, dModel],
      W_O: [heads * dHead, dModel],
      concat: [tokens, heads * dHead],
      y: [tokens, dModel],
      scores: words,
      scaled: words,
      mask: words,
      masked: words,
      weights: words,
    }[kind] ?? (id.startsWith("W_") ? [dModel, dHead] : [tokens, dHead])
  );
}

/** By what a matrix's rows and columns are named: "words", "features", "outputs", "index" or null. */
export function namedBy(id) {
  if (id === "mask") return [null, null];
  if (id === "W_O") return ["index", "outputs"];
  if (id.startsWith("W_")) return ["features", "index"];
  const columns = { x: "features", y: "outputs" }[id];
  const square = ["scores", "scaled", "masked", "weights"].includes(id);
  return ["words", columns ?? (square ? "words" : "index")];
}

function cellsFor({ tokens, dModel, dHead, heads }) {
  const longest = Math.max(tokens, dModel, heads * dHead);
  const tall = Math.max(8, Math.min(CELLS.tall, Math.floor(TALLEST / longest)));
  const numbered = tall >= 20;
  const [least, most] = numbered ? [CELLS.least, CELLS.most] : [Math.ceil(0.6 * tall), tall];
  const side = Math.max(0.5, Math.min(SMALL.cell, SMALL.side / longest));
  return { tall, numbered, least, most, side };
}

function largeItem(id, wide, header, { step, sizes, texts }) {
  const { tall, numbered } = cellsFor(sizes);
  const [rows, columns] = shapeOf(id, sizes);
  const [beside, above] = namedBy(id);
  const index = Math.max(rows, columns) > 10 ? 18 : 10; // one digit or two
  const widthOf = (kind) => (kind === "index" ? index : Math.min(96, Math.ceil(texts[kind])));
  const upright = above && widthOf(above) > wide + 2;
  const names = header && above ? (upright ? widthOf(above) + 9 : NAME) : 0;
  const cell = id === "mask" && numbered ? [CELLS.mask, CELLS.mask] : [wide, tall];
  return {
    id,
    rows,
    columns,
    cell,
    large: true,
    numbered,
    upright: Boolean(upright),
    labels: beside ? widthOf(beside) + 8 : 0,
    header: names,
    top: NAME + names,
    height: NAME + names + rows * cell[1] + EDGE,
    name: texts.name(id, true, step),
  };
}

function smallItem(id, { step, sizes, texts }) {
  const [rows, columns] = shapeOf(id, sizes);
  const { side } = cellsFor(sizes);
  return {
    id,
    rows,
    columns,
    cell: [side, side],
    large: false,
    numbered: false,
    labels: 0,
    header: 0,
    top: SMALL_NAME,
    width: Math.ceil(Math.max(columns * side, texts.name(id, false, step))),
    height: Math.ceil(SMALL_NAME + rows * side),
  };
}

/** What is large at a step: the result and, where there is room, what it is made of. */
function largeAt(step, head, sizes) {
  const { tall } = cellsFor(sizes);
  const all = sizes.heads * (sizes.tokens * tall + 60) < 420;
  return [...(step === 8 && !all ? [] : sourcesOf(step, sizes.heads)), resultOf(step, head)];
}

/** One column, its items with dx and dy within it. */
function column(ids, wide, options) {
  const { step, head, sizes, room } = options;
  const chosen = largeAt(step, head, sizes);
  const big = ids.filter((id) => chosen.includes(id));
  // One line of names for the columns of all that are above one another: over the last.
  const large = big.map((id, at) => largeItem(id, wide, at === big.length - 1, options));
  const named = (step === 7 || step === 9) && room >= WIDE_ENOUGH; // its rows, at the left of it
  for (const item of large) if (named && item.id === resultOf(step, head)) item.labels = 0;
  const left = Math.max(0, ...large.map((item) => item.labels));
  const widths = large.map(({ columns, cell, name }) =>
    Math.max(left + columns * cell[0] + EDGE, name),
  );
  const small = ids.filter((id) => !chosen.includes(id)).map((id) => smallItem(id, options));
  const across = ids[0] === "W_Q" ? 2 : Math.ceil(small.length / 6);
  const widest = Math.max(0, ...small.map((item) => item.width));
  const limit = Math.max(...widths, across * (widest + GAPS.level) - GAPS.level);
  let [x, y, line] = [0, 0, 0];
  for (const item of small) {
    if (x && x + item.width > limit) [x, y, line] = [0, y + line + GAPS.level, 0];
    Object.assign(item, { dx: x, dy: y + item.top });
    x += item.width + GAPS.level;
    line = Math.max(line, item.height);
  }
  const start = small.length ? y + line + GAPS.level : 0;
  y = start;
  for (const item of large) {
    Object.assign(item, { dx: left, dy: y + item.top });
    y += item.height + GAPS.level;
  }
  const height = Math.max(0, y - GAPS.level);
  const middle = large.length ? (start + height) / 2 : height / 2;
  const near = large.length > 0;
  const cells = Math.max(0, ...large.map(({ columns }) => columns));
  return { items: [...small, ...large], near, across: cells, width: limit, height, middle };
}

/** All columns of a step, in cells as wide as there is room for. */
function columnsOf(options) {
  const { least, most } = cellsFor(options.sizes);
  const gap = options.room < WIDE_ENOUGH ? GAPS.narrow : GAPS.near;
  let wide = most;
  for (;;) {
    const columns = columnsAt(options.step, options.sizes.heads).map((ids) =>
      column(ids, wide, options),
    );
    let x = 0;
    columns.forEach((one, at) => {
      x += at ? (one.near && columns[at - 1].near ? gap : GAPS.far) : 0;
      one.x = x;
      x += one.width;
    });
    if (wide <= least || x <= options.room) return { columns, width: x };
    const across = columns.reduce((sum, one) => sum + one.across, 0); // cells side by side
    wide = Math.max(least, wide - Math.max(1, Math.floor((x - options.room) / across)));
  }
}

/** The height that every step of a strip has. */
export function heightOf(options) {
  const every = STEPS.flatMap((_, step) => columnsOf({ ...options, step }).columns);
  return Math.max(...every.map((one) => one.height));
}

const centerOf = (item) => item.dy + (item.rows * item.cell[1]) / 2;

export function planStrip(options) {
  const { step, head } = options;
  const { height = heightOf(options) } = options;
  const { columns, width } = columnsOf(options);
  const put = (one, middle, at) => {
    one.y = Math.round(Math.max(0, Math.min(at - middle, height - one.height)));
  };
  for (const one of columns) put(one, one.middle, height / 2);
  const find = (id) => {
    const one = columns.find(({ items }) => items.some((item) => item.id === id));
    return { one, item: one.items.find((item) => item.id === id) };
  };
  const result = find(resultOf(step, head));
  for (const id of LEVEL[step] ?? []) {
    const { one, item } = find(id);
    put(one, centerOf(item), result.one.y + centerOf(result.item));
  }
  const places = columns.flatMap(({ items, x, y }) =>
    items.map(({ dx, dy, ...item }) => ({ ...item, x: x + dx, y: y + dy })),
  );
  return { width: Math.ceil(width), height, places };
}

export function planPaper(options) {
  const { sizes, room } = options;
  const ids = STEPS.flatMap((_, step) => [
    ...sourcesOf(step, sizes.heads),
    ...(step === 7 ? [] : [resultOf(step, 0)]),
  ]);
  const { least } = cellsFor(sizes);
  const places = [];
  let [x, y, line, width] = [0, 0, [], 0];
  const end = () => {
    const top = Math.max(...line.map((item) => item.top));
    for (const item of line) item.y = y + top;
    y += Math.max(...line.map((item) => top - item.top + item.height)) + GAPS.level;
    [x, line] = [0, []];
  };
  for (const id of new Set(ids)) {
    const item = largeItem(id, least + 4, true, { ...options, step: Math.max(0, stepOf(id)) });
    const wide = Math.max(item.labels + item.columns * item.cell[0] + EDGE, item.name);
    if (x && x + wide > room) end();
    item.x = x + item.labels;
    x += wide + GAPS.near;
    width = Math.max(width, x - GAPS.near);
    line.push(item);
    places.push(item);
  }
  end();
  return { width: Math.ceil(width), height: y, places };
}
