// The strip: every matrix from X to the result of the step. Matrices stay, and the next one grows out
// of them; any cell of any of them can be pointed at, and the step's own are a grid for the keyboard.
//
//   const strip = stripBoard({ onChoose(at), onPoint() });    at: { id, row, column }
//   strip.show({ step, how: { head, heads, root }, sizes, matrix(id), open, names })
//     names: { words, features, outputs } to label rows and columns with
//   strip.mark({ id, row, column }, operands)   operands: [[id, [row, column, rows, columns]], ...]
//   strip.pointed                               what is under the pointer, or null
//   strip.layout(width); strip.theme(colors);   strip.element

import {
  element,
  fitText,
  font,
  hatchPattern,
  setAttributes,
  setSize,
  showToken,
  svgElement,
  textWidth,
  uniqueId,
} from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { followPointer, GRID_KEYS, pointerTip } from "../core/pointing.js";
import { drawMarks, frameCell } from "./marks.js";
import { cellNumber, matrixView } from "./matrix.js";
import { resultOf, sourcesOf, stepOf } from "./model.js";
import { calm, grow, placesNow, settle } from "./motion.js";
import { equationOf, nameOf, plain, roleOf, shortName, spokenOf } from "./names.js";
import { heightOf, namedBy, planPaper, planStrip } from "./plan.js";

const LABEL = font(12, 700); // as a chosen row or column is written
const MARGIN = 3; // frames are wider than what they are around

const widest = (names) =>
  Math.max(0, ...names.map((name) => textWidth(fitText(showToken(name), 90, LABEL), LABEL)));

