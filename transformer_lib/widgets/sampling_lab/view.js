import { button, element, font, select, slider, textWidth } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { temperatureSlider, topPSlider } from "../core/filters.js";
import { fixed, percentAmong } from "../core/numbers.js";
import { drive, endsOf, labels } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { countDraws, ranked } from "../math/sampling.js";
import { bars } from "./bars.js";
import { drawMany, kSteps, linesFor, look, tail } from "./model.js";

const TRY = {
  temperature: "lower the temperature to 0, then raise it above 1.",
  top_p: "Bring top-p down until one token remains.",
};
const SETTINGS = ["context", "temperature", "top_k", "top_p", "min_p"];

function render({ model, el }) {
  const { vocabulary, contexts, sliders } = readJson(model, "_text");
  const { draws: mostDraws } = readJson(model, "_limits");
  const size = vocabulary.length;
  const logits = readFloats(model, "_logits");
  const steps = kSteps(size);
  const start = Object.fromEntries(SETTINGS.map((name) => [name, model.get(name)]));

  const tries = sliders.flatMap((name) => TRY[name] ?? []);
  const fig = figure(el, {
    name: "Sampling lab",
    hint: ["Try:", ...tries, tries.length ? "Then draw." : "draw from what remains."].join(" "),
  });
  /** Another setting; what was drawn with the one before goes. */
  function change(values) {
    model.set("draws", []);
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
  }

  const which = select({
    label: "after",
    value: 0,
    options: contexts.map((text) => tail(text, 48)),
    onChange: (context) => change({ context }),
  });
  which.element.classList.add("afm-context");
  const heat = temperatureSlider(model, (temperature) => change({ temperature }));
  const keep = slider({
    label: "top-k",
    min: 0,
    max: steps.length - 1,
    step: 1,
    value: 0,
    format: () => String(model.get("top_k") ?? `all ${size}`), // a link's may be between two stops
    onInput: (at) => change({ top_k: at === steps.length - 1 ? null : steps[at] }),
  });
  const nucleus = topPSlider(model, (value) => change({ top_p: value === 1 ? null : value }));
  const least = slider({
    label: "min-p",
    ...endsOf(model, "min_p"),
    step: 0.01,
    value: 0,
    format: (value) => (value === 0 ? "0: all" : fixed(value)),
    onInput: (value) => change({ min_p: value === 0 ? null : value }),
  });
  const offered = { temperature: heat, top_k: keep, top_p: nucleus, min_p: least };
  const drawing = [1, 100].map(
    (count) =>
      button({
        label: `draw ${count}`,
        title: `Draw ${count === 1 ? "a token" : `${count} tokens`} from what remains`,
        onClick: () => drawNow(count),
      }).element,
  );
  const reset = button({
    label: "start again",
    title: "Settings as they were, nothing drawn",
    onClick: () => {
      model.set("_clicks", 0);
      change(start);
    },
  });
  fig.controls.append(
    which.element,
    ...sliders.map((name) => offered[name].element),
    element("div", { class: "afm-draws" }, ...drawing, reset.element),
  );
  const rows = contexts.map((_, at) => logits.subarray(at * size, (at + 1) * size));
  const lines = linesFor(rows);
  const likely = new Set(rows.flatMap((row) => ranked(row).slice(0, lines)));
  const cuts = sliders.some((name) => name !== "temperature");
  const picture = bars(vocabulary, [...likely], lines, { cuts });
  fig.add({ ...picture, layout }, { basis: 320 });

  /** The list of contexts shows as much of their ends as there is room for. */
  function layout(width) {
    contexts.forEach((text, at) => {
      let length = 48;
      while (length > 12 && textWidth(tail(text, length), font(14)) > width - 90) length -= 2;
      which.input.options[at].text = tail(text, length);
    });
    picture.layout(width);
  }

  function now() {
    return look(rows[model.get("context")], {
      temperature: model.get("temperature"),
      topK: model.get("top_k"),
      topP: model.get("top_p"),
      minP: model.get("min_p"),
    });
  }

  function drawNow(count) {
    const draws = model.get("draws");
    const click = model.get("_clicks") + 1;
    const more = drawMany(
      now(),
      Math.min(count, mostDraws - draws.length),
      model.get("_seed"),
      click,
    );
    model.set("_clicks", click);
    send(model, "draws", [...draws, ...more]);
  }

  function update() {
    const [temperature, topK, topP, minP] = SETTINGS.slice(1).map((name) => model.get(name));
    which.set(model.get("context"));
    heat.set(temperature);
    const step = topK === null ? steps.length - 1 : steps.findIndex((k) => k >= topK);
    keep.set(step < 0 ? steps.length - 1 : step);
    nucleus.set(topP ?? 1);
    least.set(minP ?? 0);
    const found = now();
    const draws = model.get("draws");
    for (const node of drawing) node.disabled = draws.length >= mostDraws;
    picture.paint(found, { topP, minP }, countDraws(draws, size), draws.length);
    say(found, temperature, draws);
  }

  function say(found, temperature, draws) {
    const best = found.order[0];
    const name = { text: vocabulary[best], role: "output" };
    const count = draws.filter((token) => token === best).length;
    const context = ["“", { text: tail(contexts[model.get("context")], 36), role: "query" }, "”"];
    fig.say(
      ...(found.remain === 1
        ? [
            "After ",
            ...context,
            temperature === 0 ? " greedy decoding takes " : " only one token remains: ",
            name,
            `${temperature === 0 ? ", always" : ""}. The model itself gives it `,
            { text: percentAmong(found.own[best], size) },
            ".",
          ]
        : [
            { text: `${found.remain} of ${size}` },
            " tokens remain after ",
            ...context,
            ", with an entropy of ",
            { text: `${fixed(found.entropy)} nats` },
            ": as uncertain as a choice among ",
            { text: fixed(Math.exp(found.entropy), 1) },
            " equally likely ones. ",
            name,
            " is drawn with probability ",
            { text: percentAmong(found.probabilities[best], found.remain) },
            "; the model itself gives it ",
            { text: percentAmong(found.own[best], size) },
            ".",
          ]),
      ...(draws.length === 0
        ? []
        : draws.length === 1
          ? [" Drawn: ", { text: vocabulary[draws[0]], role: "output" }, "."]
          : [
              " Drawn last: ",
              { text: vocabulary[draws.at(-1)], role: "output" },
              "; of ",
              { text: String(draws.length) },
              " draws, ",
              { text: String(count) },
              " gave ",
              name,
              ".",
            ]),
    );
  }

  fig.exports({
    name: "sampling",
    csv: () => {
      const found = now();
      const counts = countDraws(model.get("draws"), size);
      const table = found.order.map((i, rank) => [
        vocabulary[i],
        rows[model.get("context")][i],
        found.own[i],
        found.totals[rank],
        found.cut[i] ?? "",
        found.probabilities[i],
        counts[i],
      ]);
      return [
        ["token", "logit", "own probability", "running total", "cut by", "probability", "drawn"],
        ...table,
      ];
    },
  });
  for (const name of [...SETTINGS, "draws"]) fig.listen(model, `change:${name}`, update);
  update();
  const setting = (name) => [name, (value) => change({ [name]: value })];
  drive(fig, model, {
    set: { ...Object.fromEntries(SETTINGS.map(setting)), draw: drawNow },
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const { probabilities, entropy, remain } = now();
      const draws = model.get("draws");
      const counts = countDraws(draws, size);
      const facts = {
        top_k: model.get("top_k") ?? size,
        top_p: model.get("top_p") ?? 1,
        min_p: model.get("min_p") ?? 0,
        remaining: remain,
        entropy,
        "largest probability": probabilities.reduce((most, p) => Math.max(most, p), 0),
        draws: draws.length,
      };
      labels(vocabulary).forEach((token, i) => {
        facts[`probability ${token}`] = probabilities[i];
        facts[`drawn ${token}`] = counts[i];
      });
      return facts;
    },
  });
  return fig.end;
}

export default { render };
