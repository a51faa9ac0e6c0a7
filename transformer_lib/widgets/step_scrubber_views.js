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
  const svg = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", class: "afm-operand" });
  svg.setAttribute("aria-label", `${title}: ${rows} rows, ${columns} columns`);
  const scale = scaleFor(values, weights);
  const rects = [];
  const texts = [];
  values.forEach((line, r) => line.forEach((value, c) => {
    const [x, y] = [left + c * cell, top + r * cell];
    const rect = svgElement("rect", { class: "afm-cell", x, y, width: cell, height: cell, rx: cell > 20 ? 3 : 0 });
    rects.push([rect, value]);
    svg.append(rect);
    if (cell < 30) return;
    const text = svgElement("text", { class: "afm-cell-number", x: x + cell / 2, y: y + cell / 2, "font-size": cell < 38 ? 11 : 12 }, binary ? String(value) : cellNumber(value));
    texts.push([text, value]);
    svg.append(text);
  }));
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
    theme(colors) {
      const shades = scale(colors);
      for (const [rect, value] of rects) rect.setAttribute("fill", value === -Infinity ? "var(--afm-hatch)" : shades.fill(value));
      for (const [text, value] of texts) text.setAttribute("fill", value === -Infinity ? "var(--afm-ink)" : shades.text(value));
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
  let [now, width, colors, parts, chosen] = [null, 0, null, null, null];

  function build() {
    if (!now || !width || !colors) return;
    const { stage, names, labels, cellName, blocks } = now;
    const { left: a, top: b, result, kind, open = null } = stage;
    const tokens = widest(labels.rows) + 24;
    const room = (columns) => (width - tokens - (columns > result[0].length ? GAP : 0) - 6) / columns;
    let cell = room(result[0].length + (a ? a[0].length : 0));
    const stacked = kind === "each" && cell < READABLE_CELL; // no room beside: the scores go on top
    if (stacked) cell = room(result[0].length);
    const small = Math.max(result[0].length, result.length) <= 10;
    cell = Math.floor(Math.max(small ? 30 : SMALL_CELL, Math.min(LARGE_CELL, cell)));

    const map = grid({
      rows: labels.rows, columns: labels.columns, label: names.result, rowTitle: "", columnTitle: "",
      scale: scaleFor(names.binary ? a : result, names.weights), format: cellNumber, cellName, onSelect, maxCell: cell, minCell: cell,
    });
    const frame = element("div", { class: "afm-result" }, map.svg);
    map.layout(width);
    map.theme(colors);
    map.paint(result.map((row) => row.map((value) => (value === -Infinity ? 0 : value))), open);
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
    const under = element("p", { class: "afm-name", style: `padding-left:${startX}px` },
      element("span", { class: `afm-${names.resultRole}` }, `= ${names.result}`));
    const blank = element("div");
    box.style.gridTemplateColumns = leftView ? "max-content max-content" : "max-content";
    box.replaceChildren(...(topView ? (leftView ? [blank, topView.svg] : [topView.svg]) : []),
      ...(leftView ? [leftView.svg] : []), frame, ...(leftView ? [element("div")] : []), under);
    parts = { map, topView, leftView, stacked };
    topView?.theme(colors);
    leftView?.theme(colors);
    if (chosen) mark(...chosen);
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
    show(next) {
      const focused = box.contains(document.activeElement);
      now = next;
      chosen = null;
      build();
      return () => focused && parts && parts.map.cell(...parts.map.selected)?.focus({ preventScroll: true });
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
