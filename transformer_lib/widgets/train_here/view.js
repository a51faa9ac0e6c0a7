import { button, choices, element, select, slider, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { grid } from "../core/grid.js";
import { percent, reading, short } from "../core/numbers.js";
import { remote } from "../core/remote.js";
import { drive } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { asRows, causal, guesses, history, scores } from "./model.js";
import { plot } from "./plot.js";
import { sentence } from "./sentence.js";

const WATCHED = 50; // ms a step, so that one can follow
const SLICE = 40; // ms of training at a time at full speed
const BETWEEN = 80; // ms between two pictures then: to paint takes time from the training
const CALM = 500; // and where motion is to be reduced
const AFTER = 60; // steps that a run goes on after it has reached the floor
const PATIENCE = 500; // steps after which a run pauses by itself
const TASKS = ["repeats", "pairs", "sort"];
const NAMES = {
  repeats: "repeats: c a f c a f …",
  pairs: "pairs: a 4 d 1 … d 1 a 4",
  sort: "sort: 7 2 4 2 4 7",
};
const OPTIMIZERS = ["adam", "muon"];
const SETTINGS = ["task", "layers", "smear", "optimizer", "rate", "seed"];

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function render({ model, el }) {
  const { rates, usual, seeds, width } = readJson(model, "_limits");
  const fig = figure(el, {
    name: "Train a model here",
    hint: "Try: press start and watch the maps. Then let one layer try it.",
  });
  // What is not in the model: the run that the worker has, and the curve of the one before.
  let told = null; // what begin() of the worker has told of the run
  let log = null;
  let before = null;
  let number = 0; // of the run: answers for an older one are thrown away
  let stale = false; // a run is to begin
  let running = false;
  let ready = Promise.resolve();
  let painted = 0;
  let planned = null;
  let problem = "";

  const task = select({
    label: "task",
    value: 0,
    options: TASKS.map((name) => NAMES[name]),
    onChange: (at) => send(model, "task", TASKS[at]),
  });
  const layers = choices({
    label: "layers",
    value: 0,
    options: ["1", "2"],
    onChange: (at) => send(model, "layers", at + 1),
  });
  const smear = toggle({
    label: "smear",
    value: false,
    onChange: (on) => send(model, "smear", on),
  });
  const optimizer = choices({
    label: "optimizer",
    value: 0,
    options: ["Adam", "Muon"],
    onChange(at) {
      model.set("rate", usual[OPTIMIZERS[at]]); // what suits one throws the other about
      send(model, "optimizer", OPTIMIZERS[at]);
    },
  });
  const rate = slider({
    label: "learning rate",
    min: 0,
    max: rates.length - 1,
    step: 1,
    value: 0,
    format: (at) => String(rates[at]),
    onInput: (at) => send(model, "rate", rates[at]),
  });
  const seed = select({
    label: "seed",
    value: 0,
    options: seeds.map(String),
    onChange: (at) => send(model, "seed", seeds[at]),
  });
  const start = button({ label: "start", onClick: () => (running ? stop() : go()) });
  const one = button({ label: "one step", onClick: () => go(1) });
  const over = button({ label: "start over", onClick: fresh });
  const speed = choices({
    label: "speed",
    value: 0,
    options: ["20 steps a second", "full"],
    onChange: (at) => send(model, "speed", at === 0 ? "watch" : "full"),
  });
  const along = slider({
    label: "after step",
    min: 0,
    max: 0,
    step: 1,
    value: 0,
    onInput: look,
  });
  start.element.classList.add("afm-start");
  fig.controls.append(
    task.element,
    layers.element,
    smear.element,
    optimizer.element,
    rate.element,
    seed.element,
    element("div", { class: "afm-run" }, start.element, one.element, over.element, speed.element),
    element("div", { class: "afm-along" }, along.element),
  );

  const picture = plot({ onChoose: look });
  fig.add(picture, { basis: 600 });
  const maps = [0, 1].map((layer) => {
    const map = grid({
      rows: ["…"],
      columns: ["…"],
      label: `Attention of layer ${layer + 1}`,
      maxCell: 16,
      minCell: 6,
    });
    const caption = element("p", { class: "afm-map-caption" });
    const part = element("div", {}, caption, map.element);
    fig.add({ ...map, element: part }, { basis: 260 });
    return { ...map, caption, part };
  });
  const strip = sentence();
  fig.add(strip, { basis: 600 });

  const far = remote(model.get("_worker"));
  fig.onEnd(() => {
    number += 1;
    running = false;
    clearTimeout(planned);
    document.removeEventListener("visibilitychange", onHidden);
    far.end();
  });
  const onHidden = () => document.hidden && stop();
  document.addEventListener("visibilitychange", onHidden);

  /** A new run, which waits for its start; several settings that change together begin one. */
  function fresh() {
    stop();
    number += 1;
    if (stale) return;
    stale = true;
    ready = Promise.resolve().then(begin);
  }

  async function begin() {
    stale = false;
    const mine = number;
    const settings = {
      task: model.get("task"),
      layers: model.get("layers"),
      reach: Number(model.get("smear")),
      optimizer: model.get("optimizer"),
      rate: model.get("rate"),
      seed: model.get("seed"),
      width,
    };
    if (told && told.task !== settings.task) before = null;
    else if (log?.last > 1) before = log.losses.map((_, step) => log.loss(step));
    try {
      const answer = await far.call("begin", settings);
      if (mine !== number) return;
      [told, log, problem] = [{ ...answer, task: settings.task }, history(answer), ""];
    } catch (error) {
      if (mine === number) fail(error);
      return;
    }
    log.add(told.first);
    model.set("step", null);
    send(model, "trained", 0);
    label();
    paint();
  }

  function fail(error) {
    running = false;
    problem = `The model could not be trained here: ${error.message}`;
    controls();
    fig.say(problem);
  }

  /** Train: so many steps, or until somebody or something stops it. */
  async function go(most = Number.POSITIVE_INFINITY) {
    if (running) return;
    running = true;
    controls();
    await ready;
    if (!log) return; // the reader knows why
    const mine = number;
    const from = log.last;
    model.set("step", null);
    fig.reading.setAttribute("aria-live", "off");
    while (running && mine === number && log.last - from < most) {
      const begun = performance.now();
      const full = model.get("speed") === "full" && most > 1;
      const what = full ? { ms: SLICE } : { most: 1 };
      try {
        const got = await far.call("advance", { ...what, every: log.every });
        if (mine !== number) return;
        log.add(got);
      } catch (error) {
        return fail(error);
      }
      plan();
      if (isOver(from)) break;
      // At full speed, too, the page gets its turn: where there is no worker it needs one.
      await wait(full ? 0 : Math.max(0, WATCHED - (performance.now() - begun)));
    }
    if (mine === number) stop();
  }

  /** Whether a run pauses by itself now: long after the floor, when it is lost, or after many steps. */
  function isOver(from) {
    const { last, reachedAt, lostAt } = log;
    if (lostAt !== null && lostAt > from) return true;
    if (reachedAt !== null && last >= reachedAt + AFTER && from < reachedAt + AFTER) return true;
    return last - from >= PATIENCE;
  }

  function stop() {
    if (!running) return;
    running = false;
    fig.reading.setAttribute("aria-live", "polite");
    clearTimeout(planned);
    planned = null;
    if (log) {
      paint();
      model.save_changes();
    }
    controls();
  }

  function look(step) {
    send(model, "step", step >= log.last ? null : step);
  }

  /** The next picture, soon. */
  function plan() {
    if (planned !== null) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const apart = calm ? CALM : model.get("speed") === "full" ? BETWEEN : 0;
    const due = Math.max(0, painted + apart - performance.now());
    planned = setTimeout(() => {
      planned = null;
      paint();
    }, due);
  }

  /** What stays the same in a run: the words of the text beside the maps. */
  function label() {
    const { words, example } = told;
    const shown = example.ids.map((id) => words[id]);
    for (const map of maps) map.setLabels(shown, shown);
    maps[1].part.parentElement.hidden = told.first.frames[0].maps.length < 2;
  }

  const chosen = () => Math.min(model.get("step") ?? log.last, log.last);

  function paint() {
    if (!log) return;
    painted = performance.now();
    if (model.get("trained") !== log.last) model.set("trained", log.last);
    const { words, example, chance, plateau, plateauName, floor } = told;
    const step = chosen();
    const frame = log.frameAt(step);
    const n = example.ids.length;
    picture.draw({
      losses: log.losses,
      rights: log.rights.map((_, at) => log.right(at)),
      mean: log.loss,
      before,
      lines: [
        { name: "chance", level: chance },
        ...(plateau === null ? [] : [{ name: plateauName, level: plateau }]),
        { name: "floor", level: floor, floor: true },
      ],
    });
    picture.point(step);
    const found = frame.maps.map((map) => scores(map, example));
    frame.maps.forEach((map, layer) => {
      maps[layer].paint(asRows(map, n), causal(n));
      const { before: back, answer } = found[layer];
      maps[layer].caption.replaceChildren(
        element("strong", {}, `layer ${layer + 1}`),
        `: ${percent(back)} on the word before; where a word can be known, ${percent(answer)} on the answer`,
      );
    });
    strip.paint(
      example.ids.map((id) => words[id]),
      guesses(frame, example, words),
    );
    along.input.max = String(log.last);
    along.set(step);
    controls();
    say(step);
  }

  function controls() {
    const lastOne = log?.last ?? 0;
    start.element.textContent = running ? "pause" : lastOne > 0 ? "go on" : "start";
    one.element.disabled = running;
    along.input.disabled = lastOne === 0;
    task.set(TASKS.indexOf(model.get("task")));
    layers.set(model.get("layers") - 1);
    smear.set(model.get("smear"));
    optimizer.set(OPTIMIZERS.indexOf(model.get("optimizer")));
    rate.set(rates.indexOf(model.get("rate")));
    seed.set(seeds.indexOf(model.get("seed")));
    speed.set(model.get("speed") === "full" ? 1 : 0);
  }

  function say(step) {
    if (problem) return fig.say(problem);
    const { parameters, words, chance } = told;
    if (step === 0)
      return fig.say(
        "Before its first step the model gives each of the ",
        { text: String(words.length) },
        " words the same chance: a loss of ",
        { text: `${reading(chance)} nats` },
        ". It has ",
        { text: short(parameters, 5) },
        " numbers to learn.",
      );
    const verdict = log.verdict(step);
    fig.say(
      "After step ",
      { text: String(step) },
      " the loss is ",
      {
        text: Number.isFinite(log.loss(step)) ? `${reading(log.loss(step))} nats` : "not a number",
      },
      " (mean of 20 steps) and ",
      { text: percent(log.right(step)) },
      " of the answers are right. ",
      {
        learning: "",
        reached: `It reached the floor at step ${log.reachedAt}.`,
        lost: "That is worse than chance: this learning rate throws the model about. Try a smaller one.",
        stuck: "For 100 steps it has hardly got better.",
      }[verdict],
    );
  }

  fig.exports({
    name: "learning",
    csv: () => [
      ["step", "loss", "right"],
      ...(log?.losses ?? []).map((loss, step) => [step, loss, log.rights[step]]),
    ],
  });
  for (const name of SETTINGS)
    fig.listen(model, `change:${name}`, () => {
      controls();
      fresh();
    });
  fig.listen(model, "change:speed", controls);
  fig.listen(model, "change:step", () => !running && paint());
  controls();
  fresh();
  drive(fig, model, {
    set: {
      run: () => go(),
      step: (step) => look(step ?? log.last),
    },
    reset: fresh,
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const named = Object.fromEntries(
        TASKS.map((name) => [name, Number(model.get("task") === name)]),
      );
      return {
        ...named,
        layers: model.get("layers"),
        smear: Number(model.get("smear")),
        muon: Number(model.get("optimizer") === "muon"),
        rate: model.get("rate"),
        seed: model.get("seed"),
        steps: log?.last ?? 0,
        loss: log ? log.loss(log.last) : Number.NaN,
        right: log ? log.right(log.last) : Number.NaN,
        lost: Number(Boolean(log && log.lostAt !== null)),
      };
    },
  });
  return fig.end;
}

export default { render };
