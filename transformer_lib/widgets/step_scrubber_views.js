// What the step scrubber draws: a result grid with its operands beside it and above it, so that row
// and column meet in the selected number; the code; and a comparison of two orders of the words.
//
//   const board = stageBoard({ onSelect });
//   board.show({ stage, names, labels, cellName });     // another step: everything is drawn anew
//   board.mark(row, column, { left, top });             // outlines: [row, column, rows, columns]
//   board.layout(width); board.theme(colors);

import { divergingScale, sequentialScale } from "./core/color.js";
import { element, fitText, setAttributes, showToken, svgElement, textWidth } from "./core/dom.js";
import { grid } from "./core/grid.js";
import { writeNumber } from "./step_scrubber_model.js";

const STEP_FONT = "13px system-ui, sans-serif";
const TITLE_LINE = 20;
const GAP = 14;
const SMALL_CELL = 9;
const LARGE_CELL = 46;
const READABLE_CELL = 34;

/** The number that fits into a cell: three digits at most. */
export function cellNumber(value) {
  return writeNumber(value, Number.isInteger(value) && Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2);
}

function scaleFor(values, weights) {
  if (weights) return (colors) => sequentialScale(colors);
  const finite = values.flat().filter(Number.isFinite).map(Math.abs);
  return (colors) => divergingScale(colors, Math.max(1e-9, ...finite));
}

function widest(labels) {
  return Math.ceil(Math.max(0, ...labels.map((text) => textWidth(fitText(showToken(text), STEP_FONT, 110), STEP_FONT))));
}

/** One operand: cells in line with the result's, its name and its labels on the free side. */
function operand({ values, title, role, rowNames, columnNames, cell, left, top, blocks = null, weights = false, binary = false }) {
  const [rows, columns] = [values.length, values[0].length];
  const [width, height] = [left + columns * cell + 2, top + rows * cell + 2];
  let [shown, shades] = [values, null];
  const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "afm-operand" });
  svg.setAttribute("aria-label", `${title}: ${rows} rows, ${columns} columns`);
  const rects = [];
  const texts = [];
  values.forEach((line, r) => line.forEach((_, c) => {
    const [x, y] = [left + c * cell, top + r * cell];
    rects.push(svgElement("rect", { class: "afm-cell", x, y, width: cell, height: cell, rx: cell > 20 ? 3 : 0 }));
    svg.append(rects.at(-1));
    if (cell < 30) return;
    texts.push(svgElement("text", { class: "afm-cell-number", x: x + cell / 2, y: y + cell / 2, "font-size": cell < 38 ? 11 : 12 }));
    svg.append(texts.at(-1));
  }));
  const paint = () => shown.flat().forEach((value, at) => {
    const hidden = value === -Infinity;
    rects[at].setAttribute("fill", hidden ? "var(--afm-hatch)" : shades.fill(value));
    if (!texts.length) return;
    texts[at].setAttribute("fill", hidden ? "var(--afm-ink)" : shades.text(value));
    texts[at].textContent = binary ? String(value) : cellNumber(value);
  });
  const name = svgElement("text", { class: `afm-name afm-${role}`, x: left, y: 13 }, title);
  svg.append(name);
  const every = Math.max(1, Math.ceil(14 / cell));
  (rowNames ?? []).forEach((text, r) => {
    if (r % every) return;
    const shown = fitText(showToken(text), STEP_FONT, left - 10);
    svg.append(svgElement("text", { class: "afm-rowheader", x: left - 8, y: top + (r + 0.5) * cell, "text-anchor": "end" }, shown));
  });
  const upright = columnNames && widest(columnNames) > cell - 6;
  (columnNames ?? []).forEach((text, c) => {
    if (c % every) return;
    const x = left + (c + 0.5) * cell;
    const place = upright ? { transform: `translate(${x} ${top - 8}) rotate(-90)`, "text-anchor": "start" } : { x, y: top - 12, "text-anchor": "middle" };
    svg.append(svgElement("text", { class: "afm-columnheader", ...place }, fitText(showToken(text), STEP_FONT, upright ? 96 : cell)));
  });
  if (blocks > 1) {
    for (let b = 1; b < blocks; b += 1) {
      const x = left + (b * columns * cell) / blocks;
      svg.append(svgElement("line", { class: "afm-cut", x1: x, x2: x, y1: top - 4, y2: height }));
    }
  }
  const outline = svgElement("rect", { class: "afm-outline", rx: 3, visibility: "hidden" });
  svg.append(outline);
  return {
    svg,
    paint(next, colors) {
      [shown, shades] = [next, scaleFor(next, weights)(colors)];
      paint();
    },
    mark(box, kind) {
      if (!box) return;
      const [r, c, tall, wide] = box;
      setAttributes(outline, {
        class: `afm-outline afm-outline-${kind} afm-from`, visibility: "visible",
        x: left + c * cell, y: top + r * cell, width: wide * cell, height: tall * cell,
      });
    },
  };
}

