// Pointing along a curve: a mouse hovers and drags, a finger taps or drags sideways (up and down it
// scrolls the page).
//
//   follow(svg, { ready() {}, axis: () => [scale, width], onHover(step or null) {}, onChoose(step) {} });
//     axis: the scale of the steps, and the width in which it draws

import { element, onKeys } from "./dom.js";

const SLOP = 6; // px that a finger moves along the curve before it drags

export function follow(svg, { ready, axis, onHover, onChoose }) {
  const stepAt = ({ clientX }) => {
    const [scale, width] = axis();
    const box = svg.getBoundingClientRect();
    return scale.back(((clientX - box.left) * width) / box.width);
  };
  let dragging = false;
  let began = null; // where a finger came down: it may yet scroll the page
  svg.addEventListener("pointerdown", (event) => {
    if (!ready() || event.button > 0) return;
    began = event.pointerType === "touch" ? [event.clientX, event.clientY] : null;
    dragging = !began;
    svg.setPointerCapture(event.pointerId);
    if (dragging) onChoose(stepAt(event));
  });
  svg.addEventListener("pointermove", (event) => {
    if (!ready()) return;
    const [right, down] = began
      ? [Math.abs(event.clientX - began[0]), Math.abs(event.clientY - began[1])]
      : [0, 0];
    if (right > SLOP && right > down) dragging = true;
    if (dragging) onChoose(stepAt(event));
    else if (event.pointerType === "mouse") onHover(stepAt(event));
  });
  svg.addEventListener("pointerup", (event) => {
    if (
      began &&
      !dragging &&
      Math.hypot(event.clientX - began[0], event.clientY - began[1]) <= 2 * SLOP
    )
      onChoose(stepAt(event)); // a tap
    [dragging, began] = [false, null];
  });
  svg.addEventListener("pointercancel", () => ([dragging, began] = [false, null]));
  svg.addEventListener("pointerleave", () => !dragging && ready() && onHover(null));
}

// Lines of a picture that can be pointed at: by mouse, by finger, and by the arrow keys.
//
//   const list = pointList(svg, { count, onPoint(i or null) {} });
//                             (or count: () => ..., where it changes)
//   list.attach(node, i)      a node of line i, in this picture or in another
//   list.now                  the line that is pointed at, or null
//
// The picture becomes one tab stop; up and down, Home and End walk through its lines.

const KEYS = { ArrowUp: -1, ArrowDown: 1, Home: -Infinity, End: Infinity };

export function pointList(svg, { count, onPoint }) {
  let now = null;
  const total = typeof count === "function" ? count : () => count;
  function point(i) {
    if (i === now) return;
    now = i;
    onPoint(i);
  }
  svg.setAttribute("tabindex", "0");
  svg.classList.add("afm-pointlist");
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && point(now ?? 0));
  svg.addEventListener("blur", () => point(null));
  onKeys(svg, KEYS, (step) => {
    point(Math.min(total() - 1, Math.max(0, (now ?? (step > 0 ? -1 : total())) + step)));
  });
  return {
    get now() {
      return now;
    },
    attach(node, i) {
      node.addEventListener("pointerenter", (event) => {
        if (!event.buttons || event.pointerType === "touch") point(i);
      });
      for (const end of ["pointerleave", "pointercancel"])
        node.addEventListener(end, () => now === i && point(null));
    },
  };
}

// Mouse and finger on a grid (core/grid.js).
//
//   followPointer(svg, { cellAt(event) -> [row, column] or null, paints: true,
//     onPoint(cell or null, finger) {},     the mouse is over it, or a held finger
//     onChoose(cell, finger) {},            a click, a tap, or where a held finger lifts
//     onPaint(cell, "start" | "move" | "end", finger) {} });      where `paints`
//
// A finger that moves at once scrolls the page. One that lifts where it came down chooses that cell;
// one that has been held there follows the cells: it paints them, or points at them.
//
// The small label at the pointer. It stays inside its holder, which has a position of its own.
//
//   const tip = pointerTip();   holder.append(tip.element);
//   tip.show(["roses", " → ", "susan"], { x, top, bottom, highest, gap })   x, top, bottom: of what
//       is pointed at, in the holder's pixels; above it, or below where that is higher than `highest`
//   tip.hide()
//
// It is for the eye; the figure's sentence says the same to all.

