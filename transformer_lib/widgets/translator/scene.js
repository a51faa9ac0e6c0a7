// The scene: the Kannada words, the English ones, and ribbons between them, as thick as the weights.
// It is drawn in one picture; over each word lies what is clicked: a menu over a Kannada word, a
// button over an English one.
//
//   const stage = scene({ onChange(at, word or null), onAdd(word), onSelect(at) });   fig.add(stage)
//   stage.paint({ from: [{ word, menu }], add: [groups], to: [{ text, note }],
//                 rows: weights[english][kannada], chosen, next: [{ text, note, share }] })

import { ALONG, roving } from "../core/chips.js";
import { element, font, setAttributes, setSize, svgElement, textWidth } from "../core/dom.js";
import { places, ribbon } from "./model.js";

const TALL = [72, 44]; // pixels: of a Kannada word, of an English one
const THICK = 26; // of a ribbon with all of the weight
const LEAST = 0.02; // thinner than that, none is drawn
const NEXT = 22; // a line of the list of next words
const SCRIPT = `20px system-ui, "Noto Sans Kannada", sans-serif`;

/** Whether the page or the system has letters for it: without them, all look like one another. */
export async function canDraw(one, other) {
  await document.fonts?.load(`24px "Noto Sans Kannada"`, one).catch(() => []);
  const pictures = [one, other].map((letter) => {
    const canvas = element("canvas", { width: 40, height: 40 });
    const pen = canvas.getContext("2d");
    pen.font = `24px system-ui, "Noto Sans Kannada", sans-serif`;
    pen.fillText(letter, 4, 30);
    return canvas.toDataURL();
  });
  return pictures[0] !== pictures[1];
}

const text = (content, x, y, kind, extra = {}) =>
  svgElement(
    "text",
    { class: `afm-scene-${kind}`, x, y, "text-anchor": "middle", ...extra },
    content,
  );

const frame = ({ x, y, width, height }, kind) =>
  svgElement("rect", { class: `afm-scene-${kind}`, x, y, width, height, rx: 6 });

/** A menu without a look of its own, over a word of the picture. */
function menu(label, groups, first, onPick) {
  const options = groups.map(({ name, words }) =>
    element(
      "optgroup",
      { label: name },
      ...words.map(({ latin, gloss }) =>
        element("option", { value: latin }, `${latin} · ${gloss}`),
      ),
    ),
  );
  const top = element("option", { value: "" }, first.text);
  const input = element("select", { "aria-label": label }, top, ...options);
  if (first.none) input.append(element("option", { value: "-" }, "(leave it out)"));
  input.addEventListener("change", () => {
    const { value } = input;
    if (value === "-") onPick(null);
    else {
      const all = groups.flatMap(({ words }) => words);
      onPick(all.find(({ latin }) => latin === value));
    }
  });
  return input;
}

