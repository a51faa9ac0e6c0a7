// The reader's place in the text, while a phrase of it sets a figure: what has changed comes into view
// together with the phrase, if both have room; else the figure itself comes to the phrase. In
// a notebook, where it cannot, the notebook goes to the figure, and a chip leads back.
//
//   showChange(figure, boxes, phrase)     boxes: of what has changed, as getBoundingClientRect gives
//                                them, and of a control with `isControl`
//
// A figure beside the phrase that has set it. The figure itself, as it is, stands at the window's top or
// bottom, in at most half of it, and its place in the page is held open, so that nothing moves. It goes
// back when it is closed (button or Escape), when its own place comes into view, when the reader has
// left the paragraph, and for printing.
//
//   pin(figure, boxes, phrase, onLeave)   whether it could; `boxes` of what has changed come into view in
//                                it; `onLeave` is called before the reader goes to the figure's place
//   unpin({ but: figure })       whether this one is pinned; any other goes back

import { clip, element } from "./dom.js";

// The part of the window that is in sight, and what stands there: boxes { top, bottom } in its pixels.
const HEADER = 64; // the page's own, over the text
const EDGE = 8;

const fits = (box, view) => box.bottom - box.top <= view.bottom - view.top;

/** Whether a box is in view; of one that is higher than the view, whether it fills it. */
function isSeen(box, view, moved = 0) {
  const [top, bottom] = [box.top - moved, box.bottom - moved];
  if (!fits(box, view)) return top <= view.top + 1 && bottom >= view.bottom - 1;
  return top >= view.top - 1 && bottom <= view.bottom + 1;
}

/** One box around several; null of none. */
function around(boxes) {
  if (!boxes.length) return null;
  return {
    top: Math.min(...boxes.map(({ top }) => top)),
    bottom: Math.max(...boxes.map(({ bottom }) => bottom)),
  };
}

/** Whether what has changed is in view: all of it where there is room for that, else a part. That a
 *  button is pressed now shows nothing of what it has done: a control is such a part only if nothing
 *  else has changed. */
function showsChange(boxes, view) {
  const all = around(boxes);
  if (fits(all, view)) return isSeen(all, view);
  const drawn = boxes.filter((box) => !box.isControl);
  return (drawn.length ? drawn : boxes).some((box) => isSeen(box, view));
}

const paragraphOf = (phrase) => phrase.closest("p, li, dd, td, th, summary") ?? phrase;

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

function unpin({ but = null } = {}) {
  if (but && window.afmPinned?.figure === but) return true;
  window.afmPinned?.end();
  return false;
}

function pin(figure, boxes, phrase, onLeave) {
  const again = unpin({ but: figure });
  const panel = figure.parentElement;
  if (!panel.classList.contains("afm-mount")) return false; // a notebook's
  // Each kind of figure has this module for itself, and there is one panel at most.
  if (!again) window.afmPinned = start(figure, panel, boxes);
  const done = window.afmPinned.follow({ phrase, boxes, onLeave, again });
  if (!done) unpin();
  return done;
}

