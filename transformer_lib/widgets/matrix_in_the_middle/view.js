import { divergingScale, sequentialScale } from "../core/color.js";
import { button, choices, clip, element, showToken, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { grid } from "../core/grid.js";
import { fixed } from "../core/numbers.js";
import { drive, endsOf, labels } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { marked } from "./marked.js";
import { asymmetry, equal, lookAt, moved, pairsOf, rowsOf, termsOf, withEntry } from "./model.js";

const KINDS = ["weights", "scores"];
const MOST_NAMED = 3; // pairs or entries that the sentence names

const entryText = (value) => fixed(value, 1).replace(/\.0$/, "");

function render({ model, el }) {
  const { tokens, features, presets: presetNames } = readJson(model, "_text");
  const vectors = rowsOf(readFloats(model, "_vectors"), features.length);
  const presets = model.get("_presets");
  const start = model.get("matrix");
  const first = { entry: model.get("entry"), show: model.get("show") };
  const [tokenNames, featureNames] = [tokens, features].map((list) =>
    list.map((text) => clip(showToken(text), 24)),
  );
  const highest = Math.max(...[...presets, start].flat(2).map(Math.abs), 1);
  const reach = Math.min(endsOf(model, "value").max, Math.ceil(2 * highest));
  let spoken = "entry"; // what the sentence is about: an entry of the matrix, or a cell of the map

  const fig = figure(el, {
    name: "The matrix in the middle",
    hint: "Try: choose an entry of A, on the left, and move it. The marked cells of the map are those that it reaches.",
  });

  const entrySlider = slider({
    label: "entry",
    min: -reach,
    max: reach,
    step: reach / 12,
    value: 0,
    format: entryText,
    onInput: (value) => {
      spoken = "entry";
      send(model, "matrix", withEntry(model.get("matrix"), model.get("entry"), value));
    },
  });
  const whole = choices({
    label: "A",
    options: presetNames,
    value: 0,
    onChange: (at) => send(model, "matrix", presets[at]),
  });
  const kind = choices({
    label: "map",
    options: KINDS,
    value: 0,
    onChange: (at) => send(model, "show", KINDS[at]),
  });
  const again = button({
    label: "start again",
    title: "The matrix and the map as they were",
    onClick: () => {
      spoken = "entry";
      model.set("entry", first.entry);
      model.set("show", first.show);
      send(model, "matrix", start);
    },
  });
  fig.controls.append(entrySlider.element, whole.element, kind.element, again.element);

  const middle = marked(
    grid({
      rows: features,
      columns: features,
      label: "A, which feature asks for which",
      rowTitle: "asking",
      columnTitle: "answering",
      scale: (colors) => divergingScale(colors, reach),
      format: entryText,
      cellName: (row, column, text) =>
        `${featureNames[row]} asks for ${featureNames[column]}: ${text}`,
      onHover: relate,
      onSelect: (row, column) => {
        send(model, "entry", [row, column]);
        speakOf("entry"); // also where the entry is the same as before
      },
      maxCell: 50,
    }),
  );
  const map = marked(
    grid({
      rows: tokens,
      columns: tokens,
      label: "Attention in the sentence",
      format: (value) => fixed(value),
      cellName: (row, column, text) =>
        `${tokenNames[row]} to ${tokenNames[column]}: ${model.get("show").slice(0, -1)} ${text}`,
      onSelect: (row, column) => {
        send(model, "cell", [row, column]);
        speakOf("cell");
      },
      onHover: relate,
      maxCell: 58,
    }),
  );
  const title = element("p", { class: "afm-mm-name" });
  fig.add(
    named(element("p", { class: "afm-mm-name" }, "A: which feature asks for which"), middle),
    {
      basis: 285,
    },
  );
  fig.add(named(title, map), { basis: 285 });

  let found = null;
  let scaled = "";

  function update() {
    const matrix = model.get("matrix");
    const entry = model.get("entry");
    const show = model.get("show");
    found = lookAt(vectors, matrix);
    const value = matrix[entry[0]][entry[1]];
    entrySlider.set(value);
    entrySlider.input.setAttribute("aria-label", `entry ${entryName(entry)}`);
    entrySlider.element.firstChild.textContent = entryName(entry);
    whole.set(presets.findIndex((preset) => equal(preset, matrix)));
    kind.set(KINDS.indexOf(show));
    middle.paint(matrix);
    middle.select(...entry);
    const limit = Math.max(reach, ...found.scores.flat().map(Math.abs));
    if (scaled !== `${show} ${limit}`) {
      scaled = `${show} ${limit}`;
      map.setScale(
        show === "scores" ? (colors) => divergingScale(colors, limit) : (c) => sequentialScale(c),
      );
    }
    map.paint(found[show]);
    title.textContent = show === "scores" ? "Scores: X A Xᵀ" : "Weights: the softmax of X A Xᵀ";
    if (spoken === "entry") map.select(null);
    else map.select(...model.get("cell"));
    relate();
  }

  /** What is pointed at, in either grid, and what belongs to it in the other; else what is chosen. */
  function relate() {
    if (!found) return;
    const matrix = model.get("matrix");
    const [entry, cell] = [middle.pointed, map.pointed];
    if (entry || (!cell && spoken === "entry")) {
      const shown = entry ?? model.get("entry");
      middle.mark([]);
      map.mark(pairsOf(vectors, ...shown));
      sayEntry(...shown);
    } else {
      const shown = cell ?? model.get("cell");
      map.mark([]);
      middle.mark(
        termsOf(vectors, matrix, ...shown).map(({ asking, answering }) => [asking, answering]),
      );
      sayCell(...shown);
    }
  }

  const entryName = ([asking, answering]) => `${featureNames[asking]} → ${featureNames[answering]}`;

  function sayEntry(asking, answering) {
    const pairs = pairsOf(vectors, asking, answering);
    const head = [
      { text: features[asking], role: "query" },
      " → ",
      { text: features[answering], role: "key" },
      " is ",
      { text: entryText(model.get("matrix")[asking][answering]) },
    ];
    if (!pairs.length) {
      fig.say(...head, ". No word has the one feature while another has the other.");
      return;
    }
    const told = pairs
      .slice(0, MOST_NAMED)
      .flatMap(([i, j], at) => [
        at ? "; " : "",
        { text: tokens[i], role: "query" },
        " gives ",
        { text: tokens[j], role: "key" },
        " ",
        { text: fixed(found.weights[i][j]) },
      ]);
    const rest = pairs.length > MOST_NAMED ? `; and ${pairs.length - MOST_NAMED} more` : "";
    fig.say(...head, ". So ", ...told, `${rest}.`);
  }

  function sayCell(i, j) {
    const terms = termsOf(vectors, model.get("matrix"), i, j).filter(({ adds }) => adds);
    const told = terms
      .slice(0, MOST_NAMED)
      .map(
        ({ asking, answering, adds }) =>
          `${entryText(adds)} from ${featureNames[asking]} → ${featureNames[answering]}`,
      );
    const rest = terms.length > MOST_NAMED ? " and more" : "";
    fig.say(
      { text: tokens[i], role: "query" },
      " to ",
      { text: tokens[j], role: "key" },
      ": score ",
      { text: fixed(found.scores[i][j]) },
      told.length ? ` (${told.join(", ")}${rest})` : " (no entry of A reaches it)",
      ", weight ",
      { text: fixed(found.weights[i][j]) },
      ".",
    );
  }

  fig.exports({
    name: "matrix-in-the-middle",
    csv: () => {
      const matrix = model.get("matrix");
      return [
        ["A", ...features],
        ...features.map((feature, f) => [feature, ...matrix[f]]),
        [],
        ["score", ...tokens],
        ...tokens.map((token, i) => [token, ...found.scores[i]]),
        [],
        ["weight", ...tokens],
        ...tokens.map((token, i) => [token, ...found.weights[i]]),
      ];
    },
  });
  const speakOf = (what) => {
    spoken = what;
    update();
  };
  for (const trait of ["matrix", "show"]) fig.listen(model, `change:${trait}`, update);
  for (const trait of ["entry", "cell"]) {
    fig.listen(model, `change:${trait}`, () => speakOf(trait));
  }
  update();

  const setEntry = (at, index) => {
    speakOf("entry");
    model.set(
      "entry",
      model.get("entry").map((old, i) => (i === at ? index : old)),
    );
  };
  const names = labels(tokens);
  drive(fig, model, {
    set: {
      matrix: (at) => model.set("matrix", presets[at]),
      asking: (index) => setEntry(0, index),
      answering: (index) => setEntry(1, index),
      value: (value) =>
        model.set("matrix", withEntry(model.get("matrix"), model.get("entry"), value)),
    },
    reset: () => speakOf("entry"),
    facts() {
      const facts = {
        moved: moved(model.get("matrix"), start),
        asymmetry: asymmetry(found.scores),
      };
      names.forEach((query, i) => {
        names.forEach((key, j) => {
          facts[`score ${query} ${key}`] = found.scores[i][j];
          facts[`weight ${query} ${key}`] = found.weights[i][j];
        });
      });
      return facts;
    },
  });
  return fig.end;
}

/** A part with a line above it. */
function named(line, part) {
  return { ...part, element: element("div", {}, line, part.element) };
}

export default { render };
