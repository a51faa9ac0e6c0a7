// A part's input and output, for one word: strips of numbers, and what can be read off.
//
//   const panel = details({ about, config, vocabulary, onSwitch(place) });   fig.add(panel)
//   panel.paint({ place, off, found, words })        found: what the worker answered

import { button, element, svgElement } from "../core/dom.js";
import { fixed, percent } from "../core/numbers.js";
import { rotaryAngles } from "../math/positions.js";
import { addsPositions, isSwitch, largest, partOf, rowOf } from "./model.js";
import { pixels, reachOf, shades } from "./pixels.js";

const LOOKS = 4; // words that a head is said to look at
const HANDS = 8; // clock hands at most

export function details({ about, config, vocabulary, onSwitch }) {
  const title = element("p", { class: "afm-details-title" });
  const purpose = element("p", { class: "afm-details-text" });
  const body = element("div", { class: "afm-details-body" });
  const flip = button({ label: "switch it off", onClick: () => onSwitch(data.place) });
  const head = element("div", { class: "afm-details-head" }, title, flip.element);
  const holder = element("div", { class: "afm-details" }, head, purpose, body);
  let [data, shade] = [null, null];
  const width = config.d_model;

  /** A vector as a strip of cells, with its name. */
  function strip(name, values, note = "", kind = "numbers") {
    const svg = svgElement(
      "svg",
      {
        class: "afm-details-strip",
        role: "img",
        "aria-label": `${name}: ${values.length} numbers`,
      },
      svgElement("image", {
        width: "100%",
        height: "100%",
        preserveAspectRatio: "none",
        href: pixels(values, values.length, shade[kind], reachOf(values)),
        class: "afm-pixels",
      }),
    );
    const label = element("span", { class: "afm-details-name" }, name);
    const line = element("div", { class: "afm-details-line" }, label, svg);
    if (note) line.append(element("span", { class: "afm-details-note" }, note));
    return line;
  }

  const says = (name, ...parts) =>
    element(
      "div",
      { class: "afm-details-line" },
      element("span", { class: "afm-details-name" }, name),
      element("span", { class: "afm-details-said" }, ...parts),
    );
  const word = (text) => element("bdi", { class: "afm-token" }, text);

  /** The words with the largest shares of a row, as text. */
  function looks(row, words, count = LOOKS) {
    return largest(row, count)
      .filter((at) => row[at] >= 0.01)
      .flatMap((at, i) => [i ? ", " : "", word(words[at]), ` ${percent(row[at], 0)}`]);
  }

  /** A head's weights: a row for each word, a column for each word that it may look at. */
  function map(square, chosen) {
    const side = Math.sqrt(square.length);
    const shape = { x: -0.5, y: chosen, width: side + 1, height: 1 };
    return svgElement(
      "svg",
      {
        class: "afm-details-map",
        viewBox: `-1 -1 ${side + 2} ${side + 2}`,
        role: "img",
        "aria-label": "The weights of all words, the row of the chosen one framed",
      },
      svgElement("image", {
        width: side,
        height: side,
        href: pixels(square, side, shade.weights),
        class: "afm-pixels",
      }),
      svgElement("rect", { class: "afm-details-row", ...shape }),
    );
  }

  /** The hands of the clocks by which a head turns its queries and keys at this place. */
  function clocks(place) {
    const angles = rotaryAngles(config.context, config.d_model / config.n_heads)[place];
    const shown = angles.slice(0, HANDS);
    const svg = svgElement("svg", {
      class: "afm-clocks",
      viewBox: `0 0 ${shown.length * 40} 40`,
      width: shown.length * 40,
      height: 40,
      role: "img",
      "aria-label": `Clock hands at place ${place}`,
    });
    shown.forEach((angle, i) => {
      const x = 20 + 40 * i;
      svg.append(
        svgElement("circle", { class: "afm-clock", cx: x, cy: 20, r: 17 }),
        svgElement("line", {
          class: "afm-clock-hand",
          x1: x,
          y1: 20,
          x2: x + 14 * Math.cos(angle),
          y2: 20 - 14 * Math.sin(angle),
        }),
      );
    });
    return svg;
  }

  /** The stream before a part: a block's or a norm's. */
  function before(layer, number = 1) {
    const { parts } = data.found;
    const x = layer === 0 ? parts.start : parts[`${layer - 1}.end`];
    if (number === 1 || data.off.includes(`block-${layer + 1}-attention`)) return x;
    return x.map((v, i) => v + parts[`${layer}.attention`][i]);
  }

  const LINES = {
    token({ found, words }) {
      const here = words[found.word];
      return [
        says("goes in", "the word ", word(here)),
        says("comes out", "the number ", word(String(found.ids[found.word]))),
        says("place", `${found.word} of this text, counted from 0`),
      ];
    },
    embedding({ found }) {
      const id = found.ids[found.word];
      return [
        says("goes in", "the number ", word(String(id))),
        strip("comes out", found.parts.embedding, `row ${id} of ${vocabulary.length}`),
      ];
    },
    smear({ found, words }) {
      const back = words.slice(Math.max(0, found.word - config.smear), found.word);
      return [
        strip("goes in", found.parts.embedding),
        says("and", back.length ? back.join(" ") : "nothing: no word comes before"),
        strip("comes out", found.parts.start),
      ];
    },
    position({ found }) {
      const here = says("goes in", `place ${found.word}`);
      if (config.positions === "rotary") return [here, says("comes out", clocks(found.word))];
      if (!addsPositions(config))
        return [here, says("comes out", "less weight for words farther back")];
      return [
        here,
        says("adds", config.positions === "learned" ? `row ${found.word} of P` : "its vector"),
        strip("comes out", found.parts.start),
      ];
    },
    block({ found }, { layer }) {
      return [strip("goes in", before(layer)), strip("comes out", found.parts[`${layer}.end`])];
    },
    norm({ found }, { layer, number }) {
      return [
        strip("goes in", before(layer, number)),
        strip("comes out", found.parts[`${layer}.norm_${number}`]),
      ];
    },
    attention({ found, words }, { layer }) {
      const heads = found.maps[layer].map((map, h) =>
        element("li", {}, `head ${h + 1}: `, ...looks(rowOf(map, found.word), words, 2)),
      );
      return [
        strip("goes in", found.parts[`${layer}.norm_1`]),
        says("looks at", element("ul", { class: "afm-details-heads" }, ...heads)),
        strip("adds", found.parts[`${layer}.attention`]),
      ];
    },
    head({ found, words }, { layer, head }) {
      const row = rowOf(found.maps[layer][head], found.word);
      const own = width / config.n_heads;
      const mixed = found.parts[`${layer}.mixed`].slice(head * own, (head + 1) * own);
      return [
        strip("goes in", found.parts[`${layer}.norm_1`]),
        says("looks at", ...looks(row, words)),
        says("every word", map(found.maps[layer][head], found.word)),
        strip("brings", mixed),
      ];
    },
    feed_forward({ found }, { layer }) {
      const hidden = found.parts[`${layer}.hidden`];
      const lit = hidden.filter((v) => v > 0.01).length;
      return [
        strip("goes in", found.parts[`${layer}.norm_2`]),
        strip("its units", hidden, `${lit} of them lit`, "weights"),
        strip("adds", found.parts[`${layer}.feed_forward`]),
      ];
    },
    final_norm({ found }) {
      return [
        strip("goes in", found.parts[`${config.n_layers - 1}.end`]),
        strip("comes out", found.parts.final_norm),
      ];
    },
    output({ found }) {
      const row = found.chances[found.word];
      const best = largest(row, LOOKS).filter((id, i) => i === 0 || row[id] >= 0.001);
      const next = best.flatMap((id, i) => [
        i ? ", " : "",
        word(vocabulary[id]),
        ` ${fixed(row[id])}`,
      ]);
      return [
        strip("goes in", found.parts.final_norm),
        says("comes out", `${row.length} probabilities: `, ...next),
      ];
    },
  };

  function paint(now = data) {
    data = now;
    if (!data?.found || !shade) return;
    const { place, off } = data;
    const part = partOf(place);
    const [, text, chapter] = about[part.kind];
    title.textContent = part.name;
    purpose.replaceChildren(text, " ", chapterLink(chapter));
    body.replaceChildren(...LINES[part.kind](data, part));
    flip.element.hidden = !isSwitch(place);
    flip.element.textContent = off.includes(place) ? "switch it on" : "switch it off";
  }

  return {
    element: holder,
    theme(now) {
      shade = shades(now);
      paint();
    },
    paint,
  };
}

/** "Built in chapter 6.", with a link where there is a page to go to. */
function chapterLink(chapter) {
  const number = chapter.replace(/^0*(\d+[a-z]?)-.*/, "$1");
  const text = `Built in chapter ${number}.`;
  const root = document.documentElement.dataset.content_root;
  if (root === undefined) return element("span", { class: "afm-details-chapter" }, text);
  const href = `${root}chapters/${chapter}.html`;
  return element("a", { class: "afm-details-chapter", href }, text);
}
