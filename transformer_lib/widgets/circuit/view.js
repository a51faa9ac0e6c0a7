import { divergingScale, sequentialScale } from "../core/color.js";
import { choices, element, textField } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { flow, parseLetters } from "../core/flow.js";
import { grid } from "../core/grid.js";
import { fixed, percent } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { loadWeights, unpackWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { anyFits, fits, letterOf, most, reader, SLOTS } from "./model.js";

const HINT = "Try: click a letter. Where does the second head look from it, and why?";
const LEAST = 150; // pixels for a map and its labels
const BESIDE = ["where they look", "what fits what"];

function render({ model, el }) {
  const { letters, slots } = readJson(model, "_text");
  const config = readJson(model, "_config");
  const fig = figure(el, { name: "A machine written by hand", hint: HINT });
  fig.element.classList.add("afm-circuit");
  let [weights, read, seen, problem] = [null, null, null, "Loading the weights …"];
  let labeled = null; // what the maps' labels are of

  const own = textField({ label: "a text of your own", autocomplete: "off", size: 14 });
  own.input.addEventListener("change", () => {
    const found = parseLetters(own.input.value, letters, config.context);
    if (typeof found === "string") return fig.say(found);
    model.set("at", -1);
    send(model, "ids", found);
  });
  own.element.classList.add("afm-circuit-field");
  const beside = choices({
    label: "beside it",
    options: BESIDE,
    value: 0,
    onChange: (which) => send(model, "fits", which === 1),
  });
  fig.controls.append(own.element, beside.element);

  const look = (at) => send(model, "at", at === model.get("ids").length - 1 ? -1 : at);
  const drawing = flow({ label: "The text and its stream", slots: SLOTS, onSelect: look });
  fig.add(drawing, { basis: 320 });
  const sides = ["first", "second"].map((which) => ({
    caption: element("p", { class: "afm-map-caption" }),
    map: grid({
      rows: ["…"],
      columns: ["…"],
      label: `The ${which} head`,
      maxCell: 20,
      minCell: 12,
      format: (value) => (model.get("fits") ? fixed(value, 0) : fixed(value)),
      onSelect: (row) => model.get("fits") || look(row),
    }),
  }));
  fig.add(
    {
      element: element(
        "div",
        { class: "afm-circuit-maps" },
        ...sides.map(({ caption, map }) => element("div", {}, caption, map.element)),
      ),
      layout(width) {
        const each = width < 2 * LEAST ? width : width / 2 - 8;
        for (const { map } of sides) map.layout(Math.floor(each));
      },
      theme: (colors) => sides.forEach(({ map }) => map.theme(colors)),
    },
    { basis: 300, stays: true },
  );

  const here = () => {
    const count = model.get("ids").length;
    const at = model.get("at");
    return at < 0 ? count - 1 : Math.min(at, count - 1);
  };

  function update() {
    const ids = model.get("ids");
    const at = here();
    const words = ids.map((id) => letters[id]);
    own.input.value = words.join(" ");
    beside.set(model.get("fits") ? 1 : 0);
    if (!read) return fig.say(problem);
    seen = read(ids);
    const [first, second] = seen.maps;
    const [key, share] = most(second[at]);
    const [sure, chance] = most(seen.chances[at]);
    const found = share > 0.5;
    const origin = most(first[key])[0];
    const lost = words.map((_, place) => !anyFits(seen.maps[0], words, place));
    const isNew = lost[at];
    const told = sentence({ words, at, key, found, isNew, origin, said: letters[sure], chance });
    drawing.paint({
      letters: words,
      maps: seen.maps,
      selected: at,
      contents: seen.stream.map((row) =>
        row.map((held) =>
          Object.fromEntries(SLOTS.map((slot) => [slot, letterOf(held[slot], letters)])),
        ),
      ),
      pale: lost.flatMap((none, place) => (none ? [[2, place, "says"]] : [])),
      marks:
        found && !isNew
          ? [
              [0, origin, "token", "value"],
              [1, key, "before", "key"],
              [1, key, "token", "value"],
              [1, at, "token", "query"],
              [2, at, "says", "output"],
            ]
          : [],
      said: `→ ${chance > 0.5 ? letters[sure] : "?"}, ${percent(chance, 0)}`,
      told: told.map((one) => one.text ?? one).join(""),
    });
    paintSides(words, at);
    fig.say(...told);
  }

  function paintSides(words, at) {
    const matching = model.get("fits");
    const anew = labeled !== [matching, ...words].join();
    labeled = [matching, ...words].join();
    const places = words.map((_, place) => String(place + 1));
    const names = matching
      ? [
          [places, places, "score of each place with each"],
          [[...letters], [...letters], "score of each token with each before"],
        ]
      : [
          [words, words, "where it looks"],
          [words, words, "where it looks"],
        ];
    sides.forEach(({ caption, map }, head) => {
      const [rows, columns, told] = names[head];
      if (anew) map.setLabels(rows, columns);
      map.setScale(matching ? (colors) => divergingScale(colors, 40) : sequentialScale);
      if (matching) map.paint(fitting(head, words.length));
      else {
        const causal = words.map((_, t) => words.map((__, s) => s <= t));
        map.paint(
          seen.maps[head].map((row) => words.map((_, s) => row[s] ?? 0)),
          causal,
        );
        if (map.selected && map.selected[0] !== at) map.select(null);
        map.light(at, null);
      }
      caption.replaceChildren(
        element("strong", {}, `${head ? "second" : "first"} head`),
        `: ${told}`,
      );
    });
  }

  /** Place with place for the first head, token with before for the second. */
  function fitting(head, count) {
    const [from] = slots.position;
    const place = [from, from + count];
    return head
      ? fits(config, weights, 1, slots.token, slots.before)
      : fits(config, weights, 0, place, place);
  }

  fig.exports({
    name: "circuit",
    csv: () => [
      ["head", "from", "to", "weight"],
      ...(seen?.maps ?? []).flatMap((map, head) =>
        map.flatMap((row, t) => row.slice(0, t + 1).map((w, s) => [head + 1, t + 1, s + 1, w])),
      ),
    ],
  });
  for (const name of ["ids", "at", "fits"]) fig.listen(model, `change:${name}`, update);
  update();
  loadWeights(model, "_packed").then(
    (bytes) => {
      weights = unpackWeights(bytes);
      read = reader(config, weights, slots);
      update();
    },
    (error) => {
      problem = `The weights could not be loaded: ${error.message}`;
      update();
    },
  );
  drive(fig, model, {
    set: { at: (at) => model.set("at", at === null ? -1 : at) },
    facts: () => ({
      at: here(),
      length: model.get("ids").length,
      looks: seen ? most(seen.maps[1][here()])[0] : Number.NaN,
      sure: seen ? most(seen.chances[here()])[1] : Number.NaN,
    }),
  });
  return fig.end;
}

/** What happens at the chosen letter, in words. */
export function sentence({ words, at, key, found, isNew, origin, said, chance }) {
  const [own, other] = [words[at], words[key]];
  if (at === 0)
    return [
      "Nothing came before the first letter: the first head can only look at the letter itself, and from all later letters the second head leaves this place out.",
    ];
  if (!found)
    return [
      "From ",
      { text: own, role: "query" },
      ` (place ${at + 1}) no single place fits, so the second head averages several. `,
      chance > 0.5 ? "What they hold adds up to " : "The machine hesitates; most probable is ",
      { text: said, role: "output" },
      ", with ",
      { text: percent(chance, 0) },
      ".",
    ];
  if (isNew)
    return [
      { text: own, role: "query" },
      ` (place ${at + 1}) is new, so nothing fits. One place alone is left to look at, and the second head copies what stands there, right or wrong: `,
      { text: said, role: "output" },
      ".",
    ];
  return [
    `At place ${key + 1} the first head has noted: `,
    { text: words[origin], role: "key" },
    " came before. The second head, asking for ",
    { text: own, role: "query" },
    ` from place ${at + 1}, looks there and copies `,
    { text: other },
    ". So the machine says ",
    { text: said, role: "output" },
    ".",
  ];
}

export default { render };
