// The text that the model wrote after the step that is looked at. Its place is as high as its longest text so
// far, so that nothing below the figure moves while one slides along the curve.
//
//   const written = sample();  fig.add(written);
//   written.paint([50, "the king"]);      once it is in the figure; null: nothing is shown

import { element } from "../core/dom.js";

export function sample() {
  const caption = element("p", { class: "afm-map-caption" });
  const text = element("pre", {
    class: "afm-sample",
    tabindex: "0",
    "aria-label": "What it writes",
  });
  const part = element("div", {}, caption, text);
  let highest = 0;
  return {
    element: part,
    paint(found) {
      part.parentElement.hidden = found === null; // with its place in the figure
      if (found === null) return;
      const [step, wrote] = found;
      caption.textContent =
        step === 0 ? "It writes, before the first step:" : `It writes, after step ${step}:`;
      text.textContent = wrote;
      highest = Math.max(highest, wrote.split("\n").length);
      text.style.minHeight = `${1.4 * highest}em`;
    },
  };
}
