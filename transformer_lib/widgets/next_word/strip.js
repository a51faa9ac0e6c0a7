// The text as chips, a bar for the surprise over each: a listbox with arrow keys.
//
//   const story = strip({ words, highest, onSelect(position) {} });   fig.add(story)
//   story.paint({ each, selection })      each: the surprise at every word but the first, in nats

import { clip, fitText, onKeys, setSize, showToken, svgElement, textWidth } from "../core/dom.js";
import { fixed } from "../core/numbers.js";

const BAR = 30; // the height of the largest surprise
const LINE = 70;

export function strip({ words, highest, onSelect }) {
  const svg = svgElement("svg", {
    class: "afm-surprises",
    role: "listbox",
    "aria-label": "The text, word by word",
    "aria-orientation": "horizontal",
  });
  let [chips, data] = [[], null];

  function layout(width) {
    const held = svg.contains(document.activeElement);
    let [x, line] = [0, 0];
    chips = words.map((word, at) => {
      const text = fitText(showToken(word), width - 20);
      const wide = Math.max(26, textWidth(text) + 14);
      if (x > 0 && x + wide > width - 2) [x, line] = [0, line + 1];
      const [left, top] = [x + 2, line * LINE + BAR + 6];
      x += wide + 4;
      const bar = svgElement("rect", {
        class: "afm-surprise",
        x: left + 3,
        width: wide - 6,
        y: top - 3,
        height: 0,
        rx: 2,
      });
      const group = svgElement(
        "g",
        {
          class: "afm-word",
          ...(at ? { role: "option", tabindex: "-1" } : { "aria-hidden": "true" }),
        },
        svgElement("rect", {
          class: "afm-room",
          x: left,
          y: line * LINE,
          width: wide,
          height: LINE - 4,
        }),
        bar,
        svgElement("rect", {
          class: "afm-word-box",
          x: left,
          y: top,
          width: wide,
          height: 26,
          rx: 5,
        }),
        svgElement(
          "text",
          { class: "afm-word-text", x: left + wide / 2, y: top + 13, "aria-hidden": "true" },
          text,
        ),
      );
      if (at) group.addEventListener("click", () => onSelect(at));
      return { group, bar, top };
    });
    const height = (line + 1) * LINE;
    setSize(svg, width, height);
    svg.replaceChildren(...chips.map(({ group }) => group));
    paint();
    if (held) chips[data.selection].group.focus({ preventScroll: true });
  }

  function paint(now = data) {
    data = now;
    if (!data || !chips.length) return;
    chips.forEach(({ group, bar, top }, at) => {
      const surprise = at ? data.each[at - 1] : 0;
      const height = (BAR * surprise) / highest;
      bar.setAttribute("height", height);
      bar.setAttribute("y", top - 3 - height);
      group.classList.toggle("afm-on", at === data.selection);
      group.classList.toggle("afm-seen", at < data.selection);
      group.classList.toggle("afm-later", at > data.selection);
      if (!at) return;
      group.setAttribute("aria-selected", String(at === data.selection));
      group.setAttribute("tabindex", at === data.selection ? "0" : "-1");
      group.setAttribute(
        "aria-label",
        `${clip(showToken(words[at]))}, word ${at}: surprise ${fixed(surprise)} nats`,
      );
    });
  }

  const moves = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -1,
    ArrowDown: 1,
    Home: -Infinity,
    End: Infinity,
  };
  onKeys(svg, moves, (move) => {
    const next = Math.min(words.length - 1, Math.max(1, data.selection + move));
    onSelect(next);
    chips[next].group.focus({ preventScroll: true });
    chips[next].group.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  return { element: svg, layout, paint };
}
