// The loss over the steps, on the text that is learned from and on the part that is held out.
//
//   const picture = plot({ onChoose: (step) => {} });
//   fig.add(picture);
//   picture.draw({ log, lines: [{ name, level }] })
//   picture.point(step)

import {
  axisText,
  levelLine,
  linearScale,
  linearTicks,
  linePath,
  lossAxis,
  pointer,
  stepAxis,
} from "../core/axes.js";
import { element, setSize, svgElement } from "../core/dom.js";
import { short } from "../core/numbers.js";
import { follow } from "../core/pointing.js";

const LEAST = 200; // steps that there is room for at first

export function plot({ onChoose }) {
  const svg = svgElement("svg", { class: "afm-losses afm-text-plot", role: "img" });
  const here = pointer();
  let [width, shown, frame, at] = [0, null, null, 0];

  follow(svg, {
    ready: () => frame !== null,
    axis: () => [frame.x, width],
    onHover: () => {},
    onChoose: (step) => onChoose(Math.max(0, Math.min(shown.log.last, Math.round(step)))),
  });

  function build() {
    if (!width || !shown) return;
    const { log, lines } = shown;
    const height = 240;
    const most = Math.max(LEAST, log.last);
    const highest = Math.max(...lines.map(({ level }) => level));
    const [left, right, top, bottom] = [42, width - 14, 40, height - 34];
    const x = linearScale([0, most], [left, right]);
    const y = linearScale([0, 1.08 * highest], [bottom, top]);
    frame = { left, right, top, bottom, x, y };
    setSize(svg, width, height);
    const group = svgElement("g", { "aria-hidden": "true" });
    group.append(
      axisText("nats a character", left, 14, "start"),
      axisText("steps", right, bottom + 31, "end"),
      ...legend(),
      lossAxis(frame, linearTicks(0, 1.08 * highest, 5)),
      stepAxis(frame, linearTicks(0, most, width / 90)),
      ...lines.map((line) => levelLine(frame, line)),
      ...curves(),
    );
    svg.replaceChildren(group, ...here.nodes);
    paint();
  }

  function legend() {
    const { left } = frame;
    const entry = (kind, name, from) => [
      svgElement("line", {
        class: `afm-loss-line afm-text-${kind}`,
        ...{ x1: from, x2: from + 18, y1: 27, y2: 27 },
      }),
      axisText(name, from + 23, 31, "start"),
    ];
    return [
      ...entry("learned", "what it learns from", left),
      ...entry("unseen", "held out", left + 150),
    ];
  }

  function curves() {
    const { x, y, top } = frame;
    const { log } = shown;
    const within = (loss) => (Number.isFinite(loss) ? Math.max(top, y.of(loss)) : null);
    const path = (kind, steps, values) =>
      svgElement("path", {
        class: `afm-loss-line afm-text-${kind}`,
        d: linePath(steps.map(x.of), values.map(within)),
      });
    const steps = log.losses.map((_, i) => i + 1);
    const kept = log.moments.map(({ step }) => step);
    const dots = log.moments.map(({ step, unseen }) =>
      svgElement("circle", {
        class: "afm-text-moment",
        ...{ cx: x.of(step), cy: within(unseen) ?? top, r: 2.4 },
      }),
    );
    return [
      path("raw", steps, log.losses),
      path("learned", steps, log.means),
      path(
        "unseen",
        kept,
        log.moments.map(({ unseen }) => unseen),
      ),
      ...dots,
    ];
  }

  function paint() {
    if (!frame || !shown) return;
    const { log, lines } = shown;
    const moment = log.momentAt(at);
    const y = Number.isFinite(moment.unseen) ? frame.y.of(moment.unseen) : frame.top;
    here.place(frame.x.of(moment.step), Math.max(frame.top, y), frame);
    const known = lines.map(({ name, level }) => `${name} ${short(level, 3)}`).join(", ");
    const trained = log.last ? `${short(log.loss(log.last), 3)} on what it learns from, ` : "";
    svg.setAttribute(
      "aria-label",
      `Loss after ${log.last} steps: ${trained}${short(log.moments.at(-1).unseen, 3)} on held-out text. Known readers: ${known}`,
    );
  }

  return {
    element: element("div", { class: "afm-text-holder" }, svg),
    layout(available) {
      width = available;
      build();
    },
    draw(next) {
      shown = next;
      build();
    },
    point(step) {
      at = step;
      paint();
    },
  };
}
