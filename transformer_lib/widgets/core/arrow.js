// An arrow in an SVG: a line and its head.
//
//   const one = arrow("afm-key-arrow");   svg.append(one.node);   one.place([x1, y1], [x2, y2], 3)

import { setAttributes, svgElement } from "./dom.js";

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
