// A heatmap that is a real grid: role="grid", one tab stop, arrow keys, Home, End, mouse and touch.
// Rows are queries and columns are keys unless you say otherwise.
//
//   const map = grid({
//     rows: ["mary", "gave"], columns: ["mary", "gave"],   // labels, any text
//     label: "Attention weights",                          // the name of the grid
//     rowTitle: "queries", columnTitle: "keys",            // "" for none
//     scale: (colors) => sequentialScale(colors),          // or divergingScale(colors, limit)
//     format: (value) => fixed(value),                     // the number in the cell
//     cellName: (row, column, text) => "roses, gave: 0.62",  // what a screen reader says
//     onSelect(row, column) {},  onHover(row, column) {},  // onHover(null) when the pointer leaves
//     onPress(row, column, phase) {},   // "start", "move", "end", and "key" for Space or Enter: for
//                                       // painting. A finger scrolls, taps one cell, or paints after
//                                       // it has been held still
//     maxCell: 56, minCell: 7,
//   });
//   fig.add(map);                        // element, layout(width), theme(colors)
//   map.paint(matrix, allowed)           // rows of numbers; allowed: rows of booleans, false = hatched
//   map.select(row, column)              // outlines; does not call onSelect; null for no selection
//   map.setScale(scale)   map.setLabels(rows, columns)   map.values -> the flat Float64Array shown

import { sequentialScale } from "./color.js";
import { element, showToken, svgElement, uniqueId } from "./dom.js";
import { drawFrame, gridGeometry, thinLabels } from "./gridframe.js";
import { fixed } from "./numbers.js";

const KEYS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
  PageUp: [-Infinity, 0],
  PageDown: [Infinity, 0],
};

