import { button, choices, clip, element, select, textField } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { grid } from "../core/grid.js";
import { fixed, percentAmong } from "../core/numbers.js";
import { remote } from "../core/remote.js";
import { drive } from "../core/state.js";
import { loadWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { kannada } from "../math/kannada.js";
import { canDraw, chips } from "./chips.js";
import { ENDINGS, inOrder, ROLES, share, sourceIds } from "./model.js";

const PAUSE = 350; // milliseconds between two words that are written
const ALL = "all heads";

function render({ model, el }) {
  const { tables, source, target, examples } = readJson(model, "_text");
  const config = readJson(model, "_config");
  const grammar = kannada(tables);
  const { words } = grammar;
  const idOf = sourceIds(source);
  const fig = figure(el, {
    name: "Translator",
    hint: "Try: choose another subject or verb. Then click a word of the translation to see what it was written from.",
  });

  // What is not in the model: the newest translation, and the word whose attention is shown.
  let found = null; // { best, cross, chances } of the worker
  let shown = 0; // words that are written so far
  let chosen = 0;
  let newest = 0; // of the questions to the worker, so that an old answer is thrown away
  let timer = 0;

  const example = select({
    label: "example",
    value: 0,
    options: ["–", ...examples], // the first, while the sentence is the reader's own
    onChange: (at) => {
      if (at > 0) change(examples[at - 1].split(" ").map((text) => grammar.find(text)));
    },
  });
  const menus = Object.fromEntries(
    Object.entries(ROLES).map(([name, { roles, none }]) => {
      const options = words.filter((word) => roles.includes(word.role));
      const texts = options.map((word) => `${word.latin} · ${word.gloss}`);
      const menu = select({
        label: name,
        value: 0,
        options: none ? ["–", ...texts] : texts,
        onChange: (at) => put(roles, none ? (options[at - 1] ?? null) : options[at]),
      });
      return [name, { ...menu, options, none }];
    }),
  );
  const verbs = Object.keys(tables.verbs);
  const verb = select({
    label: "verb",
    value: 0,
    options: verbs,
    onChange: (at) => putVerb({ verb: verbs[at] }),
  });
  const who = select({
    label: "ending",
    value: 0,
    options: ENDINGS.map(({ text }) => text),
    onChange: (at) => putVerb({ ending: ENDINGS[at].ending }),
  });
  const tense = choices({
    label: "time",
    value: 0,
    options: ["past", "not past"],
    onChange: (at) => putVerb({ past: at === 0 }),
  });
  const writing = textField({ label: "or write", lang: "kn-Latn" });
  writing.element.classList.add("afm-write");
  writing.input.addEventListener("change", () => write(writing.input.value));
  const beams = select({
    label: "search",
    value: 0,
    options: ["greedy", ...[2, 3, 4, 5, 6, 7, 8].map((width) => `beam of ${width}`)],
    onChange: (at) => send(model, "width", at + 1),
  });
  const again = button({
    label: "write it again",
    title: "Writes the translation word by word",
    onClick: () => reveal(0),
  });
  fig.controls.classList.add("afm-choosing");
  fig.controls.append(
    example.element,
    menus.when.element,
    menus.subject.element,
    menus.receiver.element,
    menus.what.element,
    verb.element,
    who.element,
    tense.element,
    writing.element,
    beams.element,
    again.element,
  );

  const verdict = element("p", { class: "afm-verdict", role: "status" });
  const from = chips({ label: "The sentence in Kannada", lang: "kn" });
  const to = chips({ label: "The translation", onSelect: choose });
  fig.picture.before(from.element, to.element, verdict);

  const layers = select({
    label: "layer",
    value: 0,
    options: Array.from({ length: config.n_layers }, (_, i) => `layer ${i}`),
    onChange: (layer) => send(model, "layer", layer),
  });
  const heads = select({
    label: "attention of",
    value: 0,
    options: [ALL, ...Array.from({ length: config.n_heads }, (_, i) => `head ${i}`)],
    onChange: (at) => send(model, "head", at - 1),
  });
  const map = grid({
    rows: ["…"],
    columns: ["…"],
    label: "Cross-attention: what each word was written from",
    rowTitle: "written",
    columnTitle: "read",
    onSelect: choose,
  });
  const mapping = element("div", { class: "afm-controls" }, heads.element);
  if (config.n_layers > 1) mapping.prepend(layers.element);
  fig.picture.before(mapping);
  fig.add(map);

  canDraw("ಮ", "ರ").then((drawn) => from.element.classList.toggle("afm-undrawn", !drawn));
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

  /** Another word for a role, or none; the verb's ending follows the subject. */
  function put(roles, word) {
    const others = sentence().filter((one) => !roles.includes(one.role));
    const list = inOrder(word ? [...others, word] : others);
    const last = list.find((one) => one.role === "verb");
    if (word?.role !== "subject" || !last?.ending) return change(list);
    const { ending } = tables.people[word.person];
    change(list.map((one) => (one === last ? formOf({ ...last, ending }) : one)));
  }

  const formOf = ({ verb: name, ending, past }) =>
    words.find((one) => one.verb === name && one.ending === ending && one.past === past);

  function putVerb(changes) {
    const old = sentence().find((one) => one.role === "verb");
    const now = formOf({ ...(old ?? { verb: verbs[0], ending: "she", past: true }), ...changes });
    change(inOrder([...sentence().filter((one) => one.role !== "verb"), now]));
  }

  function write(text) {
    const texts = text.split(/[\s.,!?।]+/).filter(Boolean);
    if (texts.length === 0) return update();
    const unknown = texts.find((one) => !grammar.find(one));
    if (unknown === undefined) return change(texts.map((one) => grammar.find(one)));
    const near = grammar.nearest(unknown).map((word) => word.latin);
    const hint = near.length ? ` Did you mean ${near.join(", ")}?` : "";
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
      reveal(isCalm() ? translated().length : 0);
    } catch (error) {
      verdict.textContent = `The translator could not run here: ${error.message}`;
    }
  }

  const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const translated = () => found?.best[0].ids.map((id) => target[id]) ?? [];

  function reveal(from_) {
    clearTimeout(timer);
    shown = from_;
    chosen = Math.max(0, shown - 1);
    show();
    if (shown < translated().length) timer = setTimeout(() => reveal(shown + 1), PAUSE);
  }

  function choose(at) {
    clearTimeout(timer);
    shown = translated().length;
    chosen = at;
    show();
  }

  /** The weights of each word written, in the layer and head that are chosen. */
  function weights() {
    const layer = found.cross[model.get("layer")];
    const head = model.get("head");
    const rows = translated().length;
    return Array.from({ length: rows }, (_, t) =>
      head < 0 ? share(layer.map((one) => one[t])) : Array.from(layer[head][t]),
    );
  }

  function show() {
    const list = sentence();
    const problem = grammar.problem(list);
    const english = translated();
    const rows = found ? weights() : [];
    const row = shown > 0 ? rows[chosen] : null;
    from.paint(
      list.map((word, i) => ({
        text: word.kannada,
        notes: [word.latin, word.gloss],
        share: row?.[i] ?? 0,
      })),
    );
    to.paint(
      english.slice(0, shown).map((word, t) => ({
        text: word,
        notes: [percentAmong(found.chances[t], target.length)],
        pressed: t === chosen,
      })),
    );
    if (found && english.length) {
      map.setLabels(
        english,
        list.map((word) => word.latin),
      );
      map.paint(rows);
      if (shown > 0) map.select(chosen, rows[chosen].indexOf(Math.max(...rows[chosen])));
    }
    judge(problem, english, list);
    if (!found) fig.say("");
    else if (row && shown === english.length) read(row, english[chosen], list);
  }

  function judge(problem, english, list) {
    if (!found) verdict.textContent = problem ? `Not a sentence: ${problem}` : "";
    else if (problem) {
      verdict.textContent = `Outside of the grammar: ${problem} The model has never seen such a sentence, and writes something all the same.`;
    } else {
      const right = grammar.translate(list).words.join(" ");
      const same = right === english.join(" ");
      verdict.textContent = same
        ? "✓ That is the right translation."
        : `✗ Right would be: ${right}.`;
    }
  }

  function read(row, word, list) {
    const best = row.indexOf(Math.max(...row));
    const name = model.get("head") < 0 ? "The heads together" : `Head ${model.get("head")}`;
    fig.say(
      `${name} read `,
      { text: list[best].latin, role: "key" },
      " most (",
      { text: fixed(row[best]) },
      ") when ",
      { text: word, role: "query" },
      " was written.",
    );
  }

  function update() {
    const list = sentence();
    for (const { options, none, set } of Object.values(menus)) {
      const at = options.findIndex((word) => list.includes(word));
      set(none ? at + 1 : Math.max(at, 0));
    }
    const last = list.find((word) => word.role === "verb");
    if (last) {
      verb.set(verbs.indexOf(last.verb));
      who.set(ENDINGS.findIndex(({ ending }) => ending === last.ending));
      tense.set(last.past ? 0 : 1);
    }
    writing.input.value = list.map((word) => word.latin).join(" ");
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
  look();
  update();
  drive(fig, model, {
    set: {
      example: (at) => change(examples[at].split(" ").map((text) => grammar.find(text))),
      head: (value) => send(model, "head", value ?? -1),
      word: (at) => found && choose(Math.min(at, translated().length - 1)),
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
        width: model.get("width"),
      };
    },
  });
  return fig.end;
}

export default { render };
