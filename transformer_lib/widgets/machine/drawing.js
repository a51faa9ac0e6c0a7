// The machine as a drawing, from the word at the top to the next word at the bottom. Every part is an
// option of a listbox: arrow keys go from one to the next, Space and Enter switch it.
//
//   const picture = drawing({ parts, config, onSelect(place), onSwitch(place) });
//   fig.add(picture)
//   picture.paint({ selected, off, found, word, said })        found: what the worker answered

import { clip, element, setAttributes, setSize, svgElement } from "../core/dom.js";
import { percent } from "../core/numbers.js";
import { addsPositions, isSwitch, largest, partOf, rowOf } from "./model.js";
import { pixels, reachOf, shades } from "./pixels.js";

const STREAM = 13; // where the vector runs down
const LEFT = 30;
const ROW = 26;
const GAP = 4;
const TITLE = 15;
const SHORT = { norm: "norm", attention: "attention", feed_forward: "feed-forward" };

export function drawing({ parts, config, onSelect, onSwitch }) {
  const svg = svgElement("svg", {
    class: "afm-drawing",
    role: "listbox",
    "aria-label": "The parts of the machine",
  });
  const blocks = config.n_layers;
  const boxes = new Map(); // place -> its elements
  let [width, data, shade] = [0, null, null];

  const image = (x, y, w, h) =>
    svgElement("image", {
      x,
      y,
      width: w,
      height: h,
      preserveAspectRatio: "none",
      class: "afm-pixels",
    });

  /** A box with a name and, at its foot, the numbers that come out of it. */
  function box(place, x, y, w, h, { text = true, strip = true, middle = null } = {}) {
    const { kind, name } = partOf(place);
    const ground = svgElement("rect", { class: "afm-drawing-box", x, y, width: w, height: h });
    ground.setAttribute("rx", 4);
    const numbers = strip ? image(x + 3, y + h - 8, w - 6, 5) : null;
    const at = y + (middle ?? (strip ? (h - 8) / 2 + 1 : h / 2));
    const label = svgElement(
      "text",
      { class: "afm-drawing-name", x: x + 7, y: at },
      text ? (SHORT[kind] ?? name) : "",
    );
    const side = svgElement("text", {
      class: "afm-drawing-side",
      x: x + w - 7,
      y: at,
      "text-anchor": "end",
    });
    const cross = svgElement("path", {
      class: "afm-drawing-cross",
      d: `M${x + 3} ${y + 3}L${x + w - 3} ${y + h - 3}M${x + w - 3} ${y + 3}L${x + 3} ${y + h - 3}`,
    });
    const group = svgElement(
      "g",
      { role: "option", class: "afm-drawing-part", tabindex: "-1" },
      ground,
      ...(numbers ? [numbers] : []),
      svgElement("g", { "aria-hidden": "true" }, label, " ", side),
      cross,
    );
    group.addEventListener("click", () => onSelect(place));
    boxes.set(place, { group, numbers, side });
    return group;
  }

  const line = (x1, y1, x2, y2, kind = "") =>
    svgElement("line", { class: `afm-drawing-line ${kind}`, x1, y1, x2, y2 });
  const plus = (y) =>
    svgElement(
      "g",
      { class: "afm-drawing-plus" },
      svgElement("circle", { cx: STREAM, cy: y, r: 7 }),
      svgElement("path", {
        d: `M${STREAM - 4} ${y}H${STREAM + 4}M${STREAM} ${y - 4}V${y + 4}`,
      }),
    );

  function build() {
    if (!width) return;
    const held = svg.contains(document.activeElement);
    boxes.clear();
    const w = Math.min(width, 460);
    const wide = w - LEFT - 2;
    const lines = [];
    const nodes = [];
    let y = 2;
    const from = y + ROW / 2;
    for (const place of parts.filter((one) => !one.startsWith("block"))) {
      if (place === "final-norm") break;
      const strip = place === "embedding" || place === "smear";
      nodes.push(box(place, LEFT, y, wide, ROW, { strip }));
      const added = place === "position" && addsPositions(config);
      if (added || place !== "position") lines.push(line(STREAM, y + ROW / 2, LEFT, y + ROW / 2));
      if (added) lines.push(plus(y + ROW / 2));
      y += ROW + GAP;
    }
    for (let block = 1; block <= blocks; block += 1)
      y = drawBlock(block, y + 2, wide, nodes, lines);
    y += 3;
    for (const place of ["final-norm", "output"]) {
      nodes.push(box(place, LEFT, y, wide, ROW, { strip: place === "final-norm" }));
      lines.push(line(STREAM, y + ROW / 2, LEFT, y + ROW / 2));
      y += ROW + GAP;
    }
    const stream = line(STREAM, from, STREAM, y - GAP - ROW / 2, "afm-drawing-stream");
    setSize(svg, w, y);
    svg.replaceChildren(stream, ...lines, ...nodes);
    if (held) boxes.get(data.selected).group.focus({ preventScroll: true });
    paint();
  }

  function drawBlock(block, top, wide, nodes, lines) {
    const name = `block-${block}`;
    const heads = config.n_heads;
    const norm = Math.min(58, 0.18 * wide);
    const left = LEFT + norm + 16;
    const room = wide - norm - 20;
    const side = Math.min(36, (room - 6) / heads);
    const tall = 17 + side + 3;
    const frame = box(name, LEFT, top, wide, TITLE, { strip: false });
    frame.classList.add("afm-drawing-title");
    let y = top + TITLE + 1;
    const attention = box(`${name}-attention`, left, y, room, tall, { strip: false, middle: 9 });
    const eyes = Array.from({ length: heads }, (_, h) => {
      const place = `${name}-head-${h + 1}`;
      const one = box(place, left + 3 + h * side, y + 17, side - 2, side, {
        text: false,
        strip: false,
      });
      const map = image(left + 4 + h * side, y + 18, side - 4, side - 2);
      one.insertBefore(map, one.lastChild);
      boxes.get(place).numbers = map;
      return one;
    });
    const one = box(`${name}-norm-1`, LEFT + 4, y, norm, ROW);
    lines.push(
      line(STREAM, y + 8, LEFT + 4, y + 8),
      line(LEFT + 4 + norm, y + ROW / 2, left, y + ROW / 2),
    );
    lines.push(line(STREAM, y + tall - 6, left, y + tall - 6), plus(y + tall - 6));
    y += tall + GAP;
    const think = box(`${name}-feed-forward`, left, y, room, ROW + 2);
    const two = box(`${name}-norm-2`, LEFT + 4, y, norm, ROW);
    lines.push(
      line(STREAM, y + 8, LEFT + 4, y + 8),
      line(LEFT + 4 + norm, y + ROW / 2, left, y + ROW / 2),
    );
    const bottom = y + ROW - 1;
    lines.push(line(STREAM, bottom, left, bottom), plus(bottom));
    nodes.push(frame, attention, ...eyes, one, two, think);
    return bottom + 7;
  }

  /** The numbers that come out of a part, and what is written at its side. */
  function outOf(place, { found, word, said }) {
    const { kind, layer, number, head } = partOf(place);
    const { parts: made } = found;
    switch (kind) {
      case "token":
        return [null, `${clip(word, 14)} → ${found.ids[found.word]}`];
      case "embedding":
        return [made.embedding, `row ${found.ids[found.word]}`];
      case "smear":
        return [made.start, "+ a little of the words before"];
      case "position":
        if (config.positions === "learned") return [null, `row ${found.word} of P, added`];
        return [
          null,
          `place ${found.word}, ${addsPositions(config) ? "added" : "told to every head"}`,
        ];
      case "norm":
        return [made[`${layer}.norm_${number}`], ""];
      case "feed_forward":
        return [made[`${layer}.feed_forward`], ""];
      case "final_norm":
        return [made.final_norm, ""];
      case "attention":
        return [null, `${config.n_heads} heads`];
      case "head":
        return [found.maps[layer][head].map(Math.sqrt), ""];
      case "output":
        return [null, said];
      default:
        return [null, ""];
    }
  }

  function paint(now = data) {
    data = now;
    if (!data || !shade || !boxes.size) return;
    const { selected, off, found } = data;
    const side = found?.ids.length;
    for (const [place, { group, numbers, side: aside }] of boxes) {
      const silent = off.includes(place);
      group.classList.toggle("afm-off", silent);
      group.setAttribute("tabindex", place === selected ? "0" : "-1");
      group.setAttribute("aria-selected", String(place === selected));
      const { kind, name, layer, head } = partOf(place);
      let told = name;
      if (found) {
        const [values, text] = outOf(place, data);
        aside.textContent = text;
        if (numbers && values) {
          const shown =
            kind === "head"
              ? pixels(values, side, shade.weights)
              : pixels(values, values.length, shade.numbers, reachOf(values));
          numbers.setAttribute("href", shown);
        }
        if (kind === "head") {
          const row = rowOf(found.maps[layer][head], found.word);
          const [best] = largest(row, 1);
          told += `, looks most at ${data.words[best]}, ${percent(row[best])}`;
        } else if (text) told += ` ${text}`;
      }
      if (silent) told += ", switched off";
      setAttributes(group, { "aria-label": told });
    }
  }

  svg.addEventListener("keydown", (event) => {
    if (!data || event.altKey || event.metaKey || event.ctrlKey) return;
    const at = parts.indexOf(data.selected);
    const moves = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
    const ends = { Home: 0, End: parts.length - 1 };
    const to = ends[event.key] ?? (moves[event.key] ? at + moves[event.key] : null);
    const acts = event.key === "Enter" || event.key === " ";
    if (to === null && !acts) return;
    event.preventDefault();
    event.stopPropagation();
    if (acts) {
      if (isSwitch(data.selected)) onSwitch(data.selected);
      return;
    }
    const next = parts[Math.min(parts.length - 1, Math.max(0, to))];
    onSelect(next, true);
    boxes.get(next).group.focus({ preventScroll: true });
    boxes.get(next).group.scrollIntoView({ block: "nearest" });
  });

  return {
    element: element("div", { class: "afm-drawing-holder" }, svg),
    layout(now) {
      width = now;
      build();
    },
    theme(now) {
      shade = shades(now);
      paint();
    },
    paint,
  };
}
