// A text to choose among samples, or to write (own_text.py).
//
//   const own = ownText(model, { onText: () => {} });   // another text is set
//   fig.controls.append(...own.elements);
//   const text = own.show();           // the model's text, now also in the controls
//   own.setSample(i)                   // what a link sets
//
// A text as tokens: those of one word touch, a gap is between words. What has been merged last is
// filled, and what would be merged now is underlined; or each token has a color and its number.
//
//   const text = pieces();   fig.add(text)
//   text.paint({ words, name, fresh, pair })      words: ids by word; name(id) -> text
//   text.paint({ words, name, numbered: true })

import {
  choices,
  clip,
  element,
  fitText,
  font,
  setSize,
  showToken,
  svgElement,
  textWidth,
} from "./dom.js";
import { readJson } from "./wire.js";

export function ownText(model, { onText = () => {} } = {}) {
  const { samples, contents } = readJson(model, "_text");
  const { characters } = readJson(model, "_limits");

  function setText(text) {
    const letters = Array.from(text.toWellFormed?.() ?? text).slice(0, characters);
    model.set(
      "_letters",
      letters.map((letter) => letter.codePointAt(0)),
    );
    onText();
    model.save_changes();
  }

  const chooser = choices({
    label: "text",
    options: [...samples, "your own"],
    value: 0,
    onChange(i) {
      if (i < samples.length) setText(contents[i]);
      else field.focus();
    },
  });
  const field = element("textarea", {
    class: "afm-own-text",
    rows: 2,
    maxlength: characters,
    spellcheck: "false",
    autocapitalize: "off",
    dir: "auto",
    "aria-label": "your own text",
  });
  field.addEventListener("input", () => setText(field.value));

  function show() {
    const text = String.fromCodePoint(...model.get("_letters"));
    if (field.value !== text) field.value = text;
    const sample = contents.indexOf(text);
    chooser.set(sample < 0 ? samples.length : sample);
    return text;
  }

  return { elements: [chooser.element, field], show, setSample: (i) => setText(contents[i]) };
}

const [HIGH, LINE, GAP, PAD, NUMBER] = [28, 38, 8, 5, 14];
const TINTS = 3; // so that two neighbors differ
// The letters of Kannada come with the page (book/assets/afm.css) where the system has none.
export const FACE = '13px system-ui, "Noto Sans Kannada", sans-serif';
const NUMBER_FACE = font(12);
const NAMED = 60; // tokens that the picture's name lists

export function pieces() {
  const svg = svgElement("svg", { class: "afm-pieces", role: "img" });
  let [width, data] = [0, null];

  function paint(now = data) {
    data = now;
    if (!data || !width) return;
    const { words, name, fresh = null, pair = null, numbered = false } = data;
    const widths = new Map();
    const wide = (id) => {
      if (!widths.has(id)) {
        const digits = numbered ? textWidth(String(id), NUMBER_FACE) : 0;
        const own = Math.max(textWidth(shownToken(name(id)), FACE), digits);
        widths.set(id, Math.max(15, own + 2 * PAD));
      }
      return Math.min(widths.get(id), width - 4);
    };
    const lineHeight = LINE + (numbered ? NUMBER : 0);
    const nodes = [];
    let [x, line] = [2, 0];
    for (const ids of words) {
      const whole = ids.reduce((sum, id) => sum + wide(id), 0);
      if (x > 2 && x + whole > width - 2) [x, line] = [2, line + 1];
      const partners = partnersIn(ids, pair);
      ids.forEach((id, i) => {
        if (x > 2 && x + wide(id) > width - 2) [x, line] = [2, line + 1]; // a word longer than a line
        nodes.push(piece(x, line * lineHeight + 2, wide(id), id, partners.has(i)));
        x += wide(id);
      });
      x += GAP;
    }
    setSize(svg, width, (line + 1) * lineHeight);
    svg.replaceChildren(...nodes);
    const all = words.flat();
    const told = (id) => `${clip(showToken(name(id)), 20)}${numbered ? ` ${id}` : ""}`;
    const some = all.slice(0, NAMED).map(told);
    const more = all.length > NAMED ? ` … and ${all.length - NAMED} more` : "";
    svg.setAttribute("aria-label", `${all.length} tokens: ${some.join(" · ")}${more}`);

    function piece(left, top, size, id, partner) {
      const tint = numbered ? ` afm-tint-${nodes.length % TINTS}` : "";
      const marks = `${id === fresh ? " afm-fresh" : ""}${partner ? " afm-partner" : ""}`;
      const kind = `afm-piece${tint}${marks}`;
      const box = { x: left + 0.5, y: top, width: size - 1, height: HIGH, rx: 4 };
      return svgElement(
        "g",
        { class: kind },
        svgElement("rect", { class: "afm-piece-box", ...box }),
        svgElement("rect", {
          class: "afm-piece-line",
          x: left + 1,
          y: top + HIGH + 2,
          width: size - 2,
          height: 3,
        }),
        svgElement(
          "text",
          { class: "afm-piece-text", x: left + size / 2, y: top + HIGH / 2 },
          fitText(shownToken(name(id)), size - PAD, FACE),
        ),
        ...(numbered
          ? [
              svgElement(
                "text",
                { class: "afm-piece-number", x: left + size / 2, y: top + HIGH + NUMBER / 2 + 1 },
                String(id),
              ),
            ]
          : []),
      );
    }
  }

  const layout = (now) => {
    width = now;
    paint();
  };
  return { element: svg, layout, paint };
}

/** A token as it is shown; what has no width is named. (A lone vowel sign gets a circle to sit on from
 * the font.) */
export function shownToken(text) {
  if (/^\p{Cf}$/u.test(text)) return `U+${text.codePointAt(0).toString(16).toUpperCase()}`;
  return showToken(text);
}

/** The places of the tokens that a merge of the pair would join, from the left. */
function partnersIn(ids, pair) {
  const places = new Set();
  if (pair === null) return places;
  for (let i = 1; i < ids.length; i += 1) {
    if (ids[i - 1] !== pair[0] || ids[i] !== pair[1] || places.has(i - 1)) continue;
    places.add(i - 1);
    places.add(i);
  }
  return places;
}
