// The map: a mark for each word, and lines from the chosen one to those that are nearest to it.
//
//   const map = scatter({ words, kinds, onPoint(i or null) {}, onChoose(i) {} });  fig.add(map)
//   map.paint({ points, chosen, near: [4, 9], marked: i or null, axes: ["direction 1", "direction 2"] })
//
// Each direction is drawn as wide as there is room, so that no two words lie on one another for nothing.

import { axisLine, axisText, linearScale } from "../core/axes.js";
import {
  clip,
  font,
  setAttributes,
  setSize,
  showToken,
  svgElement,
  textWidth,
} from "../core/dom.js";
import { pointList } from "../core/pointing.js";
import { nameSpots } from "./model.js";

const LARGEST = 560; // pixels
const EDGE = 34; // that are left free around the words

const SHAPES = [
  "M-5.5,0 a5.5,5.5 0 1,0 11,0 a5.5,5.5 0 1,0 -11,0 Z",
  "M-5,-5 h10 v10 h-10 Z",
  "M0,-6.5 L6,4.5 H-6 Z",
  "M0,-7 L6,0 L0,7 L-6,0 Z",
];
const OTHER = "M-3.5,0 a3.5,3.5 0 1,0 7,0 a3.5,3.5 0 1,0 -7,0 Z";

/** The mark of a kind, in a small picture of its own or on the map. */
export const mark = (kind) =>
  svgElement("path", {
    class: kind < 0 ? "afm-map-mark" : `afm-map-mark afm-map-kind-${kind}`,
    d: SHAPES[kind] ?? OTHER,
  });

export function scatter({ words, kinds, onPoint, onChoose }) {
  const svg = svgElement("svg", { class: "afm-map", role: "img" });
  const names = words.map((word) => clip(showToken(word), 16));
  const widths = names.map((name) => textWidth(name, font(13)) + 2);
  const lines = svgElement("g", { "aria-hidden": "true" });
  const ground = svgElement("g", { "aria-hidden": "true" });
  const dots = words.map((_, i) =>
    svgElement(
      "g",
      { class: "afm-map-word" },
      svgElement("circle", { class: "afm-map-touch", r: 14 }),
      mark(kinds[i]),
    ),
  );
  const texts = names.map((name) => svgElement("text", { class: "afm-map-name" }, name));
  const list = pointList(svg, { count: words.length, onPoint });
  dots.forEach((dot, i) => {
    list.attach(dot, i);
    dot.addEventListener("click", () => onChoose(i));
  });
  svg.addEventListener("keydown", (event) => {
    if (list.now === null || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    onChoose(list.now);
  });
  svg.append(ground, lines, ...dots, ...texts);
  let [size, data] = [0, null];

  function draw() {
    if (!size || !data) return;
    const { points, chosen, near, marked, axes } = data;
    const [x, y] = [0, 1].map((side) => {
      const values = [0, ...points.map((point) => point[side])];
      const ends = [Math.min(...values), Math.max(...values)];
      return linearScale(ends, side === 0 ? [EDGE, size - EDGE] : [size - EDGE, EDGE]);
    });
    const places = points.map((point) => [x.of(point[0]), y.of(point[1])]);
    ground.replaceChildren(
      axisLine(x.of(0), 0, x.of(0), size),
      axisLine(0, y.of(0), size, y.of(0)),
      axisText(axes[0], size - 2, size - 6, "end"),
      axisText(axes[1], x.of(0) + 6, 13),
    );
    const from = places[chosen];
    lines.replaceChildren(
      ...near.map((i) =>
        svgElement("line", {
          class: "afm-map-line",
          x1: from[0],
          y1: from[1],
          x2: places[i][0],
          y2: places[i][1],
        }),
      ),
    );
    const first = [marked, chosen, ...near].filter((i) => i !== null);
    const named = words.map((_, i) => i).filter((i) => kinds[i] >= 0);
    const rest = words.map((_, i) => i).filter((i) => kinds[i] < 0);
    const order = [...new Set([...first, ...named, ...rest])];
    const spots = nameSpots(places, widths, order, size);
    words.forEach((_, i) => {
      dots[i].setAttribute("transform", `translate(${places[i][0]} ${places[i][1]})`);
      for (const node of [dots[i], texts[i]]) {
        node.classList.toggle("afm-chosen", i === chosen);
        node.classList.toggle("afm-lit", i === marked);
      }
      const spot = spots[i];
      texts[i].setAttribute("display", spot ? "inline" : "none");
      if (spot) setAttributes(texts[i], { x: spot[0], y: spot[1] });
    });
    const said = near.map((i) => names[i]).join(", ");
    svg.setAttribute(
      "aria-label",
      `Map of ${words.length} words, ${axes.join(" and ")}. Chosen: ${names[chosen]}; nearest: ${said}`,
    );
  }

  return {
    element: svg,
    layout(width) {
      size = Math.min(width, LARGEST);
      setSize(svg, size, size);
      draw();
    },
    paint(next) {
      data = next;
      draw();
    },
  };
}
