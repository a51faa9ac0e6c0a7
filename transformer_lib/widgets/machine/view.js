import { button, choices, clip, element, select, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, percentAmong } from "../core/numbers.js";
import { remote } from "../core/remote.js";
import { drive } from "../core/state.js";
import { loadWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { gifts } from "../math/gifts.js";
import { comparison } from "./comparison.js";
import { details } from "./details.js";
import { drawing } from "./drawing.js";
import {
  asked,
  asking,
  candidates,
  drawn,
  isSwitch,
  largest,
  partOf,
  readWords,
  rowOf,
  silent,
  titles,
} from "./model.js";
import { chips, nextWords } from "./words.js";

const PAUSE = 180; // milliseconds between two words that are written
const HINTS = {
  story: "Try: click the word that comes next, and the next. Then ask who has what.",
  drawing: "Try: click a part of the machine, from the top down. Then click another word.",
  comparison: "Try: click a cell: the two vectors of one word, in two stories.",
  laboratory: "Try: switch off one head after another, and watch the answer.",
};

function render({ model, el }) {
  const text = readJson(model, "_text");
  const { vocabulary, stories, texts, parts, about, hottest } = text;
  const config = readJson(model, "_config");
  const grammar = gifts(text.grammar);
  const names = { people: text.grammar.people, gifts: text.grammar.gifts };
  const idOf = (word) => vocabulary.indexOf(word);
  const view = model.get("view");
  const shows = (...views) => views.includes(view) || view === "laboratory";
  const breaks = view === "drawing" && model.get("switches");
  const fig = figure(el, { name: "Machine", hint: HINTS[breaks ? "laboratory" : view] });
  fig.element.classList.add("afm-machine");

  let found = null; // the newest answer of the worker, and what it was asked
  let told = null;
  let busy = false; // it is thinking
  let timer = 0; // of the machine's own writing
  const words = (ids = model.get("text")) => ids.map((id) => vocabulary[id]);
  const room = () => config.context - model.get("text").length;
  const here = () => {
    const [at, last] = [model.get("word"), model.get("text").length - 1];
    return at < 0 ? last : Math.min(at, last);
  };

  // --- the text
  const example = select({
    label: "story",
    value: 0,
    options: titles(stories),
    onChange: (at) => write(texts[at]),
  });
  const line = chips({ label: "The story", onSelect: look });
  const ask = element("div", { class: "afm-asks", role: "group", "aria-label": "Ask who has it" });
  const undo = button({
    label: "⌫ last word",
    onClick: () => write(model.get("text").slice(0, -1)),
  });
  const again = button({ label: "new story", onClick: () => write([idOf("<story>")]) });
  const go = button({ label: "let it write", onClick: () => (timer ? stop() : run()) });
  const field = element("input", { type: "text", spellcheck: "false", autocapitalize: "off" });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") writeField();
  });
  const writing = element(
    "label",
    { class: "afm-control afm-machine-write" },
    element("span", { class: "afm-label" }, "or write, and press Enter"),
    field,
  );
  const verdict = element("p", { class: "afm-machine-verdict", role: "status" });
  fig.controls.append(example.element, undo.element, again.element, go.element, writing);
  fig.picture.before(line.element, ask, verdict);
  const list = nextWords({ onChoose: say });

  const heat = slider({
    label: "temperature",
    min: 0,
    max: hottest,
    step: 0.05,
    value: 1,
    format: (value) => (value === 0 ? "0: greedy" : fixed(value)),
    onInput: (value) => send(model, "temperature", value),
  });
  const nucleus = slider({
    label: "top-p",
    min: 0.01,
    max: 1,
    step: 0.01,
    value: 1,
    format: (value) => (value === 1 ? "1: all" : fixed(value)),
    onInput: (value) => send(model, "top_p", value),
  });
  if (shows()) fig.controls.append(heat.element, nucleus.element);

  // --- the parts
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
  const levels = [
    "table",
    "start",
    ...Array.from({ length: config.n_layers }, (_, i) => `block ${i + 1}`),
  ];
  const pair = comparison({
    levels,
    choices: [...names.people, ...names.gifts].map((word) => ({ word, id: idOf(word) })),
    onExchange(which, id) {
      const now = [...model.get("exchange")];
      now[which] = id;
      model.set("patches", []);
      send(model, "exchange", now);
    },
    onCell(level, word) {
      model.set("level", level);
      look(word);
    },
    onPatch: () => patch([model.get("level") - 1, here()]),
    onUnpatch: () => send(model, "patches", []),
  });
  if (shows("drawing")) {
    const bar = element("div", { class: "afm-controls" }, clicks.element, allOn.element);
    fig.picture.before(bar);
    fig.add(picture, { basis: 330 });
    const side = element("div", { class: "afm-side" }, list.element, panel.element);
    fig.add({ element: side, theme: panel.theme }, { basis: 300 });
  } else fig.add(list, { basis: 420 });
  if (shows("comparison")) {
    fig.picture.append(element("div", { class: "afm-break" }, pair.controls, pair.other));
    fig.add(pair.map, { basis: 560 });
    fig.add(pair.below, { basis: 300 });
  }

  // --- the model
  const far = remote(model.get("_worker"));
  const ready = loadWeights(model, "_packed").then((bytes) => far.call("load", bytes, config));
  ready.catch(() => {}); // told where it is asked
  fig.onEnd(() => {
    stop();
    far.end();
  });

  /** One question at a time; when the answer is there, the newest state is asked for if it is another. */
  async function think() {
    if (busy) return;
    busy = true;
    try {
      await ready;
      for (let asked_ = null; asked_ !== question().key; ) {
        const { key, ...rest } = question();
        asked_ = key;
        found = await far.call("read", rest);
        told = key;
      }
      send(model, "chances", Array.from(found.chances.at(-1)));
      show();
    } catch (error) {
      verdict.textContent = `The machine could not run here: ${error.message}`;
    } finally {
      busy = false;
    }
  }

  function question() {
    const rest = {
      ids: model.get("text"),
      off: silent(model.get("off")),
      patches: model.get("patches"),
      exchange: model.get("exchange"),
      word: here(),
    };
    return { ...rest, key: JSON.stringify(rest) };
  }

  // --- what the reader does
  function write(ids) {
    stop();
    put(ids);
  }

  function put(ids) {
    const kept = ids.length ? ids.slice(0, config.context) : [idOf("<story>")];
    model.set("word", -1);
    model.set(
      "patches",
      model.get("patches").filter(([, at]) => at < kept.length),
    );
    send(model, "text", kept);
  }

  /** Another word: at the end, or after the word that is looked at, where the story takes another way. */
  function say(id) {
    write([...model.get("text").slice(0, here() + 1), id]);
  }

  function writeField() {
    const read = readWords(field.value, vocabulary);
    if (read.unknown !== undefined) {
      verdict.textContent = `The machine does not know the word ${clip(read.unknown, 30)}. It knows: ${vocabulary.slice(1).join(", ")}.`;
      return;
    }
    field.value = "";
    if (read.words.length > room()) {
      verdict.textContent = `The machine reads at most ${config.context} words; there is room for ${room()} more.`;
    } else write([...model.get("text"), ...read.words.map(idOf)]);
  }

  function askFor(gift) {
    const now = words();
    const { start, problem } = grammar.read(now);
    const from = problem ? now.lastIndexOf(".") + 1 : start;
    write(asking(now, gift, Math.max(from, 1), vocabulary).map(idOf));
  }

  function look(at) {
    send(model, "word", at === model.get("text").length - 1 ? -1 : at);
  }

  function flip(place) {
    const off = model.get("off");
    send(model, "off", off.includes(place) ? off.filter((one) => one !== place) : [...off, place]);
  }

  function patch([block, at]) {
    const known = model.get("patches");
    const same = ([b, a]) => b === block && a === at;
    send(
      model,
      "patches",
      known.some(same) ? known.filter((one) => !same(one)) : [...known, [block, at]],
    );
  }

  // --- the machine's own writing
  function run() {
    if (room() === 0 || isWhole()) put([idOf("<story>")]);
    go.element.textContent = "stop";
    timer = setTimeout(step, 0);
  }

  const isWhole = () => grammar.read(words()).allowed.has("<story>");

  function step() {
    timer = setTimeout(step, PAUSE);
    if (busy || !newest()) return;
    const draws = model.get("draws");
    const settings = { temperature: model.get("temperature"), topP: model.get("top_p"), draws };
    const id = drawn(found.chances.at(-1), settings);
    model.set("draws", draws + 1);
    if (vocabulary[id] === "<story>" || room() === 0) stop();
    else put([...model.get("text"), id]);
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
    go.element.textContent = "let it write";
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
    const at = texts.findIndex((ids) => String(ids) === String(model.get("text")));
    if (at >= 0) example.set(at);
    undo.element.disabled = model.get("text").length < 2;
    allOn.element.disabled = model.get("off").length === 0;
    show();
    think();
  }

  function state() {
    const now = words();
    const read = grammar.read(now);
    const gift = asked(now, read.start, names.gifts);
    return { now, read, gift, answer: gift === null ? null : (read.owners.get(gift) ?? null) };
  }

  /** The worker's answer to what the figure shows now; null while it is thinking. */
  const newest = () => (found && told === question().key ? found : null);

  function show() {
    const { now, read, gift, answer } = state();
    const fresh = newest();
    const place = parts[model.get("part")];
    const { kind, layer, head } = partOf(place);
    const looking = shows("drawing") && kind === "head" && fresh;
    const shares = looking ? rowOf(fresh.maps[layer][head], fresh.word) : null;
    line.paint({ words: now, selected: here(), shares, wrong: read.problem?.at ?? null });
    const asks = [...read.owners.keys()];
    if (ask.dataset.gifts !== asks.join()) {
      ask.dataset.gifts = asks.join();
      const label = element("span", { class: "afm-label" }, asks.length ? "ask: who has the" : "");
      const buttons = asks.map((one) => button({ label: `${one} ?`, onClick: () => askFor(one) }));
      ask.replaceChildren(label, ...buttons.map((one) => one.element));
    }
    judge(read);
    if (!fresh) return;
    fig.element.dataset.milliseconds = fresh.milliseconds.toFixed(1);
    const before = grammar.read(now.slice(0, fresh.word + 1));
    const last = fresh.word === now.length - 1;
    list.paint({
      rows: candidates({
        now: fresh.chances[fresh.word],
        whole: fresh.whole,
        allowed: before.allowed,
        vocabulary,
      }),
      count: vocabulary.length,
      touched: fresh.touched,
      answer: last && gift ? answer : null,
      after: now[fresh.word],
    });
    if (shows("drawing")) {
      const [best] = largest(fresh.chances[fresh.word], 1);
      const share = percentAmong(fresh.chances[fresh.word][best], vocabulary.length);
      const all = { found: fresh, words: now, off: model.get("off"), word: now[fresh.word] };
      picture.paint({ ...all, selected: place, said: `${vocabulary[best]} ${share}` });
      panel.paint({ ...all, place });
    }
    if (shows("comparison")) {
      pair.paint({
        words: now,
        twin: words(fresh.twin),
        closeness: fresh.closeness,
        level: model.get("level"),
        word: fresh.word,
        patches: model.get("patches"),
        exchange: model.get("exchange"),
        mine: fresh.levels[model.get("level")],
        theirs: fresh.others[model.get("level")],
      });
    }
    tell(fresh, last ? answer : null);
  }

  function judge({ problem, allowed, owners }) {
    if (problem) {
      const wanted = problem.wanted.slice(0, 8).join(", ");
      verdict.textContent = `Outside of its language: ${problem.word} cannot come there (possible: ${wanted}). The machine has never read such a text, and goes on all the same.`;
    } else if (allowed.has("<story>")) {
      verdict.textContent = "The story is complete: the next word begins another one.";
    } else if (room() === 0) {
      verdict.textContent = `The machine reads at most ${config.context} words: take some away.`;
    } else {
      const known = [...owners].map(([gift, person]) => `${gift}: ${person}`).join(" · ");
      verdict.textContent = known ? `So far, ${known}` : "";
    }
  }

  function tell(answer, right) {
    const row = answer.chances[answer.word];
    const [best] = largest(row, 1);
    const off = model.get("off").map((place) => partOf(place).name);
    const without = `without ${off.slice(0, 3).join("; ")}${off.length > 3 ? "; …" : ""}`;
    const inside = model.get("patches").length ? "with vectors of the other story, " : "";
    const said = `${inside}${off.length ? `${without}, ` : ""}it says `;
    fig.say(
      said[0].toUpperCase() + said.slice(1),
      { text: vocabulary[best], role: "output" },
      ", ",
      { text: percentAmong(row[best], vocabulary.length) },
      right ? (vocabulary[best] === right ? ": right." : `: wrong, it is ${right}.`) : ".",
    );
  }

  fig.exports({
    name: "machine",
    csv: () => [
      ["after", ...vocabulary],
      ...(found?.chances ?? []).map((row, at) => [vocabulary[found.ids[at]], ...row]),
    ],
  });
  const watched = [
    "text",
    "word",
    "off",
    "patches",
    "exchange",
    "temperature",
    "top_p",
    "switches",
  ];
  for (const name of [...watched, "part", "level"]) fig.listen(model, `change:${name}`, update);
  follow();
  drive(fig, model, {
    set: {
      story: (at) => write(texts[at]),
      ask: (id) => askFor(vocabulary[id]),
      say: (id) => write([...model.get("text"), id]),
      word: (at) => model.set("word", at === null ? -1 : at),
      off: (at) => isSwitch(parts[at]) && !model.get("off").includes(parts[at]) && flip(parts[at]),
      on: (at) => model.get("off").includes(parts[at]) && flip(parts[at]),
      all_on: () => model.set("off", []),
      patch: ([block, at]) => patch([block, at]),
      unpatch: () => model.set("patches", []),
    },
    reset: stop,
    facts() {
      const { now, read, gift, answer } = state();
      const now_ = newest();
      const chances = now_?.chances.at(-1);
      const last = now_ && now_.word === now_.ids.length - 1;
      const facts = {
        words: now.length,
        known: read.problem ? 0 : 1,
        asked: gift === null ? 0 : 1,
        moves: read.moves.get(gift) ?? 0,
        off: model.get("off").length,
        "off heads": model.get("off").filter((place) => partOf(place).kind === "head").length,
        patched: model.get("patches").length,
        // While it thinks nothing is known, so that no goal holds by what is not there yet.
        right: answer ? (chances?.[idOf(answer)] ?? null) : 0,
      };
      vocabulary.forEach((word, id) => {
        facts[`probability ${word}`] = chances?.[id] ?? null;
        facts[`whole ${word}`] = now_ ? (last ? now_.whole[id] : 0) : null;
      });
      return facts;
    },
  });
  return fig.end;
}

export default { render };
