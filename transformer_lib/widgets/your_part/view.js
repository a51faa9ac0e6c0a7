import { chips } from "../core/chips.js";
import { element } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { percent } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";

const HINT =
  "The bar under a word says how much the head looks at it from the outlined one. Below stand the " +
  "next word and the right answers. Try: click a word. Does the head look elsewhere with your part?";

/** The largest weight of a row: [where, how much]. */
export function most(row) {
  const at = row.indexOf(Math.max(...row));
  return [at, row[at]];
}

/** The sentence below: of the two rows of the chosen word, and the right answers. */
export function sayingOf({ words, sides, rows, at, head }) {
  const [[one, much], [other, now]] = rows.map(most);
  const moved = one !== other;
  return [
    `In ${head}, `,
    { text: words[at], role: "query" },
    " looks most at ",
    { text: words[one], role: "key" },
    ` (${percent(much, 0)})`,
    moved ? "; with your part, at " : "; with your part, too",
    ...(moved ? [{ text: words[other], role: "key" }] : []),
    ` (${percent(now, 0)}). Questions answered right: `,
    { text: `${sides[0].right} of ${sides[0].of}` },
    " before, ",
    { text: `${sides[1].right} of ${sides[1].of}` },
    " with yours.",
  ];
}

function render({ model, el }) {
  const { words, head, part, sides } = readJson(model, "_text");
  const titles = [`with the library’s ${part}`, `with your ${part}`];
  const maps = ["_before", "_after"].map((name) => readFloats(model, name));
  const fig = figure(el, { name: "Your part in the machine", hint: HINT });
  fig.element.classList.add("afm-your-part");
  const look = (at) => send(model, "word", at === words.length - 1 ? -1 : at);
  const lines = titles.map((title, which) => {
    const line = chips({ label: `The story, ${title}`, onSelect: look });
    const { said, probability, right, of } = sides[which];
    const bar = element("span", { class: "afm-your-bar", style: `width:${(100 * right) / of}%` });
    const track = element("span", { class: "afm-your-track", "aria-hidden": "true" }, bar);
    const answer = element(
      "p",
      { class: "afm-your-answer" },
      "it says ",
      element("bdi", { class: "afm-token afm-output" }, said),
      `, ${percent(probability)}`,
    );
    const share = element("p", { class: "afm-your-share" }, `${right} of ${of} questions right`);
    const results = element("div", { class: "afm-your-results" }, answer, track, share);
    const name = element("p", { class: "afm-part-title" }, title);
    fig.add({ element: element("div", {}, name, line.element, results) }, { basis: 300 });
    return line;
  });

  const here = () => (model.get("word") < 0 ? words.length - 1 : model.get("word"));
  const rowsOf = (at) =>
    maps.map((map) => Array.from(map.subarray(at * words.length, (at + 1) * words.length)));

  function paint() {
    const at = here();
    const rows = rowsOf(at);
    lines.forEach((line, which) => {
      line.paint({ words, selected: at, shares: rows[which] });
    });
    fig.say(...sayingOf({ words, sides, rows, at, head }));
  }

  fig.exports({
    name: "your-part",
    images: false, // it is made of words
    csv: () => [
      ["word", ...titles],
      ...words.map((word, at) => [word, ...rowsOf(here()).map((row) => row[at])]),
    ],
  });
  fig.listen(model, "change:word", paint);
  paint();
  drive(fig, model, {
    set: { word: (at) => model.set("word", at === null ? -1 : at) },
    facts: () => ({
      word: here(),
      "right before": sides[0].right / sides[0].of,
      "right after": sides[1].right / sides[1].of,
    }),
  });
  return fig.end;
}

export default { render };
