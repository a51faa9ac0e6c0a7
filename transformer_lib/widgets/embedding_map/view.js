import { element, select, slider, svgElement } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, percent } from "../core/numbers.js";
import { drive, endsOf } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { nearest, onMap } from "./model.js";
import { neighbors } from "./near.js";
import { mark, scatter } from "./scatter.js";

const LISTED = 6; // words in the list, of which the map joins the first three
const JOINED = 3;

function render({ model, el }) {
  const { words, groups, kinds, shares, d } = readJson(model, "_text");
  const places = readFloats(model, "_places");
  const cosines = readFloats(model, "_cosines");
  const [count, width] = [words.length, shares.length];
  let marked = null;

  const fig = figure(el, {
    name: "Map of the words",
    hint: "Try: choose a word, on the map or in the list. Its lines lead to the words that are nearest in all components. Are these near on the map, too?",
  });
  const chooser = select({
    label: "word",
    options: words,
    value: model.get("selection"),
    onChange: choose,
  });
  const turn = slider({
    label: "directions",
    ...endsOf(model, "pair"),
    step: 1,
    value: model.get("pair"),
    format: (pair) => `${2 * pair + 1} and ${2 * pair + 2}`,
    onInput: (pair) => send(model, "pair", pair),
  });
  fig.controls.append(chooser.element);
  if (width > 2) fig.controls.append(turn.element);
  const map = scatter({
    words,
    kinds,
    onPoint: (i) => {
      point(i);
      say(i);
    },
    onChoose: choose,
  });
  const list = neighbors({ words, kinds, onPoint: point, onChoose: choose });
  fig.add(map, { basis: 380 });
  fig.add(list, { basis: 230 });
  if (groups.length) list.element.append(legend());

  function legend() {
    const items = [...groups, ...(kinds.includes(-1) ? ["others"] : [])].map((name, i) =>
      element(
        "span",
        {},
        svgElement(
          "svg",
          { width: 16, height: 16, viewBox: "-8 -8 16 16", "aria-hidden": "true" },
          mark(i < groups.length ? i : -1),
        ),
        name,
      ),
    );
    return element("p", { class: "afm-map-legend" }, ...items);
  }

  function choose(i) {
    send(model, "selection", i);
  }

  function point(i) {
    marked = i;
    paint();
  }

  const share = () => {
    const pair = model.get("pair");
    return shares[2 * pair] + shares[2 * pair + 1];
  };

  function paint() {
    const [chosen, pair] = [model.get("selection"), model.get("pair")];
    const near = nearest(cosines, count, chosen).slice(0, LISTED);
    map.paint({
      points: onMap(places, width, pair),
      chosen,
      near: near.slice(0, JOINED).map(([i]) => i),
      marked,
      axes: [`direction ${2 * pair + 1}`, `direction ${2 * pair + 2}`],
    });
    list.paint({ near, marked });
  }

  function update() {
    const chosen = model.get("selection");
    chooser.set(chosen);
    turn.set(model.get("pair"));
    paint();
    say();
  }

  function say(pointed = null) {
    const chosen = model.get("selection");
    const [[first]] = nearest(cosines, count, chosen);
    const other = pointed === null || pointed === chosen ? first : pointed;
    fig.say(
      "In all ",
      { text: String(d) },
      " components, ",
      { text: words[chosen], role: "query" },
      other === first ? " is nearest to " : " is compared with ",
      { text: words[other], role: "key" },
      ": their cosine is ",
      { text: fixed(cosines[chosen * count + other]) },
      ". The map shows ",
      { text: percent(share()) },
      " of the differences between the words.",
    );
  }

  fig.exports({
    name: "embedding-map",
    csv: () => [
      ["word", "kind", ...shares.map((_, i) => `direction ${i + 1}`), "cosine"],
      ...words.map((word, i) => [
        word,
        groups[kinds[i]] ?? "",
        ...places.slice(i * width, (i + 1) * width),
        cosines[model.get("selection") * count + i],
      ]),
    ],
  });
  for (const name of ["selection", "pair"]) fig.listen(model, `change:${name}`, update);
  update();
  drive(fig, model, {
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts: () => ({
      cosine: nearest(cosines, count, model.get("selection"))[0][1],
      share: share(),
    }),
  });
  return fig.end;
}

export default { render };
