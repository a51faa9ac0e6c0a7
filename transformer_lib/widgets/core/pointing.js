// Pointing along a curve: a mouse hovers and drags, a finger taps or drags sideways (up and down it
// scrolls the page).
//
//   follow(svg, { ready() {}, axis: () => [scale, width], onHover(step or null) {}, onChoose(step) {} });
//     axis: the scale of the steps, and the width in which it draws

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