const headRoom = (names, cell) => TITLE_LINE + (names ? (widest(names) > cell - 6 ? Math.min(96, widest(names)) + 14 : 24) : 6);

/** The result with its operands; a part for figure.add. */
export function stageBoard({ onSelect }) {
  const box = element("div", { class: "afm-board" });
  let [now, width, colors, parts, chosen, drawn, live] = [null, 0, null, null, null, null, null];

  function build() {
    if (!now || !width || !colors) return;
    [parts, live] = [null, sequentialScale(colors)];
    const { stage, names, labels, blocks } = now;
    const { left: a, top: b, result, kind } = stage;
    const tokens = widest(labels.rows) + 24;
    const room = (columns) => (width - tokens - (columns > result[0].length ? GAP : 0) - 6) / columns;
    let cell = room(result[0].length + (a ? a[0].length : 0));
    const stacked = kind === "each" && cell < READABLE_CELL; // no room beside: the scores go on top
    if (stacked) cell = room(result[0].length);
    const small = Math.max(result[0].length, result.length) <= 10;
    cell = Math.floor(Math.max(small ? 30 : SMALL_CELL, Math.min(LARGE_CELL, cell)));

    const map = grid({
      rows: labels.rows, columns: labels.columns, label: names.result, rowTitle: "", columnTitle: "",
      scale: () => ({ fill: (value) => live.fill(value), text: (value) => live.text(value) }), format: cellNumber, onSelect, maxCell: cell, minCell: cell,
      cellName: (...at) => now.cellName(...at),
    });
    const frame = element("div", { class: "afm-result" }, map.svg);
    map.layout(width);
    map.theme(colors);
    const [mapLeft, mapTop] = ["x", "y"].map((axis) => Number(map.cell(0, 0).getAttribute(axis)));

    const above = stacked ? a : b;
    const aboveNames = stacked ? labels.rows : labels.top;
    const startX = Math.max(mapLeft, above && aboveNames ? Math.min(110, widest(aboveNames)) + 14 : 0);
    const beside = stacked ? null : a;
    const startY = Math.max(mapTop, beside ? headRoom(labels.left, cell) : 0);
    frame.style.padding = `${startY - mapTop}px 0 0 ${startX - mapLeft}px`;
    const topView = above && operand({
      values: above, title: stacked ? names.left : names.top, role: stacked ? names.leftRole : names.topRole,
      rowNames: aboveNames, cell, left: startX, top: TITLE_LINE + 4, blocks, binary: names.binary && !stacked,
    });
    const leftView = beside && operand({
      values: beside, title: names.left, role: names.leftRole, columnNames: labels.left, cell, left: 2, top: startY,
      weights: names.leftWeights,
    });
    const name = element("span", { class: `afm-${names.resultRole}` });
    const under = element("p", { class: "afm-name", style: `padding-left:${startX}px` }, name);
    const blank = element("div");
    box.style.gridTemplateColumns = leftView ? "max-content max-content" : "max-content";
    box.replaceChildren(...(topView ? (leftView ? [blank, topView.svg] : [topView.svg]) : []),
      ...(leftView ? [leftView.svg] : []), frame, ...(leftView ? [element("div")] : []), under);
    parts = { map, topView, leftView, stacked, name };
    fill();
    if (chosen) mark(...chosen);
  }

  /** New numbers in the picture that stands. */
  function fill() {
    const { stage: { left: a, top: b, result, open = null }, names } = now;
    const { map, topView, leftView, stacked, name } = parts;
    live = scaleFor(names.binary ? a : result, names.weights)(colors);
    map.paint(result.map((row) => row.map((value) => (value === -Infinity ? 0 : value))), open);
    map.svg.querySelector("[role=grid]").setAttribute("aria-label", names.result);
    topView?.paint(stacked ? a : b, colors);
    leftView?.paint(a, colors);
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
    /** Show a stage; where only numbers have changed, nothing is drawn anew. */
    show(next) {
      const form = JSON.stringify([next.step, next.blocks, next.labels]);
      const same = parts && form === drawn;
      [now, drawn, chosen] = [next, form, null];
      if (same) {
        fill();
        return () => {};
      }
      const focused = box.contains(document.activeElement);
      build();
      return () => focused && parts?.map.cell(...parts.map.selected)?.focus({ preventScroll: true });
    },
    mark,
    layout(available) {
      width = available;
      build();
    },
    theme(next) {
      colors = next;
      build();
    },
    get map() {
      return parts?.map;
    },
  };
}
