// The operands of a number, marked on the strip: frames around its operands, and lines that lead from
// them to it. The lines lie under the matrices, so that no number is crossed out.
//
//   drawMarks({ over, under }, { place, row, column }, operands, joined)      over, under: SVG groups
//     joined: whether there are lines
//     operands: [[place, [row, column, rows, columns], role], ...]; the first meets the cell in its
//     row, the second in its column

import { svgElement } from "../core/dom.js";
import { EDGE, NAME } from "./plan.js";

const ROUND = 9;

const boxOf = ({ x, y, cell: [wide, tall] }, [row, column, rows, columns]) => ({
  left: x + column * wide,
  top: y + row * tall,
  right: x + (column + columns) * wide,
  bottom: y + (row + rows) * tall,
});
const wholeOf = (place) => boxOf(place, [0, 0, place.rows, place.columns]);

function frame(kind, { left, top, right, bottom }, by = 0) {
  const [width, height] = [right - left + 2 * by, bottom - top + 2 * by];
  const shape = { x: left - by, y: top - by, width, height, rx: 3 };
  return svgElement("rect", { class: `afm-outline afm-outline-${kind}`, ...shape });
}

/** A frame around one cell: "cell", "kept" or "focus". */
export function frameCell(layer, kind, { place, row, column }, by = 0) {
  const box = boxOf(place, [row, column, 1, 1]);
  if (kind === "cell") layer.append(frame("halo", box, by));
  layer.append(frame(kind, box, by));
}

/** Frames around the operands of a cell, and lines from them to it. */
export function drawMarks({ over, under }, target, operands, joined) {
  const cell = boxOf(target.place, [target.row, target.column, 1, 1]);
  operands.forEach(([place, box, role], at) => {
    const from = boxOf(place, box);
    const d = joined && pathFrom(from, wholeOf(place), cell, target.place, at === 0);
    if (d) under.append(svgElement("path", { class: `afm-join afm-from-${role || "plain"}`, d }));
    over.append(frame("halo", from), frame(`from afm-from-${role || "plain"}`, from));
  });
}

/** A line to the cell's row or to its column; null where there is no way. */
function pathFrom(from, all, cell, place, first) {
  const whole = wholeOf(place);
  const [x, y] = [(cell.left + cell.right) / 2, (cell.top + cell.bottom) / 2];
  const [fromX, fromY] = [(from.left + from.right) / 2, (from.top + from.bottom) / 2];
  if (all.bottom <= whole.top && all.right > whole.left) {
    const column = from.right - from.left < 2 * place.cell[0]; // or a row, which is wider
    const at = column ? fromX : x;
    const named = at < whole.left - place.labels + place.name + 3; // it ends above the name, then
    return `M${at} ${from.bottom}V${whole.top - place.header - (named ? NAME : 1)}`;
  }
  if (all.right > whole.left) return null;
  const gate = whole.left - place.labels - 4;
  const single =
    from.right - from.left < 2 * place.cell[0] && from.bottom - from.top <= place.cell[1];
  if (first || single) {
    const bend = Math.max(8, (gate - from.right) / 2);
    const curve = `C${from.right + bend} ${fromY} ${gate - bend} ${y} ${gate} ${y}`;
    return `M${from.right} ${fromY}${curve}`;
  }
  // Under the result and up into the column: from a column down, from a row through the gap.
  if (from.bottom - from.top > place.cell[1]) {
    const low = Math.max(whole.bottom, all.bottom) + EDGE + ROUND;
    const down = `M${fromX} ${from.bottom}V${low - ROUND}Q${fromX} ${low} ${fromX + ROUND} ${low}`;
    return down + upFrom(low, x, whole.bottom);
  }
  const low = whole.bottom + EDGE + ROUND;
  const gap = (all.right + gate) / 2;
  const turn = Math.min(ROUND, Math.abs(low - fromY) / 2) * Math.sign(low - fromY);
  const through =
    `M${from.right} ${fromY}H${gap - ROUND}Q${gap} ${fromY} ${gap} ${fromY + turn}` +
    `V${low - turn}Q${gap} ${low} ${gap + ROUND} ${low}`;
  return through + upFrom(low, x, whole.bottom);
}

const upFrom = (low, x, end) => `H${x - ROUND}Q${x} ${low} ${x} ${low - ROUND}V${end + 2}`;