const HOLD_MS = 350; // until a finger that does not move is taken to point, not to scroll
const HOLD_PX = 10; // so far may it tremble

/** Where a key moves in a grid, in rows and columns. */
export const GRID_KEYS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  Home: [0, -Infinity],
  End: [0, Infinity],
  PageUp: [-Infinity, 0],
  PageDown: [Infinity, 0],
};

export function followPointer(svg, { cellAt, paints, onPoint, onChoose, onPaint }) {
  let painted = null; // the cell that was painted last
  let tapped = null; // { at, x, y, timer } of a finger that may yet scroll
  let held = null; // the cell at which a held finger points
  let finger = false;

  const forget = () => {
    clearTimeout(tapped?.timer);
    tapped = null;
  };
  function press(at) {
    onChoose(at, finger);
    if (!paints) return;
    painted = at;
    onPaint(at, "start", finger);
  }
  function hold() {
    const { at } = tapped;
    forget();
    if (paints) press(at);
    else {
      held = at;
      onPoint(at, true);
    }
  }
  function release() {
    if (painted) onPaint(painted, "end", finger);
    const last = held;
    [painted, held] = [null, null];
    if (finger) onPoint(null, true);
    if (last) onChoose(last, true);
  }

  svg.addEventListener("pointerdown", (event) => {
    const at = cellAt(event);
    forget();
    if (!at || event.button) return;
    finger = event.pointerType === "touch";
    if (finger) {
      const timer = setTimeout(hold, HOLD_MS);
      tapped = { at, x: event.clientX, y: event.clientY, timer };
      return;
    }
    if (paints) svg.setPointerCapture(event.pointerId);
    press(at);
  });
  svg.addEventListener("pointermove", (event) => {
    const at = cellAt(event);
    const moved = tapped && Math.hypot(event.clientX - tapped.x, event.clientY - tapped.y);
    if (moved > HOLD_PX) forget();
    if (painted) {
      if (!at || (at[0] === painted[0] && at[1] === painted[1])) return;
      painted = at;
      onPaint(at, "move", finger);
    } else if (held) {
      held = at ?? held; // beyond the border it stays with the last cell
      onPoint(held, true);
    } else if (event.pointerType !== "touch") onPoint(at, false);
  });
  svg.addEventListener("pointerup", () => {
    if (tapped) press(tapped.at);
    forget();
    release();
  });
  svg.addEventListener("pointercancel", () => {
    forget();
    release();
  });
  svg.addEventListener("pointerleave", () => {
    if (!painted && !held) onPoint(null, false);
  });
  // Held, the finger no longer scrolls, nor opens the menu of a long touch.
  const keep = (event) => (painted || held) && event.cancelable && event.preventDefault();
  svg.addEventListener("touchmove", keep, { passive: false });
  svg.addEventListener("contextmenu", (event) => {
    if (tapped || painted || held) event.preventDefault();
  });
}

export function pointerTip() {
  const node = element("div", { class: "afm-tip", "aria-hidden": "true", hidden: true });
  return {
    element: node,
    show(parts, { x, top, bottom, highest = 0, gap = 2 }) {
      node.replaceChildren(...parts);
      node.hidden = false;
      const [width, height] = [node.offsetWidth, node.offsetHeight];
      const { clientWidth, clientHeight } = node.parentElement;
      const place = tipPlace({ x, top, bottom, highest, gap, width, height, clientWidth });
      node.style.left = `${place.left}px`;
      node.style.top = `${Math.max(0, Math.min(place.top, clientHeight - height))}px`;
    },
    hide() {
      node.hidden = true;
    },
  };
}

/** Where the label goes: above, or below where there is no room; never past the sides. */
export function tipPlace({ x, top, bottom, highest, gap, width, height, clientWidth }) {
  const above = top - gap - height;
  return {
    left: Math.round(Math.max(0, Math.min(x - width / 2, clientWidth - width))),
    top: Math.round(above >= highest || highest === 0 ? Math.max(0, above) : bottom + gap),
  };
}
