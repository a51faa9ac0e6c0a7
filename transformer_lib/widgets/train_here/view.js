import { figure } from "../core/figure.js";
import { drive } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { controls, TASKS } from "./controls.js";
import { headMaps } from "./maps.js";
import { guesses } from "./model.js";
import { plot } from "./plot.js";
import { verdictOf } from "./reading.js";
import { training } from "./run.js";
import { sentence } from "./sentence.js";

const BETWEEN = 80; // ms between two pictures at full speed: to paint takes time from the training
const CALM = 500; // and where motion is to be reduced
const SETTINGS = ["task", "layers", "smear", "optimizer", "rate", "seed"];

function render({ model, el }) {
  const limits = readJson(model, "_limits");
  const fig = figure(el, {
    name: "Train a model here",
    hint: "Try: press start and watch the maps. Then let one layer try it.",
  });
  let painted = 0;
  let planned = null;

  const run = training(model, { width: limits.width, begun, gone: plan, changed });
  const panel = controls(model, limits, {
    toggle: () => (run.isRunning ? run.stop() : run.go()),
    once: () => run.go(1),
    over: run.fresh,
    look,
  });
  fig.controls.append(...panel.elements);
  const picture = plot({ onChoose: look });
  fig.add(picture, { basis: 600 });
  const maps = headMaps();
  for (const part of maps.parts) fig.add(part, { basis: 260 });
  const strip = sentence();
  fig.add(strip, { basis: 600 });

  const onHidden = () => document.hidden && run.stop();
  document.addEventListener("visibilitychange", onHidden);
  fig.onEnd(() => {
    clearTimeout(planned);
    document.removeEventListener("visibilitychange", onHidden);
    run.end();
  });

  const last = () => run.log?.last ?? 0;
  const chosen = () => Math.min(model.get("step") ?? last(), last());
  const show = () => panel.show({ isRunning: run.isRunning, last: last(), step: chosen() });

  function look(step) {
    send(model, "step", step >= last() ? null : step);
  }

  function begun() {
    const { words, example, first } = run.told;
    maps.label(
      example.ids.map((id) => words[id]),
      first.frames[0].maps.length,
    );
    paint();
  }

  /** The run has started, stopped or failed. */
  function changed() {
    fig.reading.setAttribute("aria-live", run.isRunning ? "off" : "polite");
    clearTimeout(planned);
    planned = null;
    if (run.problem) fig.say(...verdictOf(run));
    else if (!run.isRunning && run.log) {
      paint();
      model.save_changes();
    }
    show();
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

  function paint() {
    const { told, log, before } = run;
    if (!log) return;
    painted = performance.now();
    if (model.get("trained") !== log.last) model.set("trained", log.last);
    const { words, example, chance, plateau, plateauName, floor } = told;
    const step = chosen();
    const frame = log.frameAt(step);
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
    maps.paint(frame.maps, example);
    strip.paint(
      example.ids.map((id) => words[id]),
      guesses(frame, example, words),
    );
    show();
    fig.say(...verdictOf(run, step));
  }

  fig.exports({
    name: "learning",
    csv: () => [
      ["step", "loss", "right"],
      ...(run.log?.losses ?? []).map((loss, step) => [step, loss, run.log.rights[step]]),
    ],
  });
  for (const name of SETTINGS)
    fig.listen(model, `change:${name}`, () => {
      show();
      run.fresh();
    });
  fig.listen(model, "change:speed", show);
  fig.listen(model, "change:step", () => !run.isRunning && paint());
  show();
  run.fresh();
  drive(fig, model, {
    set: {
      run: () => run.go(),
      step: (step) => look(step ?? last()),
    },
    reset: run.fresh,
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const log = run.isStale ? null : run.log; // else another run's steps would reach a goal
      const named = TASKS.map((name) => [name, Number(model.get("task") === name)]);
      return {
        ...Object.fromEntries(named),
        muon: Number(model.get("optimizer") === "muon"),
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
