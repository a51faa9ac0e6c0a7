import { button, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { percent } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { drawScores, factor, look } from "./model.js";
import { panels } from "./panels.js";
import { saturation } from "./saturation.js";

function render({ model, el }) {
  const { widest, seeds } = readJson(model, "_limits");
  const n = model.get("n_keys");
  const start = model.get("seed");
  let [drawn, prefix] = [null, null];

  const fig = figure(el, {
    name: "Scaling lab",
    hint: "Try: move d_k to the right. Then draw new vectors a few times at a large d_k.",
  });
  const width = slider({
    label: "d_k",
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
    onClick: () => send(model, "seed", (model.get("seed") + 1) % seeds),
  });
  const back = button({
    label: "first ones",
    title: "The vectors that the figure began with",
    onClick: () => send(model, "seed", start),
  });
  fig.controls.append(width.element, again.element, back.element);
  const rows = panels(n);
  const curve = saturation();
  fig.add(rows, { basis: 420 });
  fig.add(curve, { basis: 300 });

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
    curve.paint(d_k);
    const share = (side) => percent(Math.max(...side.weights), side === found.raw ? 1 : 0);
    const times = found.scaled.gradient / found.raw.gradient;
    fig.say(
      "At d_k = ",
      { text: String(d_k) },
      " the largest raw score takes ",
      { text: share(found.raw) },
      " of the attention, the largest scaled one ",
      { text: share(found.scaled) },
      ". ",
      ...(d_k === 1
        ? ["At width 1 both are the same."]
        : times > 1
          ? ["Scaling lets ", { text: factor(times) }, " times as much gradient through."]
          : [
              "Here scaling lets ",
              { text: factor(1 / times) },
              " times less gradient through: it happens, by a near tie.",
            ]),
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
        ["entropy", "", raw.entropy, "", scaled.entropy],
        ["norm of the Jacobian", "", raw.gradient, "", scaled.gradient],
      ];
    },
  });
  fig.listen(model, "change:d_k", update);
  fig.listen(model, "change:seed", update);
  update();
  drive(fig, model, { facts: () => factsOf(now(), model) });
  return fig.end;
}

/** The numbers that a goal may ask for, by name (widget.py, Facts). */
function factsOf({ raw, scaled }, model) {
  return {
    d_k: model.get("d_k"),
    seed: model.get("seed"),
    "largest raw weight": Math.max(...raw.weights),
    "largest scaled weight": Math.max(...scaled.weights),
    "raw entropy": raw.entropy,
    "scaled entropy": scaled.entropy,
    "raw gradient": raw.gradient,
    "scaled gradient": scaled.gradient,
  };
}

export default { render };
