// Pictures of the vectors at each position: dials, code and shift test. Each is drawn by panel() of parts.js, with
// view = { settings, method, lab, waves, pairs, penalties, titles } from view.js.

import { linearScale } from "../core/axes.js";
import { svgElement } from "../core/dom.js";
import { write } from "./model.js";
import {
  around,
  axes,
  hatched,
  heat,
  isNarrow,
  LEFT,
  largest,
  line,
  marker,
  marksOf,
  outline,
  polyline,
  text,
} from "./parts.js";

/** One dial for each pair shown, and beside it the path that the tip of its hand has taken. */
export function drawClocks({ svg, title, width, colors, view }) {
  const { settings, method, lab, pairs, waves, titles } = view;
  title.textContent = titles.clocks;
  const hands = method.hands.map((name) => lab[name]);
  const reach = Math.max(largest(hands[0]), largest(hands[1]));
  // Alone, the dials are large; beside other pictures they are small, and on a phone smaller.
  const sizes = isNarrow(width) ? [44, 18, 56] : [56, 21, 60];
  const [rowHeight, radius, from] = width > 500 ? [84, 34, 92] : sizes;
  const x = linearScale([0, settings.n_positions - 1], [from, width - 8]).of;
  pairs.forEach((pair, order) => {
    const top = order * rowHeight;
    const [cx, cy] = [radius + 5, top + rowHeight / 2 + 2];
    const chosen = pair === settings.pair;
    if (chosen) {
      svg.append(
        svgElement("rect", {
          x: 0,
          y: top + 1,
          width,
          height: rowHeight - 3,
          rx: 6,
          class: "afm-pl-chosen",
        }),
      );
    }
    const turn = waves
      ? ` · one turn in ${write(waves[pair])}${width > 330 ? " positions" : ""}`
      : "";
    svg.append(
      text(
        from,
        top + 14,
        `${width > 330 ? "components " : ""}${2 * pair}, ${2 * pair + 1}${turn}`,
      ),
    );
    svg.append(svgElement("circle", { cx, cy, r: radius, class: "afm-pl-dial" }));
    const [middle, tall] = [top + rowHeight / 2 + 10, radius - 8];
    const y = linearScale([-reach, reach], [middle + tall, middle - tall]).of;
    svg.append(line(from, middle, width - 8, middle, colors.line));
    const path = (at) => lab.rows.map((row, p) => [x(p), y(row[at])]);
    svg.append(polyline(path(2 * pair), colors.ink));
    svg.append(polyline(path(2 * pair + 1), colors.soft, { "stroke-dasharray": "3 3" }));
    marksOf(settings, colors).forEach(([p, color], which) => {
      const row = hands[which][p];
      if (!row) return;
      const [right, up] = [row[2 * pair] / reach, row[2 * pair + 1] / reach];
      const dashed = which ? { "stroke-dasharray": "5 2" } : {};
      svg.append(
        line(cx, cy, cx + right * radius, cy - up * radius, color, {
          "stroke-width": 3,
          "stroke-linecap": "round",
          ...dashed,
        }),
      );
      svg.append(
        line(x(p), middle - tall - 3, x(p), middle + tall + 3, color, { "stroke-opacity": 0.6 }),
      );
      svg.append(marker(x(p), y(lab.rows[p][2 * pair]), color));
    });
  });
  const height = pairs.length * rowHeight;
  const at = (_, py) => (py < height ? { pair: pairs[Math.floor(py / rowHeight)] } : null);
  return {
    height,
    at,
    says: `Dials and curves of ${pairs.length} pairs of components at position ${settings.position}`,
  };
}

/** All rows as a heatmap: positions down, components across. */
export function drawCode({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  const n = settings.n_positions;
  const components = lab.rows[0].length;
  title.textContent = view.titles.code;
  const [w, h] = [width - LEFT - 2, Math.min(300, Math.max(120, 8 * n))];
  const top = 22;
  const cell = [w / components, h / n];
  if (lab.reach < n) svg.append(...hatched({ x: LEFT, y: top, width: w, height: h }));
  const scale = around(colors, largest(lab.rows));
  svg.append(heat(lab.rows, components, n, scale, { x: LEFT, y: top, width: w, height: h }));
  axes(svg, {
    top,
    w,
    h,
    last: n - 1,
    across: [`component 0`, String(components - 1)],
    down: "position",
  });
  const pairX = LEFT + 2 * settings.pair * cell[0];
  svg.append(line(pairX, top - 3, pairX + 2 * cell[0], top - 3, colors.ink, { "stroke-width": 3 }));
  for (const [p, color] of marksOf(settings, colors)) {
    svg.append(outline(LEFT - 1, top + p * cell[1], w + 2, Math.max(3, cell[1]), color));
  }
  const at = (px, py) => {
    const [p, c] = [Math.floor((py - top) / cell[1]), Math.floor((px - LEFT) / cell[0])];
    if (p < 0 || c < 0 || p >= lab.reach || c >= components) return null;
    return { position: p, pair: Math.floor(c / 2) };
  };
  return {
    height: top + h + 4,
    at,
    says: `Heatmap of ${lab.reach} positions and ${components} components`,
  };
}

/** Row p turned by R(k), row p + k, and their difference. */
export function drawShift({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  title.textContent = "Shift test: does one rotation R(k) take every position k steps on?";
  const scale = around(colors, Math.max(1e-9, largest(lab.rows)));
  const { position: p, offset: k } = settings;
  const strips = [
    [`${view.method.rowName(p)} · R(${k})`, lab.turned],
    [view.method.rowName(p + k), lab.arrived],
    ["their difference", lab.turned.map((value, at) => value - lab.arrived[at])],
  ];
  strips.forEach(([label, row], order) => {
    const top = order * 42;
    svg.append(text(0, top + 12, label));
    svg.append(heat([row], row.length, 1, scale, { x: 0, y: top + 17, width, height: 16 }));
    svg.append(
      svgElement("rect", {
        x: 0.5,
        y: top + 17,
        width: width - 1,
        height: 16,
        class: "afm-pl-frame",
      }),
    );
  });
  const passed = lab.missed < 1e-9;
  const most = write(lab.missed);
  svg.append(text(0, 144, `${passed ? "✓" : "✗"} largest difference at any position: ${most}`));
  return { height: 154, says: `Shift test: largest difference at any position ${most}` };
}
