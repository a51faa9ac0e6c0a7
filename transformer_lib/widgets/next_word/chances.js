// The words that may come next: the most probable as bars, the one that came marked.
//
//   const list = chances(vocabulary);   fig.add(list)   list.paint({ row, came })

import { clip, fitText, font, setSize, showToken, svgElement, textWidth } from "../core/dom.js";
import { reading } from "../core/numbers.js";
import { shortlist } from "./model.js";

const MOST = 8; // words in the list
const CAME = " ◂ came";

export function chances(vocabulary) {
  const svg = svgElement("svg", {
    class: "afm-chances",
    role: "list",
    "aria-label": "What may come next",
  });
  let [width, data] = [0, null];

  function paint(now = data) {
    data = now;
    if (!data || !width) return;
    const { row, came } = data;
    const shown = shortlist(row, came, MOST);
    const named = Math.min(100, 0.32 * width);
    const room = Math.max(
      30,
      width - named - 16 - Math.ceil(textWidth(`1.00${CAME}`, font(13, "bold"))),
    );
    const height = 26 * Math.min(MOST, vocabulary.length) + 24;
    setSize(svg, width, height);
    svg.replaceChildren(
      svgElement(
        "text",
        { class: "afm-axis afm-chances-title", x: named + 8, y: 12, "aria-hidden": "true" },
        "probability of the next word",
      ),
      ...shown.map((i, place) => {
        const y = 34 + 26 * place;
        const here = i === came;
        const kind = here ? "afm-chance-text afm-came" : "afm-chance-text";
        const marks = svgElement(
          "g",
          { "aria-hidden": "true" },
          svgElement(
            "text",
            { class: kind, x: named, y, "text-anchor": "end" },
            fitText(showToken(vocabulary[i]), named, here ? font(13, "bold") : font()),
          ),
          svgElement("rect", {
            class: "afm-chance",
            x: named + 8,
            y: y - 9,
            height: 18,
            rx: 3,
            width: Math.max(1, room * row[i]),
          }),
          svgElement(
            "text",
            { class: kind, x: named + 14 + room * row[i], y },
            `${reading(row[i])}${here ? CAME : ""}`,
          ),
        );
        const label = `${clip(showToken(vocabulary[i]))}: ${reading(row[i])}${here ? ", the word that came" : ""}`;
        return svgElement("g", { role: "listitem", "aria-label": label }, marks);
      }),
    );
  }

  const layout = (now) => {
    width = now;
    paint();
  };
  return { element: svg, layout, paint };
}
