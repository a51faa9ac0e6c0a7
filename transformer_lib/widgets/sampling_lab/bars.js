// The picture of the sampling lab: one line for each of the most probable tokens, one for the others.
//
//   const picture = bars(vocabulary, likely, lines);   fig.add(picture)
//       likely: tokens that may get a line (for their width); lines: how many there are room for
//       cuts: whether anything can be cut; else there is no mark for it and no running total
//   picture.paint(found, { topP, minP }, counts, draws)      found: look() of model.js; null: off

import { axisText, gridLine, linearScale } from "../core/axes.js";
import {
  clip,
  fitText,
  font,
  hatchPattern,
  setAttributes,
  setSize,
  showToken,
  svgElement,
  textWidth,
  uniqueId,
} from "../core/dom.js";
import { fixed, percent, percentAmong } from "../core/numbers.js";

const OF_CUTS = ["cut", "running total"];
const LINE = 25;
const NOW = 56; // widths of the columns of numbers
const DRAWN = 52;

export function bars(vocabulary, likely, room, { cuts = true } = {}) {
  const size = vocabulary.length;
  const lines = Math.min(size, room);
  const single = size <= room ? size : room - 1; // lines of one token; the last line is the others'
  const svg = svgElement("svg", {
    class: "afm-sampling",
    role: "list",
    "aria-label": "The most probable tokens",
  });
  const hatch = uniqueId("cut");
  let [place, items, stair, bounds, head, data] = [null, [], null, [], null, null];

  function layout(width) {
    const longest = Math.max(
      ...likely.map((i) => textWidth(clip(showToken(vocabulary[i]), 60))),
      textWidth(`${size} others`),
    );
    const named = Math.ceil(Math.min(longest + 2, 150, 0.24 * width));
    const left = named + 10;
    const right = width - DRAWN - NOW;
    place = { width, named, left, right, x: linearScale([0, 1], [left, right]).of };
    svg.replaceChildren(hatchPattern(hatch));
    const top = legend(svg, width, hatch, cuts) + 30;
    const bottom = top + LINE * lines;
    setSize(svg, width, bottom + 56);
    scale(top, bottom);
    items = Array.from({ length: lines }, (_, i) => makeLine(top + LINE * i));
    stair = svgElement("path", { class: "afm-total", visibility: cuts ? "visible" : "hidden" });
    bounds = ["afm-enough", "afm-least"].map((kind) => ({
      line: svgElement("line", { class: `afm-bound ${kind}`, y1: top - 4, y2: bottom + 6 }),
      name: svgElement("text", { class: `afm-bound-name ${kind}` }),
    }));
    const nodes = bounds.flatMap(({ line, name }) => [line, name]);
    svg.append(svgElement("g", { "aria-hidden": "true" }, stair, ...nodes));
    items.forEach(({ group, mark }) => group.append(mark)); // above the stair
    Object.assign(place, { top, bottom });
    paint();
  }

  /** The axis, 0 to 100 %, and the heads of the columns. */
  function scale(top, bottom) {
    const group = svgElement("g", { "aria-hidden": "true" });
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const x = place.x(share);
      group.append(gridLine(x, top, x, bottom));
      if (share % 0.5 === 0) group.append(axisText(percent(share), x, bottom + 16, "middle"));
    }
    head = axisText("drawn", place.width - 2, top - 10, "end", "output");
    group.append(
      axisText("token", place.named, top - 10, "end"),
      axisText("now", place.right + NOW, top - 10, "end"),
      head,
    );
    svg.append(group);
  }

  function makeLine(y) {
    const middle = y + LINE / 2;
    const item = svgElement("g", { role: "listitem" });
    const group = svgElement("g", { "aria-hidden": "true" });
    const name = svgElement("text", {
      class: "afm-sampling-text",
      x: place.named,
      y: middle + 4,
      "text-anchor": "end",
    });
    const now = svgElement("rect", {
      class: "afm-now",
      x: place.left,
      y: middle - 6,
      height: 12,
      rx: 2,
    });
    const own = svgElement("rect", {
      class: "afm-own",
      x: place.left,
      y: middle - 9,
      height: 18,
      rx: 3,
    });
    const share = svgElement("text", {
      class: "afm-sampling-text",
      x: place.right + NOW,
      y: middle + 4,
      "text-anchor": "end",
    });
    const drawn = svgElement("text", {
      class: "afm-sampling-text afm-output",
      x: place.width - 2,
      y: middle + 4,
      "text-anchor": "end",
    });
    const mark = svgElement("path", { class: "afm-drawn", d: "M0 -6L5 0L0 6L-5 0Z" });
    group.append(name, own, now, share, drawn);
    item.append(group);
    svg.append(item);
    return { item, group, name, own, now, share, drawn, mark, middle, fitted: new Map() };
  }

  function paint(
    found = data?.found,
    cuts = data?.cuts,
    counts = data?.counts,
    draws = data?.draws,
  ) {
    if (!found) return;
    data = { found, cuts, counts, draws };
    if (!place) return;
    linesOf(found, counts).forEach((line, i) => paintLine(items[i], line, draws));
    head.setAttribute("visibility", draws ? "visible" : "hidden");
    const totals = items.map((_, i) => (i < single ? found.totals[i] : 1));
    const full = totals.findIndex((total) => total > 1 - 1e-9); // there it ends
    const steps = totals
      .slice(0, full + 1)
      .map((total, i) => `H${place.x(total).toFixed(1)}V${place.top + LINE * (i + 1)}`);
    stair.setAttribute("d", `M${place.left} ${place.top}${steps.join("")}`);
    const free = found.cut[found.order.at(-1)] !== "greedy";
    const { topP, minP } = cuts;
    const share = free && topP !== null && topP < 1 ? topP : null;
    paintBound(bounds[0], share, `p = ${fixed(topP ?? 1)}`, 0);
    // Every bar that remains reaches this line: cutting makes all of them longer by one factor.
    const least = free && minP ? minP * found.probabilities[found.order[0]] : null;
    paintBound(bounds[1], least, `${fixed(minP ?? 0)} of the largest`, share === null ? 0 : 1);
  }

  /** A bound at this share, its name in this row below the axis; null: none. */
  function paintBound({ line, name }, share, text, row) {
    const shown = share === null ? "hidden" : "visible";
    const x = place.x(share ?? 0);
    setAttributes(line, { x1: x, x2: x, visibility: shown });
    const anchor = share > 0.8 ? "end" : share < 0.2 ? "start" : "middle";
    const y = place.bottom + 34 + 16 * row;
    setAttributes(name, { x, y, "text-anchor": anchor, visibility: shown });
    name.textContent = text;
  }

  /** The contents of each line: a token, or all others together. */
  function linesOf({ order, own, probabilities, cut, remain: among }, counts) {
    const sum = (list, values) => list.reduce((total, i) => total + values[i], 0);
    const tokens = order.slice(0, single).map((i) => ({
      name: showToken(vocabulary[i]),
      own: own[i],
      now: probabilities[i],
      cut: cut[i],
      count: counts[i],
      remain: among,
    }));
    if (single === size) return tokens;
    const rest = order.slice(single);
    const remain = rest.filter((i) => cut[i] === null).length;
    const all = {
      own: sum(rest, own),
      now: sum(rest, probabilities),
      cut: remain ? null : [...new Set(rest.map((i) => cut[i]))].sort().reverse().join(", "),
      count: sum(rest, counts),
      remain: among,
    };
    return [...tokens, { ...all, name: `${rest.length} others`, others: remain }];
  }

  function paintLine(line, { name, own, now, cut, count, others, remain }, draws) {
    const { item, share, drawn, mark, middle } = line;
    if (!line.fitted.has(name)) line.fitted.set(name, fitText(name, place.named));
    line.name.textContent = line.fitted.get(name);
    const kept = cut === null;
    line.name.setAttribute(
      "class",
      `afm-sampling-text${kept ? "" : " afm-cut-text"}${others === undefined ? "" : " afm-others"}`,
    );
    const across = (value) => Math.max(value > 0 ? 1 : 0, place.x(value) - place.left);
    setAttributes(line.own, {
      width: across(own),
      class: kept ? "afm-own" : "afm-own afm-own-cut",
      fill: kept ? "none" : `url(#${hatch})`,
    });
    setAttributes(line.now, { width: across(now) });
    share.textContent = kept ? percentAmong(now, remain) : shortened(cut);
    share.setAttribute("class", kept ? "afm-sampling-text" : "afm-sampling-text afm-cut-text");
    drawn.textContent = draws ? String(count) : "";
    mark.setAttribute("visibility", draws && count ? "visible" : "hidden");
    if (draws)
      mark.setAttribute("transform", `translate(${place.x(count / draws).toFixed(1)} ${middle})`);
    const left = others && others > 0 ? ` (${others} of them remain)` : "";
    const says = kept
      ? `now ${percentAmong(now, remain)}${left}`
      : `cut by ${cut === "greedy" ? "greedy decoding" : cut.replace(/, ([^,]*)$/, " and $1")}`;
    item.setAttribute(
      "aria-label",
      `${clip(name)}: the model's own ${percentAmong(own, size)}, ${says}${draws ? `, drawn ${count} of ${draws}` : ""}`,
    );
  }

  return { element: svg, layout, paint };
}

