// The loss over the steps, with the lines of the readers that are known, and the shares below it.
//
//   const picture = plot({ curve, readers, onChoose: (step) => {} });
//   fig.add(picture);
//   picture.point(step)

import {
  axisText,
  gridLine,
  levelLine,
  linearScale,
  linearTicks,
  linePath,
  lossAxis,
  pointer,
  stepAxis,
} from "../core/axes.js";
import { fitText, font, setSize, svgElement, textWidth } from "../core/dom.js";
import { short } from "../core/numbers.js";
import { follow } from "../core/pointing.js";
import { valueAt } from "./model.js";

const SMALL = font(12);
const STRIP = 76; // height of the shares, and of each line of their names
const LINE = 17;

export function plot({ curve, readers, onChoose }) {
  const svg = svgElement("svg", { class: "afm-losses afm-lapse", role: "img" });
  const here = pointer();
  const shares = Object.keys(curve).filter((name) => !["step", "loss"].includes(name));
  const last = curve.step.at(-1);
  let [width, frame, at] = [0, null, 0];

  follow(svg, {
    ready: () => frame !== null,
    axis: () => [frame.x, width],
    onHover: () => {},
    onChoose: (step) => onChoose(Math.max(0, Math.min(last, step))),
  });

  function build() {
    if (!width) return;
    const height = 176;
    const [left, right, top, bottom] = [46, width - 14, 24, height - 12];
    const levels = [...Object.values(readers), ...curve.loss];
    const [low, high] = [Math.min(...levels), Math.max(...levels)];
    const margin = 0.12 * (high - low);
    const legend = namesIn(left, right);
    const shift = 8 + LINE * (legend.at(-1)?.row + 1 || 0);
    const foot = height + (shares.length ? STRIP + shift : 0);
    frame = {
      left,
      right,
      top,
      x: linearScale([0, last], [left, right]),
      y: linearScale([low - margin, high + margin], [bottom, top]),
      share: linearScale([0, 1], [foot - 8, height + shift]),
      legend,
      bottom: foot - 8,
    };
    setSize(svg, width, foot + 34);
    svg.replaceChildren(axes(low, high, foot), levelsOf(), lines(height), ...here.nodes);
    point(at);
  }

  /** The place of each share's name: beside the one before, or in a row of its own. */
  function namesIn(left, right) {
    let [x, row] = [left, 0];
    return shares.map((name) => {
      const wide = 40 + textWidth(name, SMALL);
      if (x > left && x + wide > right) [x, row] = [left, row + 1];
      const place = { name, x, row };
      x += wide;
      return place;
    });
  }

  function axes(low, high, foot) {
    const { left, right } = frame;
    const group = svgElement("g", { "aria-hidden": "true" });
    group.append(
      axisText("loss in nats", left, 12, "start"),
      lossAxis(frame, linearTicks(low, high, 4), 3),
      stepAxis(frame, linearTicks(0, last, width / 90)),
      axisText("steps", right, foot + 26, "end"),
    );
    return group;
  }

  function levelsOf() {
    const known = Object.entries(readers).map(([name, level]) => ({ name, level }));
    const group = svgElement("g", { "aria-hidden": "true" });
    group.append(...known.map((line) => levelLine(frame, line, 4)));
    return group;
  }

  function lines(height) {
    const { left, right, x, y, share } = frame;
    const group = svgElement("g", { "aria-hidden": "true" });
    const xs = curve.step.map(x.of);
    const add = (kind, ys) =>
      group.append(svgElement("path", { class: `afm-loss-line${kind}`, d: linePath(xs, ys) }));
    add("", curve.loss.map(y.of));
    if (!shares.length) return group;
    for (const level of [0, 1]) {
      group.append(gridLine(left, share.of(level), right, share.of(level)));
      group.append(axisText(`${100 * level}%`, left - 6, share.of(level) + 4, "end"));
    }
    frame.legend.forEach(({ name, x: from, row }, i) => {
      const kind = ` afm-lapse-share-${i}`;
      const at = height + 8 + LINE * row;
      add(kind, curve[name].map(share.of));
      const room = { x1: from, x2: from + 18, y1: at, y2: at };
      group.append(svgElement("line", { class: `afm-loss-line${kind}`, ...room }));
      group.append(axisText(fitText(name, right - from - 22, SMALL), from + 22, at + 4, "start"));
    });
    return group;
  }

  function point(step) {
    at = step;
    if (!frame) return;
    here.place(frame.x.of(step), frame.y.of(valueAt(curve, "loss", step)), frame);
    const known = Object.entries(readers).map(([name, level]) => `${name} ${short(level, 4)}`);
    svg.setAttribute(
      "aria-label",
      `Loss over ${last} steps, now at step ${step}: ${short(valueAt(curve, "loss", step), 4)}. Known readers: ${known.join(", ")}`,
    );
  }

  return {
    element: svg,
    layout(available) {
      width = available;
      build();
    },
    point,
  };
}
