import { choices, clip, fitText, showToken, svgElement, textWidth } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { readFloats, readJson, send } from "../core/wire.js";

const FONT = "13px system-ui, sans-serif";
const MOST = 8; // words in the list of what may come next
const BAR = 30; // the height of the largest surprise
const LINE = 70;
const CAME = " ◂ came";

/** −ln of the probability that each word had, in nats, and their mean: the loss. */
export function surprises(rows, targets) {
  const each = rows.map((row, t) => Math.max(0, -Math.log(row[targets[t]])));
  return { each, loss: each.reduce((sum, value) => sum + value, 0) / each.length };
}

/** The most probable entries, the one that came among them in any case, most probable first. */
export function shortlist(row, came, most = MOST) {
  const order = row.map((_, i) => i).sort((a, b) => row[b] - row[a] || a - b);
  const best = order.slice(0, most);
  if (!best.includes(came)) best[best.length - 1] = came;
  return best;
}

/** A flat array as [predictors][positions][vocabulary]. */
export function unflatten(flat, predictors, positions, size) {
  const row = (p, t) =>
    Array.from(flat.subarray((p * positions + t) * size, (p * positions + t + 1) * size));
  return Array.from({ length: predictors }, (_, p) =>
    Array.from({ length: positions }, (_, t) => row(p, t)),
  );
}

const percent = (share) => (share < 0.0995 ? share.toPrecision(2) : share.toFixed(2));

/** The text as chips, a bar for the surprise over each; a listbox with arrow keys. */
function strip({ words, highest, onSelect }) {
  const svg = svgElement("svg", {
    class: "afm-strip",
    role: "listbox",
    "aria-label": "The text, word by word",
    "aria-orientation": "horizontal",
  });
  let [chips, data] = [[], null];

  function layout(width) {
    const held = svg.contains(document.activeElement);
    let [x, line] = [0, 0];
    chips = words.map((word, at) => {
      const text = fitText(showToken(word), FONT, width - 20);
      const wide = Math.max(26, textWidth(text, FONT) + 14);
      if (x > 0 && x + wide > width - 2) [x, line] = [0, line + 1];
      const [left, top] = [x + 2, line * LINE + BAR + 6];
      x += wide + 4;
      const bar = svgElement("rect", {
        class: "afm-surprise",
        x: left + 3,
        width: wide - 6,
        y: top - 3,
        height: 0,
        rx: 2,
      });
      const group = svgElement(
        "g",
        {
          class: "afm-word",
          ...(at ? { role: "option", tabindex: "-1" } : { "aria-hidden": "true" }),
        },
        svgElement("rect", {
          class: "afm-room",
          x: left,
          y: line * LINE,
          width: wide,
          height: LINE - 4,
        }),
        bar,
        svgElement("rect", {
          class: "afm-word-box",
          x: left,
          y: top,
          width: wide,
          height: 26,
          rx: 5,
        }),
        svgElement(
          "text",
          { class: "afm-word-text", x: left + wide / 2, y: top + 13, "aria-hidden": "true" },
          text,
        ),
      );
      if (at) group.addEventListener("click", () => onSelect(at));
      return { group, bar, top };
    });
    const height = (line + 1) * LINE;
    for (const [name, value] of Object.entries({
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
    }))
      svg.setAttribute(name, value);
    svg.replaceChildren(...chips.map(({ group }) => group));
    paint();
    if (held) chips[data.selection].group.focus({ preventScroll: true });
  }

  function paint(now = data) {
    data = now;
    if (!data || !chips.length) return;
    chips.forEach(({ group, bar, top }, at) => {
      const surprise = at ? data.each[at - 1] : 0;
      const height = (BAR * surprise) / highest;
      bar.setAttribute("height", height);
      bar.setAttribute("y", top - 3 - height);
      group.classList.toggle("afm-on", at === data.selection);
      group.classList.toggle("afm-seen", at < data.selection);
      group.classList.toggle("afm-later", at > data.selection);
      if (!at) return;
      group.setAttribute("aria-selected", String(at === data.selection));
      group.setAttribute("tabindex", at === data.selection ? "0" : "-1");
      group.setAttribute(
        "aria-label",
        `${clip(showToken(words[at]))}, word ${at}: surprise ${surprise.toFixed(2)} nats`,
      );
    });
  }

  const moves = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -1,
    ArrowDown: 1,
    Home: -Infinity,
    End: Infinity,
  };
  svg.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || event.altKey || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = Math.min(words.length - 1, Math.max(1, data.selection + move));
    onSelect(next);
    chips[next].group.focus({ preventScroll: true });
    chips[next].group.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  return { element: svg, layout, paint };
}

/** What may come next: the most probable words as bars, the one that came marked. */
function chances(vocabulary) {
  const svg = svgElement("svg", {
    class: "afm-chances",
    role: "list",
    "aria-label": "What may come next",
  });
  let [width, data] = [0, null];

  function paint(now = data) {
    data = now;
    if (!data || !width) return;
    const { row, came } = data;
    const shown = shortlist(row, came);
    const named = Math.min(100, 0.32 * width);
    const room = Math.max(
      30,
      width - named - 16 - Math.ceil(textWidth(`1.00${CAME}`, `bold ${FONT}`)),
    );
    const height = 26 * Math.min(MOST, vocabulary.length) + 24;
    for (const [name, value] of Object.entries({
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
    }))
      svg.setAttribute(name, value);
    svg.replaceChildren(
      svgElement(
        "text",
        { class: "afm-axis afm-chances-title", x: named + 8, y: 12, "aria-hidden": "true" },
        "probability of the next word",
      ),
      ...shown.map((i, place) => {
        const y = 34 + 26 * place;
        const here = i === came;
        const kind = here ? "afm-chance-text afm-came" : "afm-chance-text";
        const marks = svgElement(
          "g",
          { "aria-hidden": "true" },
          svgElement(
            "text",
            { class: kind, x: named, y, "text-anchor": "end" },
            fitText(showToken(vocabulary[i]), here ? `bold ${FONT}` : FONT, named),
          ),
          svgElement("rect", {
            class: "afm-chance",
            x: named + 8,
            y: y - 9,
            height: 18,
            rx: 3,
            width: Math.max(1, room * row[i]),
          }),
          svgElement(
            "text",
            { class: kind, x: named + 14 + room * row[i], y },
            `${percent(row[i])}${here ? CAME : ""}`,
          ),
        );
        const label = `${clip(showToken(vocabulary[i]))}: ${percent(row[i])}${here ? ", the word that came" : ""}`;
        return svgElement("g", { role: "listitem", "aria-label": label }, marks);
      }),
    );
  }

  const layout = (now) => {
    width = now;
    paint();
  };
  return { element: svg, layout, paint };
}

function render({ model, el }) {
  const { words, vocabulary, predictors, targets } = readJson(model, "_text");
  const rows = unflatten(
    readFloats(model, "_probabilities"),
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
  fig.add(list, { basis: 260 });

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
      { text: chance.toPrecision(3) },
      ", a surprise of −ln ",
      { text: chance.toPrecision(3) },
      " ≈ ",
      { text: each[selection - 1].toFixed(2) },
      " nats. The mean over the whole text, its loss, is ",
      { text: loss.toFixed(2) },
      `: it hesitates as if between ${Math.exp(loss).toFixed(1)} equally likely words.`,
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
  return fig.end;
}

export default { render };
