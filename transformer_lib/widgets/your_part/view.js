// The two stories, and what becomes of the answers. On the page a reader may put in another part below
// the figure (write/page/yours.js), which finds { words, head, show } at the figure's element, `afmYours`:
// show({ title, said, probability, right, of, weights }) is the right half, show(null) the first one.

import { chips } from "../core/chips.js";
import { element } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { percent } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";

const HINT =
  "The bar under a word says how much the head looks at it from the outlined one. Below stand the " +
  "next word and the right answers. Try: click a word. Does the head look elsewhere with your part?";

const CLOSE = 1e-6; // weights that differ by less are alike

/** What a row looks at most: [a list of the words' places, how much]; no place if it is nothing. */
export function most(row) {
  const much = Math.max(...row);
  const at = [...row.keys()].filter((place) => much > CLOSE && row[place] > much - CLOSE);
  return [at, much];
}

/** The sentence below: of the two rows of the chosen word, and the right answers. */
export function sayingOf({ words, sides, rows, at, head }) {
  const [before, after] = rows.map(most);
  const target = ([places, much]) => {
    if (places.length === 0) return [{ text: "no word" }];
    if (places.length > 1) return [`${places.length} words alike (${percent(much, 0)} each)`];
    return [{ text: words[places[0]], role: "key" }, ` (${percent(much, 0)})`];
  };
  const same = before[0].length === 1 && String(before[0]) === String(after[0]);
  return [
    `In ${head}, `,
    { text: words[at], role: "query" },
    " looks most at ",
    ...target(before),
    ...(same
      ? [`; with your part, too (${percent(after[1], 0)})`]
      : ["; with your part, at ", ...target(after)]),
    ". Questions answered right: ",
    { text: `${sides[0].right} of ${sides[0].of}` },
    " before, ",
    { text: `${sides[1].right} of ${sides[1].of}` },
    " with yours.",
  ];
}

function render({ model, el }) {
  const { words, head, part, sides } = readJson(model, "_text");
  const first = ["_before", "_after"].map((name, which) => ({
    ...sides[which],
    title: which ? `with your ${part}` : `with the library’s ${part}`,
    weights: readFloats(model, name),
  }));
  const halves = [...first];
  const fig = figure(el, { name: "Your part in the machine", hint: HINT });
  fig.element.classList.add("afm-your-part");
  const look = (at) => send(model, "word", at === words.length - 1 ? -1 : at);
  const parts = halves.map((half, which) => {
    const line = chips({ label: `The story, ${half.title}`, onSelect: look });
    const bar = element("span", { class: "afm-your-bar" });
    const track = element("span", { class: "afm-your-track", "aria-hidden": "true" }, bar);
    const said = element("bdi", { class: "afm-token afm-output" });
    const chance = element("span", {});
    const answer = element("p", { class: "afm-your-answer" }, "it says ", said, chance);
    const share = element("p", { class: "afm-your-share" });
    const results = element("div", { class: "afm-your-results" }, answer, share, track);
    const name = element("p", { class: "afm-part-title" });
    fig.add({ element: element("div", {}, name, line.element, results) }, { basis: 300 });
    return function fill(at, row) {
      const { title, right, of, probability } = halves[which];
      name.textContent = title;
      said.textContent = halves[which].said;
      chance.textContent = `, ${percent(probability)}`;
      share.textContent = `${right} of ${of} questions right`;
      bar.style.width = `${(100 * right) / of}%`;
      line.paint({ words, selected: at, shares: row });
    };
  });

  const here = () => (model.get("word") < 0 ? words.length - 1 : model.get("word"));
  const rowsOf = (at) =>
    halves.map(({ weights }) =>
      Array.from(weights.subarray(at * words.length, (at + 1) * words.length)),
    );

  function paint() {
    const at = here();
    const rows = rowsOf(at);
    parts.forEach((fill, which) => {
      fill(at, rows[which]);
    });
    fig.say(...sayingOf({ words, sides: halves, rows, at, head }));
  }

  fig.element.afmYours = {
    words,
    head,
    show(half) {
      halves[1] = half ?? first[1];
      paint();
    },
  };

  fig.exports({
    name: "your-part",
    images: false, // it is made of words
    csv: () => [
      ["word", ...halves.map(({ title }) => title)],
      ...words.map((word, at) => [word, ...rowsOf(here()).map((row) => row[at])]),
    ],
  });
  fig.listen(model, "change:word", paint);
  paint();
  drive(fig, model, {
    set: { word: (at) => model.set("word", at === null ? -1 : at) },
    facts: () => ({
      word: here(),
      "right before": halves[0].right / halves[0].of,
      "right after": halves[1].right / halves[1].of,
    }),
  });
  return fig.end;
}

export default { render };
