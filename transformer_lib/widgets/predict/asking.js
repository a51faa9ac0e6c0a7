// The three ways to guess. Each is
//
//   { parts: [{ element, layout?, theme? }], read() -> guess or null, problem, lock(guess, answer),
//     unlock() }
//
// `read` gives null where nothing is chosen or typed that could be a guess; `problem()` then says
// what to do. `lock(guess, answer)` ends the choosing and marks both (a guess of null: nothing was
// guessed), and `unlock()` takes that back, after printing.

import { element, showToken, uniqueId } from "../core/dom.js";
import { grid } from "../core/grid.js";
import { rich } from "../core/markup.js";
import { GRID_KEYS } from "../core/pointing.js";
import { parseNumber } from "./model.js";

/** One option out of a few. */
export function askOptions(question, labelledby) {
  const name = uniqueId("predict");
  const rows = question.options.map(({ text }) => {
    const input = element("input", { type: "radio", name });
    const words = element("span", { class: "afm-option-text", dir: "auto" }, ...rich(text));
    const note = element("span", { class: "afm-option-note" });
    return { input, note, label: element("label", { class: "afm-option" }, input, words, note) };
  });
  const frame = element(
    "div",
    { role: "radiogroup", class: "afm-options", "aria-labelledby": labelledby },
    ...rows.map(({ label }) => label),
  );
  return {
    parts: [{ element: frame }],
    read() {
      const chosen = rows.findIndex(({ input }) => input.checked);
      return chosen < 0 ? null : [chosen];
    },
    problem: () => "Choose one of the answers first.",
    lock(guess, answer) {
      rows.forEach(({ input, note, label }, at) => {
        const [isGuess, isAnswer] = [at === guess?.[0], at === answer[0]];
        input.disabled = true;
        if (guess) input.checked = isGuess;
        note.textContent = noteFor(isGuess, isAnswer);
        label.classList.toggle("afm-answer", isAnswer);
        label.classList.toggle("afm-guessed", isGuess);
      });
    },
    unlock() {
      for (const { input, note, label } of rows) {
        input.disabled = false;
        note.textContent = "";
        label.classList.remove("afm-answer", "afm-guessed");
      }
    },
  };
}

function noteFor(isGuess, isAnswer) {
  if (isGuess) return isAnswer ? "✓ your guess" : "✗ your guess";
  return isAnswer ? "✓ the answer" : "";
}

/** A number. */
export function askNumber(question, labelledby, onEnter) {
  const label = uniqueId("number");
  const input = element("input", {
    type: "text",
    inputmode: "text",
    autocomplete: "off",
    spellcheck: "false",
    size: 12,
    class: "afm-number-field",
    "aria-labelledby": `${labelledby} ${label}`,
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation(); // or a notebook takes it for its own
    onEnter();
  });
  input.addEventListener("input", () => input.removeAttribute("aria-invalid"));
  const frame = element(
    "label",
    { class: "afm-control afm-number-line" },
    element("span", { class: "afm-label", id: label }, "your guess"),
    input,
    ...(question.unit ? [element("span", {}, question.unit)] : []),
  );
  return {
    parts: [{ element: frame }],
    read() {
      const value = parseNumber(input.value, question.unit);
      return value === null ? null : [value];
    },
    problem() {
      input.setAttribute("aria-invalid", "true");
      input.focus();
      if (!input.value.trim()) return "Type a number first.";
      return "That is not a number that can be read here. Write it like 64, 0.5, 1/8 or 1e6.";
    },
    lock(guess) {
      input.readOnly = true;
      if (guess && !input.value) input.value = String(guess[0]);
    },
    unlock() {
      input.readOnly = false;
    },
  };
}

const WRONG = 1e-3; // a mark, and next to no color: the color is the answer's

/** A cell of a grid. */
export function askCell(question) {
  const { rows, columns, titles } = question;
  const chosen = element("p", { class: "afm-chosen-cell" });
  let [held, answer] = [null, null];
  const is = (cell, row, column) => cell?.[0] === row && cell[1] === column;
  const say = (cell) =>
    chosen.replaceChildren(
      ...(cell
        ? [
            "chosen: row ",
            element("bdi", {}, showToken(rows[cell[0]])),
            ", column ",
            element("bdi", {}, showToken(columns[cell[1]])),
          ]
        : ["no cell is chosen yet"]),
    );
  const map = grid({
    rows,
    columns,
    label: "Choose a cell",
    rowTitle: titles[0],
    columnTitle: titles[1],
    minCell: 26, // for a finger; a wider grid scrolls
    maxCell: 44,
    format: (value) => (value === 1 ? "✓" : value > 0 ? "✗" : ""),
    cellName: (row, column) => {
      const name = `${showToken(rows[row])}, ${showToken(columns[column])}`;
      const note = answer ? noteFor(is(held, row, column), is(answer, row, column)) : "";
      return note ? `${name}: ${note.slice(2)}` : name;
    },
    onSelect: (row, column) => say([row, column]),
  });
  // Space and Enter choose the first cell, which no arrow key leads to; locked, nothing moves.
  const keep = (event) => {
    const first = (event.key === " " || event.key === "Enter") && !map.selected;
    const moves = event.type === "pointerdown" || event.key in GRID_KEYS;
    if (answer ? !moves : !first) return;
    event.stopPropagation();
    if (event.type === "keydown") event.preventDefault();
    if (answer) return;
    map.select(0, 0);
    say([0, 0]);
  };
  map.element.addEventListener("keydown", keep, true);
  map.element.addEventListener("pointerdown", keep, true);
  const paint = () =>
    map.paint(
      rows.map((_, row) =>
        columns.map((_, column) =>
          is(answer, row, column) ? 1 : answer && is(held, row, column) ? WRONG : 0,
        ),
      ),
    );
  paint();
  say(null);
  return {
    parts: [map, { element: chosen }],
    read: () => map.selected,
    problem: () => "Choose a cell of the grid first.",
    lock(guess, right) {
      [held, answer] = [guess, right];
      if (guess) map.select(...guess);
      chosen.hidden = true;
      paint();
    },
    unlock() {
      [held, answer] = [null, null];
      chosen.hidden = false;
      paint();
    },
  };
}
