import { button, clip, element, select, textField } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, percentAmong } from "../core/numbers.js";
import { remote } from "../core/remote.js";
import { drive } from "../core/state.js";
import { loadWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { kannada } from "../math/kannada.js";
import { alternatives, missing, share, shuffled, sourceIds, withWord } from "./model.js";
import { canDraw, scene } from "./scene.js";

const PAUSE = 500; // milliseconds between two words that are written
const SURE = 0.99; // below that, a word shows how probable it was
const ALL = "all heads";

function render({ model, el }) {
  const { tables, source, target, examples } = readJson(model, "_text");
  const config = readJson(model, "_config");
  const grammar = kannada(tables);
  const { words } = grammar;
  const idOf = sourceIds(source);
  const fig = figure(el, {
    name: "Translator",
    hint: "Try: click a Kannada word to put another in its place. Click an English word to see what it was written from, and what else could have come.",
  });

  // What is not in the model: the newest translation, and the word whose attention is shown.
  let found = null; // { best, cross, chances, next } of the worker
  let shown = 0; // words that are written so far
  let chosen = 0;
  let newest = 0; // of the questions to the worker, so that an old answer is thrown away
  let timer = 0;
  let wanted = null; // a word of the translation that is to be shown once it is there

  const again = button({
    label: "write it again",
    title: "Writes the translation word by word",
    onClick: () => reveal(0, true),
  });
  const step = button({
    label: "one word more",
    title: "Writes the next word; after the last, begins anew",
    onClick: () => reveal(shown < translated().length ? shown + 1 : 1, false),
  });
  const verdict = element("p", { class: "afm-verdict", role: "status" });
  fig.controls.append(again.element, step.element, verdict);

  const stage = scene({
    onChange: (at, word) => put(at, word),
    onAdd: (word) => change(follow(withWord(sentence(), word), word)),
    onSelect: choose,
  });
  fig.add(stage);

  const example = select({
    label: "example",
    value: 0,
    options: ["–", ...examples], // the first, while the sentence is the reader's own
    onChange: (at) => {
      if (at > 0) change(examples[at - 1].split(" ").map((text) => grammar.find(text)));
    },
  });
  const writing = textField({ label: "or write", lang: "kn-Latn" });
  writing.element.classList.add("afm-write");
  writing.input.addEventListener("change", () => write(writing.input.value));
  const mix = button({
    label: "shuffle the words",
    title: "Puts the Kannada words into another order",
    onClick: () => change(shuffled(sentence(), Math.random)),
  });
  const beams = select({
    label: "search",
    value: 0,
    options: ["greedy", ...[2, 3, 4, 5, 6, 7, 8].map((width) => `beam of ${width}`)],
    onChange: (at) => send(model, "width", at + 1),
  });
  const layers = select({
    label: "layer",
    value: 0,
    options: Array.from({ length: config.n_layers }, (_, i) => `layer ${i + 1}`),
    onChange: (layer) => send(model, "layer", layer),
  });
  const heads = select({
    label: "ribbons of",
    value: 0,
    options: [ALL, ...Array.from({ length: config.n_heads }, (_, i) => `head ${i + 1}`)],
    onChange: (at) => send(model, "head", at - 1),
  });
  const folded = element(
    "div",
    { class: "afm-controls" },
    example.element,
    writing.element,
    mix.element,
    heads.element,
    ...(config.n_layers > 1 ? [layers.element] : []),
    beams.element,
  );
  const more = element(
    "details",
    { class: "afm-more", open: model.get("more") },
    element("summary", {}, "More: write a sentence, shuffle it, choose heads and search"),
    folded,
  );
  fig.picture.after(more);

  canDraw("ಮ", "ರ").then((drawn) => stage.withScript(drawn));
  const far = remote(model.get("_worker"));
  const ready = loadWeights(model, "_packed").then((bytes) => far.call("load", bytes, config));
  fig.onEnd(() => {
    clearTimeout(timer);
    far.end();
  });

  const sentence = () => model.get("words").map((at) => words[at]);

  function change(list) {
    send(
      model,
      "words",
      list.map((word) => words.indexOf(word)),
    );
  }

  const formOf = ({ verb: name, ending, past }) =>
    words.find((one) => one.verb === name && one.ending === ending && one.past === past);

  /** The verb's ending follows a new subject. */
  function follow(list, word) {
    if (word?.role !== "subject") return list;
    const { ending } = tables.people[word.person];
    return list.map((one) =>
      one.role === "verb" && one.ending ? formOf({ ...one, ending }) : one,
    );
  }

  /** Another word in a place, or none. */
  function put(at, word) {
    const list = sentence();
    const now = word ? list.with(at, word) : list.filter((_, i) => i !== at);
    change(follow(now, word));
  }

  function write(text) {
    const texts = text.split(/[\s.,!?।]+/).filter(Boolean);
    if (texts.length === 0) return update();
    const unknown = texts.find((one) => !grammar.find(one));
    if (unknown === undefined) return change(texts.map((one) => grammar.find(one)));
    const near = grammar.nearest(unknown).map((word) => word.latin);
    const hint = near.length ? ` Did you mean ${near.join(", ")}?` : "";
    reveal(translated().length, false); // what goes on would write over the verdict
    verdict.textContent = `I do not know the word ${clip(unknown, 30)}.${hint}`;
  }

  async function ask() {
    newest += 1;
    const question = newest;
    const ids = sentence().map((word) => idOf(word.kannada));
    if (ids.length === 0) {
      found = null;
      return show();
    }
    if (ids.length > config.context) {
      verdict.textContent = `These are ${ids.length} words, and the model reads at most ${config.context}. Leave some out.`;
      return undefined;
    }
    const options = { width: model.get("width") };
    try {
      await ready;
      const answer = await far.call("translate", ids, options);
      if (question !== newest) return;
      found = answer;
      send(model, "written", found.best[0].ids);
      if (wanted !== null) showWord(wanted);
      else reveal(isCalm() ? translated().length : 0, true);
    } catch (error) {
      verdict.textContent = `The translator could not run here: ${error.message}`;
    }
  }

  const isCalm = () => matchMedia("(prefers-reduced-motion: reduce), print").matches;
  const print = () => found && reveal(translated().length, false);
  window.addEventListener("beforeprint", print);
  fig.onEnd(() => window.removeEventListener("beforeprint", print));
  const translated = () => found?.best[0].ids.map((id) => target[id]) ?? [];

  /** So many words; then the others one by one, if it goes on. */
  function reveal(upTo, on) {
    clearTimeout(timer);
    shown = upTo;
    chosen = Math.max(0, shown - 1);
    show();
    if (on && shown < translated().length) timer = setTimeout(() => reveal(shown + 1, on), PAUSE);
  }

  function choose(at) {
    clearTimeout(timer);
    shown = translated().length;
    chosen = at;
    show();
  }

  /** A word of the translation, now or when there is one. */
  function showWord(at) {
    wanted = found ? null : at;
    if (found) choose(Math.min(at, translated().length - 1));
  }

  /** The weights of each word written, in the layer and head that are chosen. */
  function weights() {
    const layer = found.cross[model.get("layer")];
    const head = model.get("head");
    return Array.from({ length: translated().length }, (_, t) =>
      head < 0 ? share(layer.map((one) => one[t])) : Array.from(layer[head][t]),
    );
  }

  function show() {
    const list = sentence();
    const english = translated();
    const rows = found ? weights() : [];
    const chance = (t) => percentAmong(found.chances[t], target.length);
    stage.paint({
      from: list.map((word) => ({ word, menu: alternatives(word, words) })),
      add: missing(list, words),
      all: english,
      to: english.slice(0, shown).map((text, t) => ({
        text,
        note: found.chances[t] < SURE ? chance(t) : "",
      })),
      rows,
      chosen,
      next: found && shown > 0 ? nextWords(chosen) : null,
    });
    judge(grammar.problem(list), english, list);
    if (!found) fig.say("");
    else if (shown > 0) read(rows[chosen], english[chosen], list);
  }

  /** The most probable words where a word was written. */
  function nextWords(at) {
    const name = (id) => (id === 2 ? "(the end)" : target[id]);
    return {
      title: `the most probable for word ${at + 1}`,
      words: found.next[at].map(({ id, chance }) => ({
        text: name(id),
        note: percentAmong(chance, target.length),
        share: chance,
      })),
    };
  }

  function judge(problem, english, list) {
    if (!found || shown < english.length) {
      verdict.textContent = !found && problem ? `Not a sentence: ${problem}` : "";
      return;
    }
    const least = percentAmong(Math.min(...found.chances), target.length);
    if (problem) {
      verdict.textContent = `Not of the grammar: ${problem} The model has never seen such a sentence. It writes anyway, and its lowest probability for a word is ${least}.`;
    } else {
      const right = grammar.translate(list).words.join(" ");
      const same = right === english.join(" ");
      verdict.textContent = same
        ? "✓ That is the right translation."
        : `✗ The right translation is: ${right}. (The model's lowest probability for a word is ${least}.)`;
    }
  }

  function read(row, word, list) {
    const best = row.indexOf(Math.max(...row));
    const name = model.get("head") < 0 ? "the heads together" : `head ${model.get("head") + 1}`;
    fig.say(
      "To write ",
      { text: word, role: "query" },
      `, ${name} read `,
      { text: list[best].latin, role: "key" },
      " most (",
      { text: fixed(row[best]) },
      ").",
    );
  }

  function update() {
    writing.input.value = sentence()
      .map((word) => word.latin)
      .join(" ");
    example.set(examples.indexOf(writing.input.value) + 1);
    beams.set(model.get("width") - 1);
    found = null;
    shown = 0;
    show();
    ask();
  }

  function look() {
    layers.set(model.get("layer"));
    heads.set(model.get("head") + 1);
    show();
  }

  fig.exports({
    name: "translation",
    csv: () => [
      ["written", "probability", ...sentence().map((word) => word.latin)],
      ...translated().map((word, t) => [word, found.chances[t], ...weights()[t]]),
    ],
  });
  for (const name of ["words", "width"]) fig.listen(model, `change:${name}`, update);
  for (const name of ["layer", "head"]) fig.listen(model, `change:${name}`, look);
  fig.listen(model, "change:more", () => (more.open = model.get("more")));
  look();
  update();
  drive(fig, model, {
    set: {
      example: (at) => change(examples[at].split(" ").map((text) => grammar.find(text))),
      head: (value) => send(model, "head", value ?? -1),
      word: showWord,
    },
    facts() {
      const list = sentence();
      const known = grammar.problem(list) === null;
      const english = translated();
      const right = known && found && grammar.translate(list).words.join(" ") === english.join(" ");
      return {
        known: known ? 1 : 0,
        right: right ? 1 : 0,
        words: english.length,
        probability: found ? found.chances.reduce((product, p) => product * p, 1) : 0,
      };
    },
  });
  return fig.end;
}

export default { render };
