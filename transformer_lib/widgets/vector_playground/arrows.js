// Arrows in the plane that can be dragged, or moved with the arrow keys: a part of VectorPlayground.
//
//   const plane = vectorPlane({ tokens, reach, onMove(i, [x, y]), onSelect(i) });
//   fig.add(plane);   plane.update({ vectors, selected, weights, output });

import {
  clip,
  element,
  fitText,
  font,
  holdTouch,
  setAttributes,
  setSize,
  showToken,
  svgElement,
  textWidth,
} from "../core/dom.js";
import { fixed } from "../core/numbers.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const KEY_STEP = 0.1;

export function vectorPlane({ tokens, reach, onMove, onSelect }) {
  const svg = svgElement("svg", {
    class: "afm-vp",
    role: "group",
    "aria-label": "The vectors in the plane",
  });
  const ground = svgElement("g", { "aria-hidden": "true", class: "afm-vp-ground" });
  const sums = svgElement("g", { "aria-hidden": "true", class: "afm-vp-sums" });
  const result = arrow("afm-vp-arrow afm-vp-arrow-output");
  const arrows = tokens.map(() => arrow("afm-vp-arrow"));
  const names = tokens.map(() =>
    svgElement("text", { class: "afm-vp-name", "aria-hidden": "true" }),
  );
  const handles = tokens.map((token, i) => handle(token, i));
  svg.append(ground, ...arrows.map((one) => one.node), result.node, sums, ...names, ...handles);
  let [size, now, held] = [0, null, null];

  const toPixel = ([x, y]) => [
    ((x + reach) / (2 * reach)) * size,
    ((reach - y) / (2 * reach)) * size,
  ];
  const limit = (value) => Math.min(reach, Math.max(-reach, value));
  const round = (value) => Math.round(limit(value) * 100) / 100;

  function handle(token, i) {
    const node = svgElement("g", {
      class: "afm-vp-handle",
      tabindex: "0",
      role: "slider",
      "aria-label": `vector of ${clip(showToken(token))}`,
      "aria-valuemin": "0",
      "aria-valuemax": (reach * Math.SQRT2).toFixed(2),
      "aria-roledescription": "arrow, moved with the arrow keys",
    });
    node.append(
      svgElement("circle", { r: 16, class: "afm-vp-hit" }),
      svgElement("circle", { r: 7, class: "afm-vp-tip" }),
    );
    holdTouch(node);
    node.addEventListener("focus", () => onSelect(i));
    node.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      held = i;
      node.setPointerCapture(event.pointerId);
      node.focus({ preventScroll: true });
      onSelect(i);
    });
    node.addEventListener("pointermove", (event) => {
      if (held !== i) return;
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / size) * 2 * reach - reach;
      const y = reach - ((event.clientY - box.top) / size) * 2 * reach;
      onMove(i, [round(x), round(y)]);
    });
    const release = () => (held = null);
    node.addEventListener("pointerup", release);
    node.addEventListener("pointercancel", release);
    node.addEventListener("keydown", (event) => {
      const move = MOVES[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      const step = event.shiftKey ? KEY_STEP / 10 : KEY_STEP;
      onMove(
        i,
        now.vectors[i].map((value, axis) => round(value + step * move[axis])),
      );
    });
    return node;
  }

  function drawGround() {
    ground.replaceChildren();
    for (let at = -Math.floor(reach); at <= reach; at += 1) {
      const [x, y] = toPixel([at, at]);
      const kind = at === 0 ? "afm-vp-axis" : "afm-vp-line";
      ground.append(
        svgElement("line", { class: kind, x1: x, x2: x, y1: 0, y2: size }),
        svgElement("line", { class: kind, x1: 0, x2: size, y1: y, y2: y }),
      );
      if (at === 0) continue;
      const zero = toPixel([0, 0]);
      const text = String(at).replace("-", "−");
      ground.append(
        svgElement(
          "text",
          { class: "afm-vp-number", x, y: zero[1] + 14, "text-anchor": "middle" },
          text,
        ),
        svgElement(
          "text",
          { class: "afm-vp-number", x: zero[0] - 6, y: y + 4, "text-anchor": "end" },
          text,
        ),
      );
    }
  }

  function draw() {
    if (!now || !size) return;
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

  // Each name goes to the first place around its tip that is free and inside the plane.
  function placeNames(vectors) {
    const taken = vectors.map((vector) => {
      const [x, y] = toPixel(vector);
      return [x - 6, y - 6, x + 6, y + 6];
    });
    const free = ([left, top, right, bottom]) =>
      left >= 0 &&
      top >= 0 &&
      right <= size &&
      bottom <= size &&
      taken.every((box) => right < box[0] || left > box[2] || bottom < box[1] || top > box[3]);
    vectors.forEach((vector, i) => {
      const tip = toPixel(vector);
      const text = fitText(showToken(tokens[i]), 0.3 * size, font(14, "600"));
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
      const box = places.find(free) ?? places[0];
      taken.push(box);
      if (names[i].textContent !== text) names[i].textContent = text;
      setAttributes(names[i], { x: box[0], y: box[3] - 3 });
    });
  }

  return {
    element: element("div", { class: "afm-vp-box" }, svg),
    layout(width) {
      size = Math.min(width, 440);
      setSize(svg, size, size);
      drawGround();
      draw();
    },
    update(state) {
      now = state;
      draw();
    },
  };
}

function arrow(kind) {
  const line = svgElement("line", {});
  const head = svgElement("path", {});
  const node = svgElement("g", { class: kind, "aria-hidden": "true" }, line, head);
  function place([x1, y1], [x2, y2], width) {
    const length = Math.hypot(x2 - x1, y2 - y1);
    const tip = Math.min(length, 8 + 1.6 * width);
    const [ux, uy] = length ? [(x2 - x1) / length, (y2 - y1) / length] : [0, 0];
    const [bx, by] = [x2 - tip * ux, y2 - tip * uy];
    const half = tip * 0.42;
    setAttributes(line, { x1, y1, x2: bx, y2: by, "stroke-width": width });
    setAttributes(head, {
      d: `M${x2} ${y2}L${bx - half * uy} ${by + half * ux}L${bx + half * uy} ${by - half * ux}Z`,
    });
  }
  return { node, place };
}
