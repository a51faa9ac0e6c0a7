// A plane with points and arrows that mouse, finger and arrow keys can move.
//
//   const part = plane({
//     label: "Keys and the query", reach: 2.4, axes: ["gardens", "feasts"],
//     points: [{ name: "query", role: "query", kind: "ring", movable: true }, { name: "wedding" }],
//     onMove: (index, [x, y]) => ..., onSelect: (index) => ...,
//   });
//   fig.add(part);   part.place(index, [x, y])   part.style(index, { radius, opacity, note })
//   part.select(index)      kind: "dot" (default), "ring", "arrow" (from the origin)
//
// x grows to the right, y upward; both run from -reach to reach. Moved points stay inside.

import { clip, holdTouch, setSize, showToken, svgElement, textWidth, uniqueId } from "./dom.js";
import { fixed } from "./numbers.js";

const STEP = 0.1;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** A point moved to where it may be: inside the plane, on a fine lattice that reads well. */
export function inside([x, y], reach) {
  return [x, y].map((value) => {
    const kept = Math.min(reach, Math.max(-reach, value));
    return Math.round(kept * 100) / 100;
  });
}

export function plane({ label, reach, axes = ["", ""], points, onMove = null, onSelect = null }) {
  const svg = svgElement("svg", { class: "afm-plane", role: "group", "aria-label": label });
  const back = svgElement("g", { "aria-hidden": "true" });
  const front = svgElement("g");
  const arrowHead = uniqueId("head");
  svg.append(back, front);
  let [size, chosen] = [0, null];
  const items = points.map((point, index) => makeItem(point, index));
  front.append(...items.map((item) => item.group));

  const toPixels = ([x, y]) => [
    ((x + reach) / (2 * reach)) * size,
    ((reach - y) / (2 * reach)) * size,
  ];

  function fromPointer(event) {
    const box = svg.getBoundingClientRect();
    const scale = (2 * reach) / box.width;
    return [(event.clientX - box.left) * scale - reach, reach - (event.clientY - box.top) * scale];
  }

  function makeItem(point, index) {
    const { kind = "dot", role = null, movable = false } = point;
    const name = clip(showToken(point.name), 24);
    const color = role ? `afm-${role === "value" ? "value-role" : role}` : "afm-neutral";
    const line = kind === "arrow" ? svgElement("line", { class: `afm-shaft ${color}` }) : null;
    const head =
      kind === "arrow"
        ? svgElement("path", { class: `afm-arrowhead ${color}`, id: `${arrowHead}-${index}` })
        : null;
    const mark = svgElement("circle", { class: `afm-mark afm-${kind} ${color}` });
    const touch = svgElement("circle", { class: "afm-touch", r: 22 });
    const text = svgElement(
      "text",
      { class: `afm-point-name ${color}`, "text-anchor": "middle" },
      name,
    );
    const interactive = movable || onSelect;
    const group = svgElement(
      "g",
      {
        class: `afm-point ${movable ? "afm-movable" : ""}`,
        tabindex: interactive ? 0 : null,
        role: interactive ? "button" : "img",
        "aria-roledescription": movable ? "movable point" : null,
      },
      ...(interactive ? [touch] : []),
      ...(line ? [line, head] : []),
      mark,
      text,
    );
    const item = {
      group,
      line,
      head,
      mark,
      touch,
      text,
      name,
      kind,
      movable,
      at: [0, 0],
      radius: 6,
      note: "",
    };
    if (interactive) listen(item, index);
    return item;
  }

  function listen(item, index) {
    const { group } = item;
    let [dragging, offset] = [false, [0, 0]];
    if (item.movable) holdTouch(group);
    group.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      group.focus({ preventScroll: true });
      if (onSelect) onSelect(index);
      if (!item.movable) return;
      dragging = true;
      const at = fromPointer(event);
      offset = [item.at[0] - at[0], item.at[1] - at[1]];
      group.setPointerCapture(event.pointerId);
    });
    group.addEventListener("pointermove", (event) => {
      if (!dragging) return;
      const at = fromPointer(event);
      onMove(index, inside([at[0] + offset[0], at[1] + offset[1]], reach));
    });
    for (const end of ["pointerup", "pointercancel"])
      group.addEventListener(end, () => (dragging = false));
    group.addEventListener("keydown", (event) => {
      const direction = ARROWS[event.key];
      if (direction && item.movable) {
        event.preventDefault();
        const step = event.shiftKey ? 5 * STEP : STEP;
        onMove(
          index,
          inside(
            item.at.map((value, axis) => value + step * direction[axis]),
            reach,
          ),
        );
      } else if (onSelect && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        onSelect(index);
      }
    });
    if (onSelect) group.addEventListener("focus", () => onSelect(index));
  }

  function draw(item) {
    const [x, y] = toPixels(item.at);
    const [ox, oy] = toPixels([0, 0]);
    for (const circle of [item.mark, item.touch]) setPlace(circle, x, y);
    item.mark.setAttribute("r", item.kind === "arrow" ? 4 : item.radius);
    if (item.line) drawArrow(item, [ox, oy], [x, y]);
    const half = textWidth(item.name) / 2;
    const away = item.kind === "arrow" ? 8 : item.radius + 6;
    const below = item.kind === "ring" || (item.kind === "arrow" && y > oy) || y < away + 16;
    item.text.setAttribute("x", Math.min(size - half - 2, Math.max(half + 2, x)));
    item.text.setAttribute("y", below ? y + away + 9 : y - away);
    const where = item.at.map((value) => fixed(value)).join(", ");
    const keys = item.movable ? "; arrow keys move it" : "";
    item.group.setAttribute(
      "aria-label",
      `${item.name} at ${where}${item.note ? `; ${item.note}` : ""}${keys}`,
    );
  }

  function drawBack() {
    back.replaceChildren();
    for (let tick = -Math.floor(reach); tick <= reach; tick += 1) {
      const [x, y] = toPixels([tick, tick]);
      const kind = tick === 0 ? "afm-axis-line" : "afm-grid-line";
      back.append(
        svgElement("line", { class: kind, x1: x, y1: 0, x2: x, y2: size }),
        svgElement("line", { class: kind, x1: 0, y1: y, x2: size, y2: y }),
      );
    }
    const [cx, cy] = toPixels([0, 0]);
    back.append(
      svgElement(
        "text",
        { class: "afm-axis afm-axis-name", x: size - 4, y: cy + 16, "text-anchor": "end" },
        axes[0],
      ),
      svgElement("text", { class: "afm-axis afm-axis-name", x: cx + 6, y: 14 }, axes[1]),
    );
  }

  return {
    element: svg,
    layout(width) {
      size = Math.max(200, Math.min(width, 460));
      setSize(svg, size, size);
      drawBack();
      items.forEach(draw);
    },
    place(index, at) {
      items[index].at = Array.from(at);
      if (size) draw(items[index]);
    },
    style(index, { radius = null, opacity = null, note = null }) {
      const item = items[index];
      if (radius !== null) item.radius = radius;
      if (opacity !== null) item.mark.setAttribute("fill-opacity", opacity);
      if (note !== null) item.note = note;
      if (size) draw(item);
    },
    select(index) {
      if (chosen !== null) items[chosen].group.classList.remove("afm-chosen");
      chosen = index;
      if (index !== null) items[index].group.classList.add("afm-chosen");
    },
  };
}

function setPlace(circle, x, y) {
  circle.setAttribute("cx", x);
  circle.setAttribute("cy", y);
}

function drawArrow(item, [ox, oy], [x, y]) {
  for (const [name, value] of Object.entries({ x1: ox, y1: oy, x2: x, y2: y }))
    item.line.setAttribute(name, value);
  const angle = (Math.atan2(y - oy, x - ox) * 180) / Math.PI;
  const long = Math.hypot(x - ox, y - oy);
  item.head.setAttribute("d", long > 8 ? "M0,0 L-11,-5 L-11,5 Z" : "");
  item.head.setAttribute("transform", `translate(${x},${y}) rotate(${angle})`);
}
