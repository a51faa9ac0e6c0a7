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

import { element } from "./dom.js";

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
