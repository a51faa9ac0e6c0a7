// A plane to draw in, handles in it that mouse, finger and arrow keys can move, and arrows.
//
//   const ground = plane({ label: "Keys and the query", reach: 2.4, largest: 460, onLayout: draw,
//                          axes: ["gardens", "feasts"], numbers: true });
//   ground.svg.append(...)              the contents, in pixels
//   ground.toPixels([x, y])             x grows to the right, y upward; both from -reach to reach
//   ground.movable(node, { at: () => [x, y], onMove([x, y]) {}, shift: 5 })   shift: steps with that key
//   ground.numbers                      where its numbers stand, [left, top, right, bottom] each
//   ground.nameAxes(box)                the names of the axes, where they leave the box free;
//                                       where they stand then
//   fig.add(ground)                     onLayout() is called whenever its size has changed
//   const one = arrow("afm-key-arrow");   svg.append(one.node);   one.place([x1, y1], [x2, y2], 3)
//
// Moved points stay inside.

import { axisLine, axisText, gridLine, linearScale, linearTicks, tickStep } from "./axes.js";
import { font, holdTouch, onKeys, setAttributes, setSize, svgElement, textWidth } from "./dom.js";
import { short } from "./numbers.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const MOST_LINES = 12; // in each direction, however large the plane is

/** A point moved to where it may be: inside the plane, on a fine lattice that reads well. */
export function inside(point, reach) {
  return point.map((value) => Math.round(Math.min(reach, Math.max(-reach, value)) * 100) / 100);
}

/** Where lines are drawn: at whole numbers, or at fewer of them. */
export function groundTicks(reach) {
  return linearTicks(-reach, reach, MOST_LINES, 1);
}

export function plane({ label, reach, largest, onLayout, axes = ["", ""], numbers = false }) {
  const svg = svgElement("svg", { class: "afm-plane", role: "group", "aria-label": label });
  const ground = svgElement("g", { "aria-hidden": "true" });
  const keyStep = Math.max(0.1, tickStep(0, reach, 100));
  const names = svgElement("g", {});
  svg.append(ground);
  let [size, x, y] = [0, null, null];
  let taken = [];

  function drawGround() {
    ground.replaceChildren();
    taken = [];
    const [left, top] = [x.of(0), y.of(0)];
    for (const tick of groundTicks(reach)) {
      const line = tick === 0 ? axisLine : gridLine;
      ground.append(line(x.of(tick), 0, x.of(tick), size), line(0, y.of(tick), size, y.of(tick)));
      if (!numbers || tick === 0) continue;
      const text = short(tick, 6);
      const width = textWidth(text, font(12));
      ground.append(
        axisText(text, x.of(tick), top + 14, "middle", "axis-name"),
        axisText(text, left - 6, y.of(tick) + 4, "end", "axis-name"),
      );
      taken.push(
        [x.of(tick) - width / 2, top + 3, x.of(tick) + width / 2, top + 17],
        [left - 6 - width, y.of(tick) - 7, left - 6, y.of(tick) + 7],
      );
    }
    ground.append(names);
    nameAxes();
  }

  function nameAxes(box = [0, 0, 0, 0]) {
    const [left, top] = [x.of(0), y.of(0)];
    const widths = axes.map((name) => textWidth(name, font(12)));
    const across = (from) => [size - 4 - widths[0], from, size - 4, from + 18];
    const upward = (from) => [from, 0, from + widths[1], 18];
    const isFree = (at) => box[2] < at[0] || box[0] > at[2] || box[3] < at[1] || box[1] > at[3];
    const [one, other] = [
      [across(top + 2), across(top + 11), across(top - 20)],
      [upward(left + 6), upward(left + 11), upward(left - 6 - widths[1])],
    ].map((spots) => spots.find(isFree) ?? spots[0]);
    names.replaceChildren(
      axisText(axes[0], one[2], one[1] + 14, "end", "axis-name"),
      axisText(axes[1], other[0], other[1] + 14, "start", "axis-name"),
    );
    return [one, other];
  }

  function fromPointer(event) {
    const box = svg.getBoundingClientRect();
    const scale = size / box.width;
    return [x.back((event.clientX - box.left) * scale), y.back((event.clientY - box.top) * scale)];
  }

  return {
    element: svg,
    svg,
    get size() {
      return size;
    },
    get numbers() {
      return taken;
    },
    nameAxes,
    toPixels: (point) => [x.of(point[0]), y.of(point[1])],
    movable(node, { at, onMove, shift }) {
      let held = null; // from the pointer to the point, while it is dragged
      holdTouch(node);
      node.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        const pointer = fromPointer(event);
        held = at().map((value, axis) => value - pointer[axis]);
        node.setPointerCapture(event.pointerId);
        node.focus({ preventScroll: true });
        event.preventDefault();
      });
      node.addEventListener("pointermove", (event) => {
        if (!held) return;
        const pointer = fromPointer(event);
        onMove(
          inside(
            pointer.map((value, axis) => value + held[axis]),
            reach,
          ),
        );
      });
      for (const end of ["pointerup", "pointercancel"]) {
        node.addEventListener(end, () => {
          held = null;
        });
      }
      onKeys(node, MOVES, (move, event) => {
        const step = keyStep * (event.shiftKey ? shift : 1);
        onMove(
          inside(
            at().map((value, axis) => value + step * move[axis]),
            reach,
          ),
        );
      });
    },
    layout(width) {
      size = Math.min(width, largest);
      x = linearScale([-reach, reach], [0, size]);
      y = linearScale([-reach, reach], [size, 0]);
      setSize(svg, size, size);
      drawGround();
      onLayout();
    },
  };
}

export function arrow(kind) {
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

// The largest of several numbers, all of them in a tie, and a list of names for a sentence.
//
//   leaders([0.4, 0.2, 0.4]) -> [0, 2]        several, if they are equal but for rounding
//   listed(["a", "b"], "key") -> [{ text: "a", role: "key" }, " and ", { text: "b", role: "key" }]

export function leaders(values) {
  const most = Math.max(...values);
  return Array.from(values).flatMap((value, i) => (most - value < 1e-9 ? [i] : []));
}

export function listed(names, role) {
  return names.flatMap((text, i) => {
    const before = i === 0 ? [] : [i === names.length - 1 ? " and " : ", "];
    return [...before, { text, role }];
  });
}
