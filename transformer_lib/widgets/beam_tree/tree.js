// The tree, growing to the right: a column for each step, a frame around what is kept.
//
//   const picture = drawing({ words, root, onChoose(key) {}, onPoint(key or null) {}, onStep(by) {} });
//   fig.add(picture)
//   picture.paint({ columns, shown: 3, way: ["4", "4 7"], stop: "4 7" })
//     shown: how many columns; way: the keys of the way that is marked; stop: where the tab key stops
//
// Arrow keys: right to the best of what follows (at the end, a step more), left to what it follows, up
// and down within the column.

import { element, fitText, font, setSize, showToken, svgElement, textWidth } from "../core/dom.js";
import { fixed } from "../core/numbers.js";
import { ROOT } from "./model.js";

const [PITCH, HIGH, GAP, WORD] = [40, 36, 18, 110];
const SAYS = { kept: "kept", ended: "kept, and ended", cut: "cut" };

export function drawing({ words, root, onChoose, onPoint, onStep }) {
  const svg = svgElement("svg", { class: "afm-beam", role: "tree", "aria-label": "Beam search" });
  const scroller = element("div", { class: "afm-scroll" }, svg);
  let [data, drawn, scrolled] = [null, null, ""];
  let opening = null; // the newest column of the first picture, until the reader goes on
  let nodes = new Map(); // key -> { group, line, column, node }

  const wordOf = ({ token }) => fitText(showToken(words[token]), WORD);

  function nodeGroup(node, at, left, wide, y, from) {
    const line = svgElement("path", {
      class: `afm-beam-line afm-beam-${node.kind}${node.greedy ? " afm-beam-greedy" : ""}`,
      d: `M${from[0]},${from[1]} C${left - GAP / 2},${from[1]} ${left - GAP / 2},${y} ${left},${y}`,
    });
    const said = [
      `${showToken(words[node.token])} ${fixed(node.score)}`,
      `step ${at}`,
      SAYS[node.kind],
      ...(node.greedy ? ["greedy's choice"] : []),
    ];
    const frame = { x: left, y: y - HIGH / 2, width: wide, height: HIGH };
    const group = svgElement(
      "g",
      {
        class: `afm-beam-node afm-beam-${node.kind}`,
        role: "treeitem",
        tabindex: "-1",
        "aria-level": at + 1,
        "aria-label": said.join(", "),
      },
      svgElement("rect", { class: "afm-beam-box", ...frame, rx: node.kind === "ended" ? 12 : 5 }),
      ...(node.greedy
        ? [
            svgElement("path", {
              class: "afm-beam-dash",
              d: `M${left + 8},${y + 2} h${wide - 16}`,
            }),
          ]
        : []),
      svgElement(
        "text",
        { class: "afm-beam-word", x: left + wide / 2, y: y - 8, "aria-hidden": "true" },
        wordOf(node),
      ),
      " ", // between what is read
      svgElement(
        "text",
        { class: "afm-beam-number", x: left + wide / 2, y: y + 10, "aria-hidden": "true" },
        fixed(node.score),
      ),
    );
    group.addEventListener("pointerenter", () => onPoint(node.key));
    group.addEventListener("focus", () => onChoose(node.key));
    group.addEventListener("click", () => group.focus({ preventScroll: true }));
    return { group, line, node, column: at };
  }

  function draw() {
    const held = svg.contains(document.activeElement);
    const { columns } = data;
    const most = Math.max(...columns.map((column) => column.length));
    const height = most * PITCH + 8;
    const middle = height / 2;
    const rootText = fitText(`… ${root}`, WORD);
    const rootWide = textWidth(rootText) + 16;
    const ends = new Map([[ROOT, [rootWide + 1, middle]]]); // where the lines to what follows begin
    let x = rootWide + 1;
    nodes = new Map();
    columns.forEach((column, c) => {
      const left = x + GAP;
      const wordWide = Math.max(...column.map((node) => textWidth(wordOf(node), font(13, "bold"))));
      const numberWide = Math.max(...column.map(({ score }) => textWidth(fixed(score), font(12))));
      const wide = Math.ceil(Math.max(34, wordWide, numberWide) + 12);
      column.forEach((node, place) => {
        const y = middle + (place - (column.length - 1) / 2) * PITCH;
        nodes.set(node.key, nodeGroup(node, c + 1, left, wide, y, ends.get(node.parent)));
      });
      for (const { node, group } of nodes.values()) {
        if (ends.has(node.key)) continue;
        const box = group.firstElementChild;
        ends.set(node.key, [left + wide, Number(box.getAttribute("y")) + HIGH / 2]);
      }
      x = left + wide;
    });
    const all = [...nodes.values()];
    setSize(svg, Math.ceil(x + 2), height);
    svg.replaceChildren(
      svgElement("g", { "aria-hidden": "true" }, ...all.map(({ line }) => line)),
      svgElement(
        "g",
        { class: "afm-beam-node afm-beam-root", "aria-hidden": "true" },
        svgElement("rect", {
          class: "afm-beam-box",
          x: 1,
          y: middle - HIGH / 2,
          width: rootWide,
          height: HIGH,
          rx: 5,
        }),
        svgElement("text", { class: "afm-beam-word", x: 1 + rootWide / 2, y: middle }, rootText),
      ),
      ...all.map(({ group }) => group),
    );
    drawn = columns;
    if (held) nodes.get(data.stop)?.group.focus({ preventScroll: true });
  }

  function paint(now = data) {
    data = now;
    if (!data) return;
    if (drawn !== data.columns) draw();
    const way = new Set(data.way);
    for (const [key, { group, line, column }] of nodes) {
      const later = column > data.shown;
      for (const part of [group, line]) {
        part.classList.toggle("afm-beam-later", later);
        part.classList.toggle("afm-beam-way", way.has(key));
      }
      group.setAttribute("aria-selected", String(key === data.stop));
      group.setAttribute("tabindex", key === data.stop ? "0" : "-1");
    }
    for (const key of data.way) nodes.get(key)?.line.parentNode.append(nodes.get(key).line); // on top
    follow();
  }

  /** Where all columns do not fit, the first is in sight; once the reader goes on, the newest. */
  function follow() {
    const last = data.columns[data.shown - 1]?.[0].key ?? ROOT;
    if (last === scrolled) return;
    scrolled = last;
    opening ??= last;
    if (last !== opening) opening = "";
    if (opening) {
      scroller.scrollLeft = 0;
      return;
    }
    const box = nodes.get(last)?.group.firstElementChild;
    const right = box ? Number(box.getAttribute("x")) + Number(box.getAttribute("width")) : 0;
    scroller.scrollLeft = right + 12 - scroller.clientWidth;
  }

  function neighbor(key, move) {
    const { node, column } = nodes.get(key);
    const among = data.columns[column - 1].map((each) => each.key);
    if (move === "ArrowLeft") return node.parent;
    if (move === "ArrowUp") return among[among.indexOf(key) - 1];
    if (move === "ArrowDown") return among[among.indexOf(key) + 1];
    if (column >= data.shown) return null;
    const following = data.columns[column].filter(({ parent }) => parent === key);
    return following.reduce(
      (best, one) => (one.score > (best?.score ?? -Infinity) ? one : best),
      null,
    )?.key;
  }

  svg.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow") || event.altKey || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    event.stopPropagation();
    const key = svg.contains(document.activeElement) ? data.stop : null;
    if (!nodes.has(key)) return;
    if (event.key === "ArrowRight" && nodes.get(key).column >= data.shown) onStep(1);
    const next = nodes.get(neighbor(key, event.key));
    if (!next || next.column > data.shown) return;
    next.group.focus({ preventScroll: true });
    next.group.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  svg.addEventListener("pointerleave", () => onPoint(null));

  const layout = () => {
    scrolled = "";
    paint();
  };
  return { element: scroller, layout, paint };
}
