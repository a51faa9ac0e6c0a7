// The two stories, and what becomes of the answers. On the page a reader may put in another part below
// the figure (write/page/yours.js), which finds { words, head, show } at the figure's element, `afmYours`:
// show({ parts, said, probability, right, of, weights }) is the right half, show(null) the first one.

import { chips } from "../core/chips.js";
import { element } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { percent } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";

const HINT =
  "The bar under a word says how much the head looks at it from the outlined one. Below stand the " +
  "next word and the right answers. Try: click a word. Does the head look elsewhere in the second half?";
const ALIKE = 1e-6;

/** The functions that were put in, by their names: "my_mask", "your split_heads and only_merge". */
export function calledOf({ parts }, part) {
  const names = parts.map(({ name, called }) =>
    called && called !== "<lambda>" && called !== name ? called : `your ${name}`,
  );
  return names.length ? [...new Set(names)].join(" and ") : `the library’s ${part}`;
}

/** Where a row is largest, as parts of a sentence. */
export function looksAt(row, words) {
  const much = Math.max(...row);
  if (much < ALIKE) return ["at no word"];
  const alike = row.filter((weight) => much - weight < ALIKE).length;
  const how = `(${percent(much, 0)}${alike > 1 ? " each" : ""})`;
  if (alike > 1) return [`at ${alike} words alike ${how}`];
  return ["most at ", { text: words[row.indexOf(much)], role: "key" }, ` ${how}`];
}

/** The sentence below: of the two rows of the chosen word, and the right answers. */
export function sayingOf({ words, sides, rows, at, head, part }) {
  const [one, other] = rows.map((row) => looksAt(row, words));
  return [
    `In ${head}, `,
    { text: words[at], role: "query" },
    " looks ",
    ...one,
    `; with ${calledOf(sides[1], part)}, `,
    ...other,
    ". Questions answered right: ",
    { text: `${sides[0].right} of ${sides[0].of}` },
    ", then ",
    { text: `${sides[1].right} of ${sides[1].of}` },
    ".",
  ];
}

function render({ model, el }) {
  const { words, head, part, sides } = readJson(model, "_text");
  const first = ["_before", "_after"].map((name, which) => ({
    ...sides[which],
    weights: readFloats(model, name),
  }));
  const halves = [...first];
  const fig = figure(el, { name: "Your part in the machine", hint: HINT });
  fig.element.classList.add("afm-your-part");
  const look = (at) => send(model, "word", at === words.length - 1 ? -1 : at);
  const titleOf = (half) => `with ${calledOf(half, part)}`;
  const parts = halves.map((_, which) => {
    const line = chips({ label: "The story", onSelect: look });
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
      const { right, of, probability, said: word } = halves[which];
      name.textContent = titleOf(halves[which]);
      line.element.setAttribute("aria-label", `The story, ${name.textContent}`);
      said.textContent = word;
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
    fig.say(...sayingOf({ words, sides: halves, rows, at, head, part }));
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
      ["word", ...halves.map(titleOf)],
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