/** What cuts, for a narrow column. */
function shortened(cut) {
  if (!cut.includes(",")) return cut;
  return cut === "top-p, top-k" ? "top-p, k" : "several";
}

/** A key to the marks, in as many lines as needed; returns where it ends. */
function legend(svg, width, hatch, cuts) {
  const all = [
    [
      "the model's own",
      svgElement("rect", { class: "afm-own", y: -13, width: 20, height: 16, rx: 3, fill: "none" }),
    ],
    [
      "what is drawn from",
      svgElement("rect", { class: "afm-now", y: -10, width: 20, height: 11, rx: 2 }),
    ],
    [
      "cut",
      svgElement("rect", {
        class: "afm-own afm-own-cut",
        y: -13,
        width: 20,
        height: 16,
        rx: 3,
        fill: `url(#${hatch})`,
      }),
    ],
    ["running total", svgElement("path", { class: "afm-total", d: "M0 -9H10V1H20" })],
    [
      "share of the draws",
      svgElement("path", {
        class: "afm-drawn",
        d: "M0 -6L5 0L0 6L-5 0Z",
        transform: "translate(10 -5)",
      }),
    ],
  ];
  const entries = all.filter(([text]) => cuts || !OF_CUTS.includes(text));
  let [x, y] = [1, 16];
  const group = svgElement("g", { "aria-hidden": "true" });
  for (const [text, sign] of entries) {
    const wide = 26 + textWidth(text, font(12));
    if (x > 1 && x + wide > width) [x, y] = [1, y + 22];
    group.append(
      svgElement("g", { transform: `translate(${x} ${y})` }, sign, axisText(text, 26, 0)),
    );
    x += wide + 16;
  }
  svg.append(group);
  return y;
}
