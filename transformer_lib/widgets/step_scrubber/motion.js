// The strip as it grows: what is there moves to its new place, and the new matrix comes out of those that
// it is made of. Nothing moves for readers who do not want it.
//
//   const before = placesNow(views);                // views: a Map of id -> { view, place }
//   grow({ flying, marks, before, views, born, slide })     after the change
//     flying: the layer for what is on its way      marks: layers that wait until nothing moves
//     born: { id, from: [{ id, box, turned }] } or null; box: the part of the result that a source
//     comes to lie on, [row, column, rows, columns]; turned: rows become columns on the way
//     slide: pixels that the strip was scrolled by
//   settle(svg)                                     what is still moving arrives at once

const MOVE = 420; // ms
const BIRTH = { delay: 240, duration: 560 };
const EASING = "cubic-bezier(0.3, 0, 0.2, 1)";
const FRAMES = 12; // of a flight; the browser fills in what is between

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export const placesNow = (views) => new Map([...views].map(([id, { place }]) => [id, place]));

const shift = (x, y) => `translate(${x}px, ${y}px)`;

export function grow({ flying, marks, before, views, born, slide }) {
  const timing = { duration: MOVE, easing: EASING };
  let moves = born !== null;
  for (const [id, { view, place }] of views) {
    const old = before.get(id);
    if (!old) {
      if (id !== born?.id) view.group.animate([{ opacity: 0 }, { opacity: 1 }], timing);
      continue;
    }
    if (old.x + slide !== place.x || old.y !== place.y) {
      const path = [shift(old.x + slide, old.y), shift(place.x, place.y)];
      view.group.animate({ transform: path }, timing);
      moves = true;
    }
    const [wide, tall] = [0, 1].map((axis) => old.cell[axis] / place.cell[axis]);
    if (wide === 1 && tall === 1) continue;
    view.cells.animate({ transform: [`scale(${wide}, ${tall})`, "scale(1, 1)"] }, timing);
    view.texts.animate({ opacity: [0, 0, 1] }, timing);
  }
  if (born) come(flying, views, born);
  const whole = born ? BIRTH.delay + BIRTH.duration : MOVE;
  if (moves)
    for (const layer of marks) layer.animate({ opacity: [0, 0, 0, 1] }, { duration: whole });
}

/** Copies of the sources fly to where the result is, and become it. */
function come(flying, views, { id, from }) {
  const { view, place } = views.get(id);
  const timing = { ...BIRTH, fill: "backwards" };
  view.group.animate({ opacity: [0, 0, 0, 1] }, timing);
  for (const { id: source, box, turned } of from) {
    if (!views.has(source)) continue;
    const copy = copyOf(views.get(source).view.cells);
    flying.append(copy);
    const keyframes = flight(views.get(source).place, place, box, turned);
    copy.animate(keyframes, { ...timing, fill: "both", easing: EASING }).finished.then(
      () => copy.remove(),
      () => {}, // ended before its time, with the whole layer
    );
  }
}

function copyOf(cells) {
  const copy = cells.cloneNode(true);
  for (const node of copy.querySelectorAll("text, .afm-numbers")) node.remove();
  for (const node of [copy, ...copy.querySelectorAll("*")])
    for (const name of ["role", "tabindex", "aria-label", "aria-selected"])
      node.removeAttribute(name);
  return copy;
}

/** From the source's place to its part of the result, stretched to fit. */
function flight(source, result, [row, column, rows, columns], turned) {
  const size = ({ cell: [wide, tall] }, r, c) => [c * wide, r * tall];
  const [fromWide, fromTall] = size(source, source.rows, source.columns);
  const [toWide, toTall] = size(result, rows, columns);
  const end = [result.x + column * result.cell[0], result.y + row * result.cell[1]];
  const stretch = turned
    ? [toWide / fromTall, toTall / fromWide]
    : [toWide / fromWide, toTall / fromTall];
  return Array.from({ length: FRAMES + 1 }, (_, n) => {
    const t = Math.min(1, n / (0.7 * FRAMES)); // there, it fades
    const between = (one, other) => one + t * (other - one);
    const [wide, tall] = stretch.map((by) => between(1, by));
    // Over the diagonal, as a card is turned over: its rows end as columns.
    const across = turned ? (1 - Math.cos(Math.PI * t)) / 2 : 0;
    const matrix = [(1 - across) * wide, across * tall, across * wide, (1 - across) * tall];
    const at = [between(source.x, end[0]), between(source.y, end[1])];
    const opacity = n === 0 ? 0 : t < 1 ? 0.9 : (0.9 * (FRAMES - n)) / (0.3 * FRAMES);
    return { transform: `matrix(${[...matrix, ...at].join(", ")})`, opacity, offset: n / FRAMES };
  });
}

export function settle(svg) {
  for (const animation of svg.getAnimations({ subtree: true })) animation.finish();
}