const HOLD_MS = 350; // until a finger that does not move is taken to point, not to scroll
const HOLD_PX = 10; // so far may it tremble

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
    maxCell = 56,
    minCell = 7,
  } = options;
  const cellName =
    options.cellName ??
    ((row, column, text) => `${showToken(rows[row])}, ${showToken(columns[column])}: ${text}`);
  let { rows, columns } = options;
  let [values, allowed, colors, geometry] = [null, null, null, null];
  let [scaleNow, scale, width] = [scaleOf, null, 0];
  let selected = null;
  let cells = [];
  let numbers = [];
  let written = []; // what each cell's attributes are
  let stop = 0; // the cell where the tab key stops
  const svg = svgElement("svg", { class: onPress ? "afm-grid afm-paintable" : "afm-grid" });
  const hatch = uniqueId("hatch");
  const marks = svgElement("g", { "aria-hidden": "true", class: "afm-marks" });

  function build() {
    if (!width) return;
    const held = svg.contains(document.activeElement);
    geometry = gridGeometry({ rows, columns, rowTitle, columnTitle, width, maxCell, minCell });
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
    svg.append(texts, marks);
    repaint();
    mark();
    if (held) cells[stop].focus({ preventScroll: true });
  }

  function repaint() {
    if (!values || !colors || !cells.length) return;
    scale ??= scaleNow(colors);
    const short = geometry.cell < 38;
    cells.forEach((rect, at) => {
      const open = !allowed || allowed[at];
      const text = open ? format(values[at]) : "masked";
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
    marks.replaceChildren();
    if (!geometry) return;
    const [row, column] = selected ?? [0, 0];
    const now = row * columns.length + column;
    change(cells[stop], stop, "tabindex", "-1");
    change(cells[stop], stop, "aria-selected", "false");
    change(cells[now], now, "tabindex", "0");
    change(cells[now], now, "aria-selected", String(Boolean(selected)));
    stop = now;
    thinLabels(geometry.rowLabels, geometry.cell, selected?.[0]);
    thinLabels(geometry.columnLabels, geometry.cell, selected?.[1]);
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
    const focus = (r, c) =>
      outline("focus", left + c * cell - 2, top + r * cell - 2, cell + 4, cell + 4);
    marks.append(outline("frame", left, top, columns.length * cell, rows.length * cell));
    if (!selected) {
      marks.append(focus(0, 0));
      return;
    }
    marks.append(
      outline("row", left, top + selected[0] * cell, columns.length * cell, cell),
      outline("column", left + selected[1] * cell, top, cell, rows.length * cell),
      outline("halo", left + selected[1] * cell, top + selected[0] * cell, cell, cell),
      outline("cell", left + selected[1] * cell, top + selected[0] * cell, cell, cell),
      focus(selected[0], selected[1]),
    );
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
    const step = KEYS[event.key];
    if (!step || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const rowStep = event.ctrlKey && Math.abs(step[1]) === Infinity ? step[1] : step[0];
    const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
    choose(clamp(at[0] + rowStep, rows.length), clamp(at[1] + step[1], columns.length), true);
    cells[stop].scrollIntoView({ block: "nearest", inline: "nearest" });
  });

  // A finger that moves at once scrolls the page. One that lifts where it came down chooses (and
  // presses) that cell; one that has been held there follows the cells: it presses them, or points.
  let pressed = null;
  let tapped = null; // { at, x, y, timer } of a finger that may yet scroll
  let pointing = null; // the cell at which a held finger points
  const forget = () => {
    clearTimeout(tapped?.timer);
    tapped = null;
  };
  const press = (at) => {
    choose(at[0], at[1], true);
    if (!onPress) return;
    pressed = at;
    onPress(at[0], at[1], "start");
  };
  const hold = () => {
    const { at } = tapped;
    forget();
    if (onPress) press(at);
    else {
      pointing = at;
      onHover(at[0], at[1]);
    }
  };
  svg.addEventListener("pointerdown", (event) => {
    const at = cellAt(event);
    forget();
    if (!at || event.button) return;
    if (event.pointerType === "touch") {
      const timer = setTimeout(hold, HOLD_MS);
      tapped = { at, x: event.clientX, y: event.clientY, timer };
      return;
    }
    if (onPress) svg.setPointerCapture(event.pointerId);
    press(at);
  });
  svg.addEventListener("pointermove", (event) => {
    const at = cellAt(event);
    const moved = tapped && Math.hypot(event.clientX - tapped.x, event.clientY - tapped.y);
    if (moved > HOLD_PX) forget();
    if (!pressed) {
      if (!pointing && event.pointerType === "touch") return;
      if (pointing) pointing = at ?? pointing;
      at ? onHover(at[0], at[1]) : onHover(null);
    } else if (at && (at[0] !== pressed[0] || at[1] !== pressed[1])) {
      pressed = at;
      choose(at[0], at[1], true);
      onPress(at[0], at[1], "move");
    }
  });
  const release = () => {
    if (pressed) onPress(pressed[0], pressed[1], "end");
    if (pointing) {
      onHover(null);
      choose(pointing[0], pointing[1], true);
    }
    [pressed, pointing] = [null, null];
  };
  svg.addEventListener("pointerup", () => {
    if (tapped) press(tapped.at);
    forget();
    release();
  });
  svg.addEventListener("pointercancel", () => {
    forget();
    release();
  });
  // Held, the finger no longer scrolls, nor opens the menu of a long touch.
  const keep = (event) => (pressed || pointing) && event.cancelable && event.preventDefault();
  svg.addEventListener("touchmove", keep, { passive: false });
  svg.addEventListener("contextmenu", (event) => {
    if (tapped || pressed || pointing) event.preventDefault();
  });
  svg.addEventListener("pointerleave", () => onHover(null));

  return {
    element: element("div", { class: "afm-scroll" }, svg),
    svg,
    get values() {
      return values;
    },
    get selected() {
      return selected;
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
      [rows, columns, values, selected] = [nowRows, nowColumns, null, null];
      build();
    },
    cell: (row, column) => cells[row * columns.length + column],
  };
}
