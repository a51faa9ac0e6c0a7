// The still part of core/grid.js: the places of cells, labels, titles and the hatch of masked cells.

import {
  clip,
  fitText,
  hatchPattern,
  setAttributes,
  setSize,
  showToken,
  svgElement,
  textWidth,
} from "./dom.js";

const TITLE_ROOM = 18;
const LINE = 12; // the least room for a label, in pixels

/** Of how many labels one has room. */
const oneOf = (cell) => Math.max(1, Math.ceil(LINE / cell));
/** Said at an axis that cannot name all. */
const named = (cell) => (oneOf(cell) > 1 ? ` (one of ${oneOf(cell)} named)` : "");

/** Sizes in pixels for a given width: the cell, and the room for labels on the left and on top. */
export function gridGeometry({
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
export function drawFrame(svg, geometry, { rows, columns, label, rowTitle, columnTitle, hatch }) {
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
export function thinLabels(labels, cell, chosen) {
  const every = oneOf(cell);
  labels.forEach((node, i) => {
    const crowded = chosen !== null && i !== chosen && Math.abs(i - chosen) < every;
    node.classList.toggle("afm-on", i === chosen);
    node.classList.toggle("afm-spare", i !== chosen && (i % every !== 0 || crowded));
  });
}
