// The pictures of the position lab. Each is drawn by panel() of parts.js, with
// view = { settings, method, lab, waves, pairs, slopes, titles } from view.js.

import { svgElement } from "../core/dom.js";
import { short } from "../core/numbers.js";
import { write } from "./model.js";
import { around, axes, dot, hatched, heat, LEFT, line, outline, polyline, text } from "./parts.js";

const largest = (rows) => rows.reduce((top, row) => Math.max(top, ...row.map(Math.abs)), 0);
const marksOf = ({ position, offset }, colors) => [
  [position, colors.queryText],
  [position + offset, colors.keyText],
];

/** One dial for each pair shown, and beside it the path that the tip of its hand has taken. */
export function drawClocks({ svg, title, width, colors, view }) {
  const { settings, method, lab, pairs, waves, titles } = view;
  title.textContent = titles.clocks;
  const hands = method.hands.map((name) => lab[name]);
  const reach = Math.max(largest(hands[0]), largest(hands[1]));
  const span = settings.n_positions - 1;
  const [rowHeight, radius, from] = [56, 21, 60];
  const x = (p) => from + (p * (width - from - 8)) / Math.max(1, span);
  pairs.forEach((pair, order) => {
    const top = order * rowHeight;
    const [cx, cy] = [26, top + 30];
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
    const middle = top + 38;
    const y = (value) => middle - (value / reach) * 13;
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
      svg.append(line(x(p), top + 22, x(p), top + 54, color, { "stroke-opacity": 0.6 }));
      svg.append(dot(x(p), y(lab.rows[p][2 * pair]), color));
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

/** Every position against every position, and below it the row of position p as a curve. */
export function drawScores({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  const n = settings.n_positions;
  title.textContent = view.titles.scores;
  const side = Math.min(width - LEFT - 2, 300);
  const top = 22;
  const limit = Math.max(1e-9, largest(lab.scores));
  const box = { x: LEFT, y: top, width: side, height: side };
  if (lab.reach < n) svg.append(...hatched(box));
  svg.append(heat(lab.scores, n, n, around(colors, limit), box));
  axes(svg, {
    top,
    w: side,
    h: side,
    last: n - 1,
    across: ["key position 0", String(n - 1)],
    down: "query position",
  });
  const cell = side / n;
  const { position: p, offset } = settings;
  svg.append(outline(LEFT - 1, top + p * cell, side + 2, Math.max(3, cell), colors.queryText));
  svg.append(
    outline(LEFT + (p + offset) * cell, top - 1, Math.max(3, cell), side + 2, colors.keyText),
  );
  const [base, tall] = [top + side + 16, 84];
  const row = lab.scores[p];
  const [low, high] = [Math.min(0, ...row), Math.max(0, ...row)];
  const y = (value) => base + tall - ((value - low) / (high - low || 1)) * tall;
  const x = (q) => LEFT + (q + 0.5) * cell;
  svg.append(line(LEFT, y(0), LEFT + side, y(0), colors.line));
  svg.append(line(x(p), base, x(p), base + tall, colors.queryText, { "stroke-opacity": 0.6 }));
  svg.append(
    line(x(p + offset), base, x(p + offset), base + tall, colors.keyText, {
      "stroke-opacity": 0.6,
    }),
  );
  svg.append(
    polyline(
      row.map((score, q) => [x(q), y(score)]),
      colors.ink,
    ),
  );
  svg.append(dot(x(p + offset), y(row[p + offset]), colors.keyText));
  svg.append(text(LEFT - 6, y(high) + 4, short(high), { "text-anchor": "end" }));
  if (low < -0.2 * (high - low))
    svg.append(text(LEFT - 6, y(low), short(low), { "text-anchor": "end" }));
  svg.append(text(LEFT, base + tall + 18, `the row of position ${p}`));
  const at = (px, py) => {
    const [r, c] = [Math.floor((py - top) / cell), Math.floor((px - LEFT) / cell)];
    if (r < 0 || c < 0 || r >= lab.reach || c >= lab.reach) return null;
    return { position: r, offset: c - r };
  };
  return {
    height: base + tall + 24,
    at,
    says: `Scores of ${lab.reach} query and key positions; at the marked pair ${write(row[p + offset])}`,
  };
}

/** Row p turned by R(k), row p + k, and their difference. */
export function drawShift({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  title.textContent = "Shift test: does one rotation R(k) take every position k steps on?";
  const scale = around(colors, Math.max(1e-9, largest(lab.rows)));
  const { position: p, offset: k } = settings;
  const strips = [
    [`R(${k}) times ${view.method.rowName(p)}`, lab.turned],
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

/** The score of p and p + k for every p: a level line when the distance alone decides. */
export function drawDistance({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  const { position: p, offset: k } = settings;
  title.textContent = "Distance test: is the score of p and p + k the same for every p?";
  const along = lab.scores
    .map((row, at) => [at, row[at + k]])
    .filter(([, score]) => score !== undefined);
  const scores = along.map(([, score]) => score);
  const [low, high] = [Math.min(0, ...scores), Math.max(0, ...scores)];
  const [top, tall, right] = [8, 88, width - 6];
  const x = (at) => LEFT + (at * (right - LEFT)) / Math.max(1, settings.n_positions - 1);
  const y = (value) => top + tall - ((value - low) / (high - low || 1)) * tall;
  svg.append(line(LEFT, y(0), right, y(0), colors.line));
  svg.append(
    polyline(
      along.map(([at, score]) => [x(at), y(score)]),
      colors.ink,
    ),
  );
  svg.append(dot(x(p), y(lab.scores[p][p + k]), colors.queryText));
  svg.append(text(LEFT - 6, y(0) + 4, "0", { "text-anchor": "end" }));
  const edge = high > 0 ? high : low;
  if (edge) svg.append(text(LEFT - 6, y(edge) + 4, short(edge), { "text-anchor": "end" }));
  svg.append(text(LEFT, top + tall + 18, `p = 0, distance ${k}`));
  svg.append(
    text(right, top + tall + 18, `p = ${settings.n_positions - 1}`, { "text-anchor": "end" }),
  );
  const passed = lab.spread < 1e-9;
  const most = write(Math.max(...scores) - Math.min(...scores));
  svg.append(
    text(
      0,
      top + tall + 42,
      `${passed ? "✓ level: the distance alone decides" : `✗ differs by up to ${most}`}`,
    ),
  );
  return { height: top + tall + 52, says: `Distance test: scores differ by up to ${most}` };
}

/** ALiBi: the penalty of each head by distance. */
export function drawPenalties({ svg, title, width, colors, view }) {
  const { settings } = view;
  title.textContent = "The penalty by distance, one line for each head";
  const n = settings.n_positions;
  const [top, tall] = [10, 210];
  const x = (distance) => LEFT + (distance * (width - LEFT - 10)) / Math.max(1, n - 1);
  const floor = -Math.min(8, view.slopes[0] * (n - 1));
  const y = (value) => top + (value / floor) * tall;
  view.slopes.forEach((slope, head) => {
    const end = Math.min(n - 1, floor / -slope);
    const own = head === settings.head;
    svg.append(
      line(x(0), y(0), x(end), y(-slope * end), own ? colors.ink : colors.line, {
        "stroke-width": own ? 3 : 1.5,
      }),
    );
  });
  const away = Math.abs(settings.offset);
  const value = -view.slopes[settings.head] * away;
  if (value >= floor) svg.append(dot(x(away), y(value), colors.keyText));
  svg.append(
    text(LEFT - 6, top + 5, "0", { "text-anchor": "end" }),
    text(LEFT - 6, top + tall, short(floor), { "text-anchor": "end" }),
  );
  svg.append(
    text(LEFT, top + tall + 18, "distance 0"),
    text(width - 10, top + tall + 18, String(n - 1), { "text-anchor": "end" }),
  );
  return { height: top + tall + 24, says: `Penalty by distance of ${view.slopes.length} heads` };
}

/** ALiBi: the weights that are left when all scores are equal, looking back only. */
export function drawWeights({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  title.textContent = "The weights, if all scores are equal";
  const n = settings.n_positions;
  const side = Math.min(width - LEFT - 2, 300);
  const box = { x: LEFT, y: 22, width: side, height: side };
  const rows = lab.weights.map((row, p) => row.map((weight, q) => (q > p ? null : weight)));
  svg.append(...hatched(box));
  svg.append(heat(rows, n, n, { colors, low: 0, high: 1 }, box));
  axes(svg, {
    top: 22,
    w: side,
    h: side,
    last: n - 1,
    across: ["key position 0", String(n - 1)],
    down: "query position",
  });
  svg.append(
    outline(
      LEFT - 1,
      22 + (settings.position * side) / n,
      side + 2,
      Math.max(3, side / n),
      colors.queryText,
    ),
  );
  return { height: 26 + side, says: "Attention weights of ALiBi over equal scores, causal" };
}
