// The picture of the training view: the curve, baselines and the floor, and a strip below it.
//
//   const picture = plot({ onHover(step or null), onChoose(step) });   fig.add(picture)
//   picture.draw(run, { nSteps, logSteps, aboveFloor, smoothed, below })   run: derive() of model.js
//   picture.point(row, still)      the row that is looked at; still: chosen, not only under the mouse

import { axisLine, axisText, gridLine, isNumber, linePath } from "../core/axes.js";
import {
  clip,
  element,
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
import { short } from "../core/numbers.js";
import { follow } from "../core/pointing.js";
import { limitsOf, lossAxis, stepAxis } from "./scales.js";

const SERIES = ["second", "third", "fourth"];
const STRIP = 74;
const LEGEND = 18; // the height of a line of names
const SMALL = font(12);
const tickText = (tick) => short(tick, 6);

/** A column's or a baseline's name in words. */
export const plainName = (name) => clip(showToken(name.replaceAll("_", " ")), 40);

/** The name in a sentence: "the fast recipe's loss", but "GPT-2's loss". */
export const inSentence = (name, the = "the") =>
  /^\p{Lu}/u.test(name) ? plainName(name) : `${the} ${plainName(name)}`;

export function plot({ onHover, onChoose }) {
  const svg = svgElement("svg", { class: "afm-losses afm-training", role: "img" });
  const holder = element("div", { class: "afm-training-holder" }, svg);
  const hatch = uniqueId("floor");
  let [width, run, how, frame, row, still, names] = [0, null, null, null, -1, true, []];
  const veil = svgElement("rect", { class: "afm-veil" });
  const cursor = svgElement("line", { class: "afm-cursor" });
  const dot = svgElement("circle", { class: "afm-cursor-dot", r: 5 });

  follow(svg, {
    ready: () => Boolean(run?.steps.length),
    axis: () => [frame.x, width],
    onHover,
    onChoose,
  });

  function build() {
    if (!width || !run) return;
    const legend = placedNames();
    const further = LEGEND * legend.at(-1).line;
    const height = Math.round(Math.min(340, Math.max(230, 0.48 * width))) + further;
    const strip = how.below ? STRIP : 0;
    const shift = how.aboveFloor ? run.floor : 0;
    const tall = { top: 34 + further, bottom: height - 40 };
    const y = lossAxis(run, how, tall, shift);
    const below = how.below ? limitsOf(run.column(how.below)) : null;
    const marks = [...y.ticks.map(tickText), ...(below ? below.map((end) => short(end)) : [])];
    const widest = Math.max(below ? 36 : 0, ...marks.map((text) => textWidth(text, SMALL)));
    const wide = { left: Math.ceil(widest) + 10, right: width - 8 };
    frame = { ...tall, ...wide, shift, y, x: stepAxis(run, how, wide) };
    setSize(svg, width, height + strip);
    svg.replaceChildren(hatchPattern(hatch));
    drawLegend(legend);
    drawAxes();
    drawFloor();
    drawCurves();
    drawBaselines();
    if (below) drawStrip(height, below);
    setAttributes(cursor, { y1: frame.top, y2: frame.bottom });
    svg.append(cursor, dot);
    paint();
  }

  function drawAxes() {
    const { left, right, bottom, x, y, shift } = frame;
    const group = svgElement("g", { "aria-hidden": "true" });
    for (const tick of y.ticks) {
      const at = y.of(tick + shift);
      group.append(
        gridLine(left, at, right, at),
        axisText(tickText(tick), left - 6, at + 4, "end"),
      );
    }
    let free = -Infinity;
    for (const tick of x.ticks) {
      const [at, half] = [x.of(tick), textWidth(tickText(tick), SMALL) / 2];
      const middle = Math.min(right - half, Math.max(left + half, at));
      group.append(gridLine(at, bottom, at, bottom + 4));
      if (middle - half < free + 6) continue;
      group.append(axisText(tickText(tick), middle, bottom + 18, "middle"));
      free = middle + half;
    }
    group.append(
      axisLine(left, bottom, right, bottom),
      axisText("step", right, bottom + 34, "end"),
    );
    svg.append(group);
  }

  /** The curves' names, side by side as long as there is room, then on the next line. */
  function placedNames() {
    const first = how.aboveFloor
      ? `${plainName(run.loss)} − floor, in nats`
      : `${plainName(run.loss)}, in nats`;
    const kinds = ["afm-curve-first", ...run.besides.map((_, i) => `afm-curve-${SERIES[i % 3]}`)];
    let [at, line] = [0, 0];
    return [first, ...run.besides.map(({ name }) => plainName(name))].map((name, i) => {
      const text = fitText(name, width - 30, SMALL);
      const wide = 42 + textWidth(text, SMALL);
      if (at > 0 && at + wide - 14 > width) [at, line] = [0, line + 1];
      const place = { text, kind: kinds[i], at, line };
      at += wide;
      return place;
    });
  }

  function drawLegend(placed) {
    const group = svgElement("g", { "aria-hidden": "true" });
    for (const { text, kind, at, line } of placed) {
      const y = 14 + LEGEND * line;
      group.append(
        svgElement("line", { class: `afm-loss-line ${kind}`, x1: at, x2: at + 20, y1: y, y2: y }),
        axisText(text, at + 26, y + 4, "start"),
      );
    }
    svg.append(group);
  }

  function drawFloor() {
    if (run.floor === null || how.aboveFloor) return;
    const { left, right, bottom, y } = frame;
    const at = y.of(run.floor);
    svg.append(
      svgElement("rect", {
        x: left,
        y: at,
        width: right - left,
        height: Math.max(0, bottom - at),
        fill: `url(#${hatch})`,
      }),
    );
  }

  /** Lines with their names at the right, moved down where they would cover one another. */
  function drawBaselines() {
    const { left, right, top, y } = frame;
    const group = svgElement("g", { "aria-hidden": "true" });
    const lines = run.passed.map((line) => ({ ...line, y: y.of(line.level) }));
    if (run.floor !== null && !how.aboveFloor)
      lines.push({ name: "floor", level: run.floor, y: y.of(run.floor), floor: true });
    let free = top;
    names = lines
      .filter((one) => isNumber(one.y))
      .sort((a, b) => a.y - b.y)
      .map((line) => {
        group.prepend(
          svgElement("line", {
            class: line.floor ? "afm-floor" : "afm-baseline",
            x1: left,
            x2: right,
            y1: line.y,
            y2: line.y,
          }),
        );
        const own = line.floor ? line.y + 15 : line.y - 5;
        const at = Math.max(own, free);
        const name = fitText(plainName(line.name), Math.max(60, right - left - 150), SMALL);
        const node = svgElement("text", {
          class: `afm-baseline-name${line.floor ? " afm-floor-name" : ""}${at > own ? " afm-moved-name" : ""}`,
          x: right - 4,
          y: at,
          "text-anchor": "end",
        });
        group.append(node);
        free = at + 15;
        return {
          node,
          text: `${name} ${short(line.level, 3)}`,
          at: line.floor || width < 480 ? -1 : line.at,
        };
      });
    svg.append(group);
  }

  function pathOf(values) {
    const xs = run.steps.map(frame.x.of);
    return linePath(
      xs,
      values.map((value) => (isNumber(value) ? frame.y.of(value) : null)),
    );
  }

  function drawCurves() {
    const { left, right, top, bottom } = frame;
    const inside = uniqueId("inside");
    const group = svgElement("g", { "aria-hidden": "true", "clip-path": `url(#${inside})` });
    svg.append(
      svgElement(
        "clipPath",
        { id: inside },
        svgElement("rect", {
          x: left - 4,
          y: top - 4,
          width: right - left + 8,
          height: bottom - top + 8,
        }),
      ),
      group,
    );
    if (how.smoothed)
      group.append(
        svgElement("path", {
          class: "afm-loss-line afm-curve-first afm-curve-raw",
          d: pathOf(run.raw),
        }),
      );
    group.append(
      svgElement("path", { class: "afm-loss-line afm-curve-first", d: pathOf(run.smooth) }),
    );
    run.besides.forEach(({ dense, raw, smooth }, i) => {
      const kind = `afm-curve-${SERIES[i % 3]}`;
      const rows = run.steps.map((_, at) => at).filter((at) => isNumber(smooth[at]));
      const [xs, ys] = [
        rows.map((at) => frame.x.of(run.steps[at])),
        rows.map((at) => frame.y.of(smooth[at])),
      ];
      if (how.smoothed && dense)
        group.append(
          svgElement("path", { class: `afm-loss-line ${kind} afm-curve-raw`, d: pathOf(raw) }),
        );
      group.append(svgElement("path", { class: `afm-loss-line ${kind}`, d: linePath(xs, ys) }));
      if (rows.length > 60) return;
      rows.forEach(
        (_, at) =>
          isNumber(ys[at]) &&
          group.append(
            svgElement("circle", { class: `afm-curve-dot ${kind}`, cx: xs[at], cy: ys[at], r: 3 }),
          ),
      );
    });
    setAttributes(veil, { y: top - 4, height: bottom - top + 4 });
    group.append(veil);
  }

  /** One more column, on an axis of its own. */
  function drawStrip(top, [low, high]) {
    const { left, right, x } = frame;
    const values = run.column(how.below);
    const share = (value) => (high > low ? (value - low) / (high - low) : 0.5);
    const y = (value) => top + STRIP - 10 - share(value) * (STRIP - 34);
    const path = linePath(
      run.steps.map(x.of),
      values.map((value) => (isNumber(value) ? y(value) : null)),
    );
    svg.append(
      svgElement(
        "g",
        { "aria-hidden": "true" },
        gridLine(left, y(low), right, y(low)),
        gridLine(left, y(high), right, y(high)),
        axisText(short(high), left - 6, y(high) + 4, "end"),
        axisText(high > low ? short(low) : "", left - 6, y(low) + 4, "end"),
        axisText(fitText(plainName(how.below), width / 2, SMALL), left, top + 12, "start"),
        svgElement("path", { class: "afm-loss-line afm-curve-second", d: path }),
      ),
    );
  }

  function paint() {
    if (!frame || !run) return;
    const known = row >= 0 && row < run.steps.length;
    for (const { node, text, at } of names)
      node.textContent = at >= 0 && at <= row ? `${text}, passed at ${run.steps[at]}` : text;
    for (const node of [veil, cursor, dot])
      node.setAttribute("visibility", known ? "visible" : "hidden");
    const told = run.passed
      .filter(({ at }) => at >= 0)
      .map(({ name, at }) => `${plainName(name)} passed at step ${run.steps[at]}`);
    svg.setAttribute(
      "aria-label",
      `${inSentence(run.loss, "The")} over ${run.steps.length} rows${run.steps.length ? `, from step ${run.steps[0]} to ${run.steps.at(-1)}` : ""}${told.length ? `; ${told.join("; ")}` : ""}`,
    );
    if (!known) return;
    const [x, y] = [frame.x.of(run.steps[row]), frame.y.of(run.smooth[row] ?? NaN)];
    setAttributes(cursor, { x1: x, x2: x });
    setAttributes(veil, { x, width: Math.max(0, frame.right - x + 4) });
    if (isNumber(y)) setAttributes(dot, { cx: x, cy: y });
    else dot.setAttribute("visibility", "hidden");
    svg.classList.toggle("afm-hovered", !still);
  }

  return {
    element: holder,
    layout(available) {
      width = available;
      build();
    },
    draw(nextRun, nextHow) {
      [run, how] = [nextRun, nextHow];
      build();
    },
    point(nextRow, nextStill) {
      [row, still] = [nextRow, nextStill];
      paint();
    },
  };
}
