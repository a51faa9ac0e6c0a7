// The reader's story and the other one, level by level: how far apart the vectors of each word are.
//
//   const pair = comparison({ levels, choices, onExchange(which, id), onCell(level, word), onPatch() });
//   fig.add(pair.map);   pair.paint({ words, twin, closeness, level, word, patches, exchange, mine, theirs })
//       choices: [{ id, word }] that may be exchanged; mine, theirs: the two vectors at this place

import { chips } from "../core/chips.js";
import { makeScale } from "../core/color.js";
import { button, element, select, svgElement } from "../core/dom.js";
import { grid } from "../core/grid.js";
import { fixed } from "../core/numbers.js";
import { pixels, reachOf, shades } from "./pixels.js";

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
  const map = grid({
    rows: levels,
    columns: ["…"],
    label: "How far apart the two stories are",
    rowTitle: "",
    columnTitle: "words",
    scale: apart,
    format: (value) => (value < 0.005 ? "" : fixed(value)),
    tip: (row, column, text) => [
      levels[row],
      ", ",
      data.words[column],
      `: ${text || "0.00"} apart`,
    ],
    onSelect: onCell,
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

  function paint(now = data) {
    data = now;
    if (!data || !shade) return;
    const { words, twin, closeness, level, word, patches, exchange, mine, theirs } = data;
    one.set(choices.findIndex(({ id }) => id === exchange[0]));
    two.set(choices.findIndex(({ id }) => id === exchange[1]));
    const marked = words.flatMap((text, at) => (text === twin[at] ? [] : [at]));
    other.paint({ words: twin, marked });
    if (shown !== words.join(" ")) map.setLabels(levels, words);
    shown = words.join(" ");
    map.paint(levels.map((_, l) => closeness.map((row) => Math.max(0, 1 - row[l]))));
    map.select(level, word);
    const reach = reachOf(mine, theirs);
    const inside = patches.some(([block, at]) => block === level - 1 && at === word);
    strips.replaceChildren(
      element(
        "p",
        { class: "afm-details-text" },
        element("bdi", { class: "afm-token" }, words[word]),
        ` at place ${word}, ${levels[level]}: cosine ${fixed(closeness[word][level])}`,
        words[word] === twin[word] ? ", the same word in both." : `; there it is ${twin[word]}.`,
      ),
      line("your story", mine, reach),
      line("the other", theirs, reach),
    );
    patch.element.disabled = level < 2;
    patch.element.textContent = inside ? "take it out" : "put the other's vector into my story";
    patch.element.title = level < 2 ? "Only what a block has made can be put in" : "";
    unpatch.element.hidden = patches.length === 0;
  }

  return {
    controls,
    other: other.element,
    map: {
      element: map.element,
      layout: map.layout,
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
