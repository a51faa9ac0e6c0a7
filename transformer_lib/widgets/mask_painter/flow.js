// Layers of attention as a graph: words from left to right, layers from the bottom up. It shows which
// positions hold something of one chosen word.
//
//   const part = flow({ words, onSource(position) {}, onEdge(query, key) {} });   onEdge(null): none
//   fig.add(part);
//   part.paint(carried, levels, source)      from core/masks.js: carriers() and reach()
//   part.light([query, key])                 that line in every layer, dashed where it is cut; null

import { element, fitText, setSize, showToken, svgElement, textWidth } from "../core/dom.js";

const LAYER_STEP = 58;
const LAYER_NAMES = 62;
const NEAR = 7; // pixels from which a line is pointed at
const WIRES = ["idle", "moved", "held", "swayed"];

export function flow({ words, onSource, onEdge }) {
  const n = words.length;
  const svg = svgElement("svg", { class: "afm-flow", role: "img" });
  let [width, data, built, nodes, paths] = [0, null, -1, [], {}];
  let [lit, over] = [null, null];
  const marks = svgElement("g", { class: "afm-wire-marks", "aria-hidden": "true" });

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
    svg.append(...Object.values(paths), marks);
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
    light();
    const last = words.filter((_, i) => levels[layers][i]).map((word) => showToken(word));
    svg.setAttribute(
      "aria-label",
      `What ${showToken(words[source])} holds, through ${layers} of attention's layers: it ends in ${last.join(", ") || "no position"}`,
    );
  }

  function light() {
    marks.replaceChildren();
    if (!lit || !data || !width) return;
    const [i, j] = lit;
    const layers = data.levels.length - 1;
    const kind = data.carried[i][j] ? "lit" : "cut";
    for (let layer = 1; layer <= layers; layer += 1) {
      const [y1, y2] = [yOf(layer - 1, layers), yOf(layer, layers)];
      const ends = { x1: xOf(j), y1, x2: xOf(i), y2 };
      marks.append(svgElement("line", { class: `afm-wire-${kind}`, ...ends }));
    }
  }

  /** The line that is nearest to a pointer between two layers: [query, key], or null. */
  function edgeAt(event) {
    if (!data || !width) return null;
    const box = svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const layers = data.levels.length - 1;
    const layer = layers - Math.floor((y - yOf(layers, layers)) / LAYER_STEP);
    if (layer < 1 || layer > layers) return null;
    const up = (yOf(layer - 1, layers) - y) / LAYER_STEP; // 0 at the keys, 1 at the queries
    if (up < 0.12 || up > 0.88) return null; // at a dot, many lines meet
    let [best, nearest] = [null, NEAR];
    data.carried.forEach((row, i) =>
      row.forEach((kind, j) => {
        if (!kind) return;
        const slant = xOf(i) - xOf(j);
        const far =
          Math.abs(x - xOf(j) - up * slant) * (LAYER_STEP / Math.hypot(slant, LAYER_STEP));
        if (far < nearest) [best, nearest] = [[i, j], far];
      }),
    );
    return best;
  }

  function point(edge) {
    if (String(edge) === String(over)) return;
    over = edge;
    onEdge(...(edge ?? [null]));
  }
  svg.addEventListener("pointermove", (event) => point(edgeAt(event)));
  svg.addEventListener("pointerdown", (event) => point(edgeAt(event)));
  for (const end of ["pointerleave", "pointercancel"]) svg.addEventListener(end, () => point(null));

  return {
    element: element("div", { class: "afm-scroll" }, svg),
    svg,
    layout(available) {
      width = available;
      built = -1;
      repaint();
    },
    light(cell) {
      lit = cell;
      light();
    },
    paint(carried, levels, source) {
      data = { carried, levels, source };
      repaint();
    },
  };
}
