// Pictures of the scores: by pair, by distance, and of what is added to them. Each is drawn by panel()
// of parts.js, with view = { settings, method, lab, waves, pairs, penalties, titles } from view.js.

import { linearScale } from "../core/axes.js";
import { short } from "../core/numbers.js";
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
  lowered,
  marker,
  outline,
  polyline,
  text,
} from "./parts.js";

/** Every position against every position, and below it the row of position p as a curve. */
export function drawScores({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  const n = settings.n_positions;
  title.replaceChildren(...lowered(view.titles.scores));
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
  const [base, tall] = [top + side + 16, isNarrow(width) ? 56 : 84];
  const row = lab.scores[p];
  const [low, high] = [Math.min(0, ...row), Math.max(0, ...row)];
  const y = linearScale([low, high], [base + tall, base]).of;
  const x = linearScale([-0.5, n - 0.5], [LEFT, LEFT + side]).of;
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
  svg.append(marker(x(p + offset), y(row[p + offset]), colors.keyText));
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

/** The score of p and p + k for every p: a level line when the offset alone decides. */
export function drawDistance({ svg, title, width, colors, view }) {
  const { settings, lab } = view;
  const { position: p, offset: k } = settings;
  title.textContent = "Offset test: is the score of p and p + k the same for every p?";
  const along = lab.scores
    .map((row, at) => [at, row[at + k]])
    .filter(([, score]) => score !== undefined);
  const scores = along.map(([, score]) => score);
  const [low, high] = [Math.min(0, ...scores), Math.max(0, ...scores)];
  const [top, tall, right] = [8, isNarrow(width) ? 56 : 88, width - 6];
  const x = linearScale([0, settings.n_positions - 1], [LEFT, right]).of;
  const y = linearScale([low, high], [top + tall, top]).of;
  svg.append(line(LEFT, y(0), right, y(0), colors.line));
  svg.append(
    polyline(
      along.map(([at, score]) => [x(at), y(score)]),
      colors.ink,
    ),
  );
  svg.append(marker(x(p), y(lab.scores[p][p + k]), colors.queryText));
  svg.append(text(LEFT - 6, y(0) + 4, "0", { "text-anchor": "end" }));
  const edge = high > 0 ? high : low;
  if (edge) svg.append(text(LEFT - 6, y(edge) + 4, short(edge), { "text-anchor": "end" }));
  svg.append(text(LEFT, top + tall + 18, `p = 0, offset ${k}`));
  svg.append(
    text(right, top + tall + 18, `p = ${settings.n_positions - 1}`, { "text-anchor": "end" }),
  );
  const passed = lab.spread < 1e-9;
  const most = write(Math.max(...scores) - Math.min(...scores));
  svg.append(
    text(
      0,
      top + tall + 42,
      `${passed ? "✓ level: the offset alone decides" : `✗ differs by up to ${most}`}`,
    ),
  );
  return { height: top + tall + 52, says: `Offset test: scores differ by up to ${most}` };
}

/** What each head adds to a score, by distance: ALiBi's penalty. */
export function drawPenalties({ svg, title, width, colors, view }) {
  const { settings } = view;
  title.textContent = view.titles.penalties;
  const n = settings.n_positions;
  const [top, tall] = [10, isNarrow(width) ? 160 : 210];
  const x = linearScale([0, n - 1], [LEFT, width - 10]).of;
  const high = Math.max(0, ...view.penalties.flat());
  const floor = Math.max(-8, Math.min(0, ...view.penalties.flat()));
  const y = linearScale([high, floor], [top, top + tall]).of;
  view.penalties.forEach((values, head) => {
    const own = head === settings.head;
    const points = downTo(floor, values).map(([distance, value]) => [x(distance), y(value)]);
    svg.append(polyline(points, own ? colors.ink : colors.line, { "stroke-width": own ? 3 : 1.5 }));
  });
  const away = Math.abs(settings.offset);
  const value = view.penalties[settings.head][away];
  if (value >= floor) svg.append(marker(x(away), y(value), colors.keyText));
  svg.append(
    text(LEFT - 6, top + 5, short(high), { "text-anchor": "end" }),
    text(LEFT - 6, top + tall, short(floor), { "text-anchor": "end" }),
  );
  svg.append(
    text(LEFT, top + tall + 18, "distance 0"),
    text(width - 10, top + tall + 18, String(n - 1), { "text-anchor": "end" }),
  );
  return { height: top + tall + 24, says: `Penalty by distance of ${view.penalties.length} heads` };
}

/** [index, value] of each value as far as they are above the floor, and where they reach it. */
function downTo(floor, values) {
  const at = values.findIndex((value) => value < floor);
  if (at <= 0) return [...values.entries()];
  const before = values[at - 1];
  const part = (before - floor) / (before - values[at]);
  return [...values.slice(0, at).entries(), [at - 1 + part, floor]];
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
  return { height: 26 + side, says: "Attention weights over equal scores, causal" };
}
