import { button, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, reading } from "../core/numbers.js";
import { drive, endsOf } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { drawScores, gapToBest, look } from "./model.js";
import { nearOne, panels } from "./panels.js";
import { saturation } from "./saturation.js";

function render({ model, el }) {
  const { levels } = readJson(model, "_limits");
  const widest = endsOf(model, "d_k").max;
  const level = levels.indexOf(model.get("show"));
  const n = model.get("n_keys");
  const start = model.get("seed");
  let [drawn, prefix] = [null, null];

  const fig = figure(el, {
    name: "Scaling lab",
    hint: "Try: move dₖ to the right. Then draw new vectors a few times at a large dₖ.",
  });
  const width = slider({
    label: "dₖ",
    min: 0,
    max: Math.log2(widest),
    step: 1,
    value: Math.log2(model.get("d_k")),
    format: (power) => String(Math.round(2 ** power)),
    onInput: (power) => send(model, "d_k", 2 ** power),
  });
  const again = button({
    label: "draw new vectors",
    title: "Another random query with other random keys",
    onClick: () => send(model, "seed", (model.get("seed") + 1) % endsOf(model, "seed").max),
  });
  const back = button({
    label: "start again",
    title: "The vectors that the figure began with",
    onClick: () => send(model, "seed", start),
  });
  fig.controls.append(width.element, again.element, back.element);
  const rows = panels(n, level, update);
  const curve = level > 0 ? saturation() : null;
  fig.add(rows, { basis: 420 });
  if (curve) fig.add(curve, { basis: 1000 }); // always below

  function now() {
    if (drawn !== model.get("seed")) {
      drawn = model.get("seed");
      prefix = drawScores(drawn, n, widest);
    }
    return look(prefix, model.get("d_k"));
  }

  function update() {
    const d_k = model.get("d_k");
    const found = now();
    width.set(Math.log2(d_k));
    rows.paint(found);
    curve?.paint(d_k);
    const { raw, scaled } = found;
    const key = rows.pointing.now;
    rows.light(key);
    const gaps =
      key === null || n < 2
        ? null
        : { raw: gapToBest(raw.scores, key), scaled: gapToBest(scaled.scores, key) };
    curve?.place(gaps);
    if (key !== null) {
      sayKey(key, found, gaps);
      return;
    }
    const gap = Math.abs(raw.largest - scaled.largest);
    const slope = (side) => (level > 0 ? [" (slope ", { text: reading(side.slope) }, ")"] : []);
    fig.say(
      "At dₖ = ",
      { text: String(d_k) },
      " the largest raw score takes a weight of ",
      { text: nearOne(raw.largest) },
      ...slope(raw),
      ...(gap < 1e-9
        ? [". At width 1 the division by √1 changes nothing."]
        : [
            `. Divided by √${d_k}, it takes `,
            { text: nearOne(scaled.largest) },
            ...slope(scaled),
            ".",
          ]),
    );
  }

  /** The key that is pointed at: both bars, and where it is on the curve. */
  function sayKey(j, { raw, scaled }, gaps) {
    const score = (value) => ({ text: fixed(value, Math.abs(value) < 10 ? 2 : 1) });
    const where =
      raw.scores[j] === Math.max(...raw.scores) ? " above the next" : " below the largest";
    const away = (gap) => (gaps && level > 0 ? [" (", score(gap), where, ")"] : []);
    fig.say(
      `Key ${j + 1}: raw score `,
      score(raw.scores[j]),
      ...away(gaps?.raw),
      ", weight ",
      { text: nearOne(raw.weights[j]) },
      "; scaled ",
      score(scaled.scores[j]),
      ...away(gaps?.scaled),
      ", weight ",
      { text: nearOne(scaled.weights[j]) },
      ".",
    );
  }

  fig.exports({
    name: "scaling",
    csv: () => {
      const { raw, scaled } = now();
      const lines = raw.scores.map((score, j) => [
        j + 1,
        score,
        raw.weights[j],
        scaled.scores[j],
        scaled.weights[j],
      ]);
      return [
        ["key", "score", "weight", "scaled score", "scaled weight"],
        ...lines,
        ["largest weight p", "", raw.largest, "", scaled.largest],
        ["slope p(1 - p)", "", raw.slope, "", scaled.slope],
        ["entropy", "", raw.entropy, "", scaled.entropy],
        ["norm of the Jacobian", "", raw.jacobian, "", scaled.jacobian],
      ];
    },
  });
  fig.listen(model, "change:d_k", update);
  fig.listen(model, "change:seed", update);
  update();
  drive(fig, model, { facts: () => factsOf(now()) });
  return fig.end;
}

/** The numbers that a goal may ask for, by name (widget.py, Facts). */
function factsOf({ raw, scaled }) {
  return {
    "largest raw weight": raw.largest,
    "largest scaled weight": scaled.largest,
    "raw slope": raw.slope,
    "scaled slope": scaled.slope,
    "raw entropy": raw.entropy,
    "scaled entropy": scaled.entropy,
  };
}

export default { render };
