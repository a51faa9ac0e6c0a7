import { button, choices, element } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { temperatureSlider, topPSlider } from "../core/filters.js";
import { percentAmong } from "../core/numbers.js";
import { remote } from "../core/remote.js";
import { drive } from "../core/state.js";
import { loadWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { gifts } from "../math/gifts.js";
import { comparison } from "./comparison.js";
import { details } from "./details.js";
import { drawing } from "./drawing.js";
import { asker } from "./mind.js";
import {
  addsPositions,
  candidates,
  drawn,
  FEW,
  factsOf,
  isSwitch,
  largest,
  MOST,
  partOf,
  rowOf,
  silent,
} from "./model.js";
import { lookOf, sayingOf } from "./said.js";
import { storyPanel } from "./story.js";
import { nextWords } from "./words.js";

const HINTS = {
  story: "Try: click the word that comes next, and the next. Then ask who has what.",
  drawing: "Try: click a part of the machine, from the top down. Then click another word.",
  comparison: "Try: click a cell: the two vectors of one word, in two stories.",
  laboratory: "Try: switch off one head after another, and watch the answer.",
};
const NAMES = {
  story: "The machine and its story",
  drawing: "The machine and its parts",
  comparison: "The machine in two stories",
  laboratory: "The machine",
};
const WATCHED = ["text", "word", "off", "patches", "exchange", "temperature", "top_p", "switches"];

function render({ model, el }) {
  const known = readJson(model, "_text");
  const { vocabulary, texts, parts, about } = known;
  const config = readJson(model, "_config");
  const grammar = gifts(known.grammar);
  const idOf = (word) => vocabulary.indexOf(word);
  const view = model.get("view");
  const shows = (...views) => views.includes(view) || view === "laboratory";
  const breaks = view === "drawing" && model.get("switches");
  const name = [NAMES[view], model.get("name")].filter(Boolean).join(": ");
  const fig = figure(el, { name, hint: HINTS[breaks ? "laboratory" : view] });
  fig.element.classList.add("afm-machine");

  // --- the text, and the words that may come next
  const story = storyPanel({
    model,
    known,
    context: config.context,
    grammar,
    draw,
    stopped: update,
  });
  if (shows("story")) fig.controls.append(...story.controls);
  fig.picture.before(...story.parts);
  if (view === "story") fig.picture.after(fig.controls); // the story itself comes first
  const list = nextWords({ onChoose: story.say });
  const heat = temperatureSlider(model, (value) => send(model, "temperature", value));
  const nucleus = topPSlider(model, (value) => send(model, "top_p", value));
  if (shows()) fig.controls.append(heat.element, nucleus.element);

  // --- the parts, and the two stories
  const clicks = choices({
    label: "a click on a part",
    value: 0,
    options: ["shows it", "switches it"],
    onChange: (at) => send(model, "switches", at === 1),
  });
  const allOn = button({ label: "all on", onClick: () => send(model, "off", []) });
  const picture = drawing({
    parts,
    config,
    onSelect(place, byKey = false) {
      model.set("part", parts.indexOf(place));
      if (!byKey && model.get("switches") && isSwitch(place)) flip(place);
      else model.save_changes();
    },
    onSwitch: flip,
  });
  const panel = details({ about, config, vocabulary, onSwitch: flip });
  const names = [
    "table",
    "start",
    ...Array.from({ length: config.n_layers }, (_, i) => `block ${i + 1}`),
    "says",
  ];
  // Positions that turn queries and keys add nothing, so that the stream starts as the table's row.
  const starts = config.smear > 0 || addsPositions(config);
  const levels = names
    .map((name, level) => ({ name, level }))
    .filter(({ name }) => starts || name !== "start");
  const { people, gifts: things } = known.grammar;
  const pair = comparison({
    levels,
    choices: [...people, ...things].map((word) => ({ word, id: idOf(word) })),
    onExchange(which, id) {
      const now = [...model.get("exchange")];
      now[which] = id;
      model.set("patches", []);
      send(model, "exchange", now);
    },
    onCell(level, word) {
      model.set("level", level);
      story.look(word);
    },
    onPatch: () => patch([model.get("level") - 1, story.here()]),
    onUnpatch: () => send(model, "patches", []),
  });
  if (shows("drawing")) {
    story.bar.append(clicks.element, allOn.element);
    fig.element.classList.add("afm-compact"); // drawing, panel and answer: in one screen
    fig.add(picture, { basis: 300 });
    const side = element("div", { class: "afm-side" }, list.element, panel.element);
    fig.add({ element: side, theme: panel.theme }, { basis: 290 });
  } else fig.add(list, { basis: 420 });
  if (view === "comparison") fig.element.classList.add("afm-compact");
  if (shows("comparison")) {
    fig.picture.append(element("div", { class: "afm-break" }, pair.controls, pair.other));
    fig.add(pair.map, { basis: 560 });
    fig.add(pair.below, { basis: 300 });
  }

  function flip(place) {
    const off = model.get("off");
    send(model, "off", off.includes(place) ? off.filter((one) => one !== place) : [...off, place]);
  }

  function patch([block, at]) {
    const known_ = model.get("patches");
    const same = ([b, a]) => b === block && a === at;
    send(
      model,
      "patches",
      known_.some(same) ? known_.filter((one) => !same(one)) : [...known_, [block, at]],
    );
  }

  // --- the model
  const far = remote(model.get("_worker"));
  const ready = loadWeights(model, "_packed").then((bytes) => far.call("load", bytes, config));
  ready.catch(() => {}); // told where it is asked
  const mind = asker({
    question,
    async answer(asked) {
      await ready;
      return far.call("read", asked);
    },
    onAnswer(found) {
      send(model, "chances", Array.from(found.chances.at(-1)));
      show();
    },
    onError: (error) => story.fail(`The machine could not run here: ${error.message}`),
  });
  fig.onEnd(() => {
    story.stop();
    far.end();
  });

  function question() {
    const rest = {
      ids: model.get("text"),
      off: silent(model.get("off")),
      patches: model.get("patches"),
      exchange: model.get("exchange"),
      word: story.here(),
    };
    return { ...rest, key: JSON.stringify(rest) };
  }

  /** The next word, while the machine writes. */
  function draw() {
    const fresh = mind.isBusy ? null : mind.newest();
    if (!fresh) return null;
    const draws = model.get("draws");
    model.set("draws", draws + 1);
    const settings = { temperature: model.get("temperature"), topP: model.get("top_p"), draws };
    return drawn(fresh.chances.at(-1), settings);
  }

  // --- what is shown
  let planned = false;

  /** Once for all that changes together. */
  function update() {
    if (planned) return;
    planned = true;
    queueMicrotask(() => {
      planned = false;
      follow();
    });
  }

  function follow() {
    heat.set(model.get("temperature"));
    nucleus.set(model.get("top_p"));
    clicks.set(Number(model.get("switches")));
    clicks.element.hidden = !shows() && !breaks && !model.get("switches");
    story.follow();
    allOn.element.hidden = model.get("off").length === 0;
    show();
    mind.ask();
  }

  function show() {
    if (story.isWithin()) return;
    const state = story.state();
    const fresh = mind.newest();
    const { kind, layer, head } = partOf(parts[model.get("part")]);
    const looking = shows("drawing") && kind === "head" && fresh;
    const row = looking ? rowOf(fresh.maps[layer][head], fresh.word) : null;
    story.paint(state, row);
    if (!fresh) return;
    showNext(fresh, state);
    if (shows("drawing")) showParts(fresh, state.now);
    if (shows("comparison")) showPair(fresh, state.now);
    fig.say(
      ...sayingOf({
        chances: fresh.chances[fresh.word],
        vocabulary,
        off: model.get("off"),
        patched: model.get("patches").length > 0,
        right: fresh.word === state.now.length - 1 ? state.answer : null,
      }),
      ...(row ? lookOf(parts[model.get("part")], row, state.now, fresh.word) : []),
    );
  }

  function showNext(fresh, { now, gift, answer }) {
    const before = grammar.read(now.slice(0, fresh.word + 1));
    list.paint({
      rows: candidates({
        now: fresh.chances[fresh.word],
        whole: fresh.whole,
        allowed: before.allowed,
        vocabulary,
        most: view === "drawing" ? FEW : MOST,
      }),
      count: vocabulary.length,
      touched: fresh.touched,
      answer: gift && fresh.word === now.length - 1 ? answer : null,
      after: now[fresh.word],
    });
  }

  function showParts(fresh, now) {
    const place = parts[model.get("part")];
    const [best] = largest(fresh.chances[fresh.word], 1);
    const share = percentAmong(fresh.chances[fresh.word][best], vocabulary.length);
    const all = { found: fresh, words: now, off: model.get("off"), word: now[fresh.word] };
    picture.paint({ ...all, selected: place, said: `${vocabulary[best]} ${share}` });
    panel.paint({ ...all, place });
  }

  function showPair(fresh, now) {
    pair.paint({
      words: now,
      twin: story.words(fresh.twin),
      closeness: fresh.closeness,
      level: model.get("level"),
      word: fresh.word,
      patches: model.get("patches"),
      exchange: model.get("exchange"),
      mine: fresh.levels[model.get("level")],
      theirs: fresh.others[model.get("level")],
    });
  }

  fig.exports({
    name: "machine",
    csv: () => [
      ["after", ...vocabulary],
      ...(mind.found?.chances ?? []).map((row, at) => [vocabulary[mind.found.ids[at]], ...row]),
    ],
  });
  for (const name of [...WATCHED, "part", "level"]) fig.listen(model, `change:${name}`, update);
  follow();
  drive(fig, model, {
    set: {
      story: (at) => story.write(texts[at]),
      ask: (id) => story.askFor(vocabulary[id]),
      say: (id) => story.write([...model.get("text"), id]),
      word: (at) => model.set("word", at === null ? -1 : at),
      off: (at) => isSwitch(parts[at]) && !model.get("off").includes(parts[at]) && flip(parts[at]),
      on: (at) => model.get("off").includes(parts[at]) && flip(parts[at]),
      all_on: () => model.set("off", []),
      patch: ([block, at]) => patch([block, at]),
      unpatch: () => model.set("patches", []),
    },
    reset: story.stop,
    async settled() {
      await Promise.resolve(); // update() has run
      await mind.ask();
    },
    facts: () =>
      factsOf({
        ...story.state(),
        found: mind.newest(),
        vocabulary,
        off: model.get("off"),
        patches: model.get("patches"),
      }),
  });
  return fig.end;
}

export default { render };
