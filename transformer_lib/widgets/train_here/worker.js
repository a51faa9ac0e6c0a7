import { FLOOR, TASKS } from "../math/training/tasks.js";
import { trainer } from "../math/training/trainer.js";

let run = null;
let steps = 0;

/** A new run, before its first step; returns what stays the same in it, and the first look. */
function begin(settings) {
  run = trainer(settings);
  steps = 0;
  const { words, chance, plateau, plateauName } = TASKS[settings.task];
  const sizes = [...run.model.parameters.values()].map(({ data }) => data.length);
  const parameters = sizes.reduce((sum, size) => sum + size, 0);
  const { loss, right } = run.read();
  const first = { losses: [loss], rights: [right], frames: [{ step: 0, ...run.watch() }] };
  return {
    words,
    chance,
    plateau,
    plateauName,
    floor: FLOOR,
    parameters,
    example: run.example,
    first,
  };
}

/** Train for so many steps or milliseconds; returns each step's numbers, and maps of every few. */
function advance({ most = Number.POSITIVE_INFINITY, ms = Number.POSITIVE_INFINITY, every }) {
  const end = performance.now() + ms;
  const got = { losses: [], rights: [], frames: [] };
  do {
    run.learn();
    const { loss, right } = run.read();
    steps += 1;
    got.losses.push(loss);
    got.rights.push(right);
    if (steps % every === 0) got.frames.push({ step: steps, ...run.watch() });
  } while (got.losses.length < most && performance.now() < end);
  return got;
}

export default { begin, advance };
