import { button, choices, clip, element, showToken, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { stageBoard } from "./board.js";
import { operandsOf, readArrays, runHeads, STEPS, stageOf, termsOf } from "./model.js";
import { readingOf, verdictOf } from "./reading.js";

const COMPARED = 8;
const TITLES = [
  ["x", "W_Q", "q"],
  ["x", "W_K", "k"],
  ["x", "W_V", "v"],
  ["q", "k.mT", "scores"],
  ["scores", null, "scores"],
  ["scores", "mask", "scores"],
  ["scores", null, "weights"],
  ["weights", "v", "z"],
  [null, "z of each head", "z"],
  ["z", "W_O", "y"],
];
const ROLES = {
  q: "query",
  k: "key",
  v: "value",
  W_Q: "query",
  W_K: "key",
  W_V: "value",
  "k.mT": "key",
  z: "output",
  "z of each head": "output",
  y: "output",
  W_O: "output",
};

function render({ model, el }) {
  const { tokens, order, code, features, outputs, hasPlaces } = readJson(model, "_text");
  const shape = model.get("_shape");
  const arrays = readArrays(readFloats(model, "_arrays"), shape);
  const nHeads = shape[2];
  const inOrder = tokens.map((_, i) => i);
  const fig = figure(el, {
    name: "Multi-head attention, step by step",
    hint: "Try: select a number, and see what it was made of. Go through the steps. Then swap the words, with and without places, with one head and with more: when can the two sentences be told apart?",
  });
  const put = (name) => (value) => send(model, name, value);

  const strip = choices({ label: "step", options: STEPS, value: 0, onChange: put("step") });
  strip.element.classList.add("afm-strip");
  const walk = (by) => put("step")(Math.min(STEPS.length - 1, Math.max(0, model.get("step") + by)));
  const back = button({ label: "←", title: "One step back", onClick: () => walk(-1) });
  const next = button({ label: "next →", onClick: () => walk(1) });
  back.element.setAttribute("aria-label", "One step back");
  const counts = choices({
    label: "heads",
    options: ["1", String(nHeads)],
    value: 1,
    onChange: (at) => put("one_head")(at === 0),
  });
  const heads = choices({
    label: "show head",
    options: Array.from({ length: nHeads }, (_, h) => String(h)),
    value: 0,
    onChange: put("head"),
  });
  const placed = toggle({ label: "places in keys", value: true, onChange: put("placed") });
  const shuffled = toggle({ label: "shuffle words", value: false, onChange: put("shuffled") });
  const causal = toggle({ label: "causal mask", value: false, onChange: put("causal") });
  const switches = [shuffled, ...(hasPlaces ? [placed] : []), causal].map((one) => one.element);
  fig.controls.append(
    strip.element,
    element("div", { class: "afm-control" }, back.element, next.element),
    ...(nHeads > 1 ? [counts.element, heads.element] : []),
    ...switches,
  );

  const board = stageBoard({
    onSelect: (row, column) => put("_cell")([row, column]),
    onHover: () => state && point(),
  });
  fig.add(board, { basis: 364 });
  const arithmetic = element("p", { class: "afm-arithmetic" });
  const lines = code.map((line, step) => {
    const item = element("li", {}, element("code", {}, line));
    item.addEventListener("click", () => put("step")(step));
    return item;
  });
  fig.add(
    {
      element: element(
        "div",
        {},
        element(
          "ol",
          { class: "afm-code", start: 0, "aria-label": "The code of the steps" },
          ...lines,
        ),
        arithmetic,
      ),
    },
    { basis: 256 },
  );
  const verdict = element("div", { class: "afm-compare" });
  fig.add({ element: verdict }, { basis: 700 });

  let state = null;
  function settings(changes = {}) {
    return {
      heads: model.get("one_head") ? 1 : nHeads,
      causal: model.get("causal"),
      placed: model.get("placed"),
      order: model.get("shuffled") ? order : inOrder,
      ...changes,
    };
  }

  /** All stages in both orders of the words; another step or head asks for the same ones again. */
  let computed = null;
  function runsFor(how) {
    const key = JSON.stringify([how.heads, how.causal, how.placed]);
    if (computed?.key !== key) {
      computed = {
        key,
        runs: [inOrder, order].map((places) => runHeads(arrays, { ...how, order: places })),
      };
    }
    return computed.runs;
  }

  function labelsOf(step, words, width, all) {
    const numbers = (count) => Array.from({ length: count }, (_, i) => String(i));
    const [inner, merged] = [numbers(width), numbers(all)];
    return [
      ...[0, 1, 2].map(() => ({ left: features, top: features, columns: inner })),
      { left: inner, top: inner, columns: words },
      { left: words, top: null, columns: words },
      { left: words, top: words, columns: words },
      { left: words, top: null, columns: words },
      { left: words, top: words, columns: inner },
      { left: null, top: words, columns: merged },
      { left: merged, top: merged, columns: outputs },
    ].map((labels) => ({ rows: words, ...labels }))[step];
  }

  function namesOf(step, head, count) {
    const [left, top, result] = TITLES[step];
    const part = count > 1 && step < 8 ? `, head ${head}` : "";
    return {
      left,
      top,
      result: `${result}${part}`,
      weights: step === 6,
      binary: step === 5,
      leftWeights: step === 7,
      leftRole: ROLES[left],
      topRole: ROLES[top],
      resultRole: ROLES[result],
    };
  }

  function update() {
    const step = model.get("step");
    const how = settings();
    const runs = runsFor(how);
    const run = runs[how.order === order ? 1 : 0];
    const both = runs.map(({ output }) => output);
    const head = Math.min(model.get("head"), how.heads - 1);
    const words = how.order.map((word) => tokens[word]);
    const stage = stageOf(step, run, head);
    const names = namesOf(step, head, how.heads);
    const labels = labelsOf(step, words, run.q[0][0].length, run.concat[0].length);
    state = { step, run, head, words, stage, labels, names, how, both };
    strip.set(step);
    counts.set(how.heads === 1 ? 0 : 1);
    heads.set(head);
    heads.element.hidden = how.heads === 1 || step >= 8; // from there on, all heads lie side by side
    placed.set(how.placed);
    shuffled.set(how.order === order);
    causal.set(how.causal);
    back.element.disabled = step === 0;
    next.element.disabled = step === STEPS.length - 1;
    lines.forEach((line, at) => {
      line.classList.toggle("afm-on", at === step);
      if (at === step) line.setAttribute("aria-current", "step");
      else line.removeAttribute("aria-current");
    });
    const refocus = board.show({
      step,
      stage,
      names,
      labels,
      blocks: step === 8 ? how.heads : null,
      cellName: (row, column, text) =>
        `${names.result}, ${showToken(words[row])}, ${showToken(labels.columns[column])}: ${text}`,
    });
    point();
    refocus();
  }

  function point() {
    const { step, run, head, words, stage, labels, names, how } = state;
    const cell = model.get("_cell");
    const selected = [
      Math.min(cell[0], words.length - 1),
      Math.min(cell[1], stage.result[0].length - 1),
    ];
    const [row, column] = board.pointed ?? selected;
    board.mark(...selected, operandsOf(step, run, head, row, column));
    arithmetic.replaceChildren(...termsOf(step, run, head, row, column).map(spoken));
    fig.say(
      ...readingOf({
        step,
        run,
        head,
        row,
        column,
        words,
        columns: labels.columns,
        place: names.result,
      }),
    );
    compare(how, row);
  }

  function spoken(part) {
    if (typeof part === "string") return part;
    if (part.sup) return element("sup", {}, spoken(part.sup));
    return element(
      "span",
      { class: `afm-${{ left: "query", top: "key", result: "number" }[part.role]}` },
      part.text,
    );
  }

  /** The selected word's output in this order of the words and in the other one. */
  function compare(how, row) {
    const word = how.order[row];
    const rows = [inOrder, order].map((places, at) => {
      return { places, y: state.both[at][places.indexOf(word)] };
    });
    const lines = rows.map(({ places, y }) =>
      element(
        "div",
        { class: places === how.order ? "afm-order afm-on" : "afm-order" },
        element(
          "span",
          { class: "afm-sentence", dir: "auto" },
          places
            .map((at) => clip(showToken(tokens[at]), 20))
            .slice(0, 12)
            .join(" "),
        ),
        element(
          "span",
          { class: "afm-numbers-row" },
          ...y
            .slice(0, COMPARED)
            .map((value, c) =>
              element(
                "span",
                { class: "afm-pair" },
                element("span", { class: "afm-label" }, clip(outputs[c], 16)),
                element("span", { class: "afm-output" }, fixed(value)),
              ),
            ),
          y.length > COMPARED ? "…" : "",
        ),
      ),
    );
    const name = element(
      "p",
      { class: "afm-comparison" },
      "What ",
      element("bdi", { class: "afm-query afm-token" }, clip(showToken(tokens[word]), 30)),
      " takes home, ",
      element("span", { class: "afm-name" }, "y"),
      ", in both orders: ",
      verdictOf(rows[0].y, rows[1].y),
    );
    verdict.replaceChildren(name, ...lines);
  }

  fig.exports({
    name: "multi-head-attention",
    csv: () => [
      ["", ...state.labels.columns],
      ...state.words.map((word, i) => [
        word,
        ...state.stage.result[i].map((value) => (Number.isFinite(value) ? value : "-inf")),
      ]),
    ],
  });
  for (const trait of ["step", "head", "causal", "shuffled", "placed", "one_head"])
    fig.listen(model, `change:${trait}`, update);
  fig.listen(model, "change:_cell", point);
  update();
  drive(fig, model, {
    set: { word: (at) => put("_cell")([settings().order.indexOf(at), model.get("_cell")[1]]) },
    facts: () => factsOf(state, [inOrder, order], model),
  });
  return fig.end;
}

/** The numbers that a goal may ask for, by name (widget.py, Facts). */
function factsOf({ step, run, head, how, stage, both }, orders, model) {
  const cell = model.get("_cell");
  const row = Math.min(cell[0], stage.result.length - 1);
  const column = Math.min(cell[1], stage.result[0].length - 1);
  const word = how.order[row];
  const [y, other] = both.map((output, at) => output[orders[at].indexOf(word)]);
  return {
    step,
    head,
    row,
    column,
    heads: run.heads,
    causal: Number(how.causal),
    shuffled: Number(model.get("shuffled")),
    placed: Number(how.placed),
    value: stage.result[row][column],
    difference: Math.max(...y.map((value, i) => Math.abs(value - other[i]))),
  };
}

export default { render };
