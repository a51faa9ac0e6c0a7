// Two heads, one in each of two blocks, and what they carry from letter to letter. There is a row of
// letters for the text and one behind each block; lines between them are as strong as the weights.
// One letter is chosen: bold are the lines by which the second head brings something to it, and
// those by which the first head had brought something to the places where the second looks.
//
//   const drawing = flow({ label: "The circuit", slots: ["token", "before", "says"], onSelect(at) {} });
//   fig.add(drawing);
//   drawing.paint({ letters, maps, selected, contents, marks, said, told })
//     maps: [first, second], rows of weights, each row up to its own letter
//     contents: [row of the picture][letter] -> { slot: text }, or null: the letter alone
//     marks: [[row, letter, slot, role]]: outlines in the colors of query, key, value and output
//     pale: [[row, letter, slot]]: contents that mean nothing
//     said: a text below the chosen letter;  told: the same picture in a sentence
//
// The text is of single letters, as a reader types it.
//
//   parseLetters("c a d", "abcde", 12) -> [2, 0, 3], or a sentence that says what is wrong with it

import { font, onKeys, setAttributes, setSize, svgElement, textWidth } from "./dom.js";

const SLOT = 21; // the height of a slot, and of a letter that stands alone
const GAP = 58; // between two rows, where the lines are
const TITLE = 16;
const FAINT = 0.3; // of the lines that the chosen letter has no part in
const SEEN = 0.02; // a weight below this is not drawn
const LEAST = 15; // a column narrower than this, and the names stand above the rows
const ROWS = ["text", "block 1", "block 2"];
const HEADS = ["first head", "second head"];
const KEYS = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

