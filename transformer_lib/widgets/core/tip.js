// The small label at the pointer. It stays inside its holder, which has a position of its own.
//
//   const tip = pointerTip();   holder.append(tip.element);
//   tip.show(["roses", " → ", "susan"], { x, top, bottom, highest, gap })   x, top, bottom: of what
//       is pointed at, in the holder's pixels; above it, or below where that is higher than `highest`
//   tip.hide()
//
// It is for the eye; the figure's sentence says the same to all.

import { element } from "./dom.js";

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
