// One matrix of the strip: its name, its cells, the names of its rows and columns, and its sizes on the
// edges. The matrix that the step makes is a grid for the keyboard and for screen readers; the others
// are pictures.
//
//   const view = matrixView(place, { title, role, rowNames, columnNames, active, label, hatch, cuts });
//     cuts: { rows, columns }, the size of a head's block, 0 where all is one
//   view.paint(values, colors, { weights, whole, open, cellName })     open: rows of booleans; what is
//                                            not open is hatched
//   view.group, view.cells, view.texts       SVG; the group's origin is the corner of the cells
//   view.cell(row, column)                   the grid's cell
//   view.light(rows, columns)                which names are bold: [first, count] or null

import { divergingScale, sequentialScale } from "../core/color.js";
import {
  clip,
  fitText,
  font,
  setAttributes,
  showToken,
  svgElement,
  textWidth,
} from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { EDGE } from "./plan.js";

const LABEL = font(12, 700);

/** The number that fits into a cell: three digits at most, fewer where `fits` says no. */
export function cellNumber(value, fits = () => true) {
  const size = Math.abs(value);
  if (Number.isInteger(value) && size >= 100) return fixed(value, 0);
  const bare = (text) => text.replace(/^([-−]?)0\./, "$1.");
  const [full, less] = [fixed(value, size >= 9.995 ? 1 : 2), fixed(value, 1)];
  const tried = [full, bare(full), less, bare(less), fixed(value, 0)];
  return tried.find(fits) ?? tried.at(-1);
}

/** Parts of a name, with what is below and above the line. */
function titleText(parts, attributes) {
  const node = svgElement("text", attributes);
  let shift = 0;
  for (const part of parts) {
    const [text, to] =
      typeof part === "string" ? [part, 0] : [part.sub ?? part.sup, part.sub ? 3 : -5];
    const small = typeof part !== "string";
    node.append(svgElement("tspan", { dy: to - shift, class: small ? "afm-script" : null }, text));
    shift = to;
  }
  return node;
}

function scaleFor(values, weights, colors) {
  if (weights) return sequentialScale(colors);
  const finite = values.flat().filter(Number.isFinite).map(Math.abs);
  return divergingScale(colors, Math.max(1e-9, ...finite));
}

