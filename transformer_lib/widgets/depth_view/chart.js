// Lines over the blocks of a stack, on a logarithmic axis; a block can be pointed at.
//
//   const picture = chart({ onPoint() {} });   picture.paint(lines, depth, "gradient")
//   picture.pointed      the index of the block that is pointed at, or null

import {
  axisLine,
  axisText,
  gridLine,
  linearScale,
  linearTicks,
  linePath,
  logLimits,
  logScale,
  logTicks,
} from "../core/axes.js";
import { font, onKeys, setAttributes, setSize, svgElement, textWidth } from "../core/dom.js";
import { short } from "../core/numbers.js";
import { spread } from "./model.js";

const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

export function chart({ onPoint }) {
  const svg = svgElement("svg", { class: "afm-depth afm-pointlist", role: "img", tabindex: 0 });
  const cursor = svgElement("line", { class: "afm-depth-cursor" });
  let [width, lines, depth, what, x, pointed] = [0, [], 1, "", null, null];

  function point(at) {
    if (at === pointed) return;
    pointed = at;
    place();
    onPoint();
  }
  function place() {
    const shown = pointed !== null && x;
    setAttributes(cursor, { visibility: shown ? "visible" : "hidden" });
    if (shown) setAttributes(cursor, { x1: x.of(pointed + 1), x2: x.of(pointed + 1) });
  }
  const clamp = (at) => Math.min(depth - 1, Math.max(0, at));
  for (const move of ["pointermove", "pointerdown"])
    svg.addEventListener(move, (event) => {
      if (!x) return;
      const box = svg.getBoundingClientRect();
      point(clamp(Math.round(x.back(((event.clientX - box.left) * width) / box.width)) - 1));
    });
  // A finger that is lifted leaves what it has pointed at.
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && point(null));
  svg.addEventListener("blur", () => point(null));
  onKeys(svg, KEYS, (step) => point(clamp((pointed ?? (step > 0 ? -1 : depth)) + step)));

  function build() {
    if (!width) return;
    const height = Math.round(Math.min(320, Math.max(240, 0.5 * width)));
    const [top, bottom] = [28, height - 42];
    const all = lines.flatMap(({ values }) => values);
    const limits = all.length ? [Math.min(...all) / 1.4, Math.max(...all) * 1.4] : logLimits([]);
    const ticks = logTicks(...limits, 1.6);
    const left = Math.max(...ticks.map((tick) => textWidth(short(tick), font(12))), 20) + 10;
    const right = width - Math.max(0, ...lines.map(({ name }) => textWidth(name, font(12)))) - 12;
    x = linearScale([1, depth], [left + 6, right]);
    const y = logScale(limits, [bottom, top]);
    setSize(svg, width, height);
    setAttributes(cursor, { y1: top, y2: bottom });
    const ends = spread(
      lines.map(({ values }) => y.of(values.at(-1)) + 4),
      15,
      top,
      bottom,
    );
    svg.replaceChildren(
      axisText(what, 0, 14),
      ...ticks.map((tick) => gridLine(left, y.of(tick), right, y.of(tick))),
      ...ticks.map((tick) => axisText(short(tick), left - 6, y.of(tick) + 4, "end")),
      axisLine(left, bottom, right, bottom),
      ...linearTicks(1, depth, width < 400 ? 5 : 9, 1)
        .filter((tick) => tick >= 1)
        .map((tick) => axisText(String(tick), x.of(tick), bottom + 16, "middle")),
      axisText("block", (left + right) / 2, bottom + 34, "middle"),
      cursor,
      ...lines.map(({ key, values }) =>
        svgElement("path", {
          class: `afm-depth-line afm-depth-${key}`,
          d: linePath(
            values.map((_, i) => x.of(i + 1)),
            values.map(y.of),
          ),
        }),
      ),
      ...lines.map(({ key, name }, i) =>
        axisText(name, right + 8, ends[i], "start", `depth-name-${key}`),
      ),
    );
    const said = lines.map(
      ({ name, values }) => `${name}: from ${short(values[0])} to ${short(values.at(-1))}`,
    );
    svg.setAttribute("aria-label", `${what}, by block, 1 to ${depth}. ${said.join("; ")}`);
    place();
  }

  return {
    element: svg,
    get pointed() {
      return pointed;
    },
    layout(now) {
      width = now;
      build();
    },
    paint(shown, blocks, quantity) {
      [lines, depth, what] = [shown, blocks, quantity];
      if (pointed !== null) pointed = clamp(pointed);
      build();
    },
  };
}