export function flow({ label, slots = null, onSelect }) {
  const svg = svgElement("svg", { class: "afm-flow", role: "radiogroup", "aria-label": label });
  const names = slots ?? [""];
  const high = names.length * SLOT;
  let [width, above, now] = [0, false, null];

  onKeys(svg, KEYS, (move) => {
    if (now) choose(Math.min(now.letters.length - 1, Math.max(0, now.selected + move)));
  });

  /** The picture is drawn anew, so the chosen letter gets the focus again. */
  function choose(at) {
    onSelect(at);
    svg.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  const topOf = (row) => TITLE + row * (high + GAP);

  function build() {
    if (!width || !now) return;
    const { letters, selected, said } = now;
    const beside = Math.max(...[...HEADS, ...ROWS].map((name) => textWidth(name))) + 10;
    above = names.length === 1 && (width - beside) / letters.length < LEAST;
    const left = above ? 0 : beside;
    const step = Math.min(64, (width - left) / letters.length);
    const box = Math.min(46, step - 3);
    const x = (at) => left + (at + 0.5) * step;
    setSize(svg, width, topOf(2) + high + 24);
    svg.replaceChildren(
      ...ROWS.map((_, row) => headings(row)),
      ...now.maps.map((map, head) => lines(map, head, x)),
      ...letters.map((_, at) => column(at, x(at), box)),
    );
    if (!said) return;
    const half = textWidth(said, font(14, "bold")) / 2 + 2;
    const place = { x: Math.min(width - half, x(selected)), y: topOf(2) + high + 14 };
    const kind = { class: "afm-flow-said", "aria-hidden": "true" };
    svg.append(svgElement("text", { ...kind, ...place }, said));
  }

  function headings(row) {
    const group = svgElement("g", { class: "afm-flow-names", "aria-hidden": "true" });
    const write = (text, y, kind) =>
      group.append(svgElement("text", { x: 0, y, class: kind }, text));
    const alone = names.length === 1 && !above;
    write(ROWS[row], alone ? topOf(row) + SLOT / 2 : topOf(row) - 8, "afm-flow-row");
    if (names.length > 1) {
      names.forEach((name, i) => write(name, topOf(row) + (i + 0.5) * SLOT, "afm-flow-slot"));
    }
    if (row < 2 && !above) write(HEADS[row], topOf(row) + high + GAP / 2 - 4, "afm-flow-row");
    return group;
  }

  /** How strongly each line of a head belongs to the chosen letter: from 0 to 1. */
  function part(head, query, key) {
    const [first, second] = now.maps;
    if (head === 1) return query === now.selected ? second[query][key] : 0;
    return (second[now.selected][query] ?? 0) * first[query][key];
  }

  function lines(map, head, x) {
    const group = svgElement("g", { class: "afm-flow-lines" });
    setAttributes(group, { "aria-hidden": "true" });
    const [from, to] = [topOf(head) + high, topOf(head + 1)];
    const middle = (from + to) / 2;
    map.forEach((row, query) => {
      row.forEach((weight, key) => {
        if (key > query || weight < SEEN) return;
        const own = part(head, query, key);
        const strong = own >= SEEN;
        const line = svgElement("path", {
          d: `M${x(key)} ${from}C${x(key)} ${middle} ${x(query)} ${middle} ${x(query)} ${to - 1}`,
          "stroke-width": strong ? 1 + 2.6 * own : 1,
          opacity: strong ? 0.2 + 0.8 * Math.sqrt(own) : FAINT * weight,
        });
        if (strong) group.append(line);
        else group.prepend(line);
      });
    });
    return group;
  }

  function column(at, middle, box) {
    const { letters, selected, contents, marks = [], pale = [] } = now;
    const chosen = at === selected;
    const group = svgElement("g", {
      role: "radio",
      class: "afm-flow-column",
      "aria-checked": String(chosen),
      "aria-label": `${at + 1}: ${letters[at]}`,
      tabindex: chosen ? "0" : "-1",
    });
    const rows = ROWS.map((_, row) => {
      const [left, top] = [middle - box / 2, topOf(row)];
      const one = svgElement("g", {});
      names.forEach((slot, i) => {
        const text = contents ? (contents[row][at][slot] ?? "") : letters[at];
        const role = marks.find((m) => m[0] === row && m[1] === at && m[2] === slot)?.[3];
        const y = top + i * SLOT;
        const size = { x: left, y, width: box, height: SLOT };
        const kind = text ? "afm-flow-cell" : "afm-flow-cell afm-flow-empty";
        one.append(svgElement("rect", { ...size, class: kind }));
        if (role) {
          const inside = { x: left + 1.5, y: y + 1.5, width: box - 3, height: SLOT - 3 };
          one.append(svgElement("rect", { ...inside, class: `afm-flow-mark afm-flow-${role}` }));
        }
        const faint = pale.some((p) => p[0] === row && p[1] === at && p[2] === slot);
        const written = { x: middle, y: y + SLOT / 2, class: faint ? "afm-flow-pale" : "" };
        if (text) one.append(svgElement("text", written, text));
      });
      const around = { x: left, y: top, width: box, height: high, rx: 3 };
      one.append(svgElement("rect", { ...around, class: "afm-flow-box" }));
      return one;
    });
    group.append(...rows);
    group.addEventListener("click", () => choose(at));
    return group;
  }

  return {
    element: svg,
    layout(available) {
      width = available;
      build();
    },
    paint(next) {
      now = next;
      svg.setAttribute("aria-label", next.told ? `${label}: ${next.told}` : label);
      build();
    },
  };
}

/** Letters to ids; a text that says what is wrong with them otherwise. */
export function parseLetters(text, letters, most) {
  const typed = [...text.toLowerCase()].filter((letter) => /\S/.test(letter));
  const stranger = typed.find((letter) => !letters.includes(letter));
  if (stranger) return `“${stranger}” is not one of the letters; write ${[...letters].join(", ")}.`;
  if (typed.length < 2) return "Write two letters at least.";
  if (typed.length > most) return `That is ${typed.length} letters; ${most} fit.`;
  return typed.map((letter) => letters.indexOf(letter));
}
