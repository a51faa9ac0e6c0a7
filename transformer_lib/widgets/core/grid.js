// A heatmap that is a real grid: role="grid", one tab stop, arrow keys, Home, End, mouse and touch.
// Rows are queries and columns are keys unless you say otherwise.
//
//   const map = grid({
//     rows: ["mary", "gave"], columns: ["mary", "gave"],   // labels, any text
//     label: "Attention weights",                          // the name of the grid
//     rowTitle: "queries", columnTitle: "keys",            // "" for none
//     scale: (colors) => sequentialScale(colors, 0, 12),   // from 0 to 1 without; what is beyond has
//                                       // the color of that end. Or divergingScale(colors, limit)
//     format: (value) => fixed(value),                     // the number in the cell
//     cellName: (row, column, text) => "roses, gave: 0.62",  // what a screen reader says
//     tip: (row, column, text) => ["roses"],  // the text at the pointer, as parts of fig.say; null
//                                             // for nothing, else the two labels and the number
//     onSelect(row, column) {},
//     onHover(row, column) {},          // mouse, held finger, focus; onHover(null) when it leaves
//     onPress(row, column, phase) {},   // "start", "move", "end", and "key" for Space or Enter: for
//                                       // painting. A finger scrolls, taps one cell, or paints after
//                                       // it has been held still
//     isTrue: (row, column) => true,    // cells to frame, where a right answer is known
//     maxCell: 56, minCell: 7,
//     rowShare: 0.26,                                      // of the width, for the rows' labels
//   });
//   fig.add(map);                        // element, layout(width), theme(colors)
//   map.paint(matrix, allowed)           // rows of numbers; allowed: rows of booleans, false = hatched
//   map.select(row, column)              // outlines; does not call onSelect; null for no selection
//   map.pointed                          // [row, column] under the pointer or the focus, or null
//   map.light(row, column)               // marks a row, a column or a cell for something in another
//                                        // picture that is pointed at; light(null) for none
//   map.light(row, column, false)        // a row and a column, but not the cell where they cross
//   map.leave()                          // nothing is pointed at, before it is shown again
//   map.setCell(24)                      // cells at least so large, with a scroll bar; null: as before
//   map.fitting(width)                   // the size of the cells that would fit
//   map.setScale(scale)   map.setLabels(rows, columns)   map.values -> the flat Float64Array shown

import { sequentialScale } from "./color.js";
import {
  clip,
  element,
  fitText,
  hatchPattern,
  phrase,
  setAttributes,
  setSize,
  showToken,
  svgElement,
  textWidth,
  uniqueId,
} from "./dom.js";
import { fixed } from "./numbers.js";
import { followPointer, GRID_KEYS, pointerTip } from "./pointing.js";

