// A figure beside the phrase that has set it. The figure itself, as it is, stands at the window's top or
// bottom, in at most half of it, and its place in the page is held open, so that nothing moves. It goes
// back when it is closed (button or Escape), when its own place comes into view, when the reader has
// left the paragraph, and for printing.
//
//   pin(figure, boxes, phrase)   whether it could; `boxes` of what has changed come into view in it
//   unpin({ but: figure })       whether this one is pinned; any other goes back

import { element } from "./dom.js";
import { around, EDGE, fits, HEADER, isSeen } from "./seen.js";

const LINE = 32; // of text, to be left free on both sides of a phrase

/** Where the panel stands, so that it leaves the paragraph free, or, of a high one, the phrase. */
export function standAt({ paragraph, phrase, wanted, height, before = null }) {
  const line = { top: phrase.top - LINE, bottom: phrase.bottom + LINE };
  const most = Math.min(wanted, height / 2);
  const roomBeside = (text) => ({ bottom: height - text.bottom, top: text.top - HEADER });
  for (const [text, least] of [
    [paragraph, Math.min(most, height / 3)],
    [line, height / 4],
  ]) {
    const room = roomBeside(text);
    const wider = room.bottom >= room.top ? "bottom" : "top";
    const side = [before, wider].find((one) => one && room[one] >= least);
    if (side) return { side, high: Math.min(most, room[side]) };
  }
  return { side: "bottom", high: height / 4 };
}

/** How far a panel scrolls, to show all that has changed, or as much of it as there is room for. */
export function scrollTo(boxes, view) {
  const all = around(boxes);
  if (!all) return 0;
  let target = boxes[0];
  for (const box of boxes.slice(1)) {
    const more = around([target, box]);
    if (fits(more, view)) target = more;
  }
  if (!fits(target, view)) return target.top - view.top;
  const middle = (all.top + all.bottom - view.top - view.bottom) / 2;
  return Math.min(target.top - view.top, Math.max(target.bottom - view.bottom, middle));
}

export function unpin({ but = null } = {}) {
  if (but && window.afmPinned?.figure === but) return true;
  window.afmPinned?.end();
  return false;
}

export function pin(figure, boxes, phrase) {
  const again = unpin({ but: figure });
  const panel = figure.parentElement;
  if (!panel.classList.contains("afm-mount")) return false; // a notebook's
  // Each kind of figure has this module for itself, and there is one panel at most.
  if (!again) window.afmPinned = start(figure, panel, boxes);
  const done = window.afmPinned.follow(phrase, boxes, again);
  if (!done) unpin();
  return done;
}

function start(figure, panel, boxes) {
  const outer = figure.getBoundingClientRect();
  const home = around(boxes.length ? boxes : [outer]); // what must be in view again, at its own place
  const [above, below] = [home.top - outer.top, home.bottom - outer.top];
  const look = getComputedStyle(figure);
  const place = element("div", { class: "afm-left-place", "aria-hidden": "true" });
  place.style.height = `${outer.height}px`;
  place.style.margin = `${look.marginTop} 0 ${look.marginBottom}`;
  const there = element("button", { type: "button" }, "go to its place");
  const back = element(
    "button",
    { type: "button", "aria-label": "Close: the figure goes back to its place" },
    "✕",
  );
  const bar = element("div", { class: "afm-pinned-bar" }, there, back);
  panel.dataset.afmTheme = figure.dataset.afmTheme;
  const root = document.documentElement;
  const padding = root.style.scrollPadding;
  let [phrase, paragraph, side] = [null, null, null];

  panel.before(place);
  panel.classList.add("afm-pinned");
  panel.prepend(bar);

  /** Beside the phrase; as wide as its place. */
  function stand() {
    const { left, width } = place.getBoundingClientRect();
    const spot = standAt({
      paragraph: paragraph.getBoundingClientRect(),
      phrase: phrase.getBoundingClientRect(),
      wanted: figure.offsetHeight + bar.offsetHeight,
      height: window.innerHeight,
      before: side,
    });
    side = spot.side;
    Object.assign(panel.style, {
      margin: "0", // the page has one for what stands in a cell
      left: `${left}px`,
      width: `${width}px`,
      maxHeight: `${spot.high}px`,
      top: side === "top" ? `${HEADER - EDGE}px` : "auto",
      bottom: side === "bottom" ? "0" : "auto",
    });
    panel.style.width = `${width + panel.offsetWidth - panel.clientWidth}px`; // a scroll bar's
    panel.dataset.afmSide = side;
    const free = `${spot.high + EDGE}px`;
    root.style.scrollPadding = side === "top" ? `${free} 0 0` : `${HEADER}px 0 ${free}`;
  }

  /** Stand beside a phrase, and show what has changed; `again`: it has stood there already. */
  function follow(newPhrase, newBoxes, again) {
    phrase = newPhrase;
    paragraph = phrase.closest("p, li, dd, td, th, summary") ?? phrase;
    const top = figure.getBoundingClientRect().top;
    stand();
    // Something around it may keep it (a transform): then it would not be where the reader is.
    const box = panel.getBoundingClientRect();
    if (box.top < 0 || box.bottom > window.innerHeight + 1 || !box.height) return false;
    const shift = figure.getBoundingClientRect().top - (again ? top : outer.top);
    const moved = newBoxes.map((one) => ({ top: one.top + shift, bottom: one.bottom + shift }));
    const foot = figure.querySelector(":scope > .afm-foot")?.offsetHeight ?? 0;
    const view = { top: box.top + bar.offsetHeight + EDGE, bottom: box.bottom - foot - EDGE };
    panel.scrollTop += scrollTo(moved, view);
    return true;
  }

  function looked() {
    const box = place.getBoundingClientRect();
    const changed = { top: box.top + above, bottom: box.top + below };
    const text = paragraph.getBoundingClientRect();
    const { top, bottom, height } = panel.getBoundingClientRect();
    const free =
      side === "top" ? { top: bottom, bottom: window.innerHeight } : { top: HEADER, bottom: top };
    const isLeft = text.bottom < free.top || text.top > free.bottom;
    if (isLeft || isSeen(changed, { top: HEADER, bottom: window.innerHeight }) || !height) end();
  }

  function onKey(event) {
    if (event.key === "Escape" && !event.defaultPrevented) close();
  }

  function close() {
    const held = panel.contains(document.activeElement);
    end();
    if (held) phrase.focus({ preventScroll: true });
  }

  function end() {
    window.afmPinned = null;
    sizes.disconnect();
    document.removeEventListener("keydown", onKey);
    window.removeEventListener("scroll", looked);
    window.removeEventListener("resize", stand);
    window.removeEventListener("beforeprint", end);
    root.style.scrollPadding = padding;
    bar.remove();
    panel.classList.remove("afm-pinned");
    for (const name of ["margin", "left", "width", "maxHeight", "top", "bottom"])
      panel.style[name] = "";
    place.remove();
  }

  const sizes = new ResizeObserver(() => {
    place.style.height = `${figure.offsetHeight}px`;
  });
  sizes.observe(figure);
  back.addEventListener("click", close);
  there.addEventListener("click", () => {
    end();
    figure.scrollIntoView({ block: "nearest", behavior: "instant" });
  });
  document.addEventListener("keydown", onKey);
  window.addEventListener("scroll", looked, { passive: true });
  window.addEventListener("resize", stand);
  window.addEventListener("beforeprint", end);
  return { figure, follow, end };
}
