// The maps of the layers' heads while they read the text that is watched, each with two shares: of
// attention on the word before, and on the answer.
//
//   const maps = headMaps();     for (const part of maps.parts) fig.add(part)
//   maps.label(words, layers);   when a run begins
//   maps.paint(frame.maps, example);

import { element } from "../core/dom.js";
import { grid } from "../core/grid.js";
import { percent } from "../core/numbers.js";
import { causalMask } from "../math/linear.js";
import { asRows, scores } from "./model.js";

export function headMaps() {
  const maps = [1, 2].map((layer) => {
    const map = grid({
      rows: ["…"],
      columns: ["…"],
      label: `Attention of layer ${layer}`,
      maxCell: 16,
      minCell: 6,
    });
    const caption = element("p", { class: "afm-map-caption afm-learning-map" });
    return { ...map, caption, element: element("div", {}, caption, map.element) };
  });
  return {
    parts: maps,
    label(words, layers) {
      for (const map of maps) map.setLabels(words, words);
      maps[1].element.parentElement.hidden = layers < 2;
    },
    paint(attention, example) {
      const n = example.ids.length;
      attention.forEach((map, layer) => {
        maps[layer].paint(asRows(map, n), causalMask(n));
        const { before, answer } = scores(map, example);
        maps[layer].caption.replaceChildren(
          element("strong", {}, `layer ${layer + 1}`),
          `: ${percent(before)} on the word before; where a word can be known, ${percent(answer)} on the answer`,
        );
      });
    },
  };
}
