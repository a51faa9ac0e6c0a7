// The reader's place in the text, while a phrase of it sets a figure: what has changed comes into view
// together with the phrase, if both have room; else the figure itself comes to the phrase (pinned.js). In
// a notebook, where it cannot, the notebook goes to the figure, and a chip leads back.
//
//   showChange(figure, boxes, phrase)     boxes: of what has changed, as getBoundingClientRect gives them

import { clip, element } from "./dom.js";
import { pin, unpin } from "./pinned.js";
import { around, EDGE, fits, HEADER, isSeen, paragraphOf, showsChange } from "./seen.js";

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