export function grid(options) {
  const {
    label,
    rowTitle = "queries",
    columnTitle = "keys",
    format = (value) => fixed(value),
    scale: scaleOf = sequentialScale,
    onSelect = () => {},
    onHover = () => {},
    onPress = null,
    isTrue = () => false,
    maxCell = 56,
    minCell = 7,
  } = options;
  const cellName =
    options.cellName ??
    ((row, column, text) => `${showToken(rows[row])}, ${showToken(columns[column])}: ${text}`);
  const tipOf =
    options.tip === undefined
      ? (row, column, text) => [
          { text: rows[row], role: "query" },
          " → ",
          { text: columns[column], role: "key" },
          ...(text ? [" ", { text }] : []),
        ]
      : options.tip;
  let { rows, columns } = options;
  let [values, allowed, colors, geometry] = [null, null, null, null];
  let [scaleNow, scale, width] = [scaleOf, null, 0];
  let selected = null;
  let pointed = null; // under the mouse or a held finger
  let lit = null; // { at: [row or null, column or null], cell: whether it is marked, too }
  let byFinger = false;
  let tipped = false; // the selected cell has its tip: by the keyboard, or after a tap
  let least = minCell;
  let cells = [];
  let numbers = [];
  let written = []; // what each cell's attributes are
  let stop = 0; // the cell where the tab key stops
  let scrolledBy = 0; // remembered: to ask for it costs a layout of the page
  const svg = svgElement("svg", { class: onPress ? "afm-grid afm-paintable" : "afm-grid" });
  const hatch = uniqueId("hatch");
  const marks = svgElement("g", { "aria-hidden": "true", class: "afm-marks" });
  const held = svgElement("g", { "aria-hidden": "true", class: "afm-held", "data-afm-screen": "" });
  const scroller = element("div", { class: "afm-scroll" }, svg);
  const tip = pointerTip();
  const holder = element("div", { class: "afm-map" }, scroller, tip.element);

  const sizes = (room, atLeast) =>
    gridGeometry({
      rows,
      columns,
      rowTitle,
      columnTitle,
      width: room,
      maxCell,
      minCell: atLeast,
      rowShare: options.rowShare,
    });

  function build() {
    if (!width) return;
    const focused = svg.contains(document.activeElement);
    geometry = sizes(width, least);
    const { cell, left, top } = geometry;
    const gap = cell > 12 ? 0.5 : 0;
    const table = drawFrame(svg, geometry, { rows, columns, label, rowTitle, columnTitle, hatch });
    const texts = svgElement("g", { "aria-hidden": "true", class: "afm-numbers" });
    [cells, numbers, written, stop] = [[], [], [], 0];
    table.forEach((line, r) => {
      columns.forEach((_, c) => {
        const rect = svgElement("rect", {
          role: "gridcell",
          class: "afm-cell",
          tabindex: "-1",
          "aria-selected": "false",
          x: left + c * cell + gap,
          y: top + r * cell + gap,
          width: cell - 2 * gap,
          height: cell - 2 * gap,
          rx: cell > 28 ? 3 : 0,
        });
        line.append(rect);
        cells.push(rect);
        if (cell < 30) return;
        const text = svgElement("text", {
          x: left + (c + 0.5) * cell,
          y: top + (r + 0.5) * cell,
          class: "afm-cell-number",
          "font-size": cell < 38 ? 11 : 12,
        });
        texts.append(text);
        numbers.push(text);
      });
    });
    svg.append(texts, marks, held);
    repaint();
    mark();
    if (focused) cells[stop].focus({ preventScroll: true });
  }

  const textAt = (at) => (allowed && !allowed[at] ? "masked" : format(values[at]));

  function repaint() {
    if (!values || !colors || !cells.length) return;
    scale ??= scaleNow(colors);
    const short = geometry.cell < 38;
    cells.forEach((rect, at) => {
      const open = !allowed || allowed[at];
      const text = textAt(at);
      const fill = open ? scale.fill(values[at]) : `url(#${hatch})`;
      change(rect, at, "fill", fill);
      change(
        rect,
        at,
        "aria-label",
        cellName(Math.floor(at / columns.length), at % columns.length, text),
      );
      if (!numbers.length) return;
      const shown = open ? (short ? text.replace(/^([-−]?)0\./, "$1.") : text) : "";
      if (numbers[at].textContent !== shown) numbers[at].textContent = shown;
      if (open) numbers[at].setAttribute("fill", scale.text(values[at]));
    });
    showTip();
  }

  // Remembered here, since to ask the page costs more than to tell it.
  function change(rect, at, attribute, value) {
    written[at] ??= {};
    const known = written[at];
    if (known[attribute] === value) return;
    known[attribute] = value;
    rect.setAttribute(attribute, value);
  }

  function mark() {
    if (!geometry) return;
    const [row, column] = selected ?? [0, 0];
    const now = row * columns.length + column;
    change(cells[stop], stop, "tabindex", "-1");
    change(cells[stop], stop, "aria-selected", "false");
    change(cells[now], now, "tabindex", "0");
    change(cells[now], now, "aria-selected", String(Boolean(selected)));
    stop = now;
    outlines();
  }

  /** The cross goes through the cell that is pointed at, else through the selected one. */
  function outlines() {
    marks.replaceChildren();
    if (!geometry) return;
    const shown = pointed ?? lit?.at ?? selected ?? [null, null];
    const exact = Boolean(pointed ?? lit?.cell ?? selected);
    const [row, column] = shown;
    thinLabels(geometry.rowLabels, geometry.cell, row);
    thinLabels(geometry.columnLabels, geometry.cell, column);
    const { cell, left, top } = geometry;
    const outline = (kind, x, y, w, h) =>
      svgElement("rect", {
        class: `afm-outline afm-outline-${kind}`,
        x,
        y,
        width: w,
        height: h,
        rx: 3,
      });
    const around = (kind, [r, c], by = 0) => {
      const size = cell + 2 * by;
      return outline(kind, left + c * cell - by, top + r * cell - by, size, size);
    };
    const [wide, high] = [columns.length * cell, rows.length * cell];
    marks.append(outline("frame", left, top, wide, high));
    cells.forEach((_, at) => {
      const place = [Math.floor(at / columns.length), at % columns.length];
      if (isTrue(...place)) marks.append(around("true", place, -3));
    });
    if (selected && selected !== shown) marks.append(around("kept", selected));
    if (row !== null) marks.append(outline("row", left, top + row * cell, wide, cell));
    if (column !== null) marks.append(outline("column", left + column * cell, top, cell, high));
    if (exact) marks.append(around("halo", shown), around("cell", shown));
    marks.append(around("focus", selected ?? [0, 0], 2));
    holdLabels();
    showTip();
  }

  /** Copies of the rows' labels that stay in sight while a wide map is scrolled. */
  function holdLabels() {
    held.replaceChildren();
    const by = scrolledBy;
    if (!by || !geometry) return;
    const { left, top, cell, rowLabels } = geometry;
    const high = rows.length * cell;
    held.setAttribute("transform", `translate(${by} 0)`);
    held.append(
      svgElement("rect", { class: "afm-held-ground", y: top, width: left - 2, height: high }),
      ...rowLabels.map((node) => {
        const copy = node.cloneNode(true);
        for (const name of ["role", "aria-label"]) copy.removeAttribute(name);
        return copy;
      }),
    );
  }

  /** Scroll the selected cell into sight, and from under the labels that are held. */
  function bringIn(inline) {
    cells[stop].scrollIntoView({ block: "nearest", inline });
    const before = (stop % columns.length) * geometry.cell;
    if (scroller.scrollLeft > before) scroller.scrollLeft = before;
  }

  const pointedNow = () => pointed ?? (tipped ? selected : null);

  function showTip() {
    const at = pointedNow();
    const parts = at && values && tipOf?.(at[0], at[1], textAt(at[0] * columns.length + at[1]));
    if (!parts) {
      tip.hide();
      return;
    }
    const { cell, left, top } = geometry;
    tip.show(
      parts.map((part) => phrase(part, 18)),
      {
        x: left + (at[1] + 0.5) * cell - scroller.scrollLeft,
        top: top + at[0] * cell,
        bottom: top + (at[0] + 1) * cell,
        highest: byFinger ? 0 : top, // a mouse leaves the labels in sight
        gap: byFinger ? 36 : 2, // a finger hides what is under it
      },
    );
  }

  function point(at, finger = false) {
    const before = pointed;
    byFinger = finger;
    if (before?.[0] === at?.[0] && before?.[1] === at?.[1]) return;
    pointed = at;
    if (at) tipped = false;
    outlines();
    tell();
  }

  function tell() {
    const at = pointedNow();
    if (at) onHover(at[0], at[1]);
    else onHover(null);
  }

  /** The selected cell counts as pointed at: by the keyboard's focus, or after a tap. */
  function keep(on, finger = false) {
    [tipped, byFinger] = [on, finger];
    showTip();
    tell();
  }

  function choose(row, column, focus) {
    selected = [row, column];
    mark();
    if (focus) cells[row * columns.length + column]?.focus({ preventScroll: true });
    onSelect(row, column);
  }

  function cellAt(event) {
    const box = svg.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - geometry.left) / geometry.cell);
    const r = Math.floor((event.clientY - box.top - geometry.top) / geometry.cell);
    return r >= 0 && c >= 0 && r < rows.length && c < columns.length ? [r, c] : null;
  }

  svg.addEventListener("keydown", (event) => {
    const at = selected ?? [0, 0];
    // Handled keys stay here: some pages and notebooks move on with the arrow keys.
    const command = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
    if (onPress && !command && (event.key === " " || event.key === "Enter")) {
      event.preventDefault();
      event.stopPropagation();
      onPress(at[0], at[1], "key");
      return;
    }
    const step = GRID_KEYS[event.key];
    if (!step || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    point(null); // the keyboard has it now
    tipped = true;
    const rowStep = event.ctrlKey && Math.abs(step[1]) === Infinity ? step[1] : step[0];
    const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
    choose(clamp(at[0] + rowStep, rows.length), clamp(at[1] + step[1], columns.length), true);
    bringIn("nearest");
    keep(true);
  });

  followPointer(svg, {
    cellAt,
    paints: Boolean(onPress),
    onPoint: point,
    onChoose(at, finger) {
      choose(at[0], at[1], true);
      if (finger && !onPress) keep(true, true); // the value stays
    },
    onPaint(at, phase, finger) {
      if (phase === "move") {
        [pointed, byFinger] = [at, finger];
        choose(at[0], at[1], true);
      }
      onPress(at[0], at[1], phase);
    },
  });
  // Not on the SVG: with such listeners Chromium makes it a tab stop of its own.
  scroller.addEventListener("focusin", (event) => {
    if (!event.target.matches(":focus-visible")) return;
    if (!pointed && selected) keep(true);
  });
  scroller.addEventListener("focusout", (event) => {
    if (svg.contains(event.relatedTarget)) return;
    if (tipped) keep(false);
  });
  const onScroll = () => {
    scrolledBy = scroller.scrollLeft;
    holdLabels();
    showTip();
  };
  scroller.addEventListener("scroll", onScroll, { passive: true });

  return {
    element: holder,
    svg,
    get values() {
      return values;
    },
    get selected() {
      return selected;
    },
    get pointed() {
      return pointedNow();
    },
    light(row, column = null, cell = row !== null && column !== null) {
      lit = (row ?? column ?? null) === null ? null : { at: [row, column], cell };
      outlines();
    },
    leave() {
      [pointed, lit, tipped] = [null, null, false];
    },
    fitting: (available) => sizes(available, 0).cell,
    setCell(size) {
      least = size ?? minCell;
      build();
      if (selected) bringIn("center");
    },
    layout(available) {
      width = available;
      build();
    },
    theme(now) {
      colors = now;
      scale = null;
      repaint();
    },
    paint(matrix, mask = null) {
      values = Float64Array.from(Array.from(matrix, (row) => Array.from(row)).flat());
      allowed = mask && Array.from(mask, (row) => Array.from(row)).flat();
      if (values.length !== rows.length * columns.length) {
        throw new Error(
          `${values.length} values for ${rows.length} rows and ${columns.length} columns`,
        );
      }
      repaint();
    },
    select(row, column) {
      if (row === null ? !selected : selected?.[0] === row && selected[1] === column) return;
      selected = row === null ? null : [row, column];
      mark();
    },
    setScale(now) {
      scaleNow = now;
      scale = null;
      repaint();
    },
    setLabels(nowRows, nowColumns) {
      [pointed, lit] = [null, null];
      [rows, columns, values, selected] = [nowRows, nowColumns, null, null];
      build();
    },
    cell: (row, column) => cells[row * columns.length + column],
  };
}

