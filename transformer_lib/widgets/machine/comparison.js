// The reader's story and the other one, level by level: how far apart the vectors of each word are.
//
//   const pair = comparison({ levels, choices, onExchange(which, id), onCell(level, word), onPatch() });
//   fig.add(pair.map);   pair.paint({ words, twin, closeness, level, word, patches, exchange, mine, theirs })
//       levels: [{ level, name }], a row each; the last one is what the machine says
//       choices: [{ id, word }] that may be exchanged; mine, theirs: the two vectors at this place

import { chips } from "../core/chips.js";
import { makeScale } from "../core/color.js";
import { button, element, select, svgElement } from "../core/dom.js";
import { grid } from "../core/grid.js";
import { fixed } from "../core/numbers.js";
import { pixels, reachOf, shades } from "./pixels.js";

const EDGE = 4; // pixels beside a cell that has been scrolled to

/** From the ground, for equal vectors, to the full hue, for those that share no direction. */
const apart = (colors) => makeScale([colors.surface, colors.weight], 0, 1);

export function comparison({ levels, choices, onExchange, onCell, onPatch, onUnpatch }) {
  const one = select({
    label: "exchange",
    value: 0,
    options: choices.map(({ word }) => word),
    onChange: (at) => onExchange(0, choices[at].id),
  });
  const two = select({
    label: "with",
    value: 1,
    options: choices.map(({ word }) => word),
    onChange: (at) => onExchange(1, choices[at].id),
  });
  const other = chips({ label: "The other story" });
  const controls = element("div", { class: "afm-controls" }, one.element, two.element);
  const patch = button({ label: "put it in", onClick: onPatch });
  const unpatch = button({ label: "take all out", onClick: onUnpatch });
  const strips = element("div");
  const acts = element("div", { class: "afm-controls" }, patch.element, unpatch.element);
  const below = element("div", { class: "afm-details" }, strips, acts);
  let shade = null;
  let data = null;
  let shown = null; // the words that the map has now
  const names = levels.map(({ name }) => name);
  const says = levels.at(-1).level;
  const map = grid({
    rows: names,
    columns: ["…"],
    label: "How far apart the two stories are",
    rowTitle: "",
    columnTitle: "words",
    scale: apart,
    format: (value) => (value < 0.005 ? "" : fixed(value)),
    tip: (row, column, text) => [names[row], ", ", data.words[column], `: ${text || "0.00"} apart`],
    onSelect: (row, column) => onCell(levels[row].level, column),
    maxCell: 34,
    minCell: 14,
  });

  function line(name, values, reach) {
    const svg = svgElement(
      "svg",
      { class: "afm-details-strip", role: "img", "aria-label": name },
      svgElement("image", {
        width: "100%",
        height: "100%",
        preserveAspectRatio: "none",
        href: pixels(values, values.length, shade.numbers, reach),
        class: "afm-pixels",
      }),
    );
    const label = element("span", { class: "afm-details-name" }, name);
    return element("div", { class: "afm-details-line" }, label, svg);
  }

  /** On a narrow page the map scrolls: to the word that is looked at. */
  function keepInView() {
    const scroller = map.element.querySelector(".afm-scroll");
    const cell = map.element.querySelector('[aria-selected="true"]');
    if (!scroller || !cell || scroller.scrollWidth <= scroller.clientWidth) return;
    const [box, room] = [cell.getBoundingClientRect(), scroller.getBoundingClientRect()];
    if (box.right > room.right) scroller.scrollLeft += box.right - room.right + EDGE;
    else if (box.left < room.left) scroller.scrollLeft += box.left - room.left - EDGE;
  }

  function paint(now = data) {
    data = now;
    if (!data || !shade) return;
    const { words, twin, closeness, level, word, patches, exchange, mine, theirs } = data;
    one.set(choices.findIndex(({ id }) => id === exchange[0]));
    two.set(choices.findIndex(({ id }) => id === exchange[1]));
    const marked = words.flatMap((text, at) => (text === twin[at] ? [] : [at]));
    other.paint({ words: twin, marked });
    if (shown !== words.join(" ")) map.setLabels(names, words);
    shown = words.join(" ");
    map.paint(levels.map(({ level: l }) => closeness.map((row) => Math.max(0, 1 - row[l]))));
    const at = Math.max(
      0,
      levels.findIndex((one) => one.level === level),
    );
    map.select(at, word);
    keepInView();
    const reach = reachOf(mine, theirs);
    const measured = `${fixed(1 - closeness[word][level])} apart`;
    const inside = patches.some(([block, at]) => block === level - 1 && at === word);
    strips.replaceChildren(
      element(
        "p",
        { class: "afm-details-text" },
        element("bdi", { class: "afm-token" }, words[word]),
        ` at place ${word}, ${names[at]}: ${measured}`,
        words[word] === twin[word]
          ? ", the same word in both."
          : `; in the other story it is ${twin[word]}.`,
      ),
      line("your story", mine, reach),
      line("the other", theirs, reach),
    );
    patch.element.disabled = level < 2 || level === says;
    patch.element.textContent = inside ? "take it out" : "put the other story's vector into yours";
    patch.element.title = patch.element.disabled ? "Only what a block has made can be put in" : "";
    unpatch.element.hidden = patches.length === 0;
  }

  return {
    controls,
    other: other.element,
    map: {
      element: map.element,
      layout(width) {
        map.layout(width);
        keepInView();
      },
      theme(now) {
        shade = shades(now);
        map.theme(now);
        paint();
      },
    },
    below: { element: below },
    paint,
  };
}
