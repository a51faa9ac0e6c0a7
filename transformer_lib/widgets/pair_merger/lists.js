// Two lists: the most frequent pairs with a bar for their count, and the latest merges.
//
//   const pairs = pairList((i) => ...);   pairs.paint({ table, name, lit })     a line pointed at, or null
//   const list = mergeList();             list.paint({ merges, name })

import { fitText, setSize, svgElement, textWidth } from "../core/dom.js";
import { FACE, shownToken } from "../core/owntext.js";
import { pointList } from "../core/pointing.js";

const [ROW, MOST] = [26, 8];

const heading = (text) =>
  svgElement(
    "text",
    { class: "afm-axis afm-list-title", x: 2, y: 12, "aria-hidden": "true" },
    text,
  );

export function pairList(onPoint) {
  const svg = svgElement("svg", { class: "afm-pairs" });
  let [width, data] = [0, null];
  const pointing = pointList(svg, {
    count: () => Math.min(MOST, data.table.length),
    onPoint: (i) => onPoint(data?.table.length ? i : null),
  });

  const lines = Array.from({ length: MOST }, (_, i) => {
    const ground = svgElement("rect", { class: "afm-lit-line", x: 1, rx: 4, height: ROW - 2 });
    const named = svgElement("text", { class: "afm-pair-text" });
    const bar = svgElement("rect", { class: "afm-pair-bar", height: 14, rx: 3 });
    const number = svgElement("text", { class: "afm-pair-text" });
    const shownPart = svgElement("g", { "aria-hidden": "true" }, ground, named, bar, number);
    const group = svgElement("g", { role: "listitem" }, shownPart);
    pointing.attach(group, i);
    return { group, ground, named, bar, number };
  });

  function paint(now = data) {
    data = now;
    if (!data || !width) return;
    const { table, name, lit } = data;
    const shown = table.slice(0, MOST);
    const [room, most] = [Math.min(150, 0.45 * width), shown[0]?.count ?? 1];
    const space = Math.max(10, width - room - 24 - textWidth(`${most} ◂ next`));
    setSize(svg, width, ROW * MOST + 24);
    const title = table.length ? "pair, and how often it occurs" : "no pair is left";
    svg.replaceChildren(heading(title));
    describe(svg, title, table.length);
    shown.forEach(({ pair, count }, i) => {
      const { group, ground, named, bar, number } = lines[i];
      const y = 34 + ROW * i;
      const [left, right] = pair.map((id) => shownToken(name(id)));
      ground.setAttribute("y", y - 12);
      ground.setAttribute("width", width - 2);
      ground.classList.toggle("afm-lit", i === lit);
      place(named, 8, y, fitText(`${left} + ${right}`, room - 8, FACE));
      const size = Math.max(2, (space * count) / most);
      for (const [key, value] of Object.entries({ x: room + 8, y: y - 7, width: size }))
        bar.setAttribute(key, value);
      place(number, room + 14 + size, y, i === 0 ? `${count} ◂ next` : String(count));
      const rank = i === 0 ? ", merged next" : "";
      group.setAttribute("aria-label", `${left} and ${right}: ${count}${rank}`);
      svg.append(group);
    });
  }

  const layout = (now) => {
    width = now;
    paint();
  };
  return { element: svg, layout, paint };
}

export function mergeList() {
  const svg = svgElement("svg", { class: "afm-pairs" });
  let [width, data] = [0, null];

  function paint(now = data) {
    data = now;
    if (!data || !width) return;
    const { merges, name } = data;
    const from = Math.max(0, merges.length - MOST);
    setSize(svg, width, ROW * MOST + 24);
    const title = merges.length ? "merges, in their order" : "no merges yet";
    describe(svg, title, merges.length);
    svg.replaceChildren(
      heading(title),
      ...merges.slice(from).map(({ pair, created }, i) => {
        const [left, right] = pair.map((id) => shownToken(name(id)));
        const text = `${from + i + 1}. ${left} + ${right} → ${shownToken(name(created))}`;
        const node = svgElement("text", { class: "afm-pair-text", "aria-hidden": "true" });
        place(node, 8, 34 + ROW * i, fitText(text, width - 10, FACE));
        return svgElement("g", { role: "listitem", "aria-label": text }, node);
      }),
    );
  }

  const layout = (now) => {
    width = now;
    paint();
  };
  return { element: svg, layout, paint };
}

/** A list must hold something, or it is not one. */
function describe(svg, title, count) {
  svg.setAttribute("role", count ? "list" : "img");
  svg.setAttribute("aria-label", title);
}

function place(node, x, y, text) {
  node.setAttribute("x", x);
  node.setAttribute("y", y);
  node.textContent = text;
}