// The still part of core/grid.js: the places of cells, labels, titles and the hatch of masked cells.

const TITLE_ROOM = 18;
const LINE = 12; // the least room for a label, in pixels

/** Of how many labels one has room. */
const oneOf = (cell) => Math.max(1, Math.ceil(LINE / cell));
/** Said at an axis that cannot name all. */
const named = (cell) => (oneOf(cell) > 1 ? ` (one of ${oneOf(cell)} named)` : "");

/** Sizes in pixels for a given width: the cell, and the room for labels on the left and on top. */
function gridGeometry({
  rows,
  columns,
  rowTitle,
  columnTitle,
  width,
  maxCell,
  minCell,
  rowShare = 0.26, // of the width, at most, for the rows' labels
}) {
  const side = rowTitle ? TITLE_ROOM : 0;
  const widest = (labels, limit) => {
    const texts = labels.map((text) => fitText(showToken(text), limit));
    return {
      texts,
      width: Math.ceil(Math.max(0, ...texts.map((text) => textWidth(text)))),
    };
  };
  const rowNames = widest(rows, Math.min(120, rowShare * width));
  const left = side + rowNames.width + (rowNames.width ? 14 : 0);
  const room = (width - left - 2) / columns.length;
  const cell = Math.max(minCell, Math.min(maxCell, room > 14 ? Math.floor(room) : room));
  const columnNames = widest(columns, 96);
  const upright = columnNames.width > cell - 8;
  const head = columnNames.width ? (upright ? columnNames.width + 14 : 24) : 0;
  const top = (columnTitle ? TITLE_ROOM + 2 : 0) + head;
  return {
    cell,
    left,
    top,
    upright,
    rowTexts: rowNames.texts,
    columnTexts: columnNames.texts,
    width: Math.ceil(left + cell * columns.length + 2),
    height: Math.ceil(top + cell * rows.length + 2),
    rowLabels: [],
    columnLabels: [],
  };
}

