// The entries as lines: name, score, weight as a bar, value; and the answer below.
//
//   const list = shelf(names, values, unit);   fig.add(list);
//   list.paint({ scores, weights, answer })
//   list.light(2)             the line of one key; null for none

import { clip, fitText, setSize, showToken, svgElement } from "../core/dom.js";
import { fixed, precise, short } from "../core/numbers.js";
import { pointList } from "../core/pointing.js";

const ROW = 30;

const written = (score) => (Math.abs(score) < 1000 ? fixed(score) : precise(score));

export function shelf(names, values, unit, onPoint) {
  const svg = svgElement("svg", {
    class: "afm-shelf",
    role: "list",
    "aria-label": "Scores, weights, values and the answer",
  });
  let [lines, total, answerLine, data, lit] = [[], 0, null, null, null];
  const pointing = pointList(svg, { count: names.length, onPoint });

  function layout(width) {
    const named = Math.min(120, 0.3 * width);
    const scored = named + 52;
    const valued = 44;
    const bar = scored + 12;
    total = Math.max(24, width - bar - valued - 40);
    const height = ROW * (names.length + 1) + 40;
    setSize(svg, width, height);
    const heading = (x, text, anchor, role) =>
      svgElement(
        "text",
        { class: `afm-axis afm-${role}`, x, y: 12, "text-anchor": anchor, "aria-hidden": "true" },
        text,
      );
    svg.replaceChildren(
      heading(named, "key", "end", "key"),
      heading(scored, "score", "end", "soft-text"),
      heading(bar, "weight", "start", "soft-text"),
      heading(width - 4, "value", "end", "value-role"),
    );
    lines = names.map((name, i) => {
      const y = 36 + ROW * i;
      const rect = svgElement("rect", {
        class: "afm-weight-bar",
        x: bar,
        y: y - 9,
        height: 18,
        rx: 3,
      });
      const number = svgElement("text", { class: "afm-shelf-text", y: y + 5 });
      const score = svgElement("text", {
        class: "afm-shelf-text",
        x: scored,
        y: y + 5,
        "text-anchor": "end",
      });
      const group = svgElement("g", { role: "listitem" });
      const shown = svgElement("g", { "aria-hidden": "true" });
      const ground = svgElement("rect", {
        class: "afm-lit-line",
        x: 1,
        y: y - 14,
        width: width - 2,
        height: ROW - 2,
        rx: 4,
      });
      pointing.attach(group, i);
      shown.append(
        ground,
        svgElement(
          "text",
          { class: "afm-shelf-text", x: named, y: y + 5, "text-anchor": "end" },
          fitText(showToken(name), named),
        ),
        score,
        rect,
        number,
        svgElement(
          "text",
          { class: "afm-shelf-text afm-value-role", x: width - 4, y: y + 5, "text-anchor": "end" },
          short(values[i], 4),
        ),
      );
      group.append(shown);
      svg.append(group);
      return { group, ground, score, rect, number, bar };
    });
    const y = 36 + ROW * names.length + 12;
    const text = svgElement("text", {
      class: "afm-shelf-answer afm-output",
      x: width - 4,
      y: y + 5,
      "text-anchor": "end",
    });
    const group = svgElement("g", { role: "listitem" });
    group.append(
      svgElement("line", { class: "afm-axis-line", x1: 0, x2: width, y1: y - 16, y2: y - 16 }),
      text,
    );
    svg.append(group);
    answerLine = { group, text };
    paint();
    light(lit);
  }

  function light(i) {
    lit = i;
    lines.forEach(({ ground }, at) => ground.classList.toggle("afm-lit", at === i));
  }

  function paint(now = data) {
    data = now;
    if (!data || !lines.length) return;
    lines.forEach(({ group, score, rect, number, bar }, i) => {
      const weight = data.weights[i];
      rect.setAttribute("width", Math.max(1, total * weight));
      number.setAttribute("x", bar + total * weight + 6);
      number.textContent = fixed(weight);
      score.textContent = written(data.scores[i]);
      group.setAttribute(
        "aria-label",
        `${clip(showToken(names[i]))}: score ${written(data.scores[i])}, weight ${fixed(weight)}, value ${short(values[i], 4)}`,
      );
    });
    const answer = `${fixed(data.answer, 1)} ${unit}`.trim();
    answerLine.text.textContent = `answer: ${answer}`;
    answerLine.group.setAttribute("aria-label", `answer: ${answer}`);
  }

  return { element: svg, layout, paint, light, pointing };
}
