import { button, element, select, slider, textField } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { drive, endsOf } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { headMaps } from "./heads.js";
import { plot } from "./plot.js";
import { sentenceOf, shareOf, textTold } from "./reading.js";
import { training } from "./run.js";
import { textArea } from "./textarea.js";

const BETWEEN = 120; // ms between two pictures: to paint takes time from the training
const CALM = 500; // and where motion is to be reduced
const OWN = "your own text";

function render({ model, el }) {
  const { samples, texts } = readJson(model, "_text");
  const { sizes, limits, passage } = readJson(model, "_limits");
  const layers = model.get("layers");
  const fig = figure(el, {
    name: "Train a model on your text",
    hint: "Try: press start, and read what the model writes. Then give it a text of your own.",
  });
  let own = "";
  let painted = 0;
  let planned = null;

  const run = training(model, { settings, begun, gone, changed });
  const written = new Map(); // what a moment's model writes, by all that it depends on
  let asking = false;

  const choice = select({
    label: "text",
    value: 0,
    options: [...samples, OWN],
    onChange(at) {
      if (at === samples.length) write();
      else send(model, "sample", at);
    },
  });
  const mine = button({
    label: OWN,
    title: "Opens a field to write or paste a text in; the text stays on this page",
    onClick: () => write(),
  });
  const start = button({ label: "start", onClick: () => (run.isRunning ? run.stop() : run.go()) });
  start.element.classList.add("afm-text-start");
  const over = button({ label: "start over", onClick: run.fresh });
  const along = slider({
    label: "after step",
    ...{ min: 0, max: 0, step: 1, value: 0 },
    onInput: (step) => look(run.log.towards(step, moment().step)),
  });
  const lowest = button({
    label: "lowest held-out loss",
    title: "Shows the step at which the model guesses unread text best",
    onClick: () => run.log && look(run.log.best().step),
  });
  const heat = slider({
    label: "temperature",
    ...{ ...endsOf(model, "temperature"), step: 0.1, value: model.get("temperature") },
    format: (value) => value.toFixed(1),
    onInput: (value) => send(model, "temperature", value),
  });
  const area = textArea({
    limits,
    onChange(text) {
      own = text;
      if (model.get("sample") === samples.length) run.fresh();
      else send(model, "sample", samples.length); // which begins a run
    },
    onRefusal: (problem) => fig.say(problem),
  });
  /** The field for the reader's own text, empty at first. */
  function write() {
    send(model, "sample", samples.length);
    area.focus();
  }

  const row = (...parts) => element("div", { class: "afm-text-row" }, ...parts);
  fig.controls.append(
    row(choice.element, mine.element, area.open, heat.element),
    area.element,
    row(start.element, over.element, along.element, lowest.element),
  );

  const picture = plot({ onChoose: look });
  fig.add(picture, { basis: 380 });

  const prompt = textField({ label: "complete this", autocomplete: "off", maxlength: 200 });
  prompt.input.addEventListener("change", ask);
  const again = button({ label: "complete", onClick: ask });
  const page = element("p", { class: "afm-text-page", tabindex: "0", dir: "auto" });
  page.setAttribute("role", "region");
  page.setAttribute("aria-label", "What the model writes");
  const share = element("p", { class: "afm-map-caption" });
  fig.add(
    { element: element("div", {}, share, page, row(prompt.element, again.element)) },
    { basis: 380, stays: true },
  );
  const maps = headMaps({
    ...{ layers, count: sizes.heads, size: passage },
    onChoose: (head) => send(model, "head", head),
  });
  for (const part of maps.parts) fig.add(part, { basis: 340 });

  const onHidden = () => document.hidden && run.stop();
  document.addEventListener("visibilitychange", onHidden);
  fig.onEnd(() => {
    clearTimeout(planned);
    document.removeEventListener("visibilitychange", onHidden);
    run.end();
  });

  const textNow = () => texts[model.get("sample")] ?? own;
  function settings() {
    return { ...sizes, layers, seed: model.get("seed"), text: textNow(), limits, passage };
  }

  const last = () => run.log?.last ?? 0;
  const moment = () => run.log.momentAt(model.get("step") ?? Number.POSITIVE_INFINITY);

  function look(step) {
    send(model, "step", step >= last() ? null : step);
  }

  function begun() {
    written.clear();
    model.set("step", null);
    if (run.log) maps.label(run.told.passage);
    area.tell(run.problem ? [] : textTold(run.told));
    paint();
    ask();
  }

  function gone(kept) {
    if (kept) ask();
    plan();
  }

  /** The run has started, stopped or failed. */
  function changed() {
    if (run.isRunning) {
      area.close();
      model.set("step", null);
    }
    clearTimeout(planned);
    planned = null;
    paint();
    model.save_changes();
  }

  /** The next picture, soon. */
  function plan() {
    if (planned !== null) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const due = Math.max(0, painted + (calm ? CALM : BETWEEN) - performance.now());
    planned = setTimeout(() => {
      planned = null;
      paint();
    }, due);
  }

  const wanted = () =>
    run.log && {
      ...{ step: moment().step, prompt: prompt.input.value, temperature: model.get("temperature") },
      ...{ count: sizes.written, seed: model.get("seed") },
    };

  /** Let the model of the moment that is looked at write, unless that is known. */
  async function ask() {
    if (asking) return;
    asking = true;
    try {
      for (let what = wanted(); what && !written.has(JSON.stringify(what)); what = wanted()) {
        const { log } = run;
        const got = await run.complete(what);
        if (log !== run.log) continue; // another run's
        written.set(JSON.stringify(what), got);
        send(model, "texts", model.get("texts") + 1); // a goal may have waited for this one
      }
    } catch (error) {
      fig.say(`The model could not write: ${error.message}`);
    }
    asking = false;
    if (run.log) paintText();
  }

  function paintText() {
    const what = wanted();
    const got = written.get(JSON.stringify(what));
    if (!got) return;
    if (got.stranger !== undefined) {
      share.replaceChildren("The model cannot read this: ");
      share.append(element("bdi", {}, got.stranger), " is not among the characters of its text.");
      return;
    }
    share.replaceChildren(...shareOf(what, got));
    const given = element("span", { class: "afm-text-given" }, what.prompt);
    page.replaceChildren(given, got.text);
    page.dataset.step = what.step;
  }

  function paint() {
    const { log, told } = run;
    painted = performance.now();
    fig.reading.setAttribute("aria-live", run.isRunning ? "off" : "polite");
    start.element.textContent = run.isRunning ? "pause" : last() > 0 ? "go on" : "start";
    start.element.disabled = !log;
    lowest.element.disabled = last() === 0;
    along.input.disabled = last() === 0;
    choice.set(model.get("sample"));
    if (run.problem) fig.say(run.problem);
    if (!log) return;
    if (model.get("trained") !== log.last) model.set("trained", log.last);
    const shown = moment();
    along.input.max = String(log.last);
    along.set(shown.step);
    const { chance, unigram, bigram } = told.levels;
    picture.draw({
      log,
      lines: [
        { name: "chance", level: chance },
        { name: "unigram", level: unigram },
        { name: "bigram", level: bigram },
      ],
    });
    picture.point(shown.step);
    maps.paint(shown.heads, Math.min(model.get("head"), layers * sizes.heads - 1));
    fig.say(...sentenceOf(run, shown));
    paintText();
  }

  fig.exports({
    name: "my-text",
    csv: () => [
      ["step", "loss", "held out"],
      ...(run.log?.losses ?? []).map((loss, i) => {
        const kept = run.log.moments.find(({ step }) => step === i + 1);
        return [i + 1, loss, kept ? kept.unseen : ""];
      }),
    ],
  });
  function renew() {
    area.set(textNow());
    choice.set(model.get("sample"));
    run.fresh();
  }
  fig.listen(model, "change:sample", renew);
  fig.listen(model, "change:seed", run.fresh);
  for (const name of ["step", "temperature"]) {
    fig.listen(model, `change:${name}`, () => {
      heat.set(model.get("temperature"));
      if (!run.log) return;
      if (!run.isRunning || name === "step") paint();
      ask();
    });
  }
  fig.listen(model, "change:head", paint);
  renew();
  drive(fig, model, {
    set: {
      run: () => run.go(),
      step: (step) => look(step ?? last()),
      lowest: () => run.log && look(run.log.best().step),
    },
    reset: run.fresh,
    settled: () => run.ready,
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const { log, told } = run;
      const got = log && written.get(JSON.stringify(wanted()));
      return {
        own: Number(model.get("sample") === samples.length),
        steps: log?.last ?? 0,
        seconds: log?.seconds ?? 0,
        loss: log ? log.loss(log.last) : Number.NaN,
        "held out": log ? log.moments.at(-1).unseen : Number.NaN,
        lowest: log ? log.best().unseen : Number.NaN,
        excess: log ? log.moments.at(-1).unseen - log.best().unseen : Number.NaN,
        unigram: log ? told.levels.unigram : Number.NaN,
        bigram: log ? told.levels.bigram : Number.NaN,
        words: got?.words ? got.known / got.words : Number.NaN,
        copied: got?.copied ?? Number.NaN,
      };
    },
  });
  return fig.end;
}

export default { render };