export function stripBoard({ onChoose, onPoint }) {
  const hatch = uniqueId("hatch");
  const svg = svgElement("svg", { class: "afm-strip", role: "presentation" });
  const layers = Object.fromEntries(
    ["under", "matrices", "flying", "over"].map((name) => [name, svgElement("g", {})]),
  );
  for (const name of ["under", "flying", "over"])
    setAttributes(layers[name], { "aria-hidden": "true", class: `afm-marks afm-${name}` });
  svg.append(hatchPattern(hatch), ...Object.values(layers));
  const scroller = element("div", { class: "afm-scroll afm-strip-scroll" }, svg);
  const tip = pointerTip();
  const holder = element("div", { class: "afm-map" }, scroller, tip.element);
  let [now, room, colors, pointed, byFinger, marked] = [null, 0, null, null, false, null];
  let views = new Map(); // id -> { view, place, form }
  let wide = 0; // the strip's width
  let stop = null; // the cell at which the tab key stops

  const widths = new Map(); // of names, since to measure them takes long
  function widthOf(text, face) {
    const key = `${face}${text}`;
    if (!widths.has(key)) widths.set(key, textWidth(text, face));
    return widths.get(key);
  }

  function planned() {
    const { names, step, how, sizes } = now;
    const texts = {
      words: widest(names.words),
      features: widest(names.features),
      outputs: widest(names.outputs),
      name: (id, large, at_) =>
        widthOf(plain(titleOf(id, at_, how, large)), font(large ? 13 : 11, 600)) + 2,
    };
    return { step, head: how.head, sizes, texts, room: room - 2 * MARGIN };
  }

  const heights = new Map();
  /** Where all is; the height is that of all steps. */
  function planNow() {
    const options = planned();
    const { words, features, outputs } = options.texts;
    const key = JSON.stringify([options.sizes, options.room, words, features, outputs]);
    if (!heights.has(key)) heights.set(key, heightOf(options));
    return planStrip({ ...options, height: heights.get(key) });
  }

  function titleOf(id, step, how, large) {
    if (!large) return shortName(id, how);
    return id === resultOf(step, how.head) ? equationOf(step, how) : nameOf(id, how);
  }

  function namesFor(id, { names, sizes }) {
    const count = { W_O: sizes.heads * sizes.dHead, concat: sizes.heads * sizes.dHead };
    const index = Array.from({ length: count[id] ?? sizes.dHead }, (_, i) => String(i));
    return namedBy(id).map((kind) => (kind === "index" ? index : kind && names[kind]));
  }

  function make(place, { step, hatched = hatch, active = false }) {
    const [rowNames, columnNames] = namesFor(place.id, now);
    const block = now.sizes.dHead;
    return matrixView(place, {
      title: titleOf(place.id, step, now.how, place.large),
      role: roleOf(place.id),
      label: spokenOf(place.id, now.how),
      rowNames,
      columnNames,
      active,
      hatch: hatched,
      cuts: { columns: place.id === "concat" ? block : 0, rows: place.id === "W_O" ? block : 0 },
    });
  }

  function paint(id, view) {
    const { matrix, open, names, how } = now;
    const spoken = spokenOf(id, how);
    const columnNames = namesFor(id, now)[1] ?? [];
    const masked = id === "masked" || id === "weights";
    view.paint(matrix(id), colors, {
      weights: id === "weights",
      whole: id === "mask",
      open: masked ? open : null,
      cellName(row, column, value) {
        const text = masked && !open[row][column] ? "masked" : cellNumber(value);
        const where = `${showToken(names.words[row])}, ${showToken(columnNames[column])}`;
        return `${spoken}, ${where}: ${text}`;
      },
    });
  }

  /** Draw what has changed its form, and put all of it in its place; `last` was shown before. */
  function build(last = null) {
    if (!now || !room || !colors) return;
    const { step, how } = now;
    const held = svg.contains(document.activeElement);
    const result = resultOf(step, how.head);
    const other = !views.has(result) || (last && result !== resultOf(last.step, last.how.head));
    settle(svg);
    layers.flying.replaceChildren();
    const scrolled = scroller.scrollLeft; // before anything changes, or all is laid out twice
    const before = placesNow(views);
    const { width, height, places } = planNow();
    const grown = width !== wide;
    wide = width;
    const [across, down] = [width + 2 * MARGIN, height + 2 * MARGIN];
    setSize(svg, across, down).setAttribute("viewBox", `${-MARGIN} ${-MARGIN} ${across} ${down}`);
    const next = new Map();
    for (const place of places) {
      const { id, x, y, ...shape } = place;
      const title = plain(titleOf(id, step, how, place.large));
      const form = JSON.stringify([shape, title, id === result, namesFor(id, now)]);
      const old = views.get(id);
      const view = old?.form === form ? old.view : make(place, { step, active: id === result });
      view.group.setAttribute("transform", `translate(${x} ${y})`);
      paint(id, view);
      next.set(id, { view, place, form });
    }
    views = next;
    const groups = [...views.values()].map(({ view }) => view.group);
    const there = layers.matrices.children;
    if (groups.length !== there.length || groups.some((group, i) => there[i] !== group))
      layers.matrices.replaceChildren(...groups);
    if (!layers.matrices.contains(stop)) stop = null;
    // The result is the last; but what is first shown begins with X, where X is used.
    if ((other || grown) && (last || step > 2)) scroller.scrollLeft = width;
    if (marked && views.has(marked.target.id)) mark(marked.target, marked.operands);
    if (held) stop?.focus({ preventScroll: true });
    if (last && !calm()) move(before, scroller.scrollLeft - scrolled);
  }

  function move(before, slide) {
    const { step, how, sizes } = now;
    const result = resultOf(step, how.head);
    const { rows, columns } = views.get(result).place;
    const from = sourcesOf(step, sizes.heads).map((id, at_) => {
      const part = step === 8 ? [0, at_ * sizes.dHead, rows, sizes.dHead] : [0, 0, rows, columns];
      return { id, box: part, turned: id === "k" };
    });
    const born = before.has(result) ? null : { id: result, from };
    const { flying, over, under } = layers;
    grow({ flying, marks: [over, under], before, views, born, slide });
  }

  function mark(target, operands) {
    marked = { target, operands };
    const known = views.get(target.id);
    layers.over.replaceChildren();
    layers.under.replaceChildren();
    if (!known) return;
    const { step, how } = now;
    const shown = pointed ? at(pointed) : null;
    const chosen = { ...target, place: known.place };
    const last = shown ?? chosen;
    const boxes = operands
      .filter(([id]) => views.has(id))
      .map(([id, box]) => [views.get(id).place, box, roleOf(id)]);
    const lit = new Map(
      operands.map(([id, [row, column, rows, columns]]) => [
        id,
        [rows === 1 && [row, 1], columns === 1 && [column, 1]],
      ]),
    );
    lit.set(last.id, [
      [last.row, 1],
      [last.column, 1],
    ]);
    for (const [id, { view }] of views) view.light(...(lit.get(id) ?? [null, null]));
    drawMarks(layers, last, boxes, last.id === resultOf(step, how.head));
    if (shown && !same(shown, chosen)) frameCell(layers.over, "kept", chosen);
    frameCell(layers.over, "cell", last);
    frameCell(layers.over, "focus", chosen, 2);
    if (target.id === resultOf(step, how.head)) select(known.view.cell(target.row, target.column));
    showTip();
  }

  function select(cell) {
    if (stop === cell) return;
    if (stop) setAttributes(stop, { tabindex: "-1", "aria-selected": "false" });
    stop = cell;
    setAttributes(stop, { tabindex: "0", "aria-selected": "true" });
  }

  const at = (cell) => ({ ...cell, place: views.get(cell.id)?.place });
  const same = (a, b) => a.id === b.id && a.row === b.row && a.column === b.column;

  function cellAt(event) {
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - MARGIN, event.clientY - box.top - MARGIN];
    for (const [id, { place }] of views) {
      const column = Math.floor((x - place.x) / place.cell[0]);
      const row = Math.floor((y - place.y) / place.cell[1]);
      if (row < 0 || column < 0 || row >= place.rows || column >= place.columns) continue;
      return stepOf(id) < 0 ? null : { id, row, column };
    }
    return null;
  }

  function point(cell, finger = false) {
    byFinger = finger;
    if (cell === pointed || (cell && pointed && same(cell, pointed))) return;
    pointed = cell;
    svg.style.cursor = cell ? "pointer" : "";
    onPoint();
  }

  /** What a finger hides, and what a small cell has no room for. */
  function showTip() {
    const known = pointed && views.get(pointed.id);
    if (!known || (known.place.numbered && !byFinger)) {
      tip.hide();
      return;
    }
    const { x, y, cell } = known.place;
    const value = now.matrix(pointed.id)[pointed.row][pointed.column];
    const top = MARGIN + y + pointed.row * cell[1];
    const middle = MARGIN + x + (pointed.column + 0.5) * cell[0] - scroller.scrollLeft;
    const gap = byFinger ? 36 : 3;
    tip.show([fixed(value)], { x: middle, top, bottom: top + cell[1], gap });
  }

  svg.addEventListener("keydown", (event) => {
    const step = GRID_KEYS[event.key];
    if (!step || event.altKey || event.metaKey || !marked) return;
    // Handled keys stay here: some pages and notebooks move on with the arrow keys.
    event.preventDefault();
    event.stopPropagation();
    point(null); // the keyboard has it now
    const { id, row, column } = marked.target;
    const { rows, columns } = views.get(id).place;
    const rowStep = event.ctrlKey && Math.abs(step[1]) === Infinity ? step[1] : step[0];
    const clamp = (value, count) => Math.min(count - 1, Math.max(0, value));
    onChoose({ id, row: clamp(row + rowStep, rows), column: clamp(column + step[1], columns) });
    reveal();
  });

  /** Put the focus on the selected cell, and the cell into view. */
  function reveal() {
    if (!stop) return;
    stop.focus({ preventScroll: true });
    const [cell, box] = [stop.getBoundingClientRect(), scroller.getBoundingClientRect()];
    if (cell.left < box.left) scroller.scrollLeft -= box.left - cell.left + 8;
    if (cell.right > box.right) scroller.scrollLeft += cell.right - box.right + 8;
    if (cell.top < 64 || cell.bottom > window.innerHeight)
      stop.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // The focus goes to the cell that is chosen, wherever the mouse was.
  svg.addEventListener("mousedown", (event) => event.preventDefault());
  followPointer(svg, {
    cellAt,
    paints: false,
    onPoint: point,
    onChoose(cell) {
      if (!cell) return;
      pointed = null;
      onChoose(cell);
      stop?.focus({ preventScroll: true });
    },
    onPaint() {},
  });
  scroller.addEventListener("scroll", showTip, { passive: true });

  return {
    element: holder,
    get pointed() {
      return pointed && views.has(pointed.id) ? pointed : null;
    },
    /** The matrices of a step; `target` and `operands` as in mark(). */
    show(next, target, operands) {
      const last = now;
      [now, pointed, marked] = [next, null, { target, operands }];
      build(last);
    },
    mark,
    layout(width) {
      room = width;
      views = new Map();
      build();
    },
    theme(next) {
      colors = next;
      build();
    },
    /** All matrices, large, for a sheet of paper so wide. */
    paper(width) {
      const hatched = uniqueId("hatch"); // what is in the strip is not drawn on paper
      const sheet = svgElement("svg", { class: "afm-strip afm-paper", role: "presentation" });
      sheet.append(hatchPattern(hatched));
      const plan = planPaper({ ...planned(), room: width - 2 * MARGIN });
      setSize(sheet, plan.width + 2 * MARGIN, plan.height + 2 * MARGIN);
      for (const place of plan.places) {
        const view = make(place, { step: Math.max(0, stepOf(place.id)), hatched });
        paint(place.id, view);
        view.group.setAttribute("transform", `translate(${MARGIN + place.x} ${MARGIN + place.y})`);
        sheet.append(view.group);
      }
      return sheet;
    },
  };
}
