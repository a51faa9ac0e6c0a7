// Keys as dots in a plane, sized by their weights, and the query as a ring that can be moved.
//
//   const map = points({ names, keys, query, reach, axes, onMove([x, y]) {} });   fig.add(map)
//   map.paint(query, weights)

import { clip, showToken, svgElement, textWidth } from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { plane } from "../core/plane.js";

const QUERY_RADIUS = 9;

export function points({ names, keys, query: start, reach, axes, onMove }) {
  const ground = plane({
    label: "Keys in the plane, and the query",
    reach,
    largest: 460,
    axes,
    onLayout: draw,
  });
  const dots = names.map((name) => makePoint(name, "key", "dot"));
  const ring = makePoint("query", "query", "ring");
  ring.group.classList.add("afm-movable");
  for (const [name, value] of [
    ["tabindex", "0"],
    ["role", "button"],
    ["aria-roledescription", "movable point"],
  ]) {
    ring.group.setAttribute(name, value);
  }
  ring.group.prepend(ring.touch);
  let [query, weights] = [start, names.map(() => 0)];
  ground.movable(ring.group, { at: () => query, onMove, shift: 5 });
  ground.svg.append(...dots.map(({ group }) => group), ring.group);

  function draw() {
    if (!ground.size) return;
    dots.forEach((point, i) => {
      const radius = 4 + 14 * Math.sqrt(weights[i]);
      point.mark.setAttribute("fill-opacity", 0.35 + 0.65 * weights[i]);
      place(point, keys[i], radius, `; weight ${fixed(weights[i])}`);
    });
    place(ring, query, QUERY_RADIUS, "; arrow keys move it");
  }

  function place({ group, mark, touch, text, name, kind }, at, radius, note) {
    const [x, y] = ground.toPixels(at);
    for (const circle of [mark, touch]) {
      circle.setAttribute("cx", x);
      circle.setAttribute("cy", y);
    }
    mark.setAttribute("r", radius);
    const away = radius + 6;
    const below = kind === "ring" || y < away + 16;
    const half = textWidth(name) / 2;
    text.setAttribute("x", Math.min(ground.size - half - 2, Math.max(half + 2, x)));
    text.setAttribute("y", below ? y + away + 9 : y - away);
    group.setAttribute("aria-label", `${name} at ${fixed(at[0])}, ${fixed(at[1])}${note}`);
  }

  return {
    element: ground.element,
    layout: ground.layout,
    paint(nextQuery, nextWeights) {
      [query, weights] = [nextQuery, nextWeights];
      draw();
    },
  };
}

function makePoint(title, role, kind) {
  const name = clip(showToken(title), 24);
  const mark = svgElement("circle", { class: `afm-mark afm-${kind} afm-${role}` });
  const touch = svgElement("circle", { class: "afm-touch", r: 22 });
  const text = svgElement(
    "text",
    { class: `afm-point-name afm-${role}`, "text-anchor": "middle" },
    name,
  );
  const group = svgElement("g", { class: "afm-point", role: "img" }, mark, text);
  return { group, mark, touch, text, name, kind };
}
