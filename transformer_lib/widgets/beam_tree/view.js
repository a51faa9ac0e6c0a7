import { button, clip, element, showToken, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, percent } from "../core/numbers.js";
import { drive, endsOf } from "../core/state.js";
import { readDoubles, readJson, send } from "../core/wire.js";
import { keyOf, makeTree, wayTo } from "./model.js";
import { drawing } from "./tree.js";

function render({ model, el }) {
  const text = readJson(model, "_text");
  const { words, end, size } = text;
  const tree = makeTree(text, readDoubles(model, "_logs"));
  let [pointed, chosen] = [null, null]; // keys of beginnings
  let drawn = { columns: [] };

  const fig = figure(el, {
    name: "Beam search",
    hint: "Try: widen the beam, or let the search start again and take it step by step. Point at a beginning to see its path (with the arrow keys: first press Tab to reach it).",
  });
  const width = slider({
    label: "width",
    ...endsOf(model, "width"),
    step: 1,
    value: model.get("width"),
    format: (now) => (now === 1 ? "1 (greedy)" : String(now)),
    onInput: (now) => send(model, "width", now),
  });
  const strength = slider({
    label: "length penalty",
    ...endsOf(model, "length_penalty"),
    step: 0.1,
    value: model.get("length_penalty"),
    format: (now) => (now ? fixed(now, 1) : "none"),
    onInput: (now) => send(model, "length_penalty", now),
  });
  const steps = slider({
    label: "step",
    min: 0,
    max: 1,
    step: 1,
    value: 0,
    format: (now) => `${now} of ${drawn.columns.length}`,
    onInput: (now) => goTo(now),
  });
  const onward = button({
    label: "next step",
    onClick: () => goTo(shown() < drawn.columns.length ? shown() + 1 : 0),
  });
  fig.controls.append(width.element, strength.element, steps.element, onward.element);

  const textOf = (ids) => ids.map((id) => showToken(words[id])).join(" ");
  const settings = () => [model.get("width"), model.get("length_penalty")];
  /** How many steps are shown: all of them, unless the reader has gone back. */
  const shown = () => Math.min(model.get("step") ?? Infinity, drawn.columns.length);

  function goTo(step) {
    chosen = null;
    send(model, "step", step < drawn.columns.length ? step : null);
  }

  const picture = drawing({
    words,
    root: text.prompt.slice(-2).map(showToken).join(" "),
    onChoose(key) {
      chosen = key;
      update();
    },
    onPoint(key) {
      pointed = key;
      update();
    },
    onStep(by) {
      if (shown() >= drawn.columns.length) return;
      const held = chosen;
      goTo(shown() + by);
      chosen = held;
      update();
    },
  });
  const kinds = element(
    "p",
    { class: "afm-beam-kinds" },
    "number: ln P of all that is written ",
    element("span", { class: "afm-beam-sample afm-beam-sample-kept" }, "kept"),
    element("span", { class: "afm-beam-sample afm-beam-sample-ended" }, "kept, and ended"),
    element("span", { class: "afm-beam-sample" }, "cut"),
    element("span", { class: "afm-beam-sample afm-beam-sample-greedy" }, "what greedy chooses"),
  );
  const table = element("table", { class: "afm-beam-table" });
  fig.add({ ...picture, element: element("div", {}, picture.element, kinds) }, { basis: 600 });
  fig.add({ element: table }, { basis: 600 });

  /** The best that there is: a text that has ended, or the best beginning. */
  function best() {
    const [first] = tree.ranked(...settings(), shown());
    if (first) return keyOf([...first.ids, end]);
    return bestBeginning()?.key ?? "";
  }

  function bestBeginning() {
    const on = (drawn.columns[shown() - 1] ?? []).filter(({ kind }) => kind !== "cut");
    return on.reduce((most, node) => (node.score > (most?.score ?? -Infinity) ? node : most), null);
  }

  function nodeAt(key) {
    const column = drawn.columns[key.split(" ").length - 1] ?? [];
    return column.find((node) => node.key === key);
  }

  const isShown = (key) => key !== null && key.split(" ").length <= shown() && nodeAt(key);

  function listed() {
    const [, exponent] = settings();
    const ranked = tree.ranked(...settings(), shown());
    const head = ["rank", "finished", "ln P", ...(exponent ? ["judged", "rank by ln P"] : [])];
    const row = (place, { ids, log, score, plain, greedy }) => [
      place,
      `${textOf([...ids, end])}${greedy ? " (greedy)" : ""}`,
      fixed(log),
      ...(exponent ? [score === undefined ? "" : fixed(score), plain ? `${plain}.` : ""] : []),
    ];
    const rows = ranked.map((one, i) => row(`${i + 1}.`, one));
    if (!ranked.some(({ greedy }) => greedy))
      rows.push(row("", { ...tree.greedy, score: undefined, greedy: true }));
    return { head, rows };
  }

  function paintTable() {
    const { head, rows } = listed();
    const cell = (tag) => (now, at) =>
      element(
        tag,
        { class: at === 1 ? "afm-beam-text" : null, ...(tag === "th" && { scope: "col" }) },
        clip(now, 200),
      );
    table.replaceChildren(
      element("thead", {}, element("tr", {}, ...head.map(cell("th")))),
      element("tbody", {}, ...rows.map((each) => element("tr", {}, ...each.map(cell("td"))))),
    );
  }

  function tell(marked) {
    const [breadth, exponent] = settings();
    const node = marked === null ? null : nodeAt(marked);
    if (node) {
      const before = node.score - node.log;
      fig.say(
        { text: textOf(node.ids), role: "output" },
        `: ${fixed(before)} for what comes before, ${fixed(node.log)} for `,
        { text: words[node.token] },
        `, together `,
        { text: fixed(node.score) },
        ", a probability of ",
        { text: percent(Math.exp(node.score)) },
        ". ",
        { kept: "It is kept.", ended: "It has ended.", cut: "It is cut." }[node.kind],
      );
      return;
    }
    const step = shown();
    const [first] = tree.ranked(breadth, exponent, step);
    if (step === drawn.columns.length) {
      const who = breadth === 1 && first.greedy ? "Greedy" : `A beam of ${breadth}`;
      fig.say(
        `${who} writes${breadth > 1 && first.greedy ? " what greedy writes" : ""}: `,
        { text: textOf([...first.ids, end]), role: "output" },
        ", with the probability ",
        { text: percent(Math.exp(first.log)) },
        ...(first.greedy
          ? ["."]
          : [". Greedy's text has ", { text: percent(Math.exp(tree.greedy.log)) }, "."]),
        step < text.limit ? " None of the beginnings that are left can end better." : "",
      );
      return;
    }
    if (step === 0) {
      fig.say(
        `Nothing is written yet. The first step tries all ${size} tokens and keeps ${breadth}.`,
      );
      return;
    }
    const count = (at, kind) => drawn.columns[at].filter((each) => each.kind === kind).length;
    const beams = step === 1 ? 1 : count(step - 2, "kept");
    const [going, ended] = [count(step - 1, "kept"), count(step - 1, "ended")];
    const ends = ended ? ` and ${ended} ${ended === 1 ? "has" : "have"} ended` : "";
    fig.say(
      `Step ${step}: of ${beams * size} candidates ${going} ${going === 1 ? "goes" : "go"} on${ends}. The best is `,
      { text: textOf(bestBeginning().ids), role: "output" },
      `, ${fixed(bestBeginning().score)}.`,
    );
  }

  let known = "";
  function update() {
    const now = settings();
    if (known !== now.join()) {
      known = now.join();
      [pointed, chosen] = [null, null];
      drawn = { columns: tree.columns(...now) };
    }
    const [total, step] = [drawn.columns.length, shown()];
    width.set(now[0]);
    strength.set(now[1]);
    steps.input.max = String(total);
    steps.set(step);
    onward.element.textContent = step < total ? "next step" : "start again";
    if (!isShown(chosen)) chosen = null;
    if (!isShown(pointed)) pointed = null;
    const marked = pointed ?? chosen;
    const at = marked ?? best();
    picture.paint({
      columns: drawn.columns,
      shown: step,
      way: wayTo(at),
      stop: chosen ?? (isShown(best()) ? best() : drawn.columns[0][0].key),
    });
    paintTable();
    tell(marked);
  }

  fig.exports({
    name: "beam-search",
    csv: () => [
      ["step", "beginning", "token", "ln P of token", "ln P", "what becomes of it"],
      ...drawn.columns
        .slice(0, shown())
        .flatMap((column, c) =>
          column.map(({ ids, token, log, score, kind }) => [
            c + 1,
            textOf(ids),
            words[token],
            log,
            score,
            kind,
          ]),
        ),
    ],
  });
  for (const name of ["width", "length_penalty", "step"]) {
    fig.listen(model, `change:${name}`, update);
  }
  update();
  drive(fig, model, {
    reset() {
      chosen = null;
      update();
    },
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const [breadth, exponent] = settings();
      const ranked = tree.ranked(breadth, exponent, shown());
      const narrower = breadth > 1 ? tree.search(breadth - 1, exponent).finished[0].log : -Infinity;
      return {
        step: shown(),
        steps: drawn.columns.length,
        sentences: ranked.length,
        probability: Math.exp(ranked[0]?.log ?? -Infinity),
        greedy: Math.exp(tree.greedy.log),
        narrower: Math.exp(narrower),
        words: ranked.length ? ranked[0].ids.length + 1 : 0,
        rank: ranked[0]?.plain ?? 0,
      };
    },
  });
  return fig.end;
}

export default { render };
