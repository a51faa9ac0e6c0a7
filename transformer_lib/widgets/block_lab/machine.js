// The picture of the block lab: the stream from top to bottom, the parts beside it, their numbers.
//
//   const picture = machine({ names, classes, onFlip(part) });
//   picture.paint({ on, found, asked, adds, words })       found: readBlock() of math/block.js

import { divergingScale } from "../core/color.js";
import { clip, font, setSize, svgElement, textWidth } from "../core/dom.js";
import { fixed, percent, percentAmong } from "../core/numbers.js";

const LEFT = 26; // where the parts begin; the stream runs before
const BOX = 96;
const CELL = 20;
const SMALL = font(12);

export function machine({ names, classes, onFlip }) {
  const svg = svgElement("svg", { class: "afm-block", role: "img" });
  let [width, data, colors] = [0, null, null];

  function build() {
    if (!width || !data || !colors) return;
    const { on, found, asked, adds, words } = data;
    const w = Math.min(width, 620);
    const strip = LEFT + BOX + 12;
    const wide = w > 440; // room for what a part adds, beside its numbers
    const few = wide ? 3 : 2; // so many of the words that attention looks at are named
    const cell = Math.min(CELL, (w - strip - (wide ? 116 : 0)) / found.start.length);
    let y = 8;
    const body = [];
    const joints = [];

    const text = (content, x, at, kind = "number", anchor = "start") =>
      svgElement("text", { class: `afm-block-${kind}`, x, y: at, "text-anchor": anchor }, content);

    function cells(values, at, size, scale, perRow = values.length) {
      return values.map((value, i) =>
        svgElement("rect", {
          class: "afm-block-cell",
          x: strip + size * (i % perRow),
          y: at + size * Math.floor(i / perRow),
          width: size - 1,
          height: size - 1,
          fill: scale.fill(value),
        }),
      );
    }
    const vectors = [found.start, found.attended, found.middle, found.thought, found.end];
    const reach = (values) => Math.max(1e-6, ...values.flat().map(Math.abs));
    const scale = divergingScale(colors, reach(vectors));
    const normal = divergingScale(colors, reach([found.normed_1, found.normed_2]));

    /** What a vector that is added says for one answer or the other. */
    function lean(value) {
      const toward = classes[value > 0 ? classes.length - 1 : 0];
      const said = `${clip(toward, 12)} +${fixed(Math.abs(value), 1)}`;
      if (wide) return [text(said, strip + cell * found.start.length + 12, y + 16, "number")];
      y += 18;
      return [text(said, strip, y + CELL - 3, "number")];
    }

    /** A part's box, which is also its switch, and its numbers. */
    function part(name, values, how = scale) {
      const box = svgElement("g", { class: `afm-block-part${on[name] ? "" : " afm-off"}` });
      box.append(
        svgElement("rect", { x: LEFT, y, width: BOX, height: CELL + 4, rx: 5 }),
        text(names[name], LEFT + BOX / 2, y + 16, "name", "middle"),
      );
      box.addEventListener("click", () => onFlip(name));
      body.push(box, ...cells(values, y + 2, cell, how));
    }

    const heading = (content) => {
      body.push(text(content, LEFT, y + 15, "soft"));
    };

    heading("? comes in");
    joints.push(y + 12);
    body.push(...cells(found.start, y + 2, cell, scale), ...lean(adds.start));
    y += 34;
    part("norm_1", found.normed_1, normal);
    y += 30;
    part("attention", found.attended);
    if (on.attention) body.push(...lean(adds.attended));
    y += 28;
    looks();
    part("residual_1", found.middle);
    joints.push(y + 12);
    y += 40;
    part("norm_2", found.normed_2, normal);
    y += 30;
    part("feed_forward", found.thought);
    if (on.feed_forward) body.push(...lean(adds.thought));
    y += 28;
    hidden();
    part("residual_2", found.end);
    joints.push(y + 12);
    y += 42;

    /** The words that attention looks at, each head in a line. */
    function looks() {
      for (const row of on.attention ? found.weights : []) {
        const most = row
          .map((weight, i) => [weight, i])
          .sort((a, b) => b[0] - a[0])
          .slice(0, few)
          .filter(([weight]) => weight > 0.02)
          .map(([weight, i]) => `${clip(words[i], 10)} ${percent(weight, 0)}`);
        const line = () => `${wide ? "looks at" : "→"} ${most.join(", ")}`;
        while (most.length > 1 && textWidth(line(), SMALL) > w - strip) most.pop();
        y += 10;
        body.push(text(line(), strip, y, "number"));
        y += 10;
      }
    }

    /** The hidden units, in two lines. */
    function hidden() {
      if (!on.feed_forward) return;
      const perRow = Math.ceil(found.hidden.length / 2);
      const small = Math.min(14, (w - strip) / perRow);
      const lit = found.hidden.filter((value) => value > 0.5).length;
      body.push(
        ...cells(found.hidden, y, small, divergingScale(colors, reach(found.hidden)), perRow),
      );
      y += 2 * small + 15;
      const count = found.hidden.length;
      const units = wide
        ? `${count} hidden units, ${lit} above 0.5`
        : `${lit} of ${count} above 0.5`;
      body.push(text(units, strip, y, "number"));
      y += 10;
    }

    const stream = joints.slice(1).map((end, i) => {
      const kept = on[i === 0 ? "residual_1" : "residual_2"];
      const line = { x1: 11, x2: 11, y1: joints[i], y2: end };
      return svgElement("line", { class: `afm-block-stream${kept ? "" : " afm-off"}`, ...line });
    });
    const drops = joints.map((at) =>
      svgElement("line", { class: "afm-block-stream", x1: 11, x2: LEFT - 2, y1: at, y2: at }),
    );
    answer();
    table();
    setSize(svg, w, y + 4);
    svg.replaceChildren(...stream, ...drops, ...body);
    svg.setAttribute("aria-label", told());

    function answer() {
      const from = strip + Math.max(...classes.map((name) => textWidth(name, SMALL))) + 8;
      body.push(text("answer", LEFT, y + 15, "soft"));
      classes.forEach((name, i) => {
        const bar = Math.max(1, (w - from - 66) * found.chances[i]);
        body.push(
          text(name, strip, y + 15, "number"),
          svgElement("rect", {
            class: "afm-block-bar",
            x: from,
            y: y + 4,
            width: bar,
            height: 14,
            rx: 3,
          }),
          text(percentAmong(found.chances[i], classes.length), w, y + 15, "number", "end"),
        );
        y += 22;
      });
      y += 12;
    }

    /** How many stories of each case are right; below its heading where there is little room. */
    function table() {
      body.push(text(`all ${asked.count} stories`, LEFT, y + 15, "soft"));
      if (!wide) y += 22;
      const left = wide ? strip : LEFT;
      const titles = asked.cases.map(({ name }) => clip(name, 24));
      const from = left + Math.max(...titles.map((title) => textWidth(title, SMALL))) + 10;
      const longest = Math.max(20, w - from - 66);
      asked.cases.forEach(({ right, count }, i) => {
        const bar = { x: from, y: y + 5, height: 12, rx: 3 };
        body.push(
          text(titles[i], left, y + 15, "number"),
          svgElement("rect", { class: "afm-block-rest", ...bar, width: longest }),
          svgElement("rect", {
            class: "afm-block-bar",
            ...bar,
            width: (longest * right) / count,
          }),
          text(`${right} of ${count}`, w, y + 15, "number", "end"),
        );
        y += 20;
      });
    }

    function told() {
      const off = Object.keys(names).filter((part) => !on[part]);
      const cases = asked.cases.map(({ name, right, count }) => `${name}: ${right} of ${count}`);
      return [
        words.join(" "),
        off.length ? `off: ${off.map((part) => names[part]).join(", ")}` : "all parts are on",
        ...classes.map((name, i) => `${name} ${percentAmong(found.chances[i], classes.length)}`),
        `right, ${cases.join("; ")}`,
      ].join(". ");
    }
  }

  return {
    element: svg,
    layout(now) {
      width = now;
      build();
    },
    theme(now) {
      colors = now;
      build();
    },
    paint(now) {
      data = now;
      build();
    },
  };
}
