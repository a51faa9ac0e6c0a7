// The drawing of both stacks: every part is a button, one tab stop, arrow keys go on.
//
//   const picture = drawing({ parts, layers, languages, onOpen(at) });
//   picture.paint(at, [wordsOfSource, wordsOfTarget])      fig.add(picture)

import { clip, fitText, font, setSize, svgElement } from "../core/dom.js";
import { labelOf, titleOf } from "./model.js";

const GAP = 24; // between the stacks, where the memory goes
const SIDE = 11; // beside them, where the residuals go
const TALL = 28;
const THIN = 22;
const STEP = 6;
const PAD = 9; // within the frame of a block
const TOP = 40;
const NEXT = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

const heightOf = ({ kind }) => (kind === "norm" ? THIN : TALL);

/** The places of all boxes, for a width. */
function places(parts, width) {
  const box = (width - GAP - 2 * SIDE) / 2;
  const left = { encoder: SIDE, decoder: SIDE + box + GAP };
  const y = { encoder: TOP, decoder: TOP };
  const layer = { encoder: null, decoder: null };
  const boxes = parts.map((part) => {
    const { side } = part;
    if (part.layer !== layer[side]) {
      y[side] += layer[side] === null ? PAD + 4 : 2 * PAD;
      layer[side] = part.layer;
    }
    const place = { x: left[side], y: y[side], width: box, height: heightOf(part) };
    y[side] += place.height + STEP;
    return place;
  });
  return { boxes, height: Math.max(...Object.values(y)) + 30 };
}

export function drawing({ parts, layers, languages, onOpen }) {
  const svg = svgElement("svg", {
    class: "afm-walk",
    role: "group",
    "aria-label": "The drawing: both stacks, part by part, from top to bottom",
  });
  const nodes = parts.map((part, at) => {
    const node = svgElement(
      "g",
      { class: `afm-walk-box afm-walk-${part.kind}`, role: "button", "aria-label": titleOf(part) },
      svgElement("rect", { rx: 6 }),
      svgElement("text", { "text-anchor": "middle" }, labelOf(part)),
    );
    node.addEventListener("click", () => onOpen(at));
    node.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
      const to = at + (NEXT[event.key] ?? 0);
      if (!NEXT[event.key] && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      if (!parts[to]) return;
      onOpen(to);
      nodes[to].focus({ preventScroll: true });
    });
    return node;
  });
  const under = svgElement("g", { "aria-hidden": "true" });
  svg.append(under, ...nodes);
  let [width, opened, words] = [0, 0, [[], []]];

  const text = (content, x, y, anchor = "middle") =>
    svgElement("text", { class: "afm-walk-note", x, y, "text-anchor": anchor }, content);
  const path = (d, kind = "line") => svgElement("path", { class: `afm-walk-${kind}`, d });
  const head = (x, y, right = false) =>
    path(right ? `M ${x} ${y} l -7 -4 v 8 z` : `M ${x} ${y} l -4 -7 h 8 z`, "head");

  function build() {
    if (!width) return;
    const { boxes, height } = places(parts, width);
    setSize(svg, width, height);
    under.replaceChildren();
    parts.forEach((_, at) => {
      const { x, y, width: w, height: h } = boxes[at];
      const [rect, label] = nodes[at].children;
      for (const [name, value] of Object.entries({ x, y, width: w, height: h })) {
        rect.setAttribute(name, value);
      }
      label.setAttribute("x", x + w / 2);
      label.setAttribute("y", y + h / 2 + 5);
    });
    frames(boxes);
    streams(boxes);
    residuals(boxes);
    memory(boxes);
    mark();
  }

  const indexOf = (name) => parts.findIndex((part) => part.name === name);

  function frames(boxes) {
    for (const side of ["encoder", "decoder"]) {
      for (let layer = 0; layer < layers; layer += 1) {
        const own = boxes.filter((_, at) => parts[at].side === side && parts[at].layer === layer);
        const [first, last] = [own[0], own.at(-1)];
        const frame = {
          class: "afm-walk-frame",
          x: first.x - SIDE + 2,
          y: first.y - PAD + 3,
          width: first.width + 2 * SIDE - 4,
          height: last.y + last.height - first.y + 2 * PAD - 6,
          rx: 8,
        };
        under.append(svgElement("rect", frame));
      }
    }
    [0, 1].forEach((at) => {
      const place = boxes[indexOf(["source_embedding", "target_embedding"][at])];
      const middle = place.x + place.width / 2;
      const said = fitText(clip(words[at].join(" "), 60), place.width + 2 * SIDE - 6, font(12));
      const name = at === 0 ? "Encoder" : "Decoder";
      const title = fitText(`${name}, ${languages[at]}`, place.width + 2 * SIDE, font(13));
      under.append(text(title, middle, 13), text(said, middle, 31));
    });
  }

  /** From box to box, straight down. */
  function streams(boxes) {
    for (const side of ["encoder", "decoder"]) {
      const own = boxes.filter((_, at) => parts[at].side === side);
      own.slice(1).forEach((box, i) => {
        const x = box.x + box.width / 2;
        under.append(path(`M ${x} ${own[i].y + own[i].height} V ${box.y - 6}`), head(x, box.y));
      });
    }
    const last = boxes[indexOf("output")];
    const x = last.x + last.width / 2;
    const y = last.y + last.height;
    under.append(path(`M ${x} ${y} v 6`), head(x, y + 13), text("the next word", x, y + 27));
  }

  /** Around each part, from the stream before it to the sum after it. */
  function residuals(boxes) {
    parts.forEach(({ kind, side }, at) => {
      if (kind !== "norm") return;
      const [part, norm] = [boxes[at - 1], boxes[at]];
      const out = side === "encoder" ? -1 : 1;
      const edge = side === "encoder" ? norm.x : norm.x + norm.width;
      const y = part.y - 4;
      const end = norm.y + norm.height / 2;
      under.append(
        path(`M ${norm.x + norm.width / 2} ${y} H ${edge + 8 * out} V ${end} H ${edge}`, "around"),
      );
    });
  }

  /** From the encoder's end to each cross-attention. */
  function memory(boxes) {
    const from = boxes[indexOf(`encoder.${layers - 1}.norm_2`)];
    const x = from.x + from.width + GAP / 2;
    const start = from.y + from.height / 2;
    const ends = boxes.filter((_, at) => parts[at].kind === "cross_attention");
    const ys = [start, ...ends.map((box) => box.y + box.height / 2)];
    under.append(
      path(`M ${from.x + from.width} ${start} H ${x}`, "memory"),
      path(`M ${x} ${Math.min(...ys)} V ${Math.max(...ys)}`, "memory"),
    );
    for (const box of ends) {
      const y = box.y + box.height / 2;
      const arrow = head(box.x, y, true);
      arrow.setAttribute("class", "afm-walk-memory-head");
      under.append(path(`M ${x} ${y} H ${box.x - 6}`, "memory"), arrow);
    }
    under.append(text("memory", from.x + from.width / 2, from.y + from.height + PAD + 14));
  }

  function mark() {
    nodes.forEach((node, at) => {
      node.setAttribute("aria-pressed", String(at === opened));
      node.setAttribute("tabindex", at === opened ? "0" : "-1");
    });
  }

  return {
    element: svg,
    layout(now) {
      width = Math.min(now, 380);
      build();
    },
    paint(at, both) {
      opened = at;
      words = both;
      build();
    },
  };
}