function start(figure, panel, boxes) {
  const outer = figure.getBoundingClientRect();
  // What must be in view at its own place for the figure to go back.
  const parts = (boxes.length ? boxes : [outer]).map(({ top, bottom, isControl }) => [
    top - outer.top,
    bottom - outer.top,
    isControl,
  ]);
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
  let [paragraph, side, high, now] = [null, null, null, null]; // now: what follow() was told last

  /** Do something to the figure's place, which moves the page under the reader's eyes not at all. */
  function keep(change) {
    const before = paragraph.getBoundingClientRect().top;
    change();
    const by = paragraph.getBoundingClientRect().top - before;
    if (Math.abs(by) >= 1) window.scrollBy({ top: by, behavior: "instant" });
  }

  function lift() {
    panel.before(place);
    panel.classList.add("afm-pinned");
    panel.prepend(bar);
    sizes.observe(figure);
    stand();
  }

  /** Beside the phrase; as wide as its place. */
  function stand() {
    const { left, width } = place.getBoundingClientRect();
    const spot = standAt({
      paragraph: paragraph.getBoundingClientRect(),
      phrase: now.phrase.getBoundingClientRect(),
      wanted: figure.offsetHeight + bar.offsetHeight,
      height: window.innerHeight,
      before: side,
    });
    side = spot.side;
    Object.assign(panel.style, {
      margin: "0", // the page has one for the figures of cells
      left: `${left}px`,
      width: `${width}px`,
      maxHeight: `${spot.high}px`,
      top: side === "top" ? `${HEADER - EDGE}px` : "auto",
      bottom: side === "bottom" ? "0" : "auto",
    });
    panel.style.width = `${width + panel.offsetWidth - panel.clientWidth}px`; // a scroll bar's
    panel.dataset.afmAt = side;
  }

  /** Stand beside a phrase, and show what has changed; `again`: it is there already. */
  function follow(told) {
    now = told;
    const { phrase, boxes, again } = now;
    paragraph = paragraphOf(phrase);
    const top = figure.getBoundingClientRect().top;
    keep(again ? stand : lift);
    // Something around it may keep it (a transform): then it would not be where the reader is.
    const box = panel.getBoundingClientRect();
    if (box.top < 0 || box.bottom > window.innerHeight + 1 || !box.height) return false;
    const shift = figure.getBoundingClientRect().top - (again ? top : outer.top);
    const moved = boxes.map((one) => ({ top: one.top + shift, bottom: one.bottom + shift }));
    const foot = figure.querySelector(":scope > .afm-foot")?.offsetHeight ?? 0;
    const view = { top: box.top + bar.offsetHeight + EDGE, bottom: box.bottom - foot - EDGE };
    panel.scrollTop += scrollTo(moved, view);
    return true;
  }

  function looked() {
    const box = place.getBoundingClientRect();
    const changed = parts.map(([from, to, isControl]) => ({
      top: box.top + from,
      bottom: box.top + to,
      isControl,
    }));
    const text = paragraph.getBoundingClientRect();
    const { top, bottom, height } = panel.getBoundingClientRect();
    const free =
      side === "top" ? { top: bottom, bottom: window.innerHeight } : { top: HEADER, bottom: top };
    const isLeft = text.bottom < free.top || text.top > free.bottom;
    if (isLeft || showsChange(changed, { top: HEADER, bottom: window.innerHeight }) || !height)
      end();
  }

  /** What the keyboard comes to is not to be under the panel. */
  function onFocus({ target }) {
    if (panel.contains(target) || !target.matches(":focus-visible")) return;
    const [box, over] = [target, panel].map((node) => node.getBoundingClientRect());
    if (box.bottom <= over.top || box.top >= over.bottom) return;
    const by = side === "top" ? box.top - over.bottom - EDGE : box.bottom - over.top + EDGE;
    window.scrollBy({ top: by, behavior: "instant" });
  }

  function onKey(event) {
    if (event.key === "Escape" && !event.defaultPrevented) close();
  }

  function close() {
    const held = panel.contains(document.activeElement);
    end();
    if (held) now.phrase.focus({ preventScroll: true });
  }

  function end() {
    window.afmPinned = null;
    sizes.disconnect();
    keep(putBack);
    document.removeEventListener("keydown", onKey);
    document.removeEventListener("focusin", onFocus);
    window.removeEventListener("scroll", looked);
    window.removeEventListener("resize", stand);
    window.removeEventListener("beforeprint", end);
  }

  function putBack() {
    bar.remove();
    panel.classList.remove("afm-pinned");
    for (const name of ["margin", "left", "width", "maxHeight", "top", "bottom"])
      panel.style[name] = "";
    place.remove();
  }

  // The place grows with the figure, which is a little lower in the panel.
  const sizes = new ResizeObserver(() => {
    high ??= figure.offsetHeight;
    const held = outer.height + figure.offsetHeight - high;
    if (held !== place.offsetHeight) keep(() => (place.style.height = `${held}px`));
  });
  back.addEventListener("click", close);
  there.addEventListener("click", () => {
    now.onLeave();
    end();
    figure.scrollIntoView({ block: "start", behavior: "instant" });
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("focusin", onFocus);
  window.addEventListener("scroll", looked, { passive: true });
  window.addEventListener("resize", stand);
  window.addEventListener("beforeprint", end);
  return { figure, follow, end };
}

const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** What scrolls around a node: an element (in a notebook), or the window. */
function scrollerOf(node) {
  for (let at = node.parentElement; at && at !== document.body; at = at.parentElement) {
    const { overflowY } = getComputedStyle(at);
    if (/auto|scroll/.test(overflowY) && at.scrollHeight > at.clientHeight + 1) return at;
  }
  return window;
}

/** Where something must be to be seen, in the window. */
function viewOf(scroller) {
  if (scroller === window) return { top: HEADER, bottom: window.innerHeight - EDGE };
  const { top, bottom } = scroller.getBoundingClientRect();
  return {
    top: Math.max(top, 0) + EDGE,
    bottom: Math.min(bottom, window.innerHeight) - EDGE,
  };
}

/** The least scrolling that brings a box into view; of one that is too high, its top. */
export function leastMove(box, view) {
  if (box.bottom - box.top > view.bottom - view.top) return box.top - view.top;
  if (box.top < view.top) return box.top - view.top;
  return Math.max(0, box.bottom - view.bottom);
}

/** How far to scroll, and whether the phrase is left behind. */
export function plan({ figure, boxes, phrase, view }) {
  const changed = around(boxes);
  const seen = Math.min(figure.bottom, view.bottom) - Math.max(figure.top, view.top);
  const near = seen >= 0.5 * Math.min(figure.bottom - figure.top, view.bottom - view.top);
  if (changed ? showsChange(boxes, view) : near) return { by: 0, leaves: false };
  for (const box of [figure, changed]) {
    if (!box || !fits(box, view)) continue;
    const by = leastMove(box, view);
    if (phrase && isSeen(phrase, view, by)) return { by, leaves: false };
  }
  const aim = fits(figure, view) || !changed ? figure : changed;
  const middle = (aim.top + aim.bottom - view.top - view.bottom) / 2;
  return { by: fits(aim, view) ? middle : aim.top - view.top, leaves: Boolean(phrase) };
}

let chip = null; // there is one at most

export function showChange(figure, boxes, phrase = null) {
  if (!figure.getClientRects().length) return; // folded away
  if (phrase) chip?.end();
  const text = phrase?.getClientRects()[0] ?? null;
  const leave = () => (chip = backChip(phrase, figure, text.top));
  if (unpin({ but: figure })) {
    if (text) pin(figure, boxes, phrase, leave);
    return;
  }
  const scroller = scrollerOf(figure);
  const view = viewOf(scroller);
  const { by, leaves } = plan({
    figure: figure.getBoundingClientRect(),
    boxes,
    phrase: text && textToKeep(phrase, view),
    view,
  });
  if (leaves && scroller === window && pin(figure, boxes, phrase, leave)) return;
  if (by) scroller.scrollBy({ top: by, behavior: isCalm() ? "instant" : "smooth" });
  if (leaves) leave();
}

/** What of the text is to stay in sight: the paragraph, or of a high one the phrase. */
function textToKeep(phrase, view) {
  const paragraph = paragraphOf(phrase).getBoundingClientRect();
  const isLow = paragraph.height <= 0.4 * (view.bottom - view.top);
  return isLow && isSeen(paragraph, view) ? paragraph : phrase.getClientRects()[0];
}

/** A button that is there while the phrase is out of sight, and leads back to it. */
function backChip(phrase, figure, height) {
  const label = `back to “${clip(phrase.textContent.trim(), 40)}”`;
  const node = element("button", { type: "button", class: "afm-back" }, "↩ ", label);
  node.dataset.afmTheme = figure.dataset.afmTheme;
  let left = false;
  const observer = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting && !left) document.body.append(node);
    if (isIntersecting && left) end();
    left = !isIntersecting;
  });

  function end() {
    observer.disconnect();
    node.remove();
    document.removeEventListener("keydown", onKey);
  }

  function back() {
    const scroller = scrollerOf(phrase);
    const by = phrase.getBoundingClientRect().top - height;
    scroller.scrollBy({ top: by, behavior: isCalm() ? "instant" : "smooth" });
    phrase.focus({ preventScroll: true });
    phrase.classList.add("afm-returned");
    setTimeout(() => phrase.classList.remove("afm-returned"), 1800);
    end();
  }

  function onKey(event) {
    if (event.key === "Escape" && node.isConnected) back();
  }

  node.addEventListener("click", back);
  document.addEventListener("keydown", onKey);
  observer.observe(phrase);
  return { end };
}

