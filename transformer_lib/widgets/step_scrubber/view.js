import { button, choices, element, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { drive } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { comparison } from "./compare.js";
import {
  headOf,
  matrixOf,
  operandsOf,
  readArrays,
  resultOf,
  runHeads,
  STEPS,
  sourcesOf,
  stageOf,
  stepOf,
  termsOf,
} from "./model.js";
import { roleOf } from "./names.js";
import { readingOf } from "./reading.js";
import { stripBoard } from "./strip.js";

const PAPER = 700; // pixels of a sheet's width

function render({ model, el }) {
  const { tokens, order, code, features, outputs, hasPlaces } = readJson(model, "_text");
  const shape = model.get("_shape");
  const arrays = readArrays(readFloats(model, "_arrays"), shape);
  const nHeads = shape[2];
  const inOrder = tokens.map((_, i) => i);
  const orders = [inOrder, order];
  const fig = figure(el, {
    name: "Multi-head attention, step by step",
    hint: "Try: go from step to step, and see each matrix come out of others. Select a number, and see what it was made of. Then shuffle the words, with and without places, with one head and with more: when can the two sentences be told apart?",
  });
  const put = (name) => (value) => send(model, name, value);

  const steps = choices({ label: "step", options: STEPS, value: 0, onChange: put("step") });
  steps.element.classList.add("afm-steps");
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
    options: Array.from({ length: nHeads }, (_, h) => String(h + 1)),
    value: 0,
    onChange: put("head"),
  });
  const placed = toggle({ label: "places in keys", value: true, onChange: put("placed") });
  const shuffled = toggle({ label: "shuffle words", value: false, onChange: put("shuffled") });
  const causal = toggle({ label: "causal mask", value: false, onChange: put("causal") });
  const switches = [shuffled, ...(hasPlaces ? [placed] : []), causal].map((one) => one.element);
  fig.controls.append(
    steps.element,
    element("div", { class: "afm-control" }, back.element, next.element),
    ...(nHeads > 1 ? [counts.element, heads.element] : []),
    ...switches,
  );

  const strip = stripBoard({ onChoose: choose, onPoint: () => state && point() });
  fig.add(strip, { basis: 700 });
  const lines = code.map((line) => element("li", {}, element("code", {}, line)));
  const program = element("ol", { class: "afm-code", "aria-label": "The code of the steps" });
  program.append(...lines);
  const arithmetic = element("p", { class: "afm-arithmetic" });
  const made = element("div", { class: "afm-made" }, program, arithmetic);
  fig.add({ element: made }, { basis: 700 });
  const both = comparison({ tokens, outputs });
  fig.element.append(both.element);

  let state = null;
  const settings = () => ({
    heads: model.get("one_head") ? 1 : nHeads,
    causal: model.get("causal"),
    placed: model.get("placed"),
    order: model.get("shuffled") ? order : inOrder,
  });

  /** All stages in both orders of the words; another step or head asks for the same ones again. */
  let computed = null;
  function runsFor(how) {
    const key = JSON.stringify([how.heads, how.causal, how.placed]);
    if (computed?.key !== key) {
      computed = { key, runs: orders.map((one) => runHeads(arrays, { ...how, order: one })) };
    }
    return computed.runs;
  }

  const columnsOf = (step, { words, run }) => {
    if (step >= 3 && step <= 6) return words;
    if (step === 9) return outputs;
    return Array.from({ length: step === 8 ? run.concat[0].length : run.q[0][0].length }, (_, i) =>
      String(i),
    );
  };

  /** A cell that was selected in another step may be beyond this one's matrix. */
  function selected({ step, run, head }) {
    const { result } = stageOf(step, run, head);
    const [row, column] = model.get("_cell");
    return {
      id: resultOf(step, head),
      row: Math.min(row, result.length - 1),
      column: Math.min(column, result[0].length - 1),
    };
  }

  function choose({ id, row, column }) {
    model.set("step", stepOf(id));
    if (headOf(id) !== null) model.set("head", headOf(id));
    put("_cell")([row, column]);
  }

  function update() {
    const step = model.get("step");
    const how = settings();
    const runs = runsFor(how);
    const run = runs[how.order === order ? 1 : 0];
    const head = Math.min(model.get("head"), how.heads - 1);
    const words = how.order.map((word) => tokens[word]);
    state = { step, run, head, words, how, both: runs.map(({ output }) => output) };
    steps.set(step);
    counts.set(how.heads === 1 ? 0 : 1);
    heads.set(head);
    // From there on, all heads lie side by side. Its place stays, so that nothing else moves.
    heads.element.classList.toggle("afm-away", how.heads === 1 || step >= 8);
    placed.set(how.placed);
    shuffled.set(how.order === order);
    causal.set(how.causal);
    back.element.disabled = step === 0;
    next.element.disabled = step === STEPS.length - 1;
    const target = selected(state);
    strip.show(
      {
        step,
        how: { head, heads: how.heads, root: run.q[0][0].length },
        sizes: {
          tokens: words.length,
          dModel: shape[1],
          dHead: run.q[0][0].length,
          heads: how.heads,
        },
        matrix: (id) => matrixOf(id, run, head),
        open: run.mask,
        names: { words, features, outputs },
      },
      target,
      operandsOf(step, run, head, target.row, target.column),
    );
    point();
  }

  /** Of what is pointed at, or of the selected number: its operands, arithmetic, line and meaning. */
  function point() {
    const { run, words, how } = state;
    const target = selected(state);
    const { id, row, column } = strip.pointed ?? target;
    const step = stepOf(id);
    const head = headOf(id) ?? state.head;
    const known = head === state.head || step >= 8; // another head's operands are not on the strip
    strip.mark(target, known ? operandsOf(step, run, head, row, column) : []);
    lines.forEach((line, at) => {
      if (at === step) line.setAttribute("aria-current", "step");
      else line.removeAttribute("aria-current");
    });
    const [left, top] = sourcesOf(step, how.heads).map(roleOf);
    const roles = { left, top: step === 8 ? left : top, result: "number" };
    arithmetic.replaceChildren(
      ...termsOf(step, run, head, row, column).map((part) => spoken(part, roles)),
    );
    const columns = columnsOf(step, state);
    fig.say(...readingOf({ step, run, head, row, column, words, columns }));
    both.show({ word: how.order[row], orders, now: how.order, both: state.both });
  }

  function spoken(part, roles) {
    if (typeof part === "string") return part;
    if (part.sup) return element("sup", {}, spoken(part.sup, roles));
    return element("span", { class: `afm-${roles[part.role] || "plain"}` }, part.text);
  }

  // On paper, the whole strip, so that nothing has to be stepped through.
  let sheet = null;
  function paper(on) {
    sheet?.remove();
    sheet = on ? strip.paper(PAPER) : null;
    if (sheet) strip.element.after(sheet);
  }
  const printing = matchMedia("print");
  const printed = () => paper(printing.matches);
  const [begin, end] = [() => paper(true), () => paper(false)];
  printing.addEventListener("change", printed);
  window.addEventListener("beforeprint", begin);
  window.addEventListener("afterprint", end);
  fig.onEnd(() => {
    printing.removeEventListener("change", printed);
    window.removeEventListener("beforeprint", begin);
    window.removeEventListener("afterprint", end);
  });

  fig.exports({
    name: "multi-head-attention",
    csv() {
      const { step, run, head, words } = state;
      return [
        ["", ...columnsOf(step, state)],
        ...stageOf(step, run, head).result.map((row, i) => [words[i], ...row]),
      ];
    },
  });
  for (const trait of ["step", "head", "causal", "shuffled", "placed", "one_head"])
    fig.listen(model, `change:${trait}`, update);
  fig.listen(model, "change:_cell", point);
  update();
  drive(fig, model, {
    set: { word: (at) => put("_cell")([settings().order.indexOf(at), model.get("_cell")[1]]) },
    facts: () => factsOf({ ...state, ...selected(state) }, orders),
  });
  return fig.end;
}

/** The numbers that a goal may ask for, by name (widget.py, Facts). */
function factsOf({ step, run, head, how, both, row, column }, orders) {
  const word = how.order[row];
  const [y, other] = both.map((output, at) => output[orders[at].indexOf(word)]);
  return {
    head,
    row,
    column,
    heads: run.heads,
    value: stageOf(step, run, head).result[row][column],
    difference: Math.max(...y.map((value, i) => Math.abs(value - other[i]))),
  };
}

export default { render };
