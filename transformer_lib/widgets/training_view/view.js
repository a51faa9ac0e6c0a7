import { isNumber } from "../core/axes.js";
import { button, element, select, slider, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { reading } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { derive, lastNumber, nearest, textAt, windowAt } from "./model.js";
import { inSentence, plainName, plot } from "./plot.js";
import { sample } from "./sample.js";

const WINDOWS = [1, 5, 10, 20, 50, 100];
const PLAY_SECONDS = 6;
const CALM_JUMPS = 10; // with reduced motion: so many still pictures
const LUCK = 0.05; // of the floor: some three standard errors of a batch of 32 stories
const QUIET = 1200; // ms without news until the reading is spoken again

/** Start something that comes later; returns what calls it off. */
function soon(begin, cancel, ...what) {
  const id = begin(...what);
  return () => cancel(id);
}

/** Where a loss is by its distance to the floor. Far below, it is an alarm and not luck. */
function against(gap, floor) {
  if (gap >= 0) return " above the floor";
  if (-gap <= LUCK * Math.abs(floor)) return " below the floor: perhaps the luck of its examples";
  return " below the floor: too good to be luck (does it see what it should not?)";
}

function render({ model, el }) {
  const state = {
    run: null,
    known: null,
    row: -1,
    hover: null,
    playing: null,
    below: "",
    quiet: null,
  };

  const read = () => readJson(model, "_text");
  const further = read().floor === null ? "" : " Then look at the loss minus the floor.";
  const fig = figure(el, {
    name: "Training view",
    hint: `Try: move along the curve, or press play.${further}`,
  });
  const along = slider({
    label: "step",
    min: 0,
    max: 1,
    step: 1,
    value: 0,
    format: (row) => String(state.run?.steps[row] ?? "none"),
    onInput: choose,
  });
  const play = button({
    label: "play",
    title: "Play the run",
    onClick: () => (state.playing === null ? start() : stop()),
  });
  const windows = [...new Set([...WINDOWS, model.get("smoothing")])].sort((a, b) => a - b);
  const smoothing = select({
    label: "smoothing",
    value: 0,
    options: windows.map((rows) => (rows === 1 ? "none" : `mean of ${rows}`)),
    onChange: (at) => send(model, "smoothing", windows[at]),
  });
  const logSteps = toggle({
    label: "logarithmic steps",
    value: false,
    onChange: (on) => send(model, "log_steps", on),
  });
  const above = toggle({
    label: "loss − floor",
    value: false,
    onChange: (on) => send(model, "above_floor", on),
  });
  const below = element("span", { class: "afm-below" });
  fig.controls.append(
    element("div", { class: "afm-along" }, along.element, play.element),
    smoothing.element,
    logSteps.element,
    above.element,
    below,
  );
  const picture = plot({
    onHover: (step) => {
      state.hover = step === null || state.playing !== null ? null : nearest(state.run.steps, step);
      point();
    },
    onChoose: (step) => choose(nearest(state.run.steps, step)),
  });
  fig.add(picture, { basis: 320 });
  const written = sample();
  fig.add(written, { basis: 600, stays: true });

  function choose(row) {
    stop();
    state.hover = null;
    const last = state.run.steps.length - 1;
    send(model, "step", row === last ? null : Math.round(state.run.steps[row]));
    point();
  }

  const lastRow = () => state.run.steps.length - 1;

  function start() {
    const last = state.run.steps.length - 1;
    if (last < 1) return;
    const first = chosen() === last ? 0 : chosen();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const begin = performance.now();
    const seconds = (PLAY_SECONDS * (last - first)) / last;
    play.element.textContent = "pause";
    fig.reading.setAttribute("aria-live", "off");
    const frame = () => {
      const share = (performance.now() - begin) / (1000 * seconds);
      const shown = calm ? Math.floor(share * CALM_JUMPS) / CALM_JUMPS : share;
      state.row = Math.min(last, first + Math.round(shown * (last - first)));
      point();
      if (share >= 1) return stop();
      state.playing = calm
        ? soon(setTimeout, clearTimeout, frame, 50)
        : soon(requestAnimationFrame, cancelAnimationFrame, frame);
    };
    frame();
  }

  function stop() {
    if (state.playing === null) return;
    state.playing();
    state.playing = null;
    play.element.textContent = "play";
    fig.reading.setAttribute("aria-live", "polite");
    const last = state.run.steps.length - 1;
    send(model, "step", state.row >= last ? null : Math.round(state.run.steps[state.row]));
    point();
  }

  /** The row that is looked at when nothing moves. */
  function chosen() {
    const step = model.get("step");
    return step === null ? state.run.steps.length - 1 : nearest(state.run.steps, step);
  }

  function update() {
    const text = read();
    state.run = derive(readJson(model, "_curve"), text, model.get("smoothing"));
    const { steps, others } = state.run;
    const last = Math.max(0, steps.length - 1);
    along.input.max = String(last);
    along.input.disabled = play.element.disabled = last < 1;
    smoothing.set(windows.indexOf(model.get("smoothing")));
    logSteps.set(model.get("log_steps"));
    above.set(model.get("above_floor"));
    above.element.hidden = text.floor === null;
    offer(others.filter((name) => !name.includes("loss")));
    picture.draw(state.run, {
      nSteps: text.n_steps,
      logSteps: model.get("log_steps"),
      aboveFloor: model.get("above_floor") && text.floor !== null,
      smoothed: model.get("smoothing") > 1,
      below: state.below,
    });
    point();
  }

  /** A choice of what to draw below, where there are such columns. */
  function offer(names) {
    if (state.known === names.join("\u0000")) return;
    state.known = names.join("\u0000");
    below.hidden = names.length === 0;
    if (!names.includes(state.below)) state.below = "";
    const list = ["", ...names];
    const pick = select({
      label: "below",
      value: list.indexOf(state.below),
      options: list.map((name) => (name === "" ? "nothing" : plainName(name))),
      onChange: (at) => {
        state.below = list[at];
        update();
      },
    });
    below.replaceChildren(pick.element);
  }

  function point() {
    const row = state.hover ?? (state.playing === null ? chosen() : state.row);
    along.set(Math.max(0, row));
    picture.point(row, state.hover === null);
    written.paint(textAt(read().texts, state.run.steps[row] ?? 0));
    say(row);
  }

  function say(row) {
    const { steps, smooth, passed, floor, besides } = state.run;
    const window = model.get("smoothing");
    if (row < 0) return fig.say("No step yet. The curve is drawn while the model trains.");
    const loss = smooth[row];
    if (!isNumber(loss))
      return fig.say(
        "At step ",
        { text: String(steps[row]) },
        " no loss was measured, or it is not a number.",
      );
    const gap = floor === null ? 0 : loss - floor;
    const best = passed.find(({ at }) => at >= 0 && at <= row);
    const next = passed.length ? passed.at(-1) : null;
    const mean = (at) => (window > 1 ? ` (mean of the last ${windowAt(at, window)})` : "");
    const beside = besides.flatMap(({ name, dense, smooth: values }) => {
      const found = lastNumber(values, row);
      if (!found) return [];
      return [
        ` ${inSentence(name, "The")} is `,
        { text: reading(found[1]) },
        dense ? mean(found[0]) : "",
        found[0] === row ? "." : ` (step ${steps[found[0]]}).`,
      ];
    });
    const named = besides.length ? inSentence(state.run.loss) : "the loss"; // which loss, where there are several
    fig.say(
      "After step ",
      { text: String(steps[row]) },
      ` ${named} is `,
      { text: `${reading(loss)} nats` },
      mean(row),
      ...(floor === null ? [] : [", ", { text: reading(Math.abs(gap)) }, against(gap, floor)]),
      ...(best
        ? [
            "; it passed ",
            { text: best.name, role: "output" },
            " at step ",
            { text: String(steps[best.at]) },
          ]
        : next
          ? ["; it has not passed ", { text: next.name, role: "output" }, " yet"]
          : []),
      ".",
      ...beside,
    );
  }

  /** New steps from Python: drawn at once, spoken when they have paused. */
  function news() {
    if (state.playing !== null) stop();
    fig.reading.setAttribute("aria-live", "off");
    clearTimeout(state.quiet);
    state.quiet = setTimeout(() => {
      fig.reading.setAttribute("aria-live", "polite");
      say(state.hover ?? chosen());
    }, QUIET);
    update();
  }

  fig.exports({
    name: "training",
    csv: () => {
      const { steps, raw, smooth, loss, others, besides, column } = state.run;
      const dense = besides.filter((one) => one.dense);
      const cell = (value) => (isNumber(value) ? value : "");
      const head = [
        "step",
        loss,
        "smoothed",
        ...others,
        ...dense.map(({ name }) => `smoothed ${name}`),
      ];
      const columns = [raw, smooth, ...others.map(column), ...dense.map((one) => one.smooth)];
      return [head, ...steps.map((step, i) => [step, ...columns.map((values) => cell(values[i]))])];
    },
  });
  fig.listen(model, "change:_curve", news);
  fig.listen(model, "change:_text", update);
  for (const name of ["smoothing", "log_steps", "above_floor"])
    fig.listen(model, `change:${name}`, update);
  fig.listen(model, "change:step", () => state.playing === null && point());
  fig.onEnd(() => {
    clearTimeout(state.quiet);
    state.playing?.();
  });
  update();
  drive(fig, model, {
    set: { step: (step) => choose(step === null ? lastRow() : nearest(state.run.steps, step)) },
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const { steps, smooth, floor } = state.run;
      const row = chosen();
      return {
        step: steps[row],
        loss: smooth[row],
        "above floor": floor === null || !isNumber(smooth[row]) ? Number.NaN : smooth[row] - floor,
      };
    },
  });
  return fig.end;
}

export default { render };