// Marks for a moment what has changed in a figure, by frames laid over it.
//
//   const changed = watchChanges(root);   ...set the figure...   changed.mark() -> the boxes of what has

const MOMENT = 1800; // ms
const MANY = 6; // more than this in one picture are marked by one frame
const CHANGES = [
  "aria-label",
  "aria-valuetext",
  "aria-selected",
  "fill",
  "d",
  "points",
  "transform",
];
const CONTROL = ".afm-choice, .afm-control";
// What has a name of its own, and so can be pointed at.
const NAMED = '.afm-cell, [role="slider"], [role="listitem"], [role="button"], [role="option"]';
const FOLDED = "details:not([open]) > :not(summary)"; // has boxes too, where nothing is seen

/** Remember how a figure is now. */
export function watchChanges(root) {
  const controls = () => [...root.querySelectorAll("input, select")];
  const shownIn = (input) => (/checkbox|radio/.test(input.type) ? input.checked : input.value);
  const before = new Map(controls().map((input) => [input, shownIn(input)]));
  const records = [];
  const observer = new MutationObserver((more) => records.push(...more)); // while a worker computes
  observer.observe(root, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
    attributeOldValue: true,
    characterDataOldValue: true,
    attributeFilter: CHANGES,
  });

  function found() {
    const places = new Set();
    records.push(...observer.takeRecords());
    for (const record of firstOfEach(records).filter(isChange)) {
      const node = record.target.nodeType === 1 ? record.target : record.target.parentElement;
      const picture = node?.closest(".afm-picture");
      if (!picture) continue;
      const place = node.closest(NAMED) ?? node.closest("svg") ?? node.closest(".afm-part");
      if (place && root.contains(place)) places.add(place);
    }
    observer.disconnect();
    // A whole picture is marked only if nothing in it can be.
    for (const place of [...places]) {
      if ([...places].some((other) => other !== place && place.contains(other)))
        places.delete(place);
    }
    for (const input of controls()) {
      if (before.get(input) !== shownIn(input) && !(input.type === "radio" && !input.checked))
        places.add(input.closest(CONTROL));
    }
    return [...places].filter(Boolean);
  }

  return {
    mark() {
      const places = found();
      root.querySelector(":scope > .afm-changes")?.remove();
      const layer = element("div", { class: "afm-changes", "aria-hidden": "true" });
      const outer = root.getBoundingClientRect();
      const boxes = boxesOf(places);
      for (const box of boxes) {
        const frame = element("div", { class: "afm-change" });
        frame.style.left = `${box.left - outer.left - root.clientLeft - 3}px`;
        frame.style.top = `${box.top - outer.top - root.clientTop - 3}px`;
        frame.style.width = `${box.right - box.left + 6}px`;
        frame.style.height = `${box.bottom - box.top + 6}px`;
        layer.append(frame);
      }
      root.append(layer);
      setTimeout(() => layer.remove(), MOMENT);
      return boxes;
    },
  };
}

