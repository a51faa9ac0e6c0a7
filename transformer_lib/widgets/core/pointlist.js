// Lines of a picture that can be pointed at: by mouse, by finger, and by the arrow keys.
//
//   const list = pointList(svg, { count, onPoint(i or null) {} });
//                             (or count: () => ..., where it changes)
//   list.attach(node, i)      a node of line i, in this picture or in another
//   list.now                  the line that is pointed at, or null
//
// The picture becomes one tab stop; up and down, Home and End walk through its lines.

import { onKeys } from "./dom.js";

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