/** Draw labels and empty rows anew; return the row groups that take the cells. */
function drawFrame(svg, geometry, { rows, columns, label, rowTitle, columnTitle, hatch }) {
  const { cell, left, top, width, height } = geometry;
  svg.replaceChildren();
  setAttributes(setSize(svg, width, height), { role: "presentation" });
  svg.append(hatchPattern(hatch));
  const titles = svgElement("g", { "aria-hidden": "true" });
  if (columnTitle) titles.append(axisTitle(`${columnTitle}${named(cell)}`, "key", left, 13));
  if (rowTitle) {
    const text = `← ${rowTitle}${named(cell)}`; // turned, the arrow points down
    const long = textWidth(text) > height - top; // than the rows are high: it ends where they do
    const place = `translate(13 ${long ? height - 2 : top}) rotate(-90)`;
    const node = axisTitle(rowTitle, "query", 0, 0, place);
    titles.append(setAttributes(node, { "text-anchor": long ? "start" : "end" }));
    node.textContent = text;
  }
  svg.append(titles);

  const axes = rowTitle && columnTitle ? ` (rows: ${rowTitle}, columns: ${columnTitle})` : "";
  const table = svgElement("g", {
    role: "grid",
    "aria-label": `${label}${axes}`,
    "aria-rowcount": rows.length + 1,
    "aria-colcount": columns.length + 1,
  });
  // The empty corner, so that every row has as many cells and each is under its header.
  const corner = svgElement("rect", { role: "cell", width: left, height: top, fill: "none" });
  const header = svgElement("g", { role: "row" }, corner);
  columns.forEach((text, c) => {
    const x = left + (c + 0.5) * cell;
    const node = headerText("columnheader", text, geometry.columnTexts[c]);
    if (geometry.upright) {
      setAttributes(node, {
        transform: `translate(${x} ${top - 8}) rotate(-90)`,
        "text-anchor": "start",
      });
    } else {
      setAttributes(node, { x, y: top - 12, "text-anchor": "middle" });
    }
    if (cell < 14) node.style.fontSize = `${LINE - 1}px`;
    geometry.columnLabels.push(node);
    header.append(node);
  });
  table.append(header);
  const lines = rows.map((text, r) => {
    const line = svgElement("g", { role: "row" });
    const node = headerText("rowheader", text, geometry.rowTexts[r]);
    setAttributes(node, { x: left - 8, y: top + (r + 0.5) * cell, "text-anchor": "end" });
    if (cell < 14) node.style.fontSize = `${LINE - 1}px`;
    geometry.rowLabels.push(node);
    line.append(node);
    table.append(line);
    return line;
  });
  svg.append(table);
  return lines;
}

function headerText(role, text, shown) {
  return svgElement(
    "text",
    { role, class: `afm-${role}`, "aria-label": clip(showToken(text), 80) },
    shown,
  );
}

function axisTitle(text, role, x, y, transform = null) {
  return svgElement("text", { class: `afm-axis afm-${role}`, x, y, transform }, `${text} →`);
}

/** Show as many labels as have room, and always the selected one. */
function thinLabels(labels, cell, chosen) {
  const every = oneOf(cell);
  labels.forEach((node, i) => {
    const crowded = chosen !== null && i !== chosen && Math.abs(i - chosen) < every;
    node.classList.toggle("afm-on", i === chosen);
    node.classList.toggle("afm-spare", i !== chosen && (i % every !== 0 || crowded));
  });
}