/** Of several records of one attribute or text, the first, which knows how it was before. */
function firstOfEach(records) {
  const seen = new Map();
  return records.filter(({ target, type, attributeName }) => {
    if (type === "childList") return true;
    const known = seen.get(target) ?? new Set();
    seen.set(target, known);
    return !known.has(attributeName) && known.add(attributeName);
  });
}

/** Not every record is a change: the same text may have been written again. */
function isChange({ type, target, attributeName, oldValue, removedNodes, addedNodes }) {
  if (type === "attributes") {
    const now = target.getAttribute(attributeName);
    return now !== oldValue && !(attributeName === "aria-selected" && now === "false");
  }
  if (type === "characterData") return target.data !== oldValue;
  const [before, after] = [removedNodes, addedNodes].map((nodes) => [...nodes]);
  const texts = [...before, ...after].every((node) => node.nodeType === 3);
  return !texts || !before.length || after[0]?.data !== before[0].data;
}

/** A box for each place; one around all of a picture's where there are many. */
function boxesOf(places) {
  const groups = new Map();
  for (const place of places.filter((one) => !one.closest(FOLDED))) {
    const picture = place.closest("svg") ?? place;
    const box = place.getBoundingClientRect();
    box.isControl = place.matches(CONTROL);
    groups.set(picture, [...(groups.get(picture) ?? []), box]);
  }
  return [...groups.values()].flatMap((boxes) => {
    const shown = boxes.filter(({ width, height }) => width && height);
    if (shown.length <= MANY) return shown;
    const edge = (name, pick) => pick(...shown.map((box) => box[name]));
    return [
      {
        left: edge("left", Math.min),
        top: edge("top", Math.min),
        right: edge("right", Math.max),
        bottom: edge("bottom", Math.max),
      },
    ];
  });
}
