// Row sums of attention weights as bars, and the output vectors beside them: one line a query.
//
//   const part = outputs({ rows: words, width: 2, names: ["who", "deed"] });   names: may be empty
//   part.layout(width, lines)     lines: [{ y, height }], the rows of the grid beside it
//   part.theme(colors)   part.paint(sums, output)   part.element

import { makeScale } from "../core/color.js";
import { clip, fitText, setSize, showToken, svgElement } from "../core/dom.js";
import { fixed } from "../core/numbers.js";

const MOST_COMPONENTS = 4;
const BAR_WIDTH = 44;

export function outputs({ rows, width: dv, names = [] }) {
  const count = Math.min(dv, MOST_COMPONENTS);
  const svg = svgElement("svg", {
    class: "afm-outputs",
    role: "list",
    "aria-label": "Row sums and outputs",
  });
  let [colors, lines, data] = [null, [], null];

  function paint() {
    if (!data || !colors || !lines.length) return;
    const { sums, output } = data;
    const limit = Math.max(...output.flat().map(Math.abs), 1e-9);
    const scale = makeScale([colors.negative, colors.surface, colors.output], -limit, limit);
    lines.forEach((line, i) => {
      const sum = sums[i];
      line.bar.setAttribute("width", BAR_WIDTH * Math.min(1, sum));
      line.total.textContent = fixed(sum);
      line.group.classList.toggle("afm-short", sum < 0.9995);
      const components = output[i]
        .slice(0, count)
        .map((y, c) => `${names[c] ?? ""} ${fixed(y)}`.trim());
      line.row.setAttribute(
        "aria-label",
        `${clip(showToken(rows[i]))}: row sum ${fixed(sum)}, output ${components.join(", ")}`,
      );
      line.cells.forEach(({ rect, text }, c) => {
        rect.setAttribute("fill", scale.fill(output[i][c]));
        if (!text) return;
        text.textContent = fixed(output[i][c]);
        text.setAttribute("fill", scale.text(output[i][c]));
      });
    });
  }

  function build(width, places) {
    svg.replaceChildren();
    const named = Math.min(70, 0.25 * width);
    const left = named + 8;
    const size = Math.max(8, Math.min(52, Math.floor((width - left - BAR_WIDTH - 52) / count)));
    const start = left + BAR_WIDTH + 44;
    const bottom = places.at(-1).y + places.at(-1).height;
    setSize(svg, width, bottom + 2);
    svg.append(
      svgElement(
        "text",
        { class: "afm-axis afm-soft-text", x: left, y: places[0].y - 10, "aria-hidden": "true" },
        "row sum",
      ),
      svgElement(
        "text",
        {
          class: "afm-axis afm-output",
          x: start,
          y: places[0].y - (names.length ? 26 : 10),
          "aria-hidden": "true",
        },
        dv > count ? `output (first ${count})` : "output",
      ),
      ...names.slice(0, count).map((name, c) =>
        svgElement(
          "text",
          {
            class: "afm-axis afm-soft-text",
            x: start + (c + 0.5) * size,
            y: places[0].y - 10,
            "text-anchor": "middle",
            "aria-hidden": "true",
          },
          fitText(name, size),
        ),
      ),
    );
    lines = places.map(({ y, height }, i) => {
      const row = svgElement("g", { role: "listitem" });
      const group = svgElement("g", { "aria-hidden": "true" });
      const thick = Math.max(2, Math.min(14, height - 6));
      const middle = y + height / 2;
      const small = height < 14;
      if (!small)
        group.append(
          svgElement(
            "text",
            { class: "afm-rowheader", x: named, y: middle, "text-anchor": "end" },
            fitText(showToken(rows[i]), named),
          ),
        );
      const bar = svgElement("rect", {
        class: "afm-bar",
        x: left,
        y: middle - thick / 2,
        height: thick,
        width: 0,
        rx: 2,
      });
      const total = svgElement("text", {
        class: "afm-sum",
        x: left + BAR_WIDTH + 4,
        y: middle,
        visibility: small ? "hidden" : null,
      });
      group.append(
        svgElement("rect", {
          class: "afm-bar-room",
          x: left,
          y: middle - thick / 2,
          height: thick,
          width: BAR_WIDTH,
          rx: 2,
        }),
        bar,
        total,
      );
      const cells = Array.from({ length: count }, (_, c) => {
        const rect = svgElement("rect", {
          class: "afm-cell",
          x: start + c * size,
          y,
          width: size,
          height,
          rx: height > 20 ? 3 : 0,
        });
        group.append(rect);
        if (size < 34 || height < 18) return { rect, text: null };
        const text = svgElement("text", {
          class: "afm-cell-number",
          "font-size": 12,
          x: start + (c + 0.5) * size,
          y: middle,
        });
        group.append(text);
        return { rect, text };
      });
      row.append(group);
      svg.append(row);
      return { row, group, bar, total, cells };
    });
    paint();
  }

  return {
    element: svg,
    layout: build,
    theme(now) {
      colors = now;
      paint();
    },
    paint(sums, output) {
      data = { sums, output };
      paint();
    },
  };
}
