// The loss and the share of right answers over the steps, with the lines that are known beforehand.
//
//   const picture = plot({ onChoose: (step) => {} });
//   fig.add(picture);
//   picture.draw({ losses, rights, mean, lines: [{ name, level, floor }], before })   mean: step -> loss
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
import { element, setSize, svgElement } from "../core/dom.js";
import { short } from "../core/numbers.js";
import { follow } from "../core/pointing.js";

const LEAST = 150; // steps that there is room for at first
const STRIP = 76;

export function plot({ onChoose }) {
  const svg = svgElement("svg", { class: "afm-losses afm-learning", role: "img" });
  const here = pointer();
  let [width, shown, frame, at] = [0, null, null, 0];

  follow(svg, {
    ready: () => shown !== null,
    axis: () => [frame.x, width],
    onHover: () => {},
    onChoose: (step) => onChoose(Math.max(0, Math.min(shown.losses.length - 1, Math.round(step)))),
  });

  function build() {
    if (!width || !shown) return;
    const { losses, before, lines } = shown;
    const height = Math.round(Math.min(240, Math.max(200, 0.6 * width)));
    const most = Math.max(LEAST, losses.length - 1, (before?.length ?? 0) - 1);
    const highest = Math.max(...lines.map(({ level }) => level));
    const [left, right, top, bottom] = [42, width - 14, 26, height - 34];
    frame = {
      left,
      right,
      x: linearScale([0, most], [left, right]),
      y: linearScale([-0.12 * highest, 1.2 * highest], [bottom, top]),
      share: linearScale([0, 1], [height + STRIP - 12, height + 20]),
      bottom: height + STRIP - 12,
      top,
    };
    setSize(svg, width, height + STRIP);
    svg.replaceChildren(axes(most, highest, bottom), strip(height), levels(lines), curves());
    svg.append(...here.nodes);
    paint();
  }

  function axes(most, highest, bottom) {
    const { left, right } = frame;
    const group = svgElement("g", { "aria-hidden": "true" });
    group.append(
      axisText("loss in nats", left, 14, "start"),
      lossAxis(frame, linearTicks(0, 1.2 * highest, 4)),
      stepAxis({ ...frame, bottom }, linearTicks(0, most, width / 90)),
      axisText("steps", right, bottom + 31, "end"),
    );
    return group;
  }

  function strip(height) {
    const { left, right, share } = frame;
    const group = svgElement("g", { "aria-hidden": "true" });
    group.append(axisText("right answers", left + 5, height + 12, "start"));
    for (const level of [0, 1]) {
      group.append(gridLine(left, share.of(level), right, share.of(level)));
      group.append(axisText(`${100 * level}%`, left - 4, share.of(level) + 4, "end"));
    }
    return group;
  }

  function levels(lines) {
    const group = svgElement("g", { "aria-hidden": "true" });
    group.append(...lines.map((line) => levelLine(frame, line)));
    return group;
  }

  function curves() {
    const { x, y, share, top } = frame;
    const { losses, rights, before, mean } = shown;
    const group = svgElement("g", { "aria-hidden": "true" });
    const add = (kind, values, of) =>
      group.append(
        svgElement("path", {
          class: `afm-loss-line afm-learning-${kind}`,
          d: linePath(
            values.map((_, step) => x.of(step)),
            values.map((value) => (Number.isFinite(value) ? of(value) : null)),
          ),
        }),
      );
    const within = (loss) => Math.max(top - 6, y.of(loss)); // higher than the picture: at its edge
    if (before) add("before", before, within);
    add("raw", losses, within);
    add(
      "loss",
      losses.map((_, step) => mean(step)),
      within,
    );
    add("right", rights, share.of);
    return group;
  }

  function paint() {
    if (!frame || !shown) return;
    const loss = shown.mean(at);
    const y = Number.isFinite(loss) ? Math.max(frame.top - 6, frame.y.of(loss)) : frame.top - 6;
    here.place(frame.x.of(at), y, frame);
    svg.setAttribute(
      "aria-label",
      `Loss over ${shown.losses.length - 1} steps: ${short(shown.mean(0), 3)} at first, ${short(shown.mean(shown.losses.length - 1), 3)} at the end; ${shown.lines.map(({ name, level }) => `${name} at ${short(level, 3)}`).join(", ")}`,
    );
  }

  return {
    element: element("div", { class: "afm-learning-holder" }, svg),
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