export function matrixView(place, options) {
  const { title, role, rowNames, columnNames, active, label, hatch, cuts } = options;
  const { rows, columns, cell, large, numbered, labels, header, upright } = place;
  const [wide, tall] = cell;
  const [right, bottom] = [columns * wide, rows * tall];
  const group = svgElement("g", { class: "afm-matrix" });
  const cells = svgElement("g", { class: large ? null : "afm-small" });
  const texts = svgElement("g", { class: "afm-texts" });
  const [rowTexts, columnTexts] = [[], []];
  const digits = wide < 34 ? 11 : 12;
  const fits = (text) => textWidth(text, font(digits)) <= wide;
  const box = { x: -1, y: -1, width: right + 2, height: bottom + 2, rx: large ? 4 : 1 };
  cells.append(svgElement("rect", { class: `afm-box afm-from-${role || "plain"}`, ...box }));
  if (large) drawNames();
  const name = large
    ? { x: -labels, y: -header - 6, class: `afm-name afm-${role || "plain"}` }
    : { x: 0, y: -5, class: `afm-name afm-small-name afm-${role || "plain"}` };
  texts.append(titleText(title, { ...name, "aria-hidden": "true" }));
  if (large) {
    const size = (x, y, text, anchor) =>
      svgElement("text", { class: "afm-size", x, y, "text-anchor": anchor }, String(text));
    texts.append(
      size(right / 2, bottom + 11, columns, "middle"),
      size(right + EDGE / 2 + 1, bottom / 2, rows, "middle"),
    );
  }
  const paths = [];
  const boxes = []; // [rect, text] of each cell, where they are elements of their own
  const table = active ? grid() : null;
  if (!active) {
    setAttributes(group, { role: "img", "aria-label": `${label}: ${rows} by ${columns}` });
    if (numbered) places((box) => cells.append(...box));
    group.append(cells, texts);
  }
  if (numbered) drawCuts();

  function drawCuts() {
    const line = (shape) => texts.append(svgElement("line", { class: "afm-cut", ...shape }));
    for (let r = cuts.rows; r && r < rows; r += cuts.rows)
      line({ x1: -4, x2: right + 4, y1: r * tall, y2: r * tall });
    for (let c = cuts.columns; c && c < columns; c += cuts.columns)
      line({ x1: c * wide, x2: c * wide, y1: -4, y2: bottom + 4 });
  }

  function drawNames() {
    const every = Math.max(1, Math.ceil(14 / tall));
    (labels ? (rowNames ?? []) : []).forEach((text, r) => {
      const at = { class: "afm-rowheader", x: -8, y: (r + 0.5) * tall, "text-anchor": "end" };
      const shown = fitText(showToken(text), labels - 8, LABEL);
      rowTexts.push(svgElement("text", r % every ? { ...at, visibility: "hidden" } : at, shown));
    });
    const some = Math.max(1, Math.ceil(14 / wide));
    (header ? (columnNames ?? []) : []).forEach((text, c) => {
      const x = (c + 0.5) * wide;
      const at = upright
        ? { transform: `translate(${x} -6) rotate(-90)`, "text-anchor": "start" }
        : { x, y: -9, "text-anchor": "middle" };
      const shown = fitText(showToken(text), upright ? 96 : wide + 3, LABEL);
      const hide = c % some ? { visibility: "hidden" } : {};
      columnTexts.push(svgElement("text", { class: "afm-columnheader", ...at, ...hide }, shown));
    });
    if (!active) texts.append(...rowTexts, ...columnTexts);
  }

  /** Make the elements of all cells, row by row. */
  function places(put, attributes = {}) {
    const gap = wide > 12 ? 0.5 : 0;
    for (let at = 0; at < rows * columns; at += 1) {
      const [x, y] = [(at % columns) * wide, Math.floor(at / columns) * tall];
      const [width, height] = [wide - 2 * gap, tall - 2 * gap];
      const shape = { x: x + gap, y: y + gap, width, height, rx: numbered ? 3 : 0 };
      const rect = svgElement("rect", { ...shape, ...attributes });
      const middle = { x: x + wide / 2, y: y + tall / 2, "font-size": digits };
      const text = numbered && svgElement("text", { class: "afm-cell-number", ...middle });
      boxes.push([rect, text]);
      put(text ? [rect, text] : [rect], at);
    }
  }

  function grid() {
    const head = (role, text, node) =>
      setAttributes(node, { role, "aria-label": clip(showToken(text), 80) });
    const corner = labels ? [svgElement("rect", { role: "cell", fill: "none" })] : [];
    const first = svgElement("g", { role: "row" }, ...corner);
    columnTexts.forEach((node, c) => first.append(head("columnheader", columnNames[c], node)));
    const lines = Array.from({ length: rows }, (_, r) => {
      const names = rowTexts[r] ? [head("rowheader", rowNames[r], rowTexts[r])] : [];
      return svgElement("g", { role: "row" }, ...names);
    });
    const numbers = svgElement("g", { "aria-hidden": "true", class: "afm-numbers" });
    places(
      ([rect, text], at) => {
        lines[Math.floor(at / columns)].append(rect);
        if (text) numbers.append(text);
      },
      { class: "afm-cell", role: "gridcell", tabindex: "-1", "aria-selected": "false" },
    );
    const node = svgElement(
      "g",
      {
        role: "grid",
        "aria-label": label,
        "aria-rowcount": rows + 1,
        "aria-colcount": columns + corner.length,
      },
      first,
      ...lines,
    );
    cells.append(node, numbers);
    group.append(cells, texts);
    return node;
  }

  /** Cells of one color as one path: a thousand elements cost the browser several times as much. */
  function paintPaths(values, fillOf) {
    const areas = new Map();
    values.forEach((line, r) =>
      line.forEach((value, c) => {
        const area = `M${c * wide} ${r * tall}h${wide}v${tall}h-${wide}z`;
        areas.set(fillOf(value), (areas.get(fillOf(value)) ?? "") + area);
      }),
    );
    while (paths.length < areas.size) cells.append(paths[paths.push(svgElement("path")) - 1]);
    paths.splice(areas.size).forEach((path) => path.remove());
    [...areas].forEach(([fill, d], at) => setAttributes(paths[at], { fill, d }));
  }

  return {
    group,
    cells,
    texts,
    paint(values, colors, { weights = false, whole = false, open = null, cellName = null }) {
      const shades = scaleFor(values, weights, colors);
      const shown = values.map((line, r) =>
        line.map((value, c) => (open && !open[r][c] ? Number.NaN : value)),
      );
      const fillOf = (value) => (Number.isNaN(value) ? `url(#${hatch})` : shades.fill(value));
      if (!boxes.length) paintPaths(shown, fillOf);
      boxes.forEach(([rect, text], at) => {
        const [r, c] = [Math.floor(at / columns), at % columns];
        const value = shown[r][c];
        rect.setAttribute("fill", fillOf(value));
        if (table) rect.setAttribute("aria-label", cellName(r, c, values[r][c]));
        if (!text) return;
        const hidden = weights ? "" : "−∞";
        text.setAttribute("fill", Number.isNaN(value) ? "var(--afm-ink)" : shades.text(value));
        const number = () => (whole ? String(value) : cellNumber(value, fits));
        text.textContent = Number.isNaN(value) ? hidden : number();
      });
    },
    cell: (row, column) => boxes[row * columns + column]?.[0],
    light(rowRange, columnRange) {
      const on = (texts_, range) =>
        texts_.forEach((node, i) =>
          node.classList.toggle(
            "afm-on",
            Boolean(range) && i >= range[0] && i < range[0] + range[1],
          ),
        );
      on(rowTexts, rowRange);
      on(columnTexts, columnRange);
    },
  };
}
