// The methods of the position lab, one entry each; to add a method, add an entry (widget.py reads
// the names from this file). An entry has
//
//   name, label       the value of the trait, and the choice that the reader sees
//   panels            the pictures that it has, of those in view.js
//   controls          the controls that it needs besides the method, p, k and the number of positions
//   width(settings, table), rows(settings, table)      components, and positions that exist
//   encode(settings, table, start, count)  -> { queries, keys } or also { rows }: the vectors at each
//                     position, where queries differ from them (through W_Q); or
//   bias(settings, table)    -> [query][key], for a method that changes the scores and no vector
//   turns             -1 if a later position turns against the clock's R(k), else 1
//   hands             the two vectors that a dial shows: their names in { rows, queries, keys }
//   hasWaves(settings)       whether each pair of components turns evenly; left out, none does
//   rowName(p)        the name of the vector at a position
//   titles            of the pictures: clocks, code, scores, penalties
//   effects           sentences on what a control does, where they differ from the usual; or functions
//                     of the settings that give one
//   measured          what a score is called in a sentence
//   hint              what to try

import { short } from "../core/numbers.js";
import {
  alibiBias,
  alibiSlopes,
  applyRotary,
  rotaryAngles,
  sinusoidal as waves,
} from "../math/positions.js";
import { ownAngleEncoding, project, randomProjections } from "./vectors.js";

// What the figure shows at a time: some of a method's pictures, with the controls that these need,
// and a hint for methods that have the control that it asks for.
export const VIEWS = {
  clocks: {
    panels: ["clocks", "penalties"],
    controls: ["position", "offset", "pair", "base", "n_heads", "head"],
  },
  code: {
    panels: ["code", "weights"],
    controls: ["position", "pair", "d_model", "base", "n_positions", "n_heads", "head"],
    asks: "pair",
    hint: "Try: choose a component by a click, and read its column from top to bottom: a wave.",
  },
  shift: {
    panels: ["clocks", "shift", "penalties"],
    controls: ["position", "offset", "d_model", "own_angle", "n_heads", "head"],
    asks: "own_angle",
    hint: "Try: tick the common bug, and watch the hands change their length.",
  },
  products: {
    panels: ["scores", "distance"],
    controls: ["method", "position", "offset", "d_model", "base", "projected", "n_heads", "head"],
    asks: "projected",
    hint: "Try: send the positions through random W_Q and W_K. Then do the same for another method.",
  },
  all: null,
};

const VECTOR_PANELS = ["clocks", "code", "scores", "shift", "distance"];

const sinusoidal = {
  name: "sinusoidal",
  label: "sinusoidal",
  panels: VECTOR_PANELS,
  controls: ["d_model", "base", "pair", "projected", "own_angle"],
  width: ({ d_model }) => d_model,
  rows: ({ n_positions }) => n_positions,
  encode({ d_model, base, own_angle, projected }, _, start, count) {
    const encoding = own_angle ? ownAngleEncoding : waves;
    return throughProjections(encoding(count, d_model, { base, start }), projected);
  },
  turns: 1,
  hands: ["rows", "rows"],
  hasWaves: ({ own_angle }) => !own_angle,
  rowName: (p) => `PE(${p})`,
  titles: {
    clocks:
      "Each pair of components is a clock hand: the sine (solid) points right, the cosine (dashed) up",
    code: "The code of every position",
    scores: "PE·PEᵀ: every position with every position",
    projected: "(PE·W_Q)(PE·W_K)ᵀ: every position with every position",
  },
  effects: {},
  measured: "The product",
  hint: "Try: drag the position. Fast hands turn, slow ones creep, and in every dial the angle between blue and orange stays.",
};

const rotary = {
  name: "rotary",
  label: "rotary",
  panels: VECTOR_PANELS,
  controls: ["d_model", "base", "pair", "projected"],
  width: ({ d_model }) => d_model,
  rows: ({ n_positions }) => n_positions,
  encode({ d_model, base, projected }, _, start, count) {
    const word = Array.from({ length: d_model }, (_, at) => at % 2); // every hand starts at twelve
    const angles = rotaryAngles(count, d_model, { base, start });
    const turn = (vector) =>
      applyRotary(
        angles.map(() => vector),
        angles,
      );
    if (!projected) {
      const queries = turn(word);
      return { queries, keys: queries };
    }
    const [wq, wk] = randomProjections(d_model);
    return { queries: turn(project(wq, word)), keys: turn(project(wk, word)) };
  },
  turns: -1,
  hands: ["queries", "keys"], // through W_Q and W_K they belong to two vectors
  hasWaves: () => true,
  rowName: (p) => `q(${p})`,
  titles: {
    clocks:
      "Each pair of components is a hand that is turned: the first (solid) points right, the second (dashed) up",
    code: "One word's query, turned at every position",
    scores: "Turned query · turned key, of one word everywhere",
  },
  effects: {},
  measured: "The product",
  hint: "Try: switch W_Q and W_K on and off. Query and key become two vectors, and the stripes stay.",
};

const perStep = ({ n_heads, head }) =>
  `Head ${head + 1} counts ${short(alibiSlopes(n_heads)[head], 4)} for each step.`;

const alibi = {
  name: "alibi",
  label: "ALiBi",
  panels: ["penalties", "weights", "scores", "distance"],
  controls: ["n_heads", "head"],
  width: ({ d_model }) => d_model,
  rows: ({ n_positions }) => n_positions,
  bias: ({ n_heads, n_positions, head }) =>
    alibiBias(alibiSlopes(n_heads)[head], n_positions, n_positions),
  titles: {
    scores: "What is added to the scores",
    penalties: "The penalty by distance, one line for each head",
  },
  effects: {
    head: perStep,
    n_heads: perStep,
    position: "Moving on changes nothing as long as the distance is the same.",
    offset: "Each step away costs the same.",
  },
  measured: "The penalty",
  hint: "Try: drag the head. The first one charges much for each step, the last one hardly anything.",
};

const learned = {
  name: "learned",
  label: "learned",
  panels: VECTOR_PANELS,
  controls: ["pair", "projected"],
  width: (_, table) => table[0].length,
  rows: ({ n_positions }, table) => Math.min(n_positions, table.length),
  encode: ({ projected }, table, start, count) =>
    throughProjections(table.slice(start, start + count), projected),
  turns: 1,
  hands: ["rows", "rows"],
  rowName: (p) => `row ${p}`,
  titles: {
    clocks: "Pairs of the table as hands: nothing makes them turn evenly",
    code: "The code of every position",
    scores: "Row · row of the table",
  },
  effects: {
    position: "Each position has a row of its own, unrelated to its neighbors'.",
    offset: "In this table the offset has no meaning of its own.",
  },
  measured: "The product",
  hint: "Try: drag the number of positions beyond the rows of the table.",
};

export const METHODS = [sinusoidal, rotary, alibi, learned];

export const methodNamed = (name) => METHODS.find((method) => method.name === name);

/** Rows as queries and keys: as they are, or each through its random projection. */
function throughProjections(rows, projected) {
  if (!projected) return { rows, queries: rows, keys: rows };
  const [wq, wk] = randomProjections(rows[0].length);
  return {
    rows,
    queries: rows.map((row) => project(wq, row)),
    keys: rows.map((row) => project(wk, row)),
  };
}
