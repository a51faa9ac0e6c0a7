// The heads while they read a passage of the held-out text: small pictures of all, one of them large.
//
//   const part = headMaps({ layers, count, size, onChoose: (head) => {} });
//     `count` heads in each layer, `size` characters; a head is counted through all layers
//   for (const one of part.parts) fig.add(one)
//   part.label(passage);   part.paint(heads, chosen)

import { sequentialScale } from "../core/color.js";
import { choices, element, showToken } from "../core/dom.js";
import { grid } from "../core/grid.js";
import { percent } from "../core/numbers.js";

export function headMaps({ layers, count, size, onChoose }) {
  const all = Array.from({ length: layers * count }, (_, i) => ({
    layer: Math.floor(i / count),
    head: i % count,
    canvas: element("canvas", {
      class: "afm-thumbnail",
      ...{ width: size, height: size, "aria-hidden": "true" },
    }),
  }));
  const choice = choices({
    label: "heads",
    value: 0,
    onChange: onChoose,
    options: all.map(({ layer, head, canvas }) => ({
      text: `${layer + 1}.${head + 1}`,
      picture: canvas,
      title: `layer ${layer + 1}, head ${head + 1}`,
    })),
  });
  choice.element.classList.add("afm-text-heads");
  const map = grid({ rows: ["…"], columns: ["…"], label: "Attention", maxCell: 12, minCell: 6 });
  const told = element("p", { class: "afm-map-caption" });
  let scale = null;
  let shown = null;

  function paint() {
    if (!shown || !scale) return;
    const [maps, chosen] = shown;
    all.forEach(({ layer, head, canvas }) => thumbnail(canvas, maps[layer][head], scale));
    choice.set(chosen);
    const { layer, head } = all[chosen];
    const flat = maps[layer][head];
    const rows = Array.from({ length: size }, (_, t) =>
      Array.from(flat.subarray(t * size, (t + 1) * size)),
    );
    map.paint(
      rows,
      rows.map((row, t) => row.map((_, s) => s <= t)),
    );
    const before = rows.slice(1).reduce((sum, row, t) => sum + row[t], 0) / (size - 1);
    const self = rows.slice(1).reduce((sum, row, t) => sum + row[t + 1], 0) / (size - 1);
    told.replaceChildren(
      element("strong", {}, `layer ${layer + 1}, head ${head + 1}`),
      `, reading a piece of held-out text: ${percent(self)} on the character itself, ${percent(before)} on the one before`,
    );
  }

  return {
    parts: [
      {
        element: element("div", {}, choice.element, told),
        theme(colors) {
          scale = sequentialScale(colors, 0, 1);
          paint();
        },
      },
      map,
    ],
    label(passage) {
      const labels = passage.map(showToken);
      map.setLabels(labels, labels);
    },
    paint(maps, chosen) {
      if (shown && shown[0] === maps && shown[1] === chosen) return;
      shown = [maps, chosen];
      paint();
    },
  };
}

/** A pixel for each weight. */
function thumbnail(canvas, weights, scale) {
  const n = canvas.width;
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, n, n);
  for (let t = 0; t < n; t += 1) {
    for (let s = 0; s <= t; s += 1) {
      context.fillStyle = scale.fill(weights[t * n + s]);
      context.fillRect(s, t, 1, 1);
    }
  }
}
