// The part of the window that is in sight, as boxes { top, bottom } in pixels of the window.

export const HEADER = 64; // the page's own, over the text
export const EDGE = 8;

export const fits = (box, view) => box.bottom - box.top <= view.bottom - view.top;

/** Whether a box is in view; of one that is higher than the view, whether it fills it. */
export function isSeen(box, view, moved = 0) {
  const [top, bottom] = [box.top - moved, box.bottom - moved];
  if (!fits(box, view)) return top <= view.top + 1 && bottom >= view.bottom - 1;
  return top >= view.top - 1 && bottom <= view.bottom + 1;
}

/** One box around several; null of none. */
export function around(boxes) {
  if (!boxes.length) return null;
  return {
    top: Math.min(...boxes.map(({ top }) => top)),
    bottom: Math.max(...boxes.map(({ bottom }) => bottom)),
  };
}

/** Whether what has changed is in view: all of it where there is room for that, else a part. */
export function showsChange(boxes, view) {
  const all = around(boxes);
  return fits(all, view) ? isSeen(all, view) : boxes.some((box) => isSeen(box, view));
}

export const paragraphOf = (phrase) => phrase.closest("p, li, dd, td, th, summary") ?? phrase;
