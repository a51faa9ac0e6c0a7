import { button, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { normal } from "../core/random.js";
import { send } from "../core/wire.js";
import { entropy, softmax } from "../math/linear.js";
import { panels, saturation } from "./panels.js";

const LARGEST_POWER = 12;
const MOST_SEEDS = 2 ** 31;

/** Scores of one random query with n random keys, for every width: prefix[j][d_k] is q·k_j. */
export function drawScores(seed, n) {
  const width = 2 ** LARGEST_POWER;
  const vector = (stream) => {
    const draw = normal(seed * 64 + stream);
    return Float64Array.from({ length: width }, draw);
  };
  const query = vector(0);
  return Array.from({ length: n }, (_, j) => {
    const key = vector(j + 1);
    const sums = new Float64Array(width + 1);
    for (let c = 0; c < width; c += 1) sums[c + 1] = sums[c] + query[c] * key[c];
    return sums;
  });
}

/** The Frobenius norm of the softmax's Jacobian, diag(p) - p pᵀ. */
export function jacobianNorm(p) {
  let sum = 0;
  for (let i = 0; i < p.length; i += 1) {
    for (let j = 0; j < p.length; j += 1) {
      const entry = (i === j ? p[i] : 0) - p[i] * p[j];
      sum += entry * entry;
    }
  }
  return Math.sqrt(sum);
}

/** Scores, softmax, entropy and gradient at one width, raw and divided by √d_k. */
export function look(prefix, d_k) {
  const raw = prefix.map((sums) => sums[d_k]);
  const side = (scores) => {
    const weights = softmax(scores);
    return { scores, weights, entropy: entropy(weights), gradient: jacobianNorm(weights) };
  };
  return { raw: side(raw), scaled: side(raw.map((score) => score / Math.sqrt(d_k))) };
}

function render({ model, el }) {
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
    max: LARGEST_POWER,
    step: 1,
    value: Math.log2(model.get("d_k")),
    format: (power) => String(Math.round(2 ** power)),
    onInput: (power) => send(model, "d_k", 2 ** power),
  });
  const again = button({
    label: "draw new vectors",
    title: "Another random query with other random keys",
    onClick: () => send(model, "seed", (model.get("seed") + 1) % MOST_SEEDS),
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
      prefix = drawScores(drawn, n);
    }
    return look(prefix, model.get("d_k"));
  }

  function update() {
    const d_k = model.get("d_k");
    const found = now();
    width.set(Math.log2(d_k));
    rows.paint(found);
    curve.paint(d_k);
    const share = (side) =>
      `${(100 * Math.max(...side.weights)).toFixed(side === found.raw ? 1 : 0)} %`;
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
  return fig.end;
}

/** A factor that reads well: 1.4, 38, 5,200 or 3 × 10^9. */
function factor(value) {
  if (value < 10) return value.toPrecision(2);
  if (value < 1e6) return Number(value.toPrecision(2)).toLocaleString("en-US");
  const power = Math.floor(Math.log10(value));
  return `${(value / 10 ** power).toFixed(0)} × 10^${power}`;
}

export default { render };