export function scene({ onChange, onAdd, onSelect }) {
  const svg = svgElement("svg", { class: "afm-scene", "aria-hidden": "true" });
  const from = element("ol", { class: "afm-scene-list", "aria-label": "The sentence in Kannada" });
  const to = element("ol", { class: "afm-scene-list", "aria-label": "The translation" });
  const stage = element("div", { class: "afm-stage" }, svg, from, to);
  const stopAt = roving(to, ALONG, onSelect);
  let [width, data, script, face] = [0, null, true, null];

  function put(node, { x, y, width: w, height: h }) {
    node.style.cssText = `left:${x}px;top:${y}px;width:${w}px;height:${h}px`;
    return node;
  }

  function draw() {
    if (!width || !data) return;
    const { chosen, rows, next } = data;
    const shown = data.to.length;
    const of = (word) => [
      script ? textWidth(word.kannada, SCRIPT) : 0,
      textWidth(word.latin, font(14)),
      textWidth(word.gloss, font(12)),
    ];
    const above = data.from.map(({ word }) => Math.ceil(Math.max(...of(word), 28)) + 18);
    if (data.add.length) above.push(44);
    const below = data.all.map((word) => Math.ceil(Math.max(textWidth(word, font(16)), 26)) + 18);
    const laid = places(above, below, TALL, width);
    const boxes = laid.to.slice(0, shown);
    const parts = [];
    for (let t = 0; t < shown; t += 1) {
      rows[t].forEach((weight, j) => {
        if (weight < LEAST) return;
        const d = ribbon(laid.from[j], boxes[t], laid.rows);
        const kind = t === chosen ? "afm-ribbon afm-ribbon-chosen" : "afm-ribbon";
        parts.push(svgElement("path", { class: kind, d, "stroke-width": THICK * weight }));
      });
    }
    parts.sort((one, other) => one.classList.length - other.classList.length); // the chosen on top
    data.from.forEach(({ word }, j) => {
      const box = laid.from[j];
      const middle = box.x + box.width / 2;
      parts.push(frame(box, "word"));
      if (script) parts.push(text(word.kannada, middle, box.y + 26, "script", { lang: "kn" }));
      parts.push(text(word.latin, middle, box.y + (script ? 46 : 32), "latin"));
      parts.push(text(word.gloss, middle, box.y + (script ? 63 : 52), "note"));
    });
    if (data.add.length) {
      const box = laid.from.at(-1);
      parts.push(frame(box, "add"), text("+", box.x + box.width / 2, box.y + 41, "latin"));
    }
    boxes.forEach((box, t) => {
      const middle = box.x + box.width / 2;
      const { text: english, note } = data.to[t];
      parts.push(frame(box, t === chosen ? "chosen" : "word"));
      parts.push(text(english, middle, box.y + (note ? 20 : 27), "english"));
      if (note) parts.push(text(note, middle, box.y + 37, "note"));
    });
    let { height } = laid;
    if (next) {
      const at = laid.to[chosen] ?? laid.to.at(-1) ?? { x: 0, width: 0 };
      const left = laid.rows ? Math.min(Math.max(0, at.x), Math.max(0, width - 230)) : 0;
      height += 30;
      parts.push(text(next.title, left, height, "note", { "text-anchor": "start" }));
      next.words.forEach(({ text: word, note, share }, i) => {
        const y = height + 4 + NEXT * i;
        const bar = { x: left, y: y + 4, height: NEXT - 6, width: Math.max(2, 200 * share) };
        parts.push(svgElement("rect", { class: "afm-scene-bar", rx: 3, ...bar }));
        parts.push(text(word, left + 6, y + 17, "candidate", { "text-anchor": "start" }));
        parts.push(text(note, left + 200, y + 17, "candidate", { "text-anchor": "end" }));
      });
    }
    height = Math.ceil(height + 6 + NEXT * 3); // room for the list before it is there
    setSize(svg, width, height);
    svg.replaceChildren(...parts);
    [...from.children].forEach((item, j) => put(item, laid.from[j]));
    [...to.children].forEach((item, t) => put(item, boxes[t]));
  }

  function lists() {
    const at = [...from.children].findIndex((item) => item.contains(document.activeElement));
    from.replaceChildren(
      ...data.from.map(({ word, menu: { groups, none } }, at) => {
        const name = element("bdi", { lang: "kn" }, word.kannada);
        const first = { text: `${word.latin} · ${word.gloss}`, none };
        const label = `${word.latin}, ${word.gloss}: put another word`;
        return element(
          "li",
          {},
          name,
          menu(label, groups, first, (now) => onChange(at, now)),
        );
      }),
    );
    if (data.add.length) {
      const first = { text: "add a word", none: false };
      const chooser = menu("Add a word", data.add, first, (word) => word && onAdd(word));
      from.append(element("li", {}, chooser));
    }
    from.children[at]?.lastChild.focus({ preventScroll: true });
  }

  function buttons() {
    while (to.children.length > data.to.length) to.lastChild.remove();
    while (to.children.length < data.to.length) {
      const at = to.children.length;
      const press = element("button", { type: "button" }, element("bdi", {}));
      press.addEventListener("click", () => onSelect(at));
      to.append(element("li", {}, press));
    }
    data.to.forEach(({ text: english, note }, t) => {
      const press = to.children[t].firstChild;
      press.firstChild.textContent = english;
      const label = note ? `${english}, ${note}` : english;
      setAttributes(press, { "aria-pressed": String(t === data.chosen), "aria-label": label });
    });
    stopAt(Math.min(data.to.length - 1, Math.max(0, data.chosen)));
  }

  return {
    element: stage,
    layout(now) {
      width = now;
      draw();
    },
    theme() {
      draw();
    },
    /** Without a font for the script, the line below it says the same. */
    withScript(drawn) {
      script = drawn;
      draw();
    },
    paint(now) {
      const sentence = JSON.stringify(now.from.map(({ word }) => word.latin));
      data = now;
      if (sentence !== face) lists();
      face = sentence;
      buttons();
      draw();
    },
  };
}
