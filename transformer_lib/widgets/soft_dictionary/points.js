// Keys as arrows in a plane, wider with more weight, and the query as an arrow that can be moved.
// A dotted line drops from each key onto the line of the query: how far out it lands, times the
// length of the query, is the score.
//
//   const map = points({ names, keys, query, reach, axes, onMove([x, y]) {} });   fig.add(map)
//   map.paint(query, weights)
//   map.light(2)              one key, its drop and how far out it lands; null for none
//   map.hears(list)           core/pointing.js: a key that is pointed at

import { clip, setAttributes, showToken, svgElement, textWidth } from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { arrow, plane } from "../core/plane.js";
import { dot } from "../math/linear.js";

const QUERY_RADIUS = 8;

export function points({ names, keys, query: start, reach, axes, onMove }) {
  const ground = plane({
    label: "Keys in the plane, and the query",
    reach,
    largest: 460,
    axes,
    onLayout: draw,
  });
  const tips = names.map((name) => makeTip(name, "key"));
  const handle = makeTip("query", "query");
  const ring = svgElement("circle", {
    class: "afm-mark afm-ring afm-query",
    r: QUERY_RADIUS,
  });
  handle.group.append(svgElement("circle", { class: "afm-touch", r: 22 }), ring);
  setAttributes(handle.group, {
    class: "afm-point afm-movable",
    tabindex: "0",
    role: "button",
    "aria-roledescription": "movable arrow",
  });
  const ray = svgElement("line", { class: "afm-ray", "aria-hidden": "true" });
  const drops = names.map(() => svgElement("line", { class: "afm-drop", "aria-hidden": "true" }));
  const along = svgElement("line", {
    class: "afm-projection",
    "aria-hidden": "true",
    display: "none",
  });
  let lit = null;
  let [query, weights] = [start, names.map(() => 0)];
  ground.movable(handle.group, { at: () => query, onMove, shift: 5 });
  ground.svg.append(
    ray,
    along,
    ...drops,
    ...tips.map(({ group }) => group),
    handle.shaft.node,
    ...tips.map(({ text }) => text),
    handle.text,
    handle.group,
  );

  function draw() {
    if (!ground.size) return;
    const origin = ground.toPixels([0, 0]);
    tips.forEach(({ group, shaft, name }, i) => {
      shaft.place(origin, ground.toPixels(keys[i]), 1.5 + 6 * weights[i]);
      shaft.node.setAttribute("opacity", 0.45 + 0.55 * weights[i]);
      group.setAttribute("aria-label", `${name} at ${place(keys[i])}; weight ${fixed(weights[i])}`);
    });
    const tip = ground.toPixels(query);
    handle.shaft.place(origin, tip, 3);
    handle.group.setAttribute("transform", `translate(${tip[0]} ${tip[1]})`);
    handle.group.setAttribute("aria-label", `query at ${place(query)}; arrow keys move it`);
    drawProjections();
    drawNames();
  }

  function drawProjections() {
    const length = Math.hypot(...query);
    const toward = length ? query.map((value) => value / length) : null;
    const shown = toward ? null : "none";
    ray.setAttribute("display", shown ?? "inline");
    drops.forEach((line, i) => {
      line.setAttribute("display", shown ?? "inline");
      if (toward) {
        const far = dot(keys[i], toward);
        join(line, keys[i], [far * toward[0], far * toward[1]]);
        line.setAttribute("stroke-opacity", 0.4 + 0.6 * weights[i]);
      }
    });
    const to = lit === null || !toward ? null : dot(keys[lit], toward);
    along.setAttribute("display", to === null ? "none" : "inline");
    if (to !== null) join(along, [0, 0], [to * toward[0], to * toward[1]]);
    drops.forEach((line, i) => line.classList.toggle("afm-lit", i === lit));
    tips.forEach(({ text }, i) => text.classList.toggle("afm-lit", i === lit));
    if (!toward) return;
    const far = reach / Math.max(...toward.map(Math.abs));
    join(ray, [-far * toward[0], -far * toward[1]], [far * toward[0], far * toward[1]]);
  }

  function join(line, from, to) {
    const [[x1, y1], [x2, y2]] = [ground.toPixels(from), ground.toPixels(to)];
    setAttributes(line, { x1, y1, x2, y2 });
  }

  // Each name goes to the first place around its tip that is inside the plane and free of the
  // others, of the tips, of the arrows, and of the names of the axes; where there is none, to the
  // one where it is over the least.
  function drawNames() {
    const size = ground.size;
    const [middleX, middleY] = ground.toPixels([0, 0]);
    const around = ([x, y], half) => [x - half, y - half, x + half, y + half];
    const taken = [...keys, query].flatMap((point) => {
      const tip = ground.toPixels(point);
      const steps = Math.ceil(Math.hypot(tip[0] - middleX, tip[1] - middleY) / 6);
      const along = Array.from({ length: steps }, (_, i) => i / steps);
      const shaft = along.map((part) =>
        around([middleX + part * (tip[0] - middleX), middleY + part * (tip[1] - middleY)], 3),
      );
      return [around(tip, point === query ? QUERY_RADIUS + 2 : 8), ...shaft];
    });
    taken.push(...ground.nameAxes(around(ground.toPixels(query), QUERY_RADIUS + 2)));
    const overlap = ([left, top, right, bottom]) =>
      left < 0 || top < 0 || right > size || bottom > size
        ? Number.POSITIVE_INFINITY
        : taken.reduce((sum, box) => {
            const wide = Math.min(right, box[2]) - Math.max(left, box[0]);
            const high = Math.min(bottom, box[3]) - Math.max(top, box[1]);
            return sum + Math.max(0, wide) * Math.max(0, high);
          }, 0);
    [{ text: handle.text, name: handle.name, at: query }, ...tips.map(atKey)].forEach(
      ({ text, name, at }) => {
        const [x, y] = ground.toPixels(at);
        const half = textWidth(name) / 2;
        const [out, up] = [at[0] >= 0 ? 1 : -1, at[1] >= 0 ? -1 : 1];
        const spots = [
          [0, up * 20],
          [out * (half + 14), 0],
          [out * (half + 10), up * 14],
          [0, -up * 20],
          [-out * (half + 14), up * 6],
          [0, up * 36],
          [-out * (half + 10), -up * 14],
          [0, -up * 36],
          [out * (half + 10), -up * 30],
          [-out * (half + 10), up * 30],
          [-out * (half + 10), -up * 44],
          [out * (half + 10), -up * 52],
        ].map(([right, down]) => {
          const middle = Math.min(size - half - 2, Math.max(half + 2, x + right));
          return [middle - half, y + down - 8, middle + half, y + down + 8];
        });
        const over = spots.map(overlap);
        const box = spots[over.indexOf(Math.min(...over))];
        taken.push(box);
        setAttributes(text, { x: (box[0] + box[2]) / 2, y: box[3] - 4 });
      },
    );
  }

  const atKey = ({ text, name }, i) => ({ text, name, at: keys[i] });

  return {
    element: ground.element,
    layout: ground.layout,
    light(i) {
      lit = i;
      drawProjections();
    },
    hears: (list) => tips.forEach(({ group }, i) => list.attach(group, i)),
    paint(nextQuery, nextWeights) {
      [query, weights] = [nextQuery, nextWeights];
      draw();
    },
  };
}

const place = (point) => `${fixed(point[0])}, ${fixed(point[1])}`;

function makeTip(title, role) {
  const name = clip(showToken(title), 24);
  const shaft = arrow(`afm-shaft afm-${role}`);
  const text = svgElement(
    "text",
    { class: `afm-point-name afm-${role}`, "text-anchor": "middle", "aria-hidden": "true" },
    name,
  );
  const group = svgElement("g", { class: "afm-point", role: "img" });
  if (role === "key") group.append(shaft.node);
  return { group, shaft, text, name };
}
