import { choices } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, precise } from "../core/numbers.js";
import { drive, labels } from "../core/state.js";
import { readDoubles, readJson, send } from "../core/wire.js";
import { chances } from "./chances.js";
import { surprises, unflatten } from "./model.js";
import { strip } from "./strip.js";

function render({ model, el }) {
  const { words, vocabulary, predictors, targets } = readJson(model, "_text");
  const rows = unflatten(
    readDoubles(model, "_probabilities"),
    predictors.length,
    targets.length,
    vocabulary.length,
  );
  const all = rows.map((each) => surprises(each, targets));
  const highest = Math.max(1e-9, ...all.flatMap(({ each }) => each));

  const fig = figure(el, {
    name: "What comes next",
    hint: "Try: choose a predictor and watch the bars, the surprise at each word. Then select a word (or use the arrow keys) to see what was expected there.",
  });
  const chooser = choices({
    label: "predictor",
    options: predictors,
    value: model.get("_chosen"),
    onChange: (now) => send(model, "_chosen", now),
  });
  fig.controls.append(chooser.element);
  const story = strip({ words, highest, onSelect: (at) => send(model, "selection", at) });
  const list = chances(vocabulary);
  fig.add(story, { basis: 420 });
  fig.add(list, { basis: 260, stays: true });

  function update() {
    const [chosen, selection] = [model.get("_chosen"), model.get("selection")];
    const { each, loss } = all[chosen];
    chooser.set(chosen);
    story.paint({ each, selection });
    list.paint({ row: rows[chosen][selection - 1], came: targets[selection - 1] });
    const chance = rows[chosen][selection - 1][targets[selection - 1]];
    fig.say(
      { text: predictors[chosen] },
      " gave ",
      { text: words[selection], role: "output" },
      " the probability ",
      { text: precise(chance, 3) },
      ", a surprise of −ln ",
      { text: precise(chance, 3) },
      " ≈ ",
      { text: fixed(each[selection - 1]) },
      " nats. The mean over the whole text, its loss, is ",
      { text: fixed(loss) },
      `: it hesitates as if between ${fixed(Math.exp(loss), 1)} equally likely words.`,
    );
  }

  fig.exports({
    name: "next-word",
    csv: () => {
      const chosen = model.get("_chosen"); // of its list, the probability of each word that may come
      return [
        [
          "position",
          "word",
          ...predictors,
          ...vocabulary.map((word) => `${predictors[chosen]}: ${word}`),
        ],
        ...targets.map((_, t) => [
          t + 1,
          words[t + 1],
          ...all.map(({ each }) => each[t]),
          ...rows[chosen][t],
        ]),
        ["", "mean", ...all.map(({ loss }) => loss), ...vocabulary.map(() => "")],
      ];
    },
  });
  fig.listen(model, "change:selection", update);
  fig.listen(model, "change:_chosen", update);
  update();
  drive(fig, model, {
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const [chosen, position] = [model.get("_chosen"), model.get("selection")];
      const { each, loss } = all[chosen];
      const surprise = each[position - 1];
      const facts = { position, surprise, probability: Math.exp(-surprise), loss };
      labels(predictors).forEach((name, i) => {
        facts[`loss ${name}`] = all[i].loss;
      });
      return facts;
    },
  });
  return fig.end;
}

export default { render };
