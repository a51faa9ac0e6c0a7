// An operand of the step scrubber: cells in line with the result's, its name and its labels.
//
//   const view = operand({ values, rowNames, columnNames, cell, left, top, blocks });
//   view.paint(values, colors, { title, role, weights, binary });
//   view.mark([row, column, rows, columns], "row");     // outlined

import { divergingScale, sequentialScale } from "../core/color.js";
import { fitText, setAttributes, setSize, showToken, svgElement, textWidth } from "../core/dom.js";
import { fixed } from "../core/numbers.js";

export const TITLE_LINE = 20;

/** The number that fits into a cell: three digits at most. */
export function cellNumber(value) {
  return fixed(
    value,
    Number.isInteger(value) && Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2,
  );
}

export function scaleFor(values, weights) {
  if (weights) return (colors) => sequentialScale(colors);
  const finite = values.flat().filter(Number.isFinite).map(Math.abs);
  return (colors) => divergingScale(colors, Math.max(1e-9, ...finite));
}

export function widest(labels) {
  return Math.ceil(Math.max(0, ...labels.map((text) => textWidth(fitText(showToken(text), 110)))));
}

/**
 * Cells of one color as one path: at 32 tokens, 1024 elements of their own would cost the browser
 * several times as much to style, lay out and paint.
 */
function pathCells(group, cell, left, top) {
  const paths = [];
  return (values, fillOf) => {
    const areas = new Map();
    values.forEach((line, r) =>
      line.forEach((value, c) => {
        const fill = fillOf(value);
        areas.set(
          fill,
          `${areas.get(fill) ?? ""}M${left + c * cell} ${top + r * cell}h${cell}v${cell}h-${cell}z`,
        );
      }),
    );
    while (paths.length < areas.size)
      group.append(paths[paths.push(svgElement("path", { class: "afm-cell" })) - 1]);
    paths.splice(areas.size).forEach((path) => path.remove());
    [...areas].forEach(([fill, d], at) => setAttributes(paths[at], { fill, d }));
  };
}

/** Cells that are large enough for a number in them. */
function numberedCells(group, cell, left, top, [rows, columns]) {
  const places = Array.from({ length: rows * columns }, (_, at) => [
    left + (at % columns) * cell,
    top + Math.floor(at / columns) * cell,
  ]);
  const cells = places.map(([x, y]) => {
    const rect = svgElement("rect", { class: "afm-cell", x, y, width: cell, height: cell, rx: 3 });
    const text = svgElement("text", {
      class: "afm-cell-number",
      x: x + cell / 2,
      y: y + cell / 2,
      "font-size": cell < 38 ? 11 : 12,
    });
    group.append(rect, ...(cell < 30 ? [] : [text]));
    return [rect, text];
  });
  return (values, fillOf, inkOf, write) =>
    values.flat().forEach((value, at) => {
      const [rect, text] = cells[at];
      rect.setAttribute("fill", fillOf(value));
      text.setAttribute("fill", inkOf(value));
      text.textContent = write(value);
    });
}

/** One operand: cells in line with the result's, its name and its labels on the free side. */
export function operand({ values, rowNames, columnNames, cell, left, top, blocks = null }) {
  const [rows, columns] = [values.length, values[0].length];
  const [width, height] = [left + columns * cell + 2, top + rows * cell + 2];
  const svg = setSize(svgElement("svg", { role: "img", class: "afm-operand" }), width, height);
  const group = svgElement("g");
  const draw = (cell > 20 ? numberedCells : pathCells)(group, cell, left, top, [rows, columns]);
  const name = svgElement("text", { x: left, y: 13 });
  svg.append(group, name);
  const every = Math.max(1, Math.ceil(14 / cell));
  (rowNames ?? []).forEach((text, r) => {
    if (r % every) return;
    const shown = fitText(showToken(text), left - 10);
    svg.append(
      svgElement(
        "text",
        { class: "afm-rowheader", x: left - 8, y: top + (r + 0.5) * cell, "text-anchor": "end" },
        shown,
      ),
    );
  });
  const upright = columnNames && widest(columnNames) > cell - 6;
  (columnNames ?? []).forEach((text, c) => {
    if (c % every) return;
    const x = left + (c + 0.5) * cell;
    const place = upright
      ? { transform: `translate(${x} ${top - 8}) rotate(-90)`, "text-anchor": "start" }
      : { x, y: top - 12, "text-anchor": "middle" };
    svg.append(
      svgElement(
        "text",
        { class: "afm-columnheader", ...place },
        fitText(showToken(text), upright ? 96 : cell),
      ),
    );
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
    paint(shown, colors, { title, role, weights = false, binary = false }) {
      const shades = scaleFor(shown, weights)(colors);
      const or = (special, usual) => (value) => (value === -Infinity ? special : usual(value));
      draw(
        shown,
        or("var(--afm-hatch)", shades.fill),
        or("var(--afm-ink)", shades.text),
        binary ? String : cellNumber,
      );
      svg.setAttribute("aria-label", `${title}: ${rows} rows, ${columns} columns`);
      name.setAttribute("class", `afm-name afm-${role}`);
      name.textContent = title;
    },
    mark(box, kind) {
      if (!box) return;
      const [r, c, tall, wide] = box;
      setAttributes(outline, {
        class: `afm-outline afm-outline-${kind} afm-from`,
        visibility: "visible",
        x: left + c * cell,
        y: top + r * cell,
        width: wide * cell,
        height: tall * cell,
      });
    },
  };
}
