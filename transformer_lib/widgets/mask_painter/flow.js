// Layers of attention as a graph: words from left to right, layers from the bottom up. It shows which
// positions hold something of one chosen word.
//
//   const part = flow({ words, onSource(position) {} });
//   fig.add(part);
//   part.paint(carried, levels, source)      from core/masks.js: carriers() and reach()

import { element, fitText, setSize, showToken, svgElement, textWidth } from "../core/dom.js";

const LAYER_STEP = 58;
const LAYER_NAMES = 62;
const WIRES = ["idle", "moved", "held", "swayed"];

export function flow({ words, onSource }) {
  const n = words.length;
  const svg = svgElement("svg", { class: "afm-flow", role: "img" });
  let [width, data, built, nodes, paths] = [0, null, -1, [], {}];

  const xOf = (i) => LAYER_NAMES + ((i + 0.5) * (width - LAYER_NAMES)) / n;
  const yOf = (layer, layers) => 22 + (layers - layer) * LAYER_STEP;

  /** The still part: one path for each kind of line, one dot for each word and layer. */
  function build(layers) {
    const step = (width - LAYER_NAMES) / n;
    const radius = Math.max(2.5, Math.min(10, 0.36 * step));
    const names = words.map((word) => fitText(showToken(word), 96));
    const longest = Math.max(...names.map((name) => textWidth(name)));
    const upright = longest > step - 6;
    const height = yOf(0, layers) + (upright ? 28 + longest : 44);
    svg.replaceChildren();
    svg.classList.toggle("afm-dense", n > 12);
    setSize(svg, width, height);
    paths = Object.fromEntries(
      WIRES.map((kind) => [kind, svgElement("path", { class: `afm-wire afm-wire-${kind}` })]),
    );
    svg.append(...Object.values(paths));
    nodes = Array.from({ length: layers + 1 }, (_, layer) => {
      const title = layer === 0 ? "input" : `layer ${layer}`;
      svg.append(svgElement("text", { class: "afm-layer", x: 0, y: yOf(layer, layers) }, title));
      return words.map((_, i) => {
        const dot = svgElement("circle", { cx: xOf(i), cy: yOf(layer, layers), r: radius });
        svg.append(dot);
        return dot;
      });
    });
    words.forEach((_, i) => {
      const y = yOf(0, layers) + 26;
      const place = upright
        ? { transform: `translate(${xOf(i)} ${y - 8}) rotate(-90)`, "text-anchor": "end" }
        : { x: xOf(i), y, "text-anchor": "middle" };
      const name = svgElement("text", { class: "afm-columnheader", ...place }, names[i]);
      const target = svgElement("rect", {
        class: "afm-target",
        x: xOf(i) - step / 2,
        y: yOf(0, layers) - 24,
        width: step,
        height: height - yOf(0, layers) + 24,
      });
      target.addEventListener("click", () => onSource(i));
      nodes[0][i].name = name;
      svg.append(name, target);
    });
    built = layers;
  }

  function repaint() {
    if (!data || !width) return;
    const { carried, levels, source } = data;
    const layers = levels.length - 1;
    if (built !== layers) build(layers);
    const lines = { idle: [], moved: [], held: [], swayed: [] };
    for (let layer = 1; layer <= layers; layer += 1) {
      carried.forEach((row, i) =>
        row.forEach((kind, j) => {
          if (!kind) return;
          const held = levels[layer - 1][j];
          const path = `M${xOf(j).toFixed(1)} ${yOf(layer - 1, layers)}L${xOf(i).toFixed(1)} ${yOf(layer, layers)}`;
          lines[kind === 2 ? (held ? "held" : "idle") : held ? "swayed" : "moved"].push(path);
        }),
      );
    }
    for (const kind of WIRES) paths[kind].setAttribute("d", lines[kind].join(""));
    levels.forEach((level, layer) =>
      level.forEach((held, i) => {
        const kind = !held ? "free" : layer > 0 && i < source ? "leak" : "holds";
        nodes[layer][i].setAttribute("class", `afm-dot afm-dot-${kind}`);
      }),
    );
    words.forEach((_, i) => nodes[0][i].name.classList.toggle("afm-source", i === source));
    const last = words.filter((_, i) => levels[layers][i]).map((word) => showToken(word));
    svg.setAttribute(
      "aria-label",
      `What ${showToken(words[source])} holds, through ${layers} of attention's layers: it ends in ${last.join(", ") || "no position"}`,
    );
  }

  return {
    element: element("div", { class: "afm-scroll" }, svg),
    svg,
    layout(available) {
      width = available;
      built = -1;
      repaint();
    },
    paint(carried, levels, source) {
      data = { carried, levels, source };
      repaint();
    },
  };
}
