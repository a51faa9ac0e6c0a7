// Arrows in the plane that can be dragged, or moved with the arrow keys: a part of VectorPlayground.
//
//   const plane = vectorPlane({ tokens, reach, onMove(i, [x, y]), onSelect(i), onPoint(i or null) });
//   fig.add(plane);   plane.update({ vectors, selected, weights, output });
//   plane.relate([i, j])    how far arrow j reaches along arrow i; times i's length this is the score

import {
  clip,
  element,
  fitText,
  font,
  setAttributes,
  showToken,
  svgElement,
  textWidth,
} from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { arrow, plane } from "../core/plane.js";

export function vectorPlane({ tokens, reach, onMove, onSelect, onPoint }) {
  const ground = plane({
    label: "The vectors in the plane",
    reach,
    largest: 440,
    numbers: true,
    onLayout: draw,
  });
  ground.svg.classList.add("afm-vp");
  const sums = svgElement("g", { "aria-hidden": "true", class: "afm-vp-sums" });
  const result = arrow("afm-vp-arrow afm-vp-arrow-output");
  const arrows = tokens.map(() => arrow("afm-vp-arrow"));
  const names = tokens.map(() =>
    svgElement("text", { class: "afm-arrow-name afm-vp-name", "aria-hidden": "true" }),
  );
  const handles = tokens.map((token, i) => handle(token, i));
  const shadow = svgElement("g", { "aria-hidden": "true", class: "afm-vp-shadow" });
  ground.svg.append(
    ...arrows.map((one) => one.node),
    result.node,
    sums,
    shadow,
    ...names,
    ...handles,
  );
  let [now, pair] = [null, null];
  [...arrows.map((one) => one.node), ...handles].forEach((node, at) => {
    const i = at % tokens.length;
    node.addEventListener("pointerenter", (event) => {
      if (!event.buttons && event.pointerType !== "touch") onPoint(i);
    });
    for (const end of ["pointerleave", "pointerdown"])
      node.addEventListener(end, () => onPoint(null));
  });
  const toPixel = ground.toPixels;

  function handle(token, i) {
    const node = svgElement("g", {
      class: "afm-handle",
      tabindex: "0",
      role: "slider",
      "aria-label": `vector of ${clip(showToken(token))}`,
      "aria-valuemin": "0",
      "aria-valuemax": (reach * Math.SQRT2).toFixed(2),
      "aria-roledescription": "arrow, moved with the arrow keys",
    });
    node.append(
      svgElement("circle", { r: 16, class: "afm-handle-room" }),
      svgElement("circle", { r: 7, class: "afm-handle-tip" }),
    );
    node.addEventListener("focus", () => onSelect(i));
    ground.movable(node, {
      at: () => now.vectors[i],
      onMove: (point) => onMove(i, point),
      shift: 0.1,
    });
    return node;
  }

  function draw() {
    if (!now || !ground.size) return;
    const { vectors, selected, weights, output } = now;
    const origin = toPixel([0, 0]);
    vectors.forEach((vector, j) => {
      const tip = toPixel(vector);
      arrows[j].place(origin, tip, 1.25 + 5 * weights[j]);
      arrows[j].node.classList.toggle("afm-chosen", j === selected);
      setAttributes(handles[j], {
        transform: `translate(${tip[0]} ${tip[1]})`,
        "aria-valuenow": Math.hypot(...vector).toFixed(2),
        "aria-valuetext": `x ${fixed(vector[0])}, y ${fixed(vector[1])}`,
      });
      handles[j].classList.toggle("afm-chosen", j === selected);
      names[j].classList.toggle("afm-chosen", j === selected);
    });
    placeNames(vectors);
    drawSum(vectors, weights);
    drawShadow();
    result.place(origin, toPixel(output), 4);
  }

  // The average, piece by piece: each vector times its weight, one after the other.
  function drawSum(vectors, weights) {
    let reached = [0, 0];
    const points = vectors.map((vector, j) => {
      reached = [reached[0] + weights[j] * vector[0], reached[1] + weights[j] * vector[1]];
      return toPixel(reached);
    });
    const line = [toPixel([0, 0]), ...points].map((point) => point.join(",")).join(" ");
    sums.replaceChildren(
      svgElement("polyline", { points: line, class: "afm-vp-sum" }),
      ...points
        .slice(0, -1)
        .map(([cx, cy]) => svgElement("circle", { cx, cy, r: 2.5, class: "afm-vp-sum-dot" })),
    );
  }

  // Where a line from the tip of j drops onto the line of i, and the way there from the origin.
  function drawShadow() {
    if (!now || !ground.size) return;
    const marked = (kind, at) => {
      for (const nodes of [names, arrows.map((one) => one.node)])
        nodes.forEach((node, j) => node.classList.toggle(kind, j === at));
    };
    marked("afm-vp-asking", pair?.[0] ?? -1);
    marked("afm-vp-asked", pair?.[1] ?? -1);
    ground.svg.classList.toggle("afm-vp-paired", Boolean(pair));
    shadow.replaceChildren();
    const [from, to] = pair ? pair.map((i) => now.vectors[i]) : [[0, 0]];
    const squared = from[0] ** 2 + from[1] ** 2;
    if (!squared) return;
    const part = (from[0] * to[0] + from[1] * to[1]) / squared;
    const [origin, tip, foot] = [[0, 0], to, [part * from[0], part * from[1]]].map(toPixel);
    const line = (kind, [x1, y1], [x2, y2]) =>
      svgElement("line", { class: `afm-vp-${kind}`, x1, y1, x2, y2 });
    shadow.append(line("drop", tip, foot), line("along", origin, foot));
  }

  // Each name goes to the first place around its tip that is inside the plane and free: of the axes'
  // numbers, too, if there is one.
  function placeNames(vectors) {
    const taken = vectors.map((vector) => {
      const [x, y] = toPixel(vector);
      return [x - 6, y - 6, x + 6, y + 6];
    });
    const apart = ([left, top, right, bottom], others) =>
      others.every((box) => right < box[0] || left > box[2] || bottom < box[1] || top > box[3]);
    const free = (box) =>
      Math.min(...box) >= 0 && Math.max(...box) <= ground.size && apart(box, taken);
    vectors.forEach((vector, i) => {
      const tip = toPixel(vector);
      const text = fitText(showToken(tokens[i]), 0.3 * ground.size, font(14, "600"));
      const width = textWidth(text, font(14, "600"));
      const outward = [vector[0] >= 0 ? 1 : -1, vector[1] >= 0 ? -1 : 1];
      const places = [
        [1, 1],
        [1, 2],
        [1, -1],
        [1, -2],
        [-1, 1],
        [-1, -1],
      ].map(([side, lift]) => {
        const x = side * outward[0] > 0 ? tip[0] + 11 : tip[0] - 11 - width;
        const y = tip[1] + lift * outward[1] * 11;
        return [x, y - 8, x + width, y + 8];
      });
      const open = places.filter(free);
      const box = open.find((one) => apart(one, ground.numbers)) ?? open[0] ?? places[0];
      taken.push(box);
      if (names[i].textContent !== text) names[i].textContent = text;
      setAttributes(names[i], { x: box[0], y: box[3] - 3 });
    });
  }

  return {
    element: element("div", { class: "afm-vp-box" }, ground.element),
    layout: ground.layout,
    relate(now) {
      pair = now;
      drawShadow();
    },
    update(state) {
      now = state;
      draw();
    },
  };
}
