import { PLAIN } from "../math/training/machine.js";
import { simd } from "../math/training/simd.js";
import { textTrainer } from "../math/training/text.js";
import { compare, encode, levels, readText } from "./corpus.js";
import { heads, modelOf, write } from "./writer.js";

const ROOM = 64; // MB, more than the largest model here takes
const FIRST = 8; // the first step that is kept as a moment, after 0 ...
const NEXT = 1.12; // ... and then one whenever there are so many times more steps

const FIRST_LINE = "\n"; // what comes before a text that begins with nothing

let machine = null; // one for all runs: a browser gives few of them
let run = null;
let kept = new Map(); // the weights at the moments that are kept, by step
let about = null; // what stays the same in a run
let corpus = null;
let next = 0;

/** A new run on this text, before its first step: what stays the same in it, and its first moment;
 * { problem } if nothing can be learned from the text. */
function begin({ text, limits, passage, ...sizes }) {
  run = null;
  corpus = readText(text, limits);
  if (corpus.problem) return { problem: corpus.problem };
  const { alphabet, training, heldOut, characters, different, rare } = corpus;
  machine ??= simd(ROOM) ?? PLAIN;
  machine.clear();
  run = textTrainer({ ...sizes, training, heldOut, vocabulary: alphabet.length, machine });
  kept = new Map();
  next = FIRST;
  about = { sizes, alphabet, passage: heldOut.slice(0, passage) };
  const parameters = [...run.model.parameters.values()];
  return {
    characters,
    different,
    rare,
    levels: levels(corpus),
    passage: Array.from(about.passage, (id) => alphabet[id]),
    parameters: parameters.reduce((sum, { data }) => sum + data.length, 0),
    isFast: machine.isFast,
    first: keep(),
  };
}

/** The weights of now, put aside; what can be said of them. */
function keep() {
  const copy = ([name, { rows, columns, data }]) => [name, { rows, columns, data: data.slice() }];
  kept.set(run.steps, new Map([...run.model.parameters].map(copy)));
  return { step: run.steps, unseen: run.unseen(), heads: heads(at(run.steps), about.passage) };
}

const at = (step) => modelOf({ ...about, weights: kept.get(step) });

/** Train for some milliseconds, or until the next moment: the losses of the steps, and the moment. */
function advance({ ms, most = Number.POSITIVE_INFINITY }) {
  const begun = performance.now();
  const losses = [];
  let moment = null;
  do {
    losses.push(run.learn());
    if (run.steps >= next) {
      next = Math.ceil(run.steps * NEXT);
      moment = keep();
    }
  } while (!moment && losses.length < most && performance.now() - begun < ms);
  return { losses, moment, ms: performance.now() - begun };
}

/** The moment of now, if it is not kept yet: a run has stopped here. */
function pause() {
  return kept.has(run.steps) ? null : keep();
}

/** What the model of a moment that is kept writes after a prompt, or the character that it lacks. */
function complete({ step, prompt, ...options }) {
  const { alphabet } = about;
  const { ids, stranger } = encode(prompt || FIRST_LINE, alphabet);
  if (stranger && prompt) return { stranger };
  const written = write(at(step), ids ?? [corpus.training[0]], options);
  const text = written.map((id) => alphabet[id]).join("");
  return { text, ...compare(text, corpus) };
}

export default { begin, advance, pause, complete };
