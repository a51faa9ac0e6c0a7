// The step scrubber's picture: a result grid with its operands beside it and above it, so that row
// and column meet in the selected number; the code; and a comparison of two orders of the words.
//
//   const board = stageBoard({ onSelect, onHover });
//   board.show({ step, stage, names, labels, cellName });   // a form drawn before is taken out again
//   board.mark(row, column, { left, top });             // outlines: [row, column, rows, columns]
//   board.pointed                                       // [row, column] under the pointer, or null
//   board.layout(width); board.theme(colors);

import { element } from "../core/dom.js";
import { grid } from "../core/grid.js";
import { cellNumber, operand, scaleFor, TITLE_LINE, widest } from "./operand.js";

const GAP = 14;
const SMALL_CELL = 9;
const LARGE_CELL = 46;
const READABLE_CELL = 34;
const KEPT_FORMS = 12;

const headRoom = (names, cell) =>
  TITLE_LINE + (names ? (widest(names) > cell - 6 ? Math.min(96, widest(names)) + 14 : 24) : 6);

/** The result with its operands; a part for figure.add. */
export function stageBoard({ onSelect, onHover }) {
  const box = element("div", { class: "afm-board" });
  let [now, width, colors, parts, chosen, live] = [null, 0, null, null, null, null];
  const kept = new Map(); // forms drawn at this width in these colors, the latest last

  /** A key that is equal for stages that differ in numbers and names only. */
  function formOf({ labels, blocks, stage: { kind, left, top } }) {
    return JSON.stringify([labels, blocks, kind, left?.[0].length, top?.length]);
  }

  /** Take out the picture of this form, or draw it; then write the numbers into it. */
  function build() {
    if (!now || !width || !colors) return;
    const form = formOf(now);
    const next = kept.get(form) ?? draw(now);
    kept.delete(form);
    kept.set(form, next);
    if (kept.size > KEPT_FORMS) kept.delete(kept.keys().next().value);
    const changed = next !== parts;
    if (changed) next.map.leave(); // it was taken out while the pointer was on it, perhaps
    parts = next;
    fill(); // before it is put in: writing to attached nodes is slower
    if (chosen) mark(...chosen);
    if (!changed) return;
    box.style.gridTemplateColumns = parts.leftView ? "max-content max-content" : "max-content";
    box.replaceChildren(...parts.children);
  }

  function redraw() {
    kept.clear();
    parts = null;
    build();
  }

  function draw({ stage, names, labels, blocks }) {
    const { left: a, top: b, result, kind } = stage;
    const tokens = widest(labels.rows) + 24;
    const room = (columns) =>
      (width - tokens - (columns > result[0].length ? GAP : 0) - 6) / columns;
    let cell = room(result[0].length + (a ? a[0].length : 0));
    const stacked = kind === "each" && cell < READABLE_CELL; // no room beside: the scores go on top
    if (stacked) cell = room(result[0].length);
    const small = Math.max(result[0].length, result.length) <= 10;
    cell = Math.floor(Math.max(small ? 30 : SMALL_CELL, Math.min(LARGE_CELL, cell)));

    const map = grid({
      rows: labels.rows,
      columns: labels.columns,
      label: names.result,
      rowTitle: "",
      columnTitle: "",
      scale: () => ({ fill: (value) => live.fill(value), text: (value) => live.text(value) }),
      format: cellNumber,
      onSelect,
      onHover,
      tip: null, // row, column and sum stand around it
      maxCell: cell,
      minCell: cell,
      cellName: (...at) => now.cellName(...at),
    });
    const frame = element("div", { class: "afm-result" }, map.element);
    map.layout(width);
    map.theme(colors);
    const [mapLeft, mapTop] = ["x", "y"].map((axis) => Number(map.cell(0, 0).getAttribute(axis)));

    const above = stacked ? a : b;
    const aboveNames = stacked ? labels.rows : labels.top;
    const startX = Math.max(
      mapLeft,
      above && aboveNames ? Math.min(110, widest(aboveNames)) + 14 : 0,
    );
    const beside = stacked ? null : a;
    const startY = Math.max(mapTop, beside ? headRoom(labels.left, cell) : 0);
    frame.style.padding = `${startY - mapTop}px 0 0 ${startX - mapLeft}px`;
    const topView =
      above &&
      operand({
        values: above,
        rowNames: aboveNames,
        cell,
        left: startX,
        top: TITLE_LINE + 4,
        blocks,
      });
    const leftView =
      beside &&
      operand({
        values: beside,
        columnNames: labels.left,
        cell,
        left: 2,
        top: startY,
      });
    const name = element("span");
    const under = element("p", { class: "afm-name", style: `padding-left:${startX}px` }, name);
    const children = [
      ...(topView ? [...(leftView ? [element("div")] : []), topView.svg] : []),
      ...(leftView ? [leftView.svg] : []),
      frame,
      ...(leftView ? [element("div")] : []),
      under,
    ];
    return { map, topView, leftView, stacked, name, children };
  }

  /** Write new numbers and names into the current picture. */
  function fill() {
    const {
      stage: { left: a, top: b, result, open = null },
      names,
    } = now;
    const { map, topView, leftView, stacked, name } = parts;
    const beside = { title: names.left, role: names.leftRole, weights: names.leftWeights };
    const above = { title: names.top, role: names.topRole, binary: names.binary };
    live = scaleFor(names.binary ? a : result, names.weights)(colors);
    map.paint(
      result.map((row) => row.map((value) => (value === -Infinity ? 0 : value))),
      open,
    );
    map.svg.querySelector("[role=grid]").setAttribute("aria-label", names.result);
    topView?.paint(stacked ? a : b, colors, stacked ? { ...beside, weights: false } : above);
    leftView?.paint(a, colors, beside);
    name.className = `afm-${names.resultRole}`;
    name.textContent = `= ${names.result}`;
  }

  function mark(row, column, from) {
    chosen = [row, column, from];
    if (!parts) return;
    parts.map.select(row, column);
    parts.leftView?.mark(from.left, "row");
    parts.topView?.mark(parts.stacked ? from.left : from.top, parts.stacked ? "row" : "column");
  }

  return {
    element: element("div", { class: "afm-scroll" }, box),
    /** Show a stage; returns what puts the focus back where it was, once a number is marked. */
    show(next) {
      const [before, focused] = [parts, box.contains(document.activeElement)];
      [now, chosen] = [next, null];
      build();
      return () =>
        focused &&
        parts !== before &&
        parts?.map.cell(...parts.map.selected)?.focus({ preventScroll: true });
    },
    mark,
    layout(available) {
      width = available;
      redraw();
    },
    theme(next) {
      colors = next;
      redraw();
    },
    get map() {
      return parts?.map;
    },
    get pointed() {
      return parts?.map.pointed ?? null;
    },
  };
}
