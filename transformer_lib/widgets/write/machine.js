// The machine of chapter 00 in Python's worker, with a reader's functions in it.
//
//   const machine = machineOf(facts, packed);
//     facts    { config, vocabulary, prompts, answers } of the questions, in words
//     packed   the weights in 8 bits (what the figure Machine has), and what these leave out, likewise
//   machine.begin()                      nothing is put in; python/machine.py calls place(...) then
//   machine.ask({ words, head, onGroup })
//     -> { right, of, parts, said, probability, weights }, or null if a function failed (Python has told
//     why); parts: [{ name, called }], what was put in and what the reader calls it
//
// Questions of one length are read together, and a function is called for all of them at once.

import { unpackWeights } from "../core/weights.js";
import { softmax } from "../math/linear.js";
import { opened } from "../math/opened.js";
import { Batched } from "../math/tensor/batched.js";
import { call } from "../math/tensor/operations.js";
import { count, dense, same, Tensor } from "../math/tensor/tensor.js";

class Failed extends Error {}

export function machineOf({ config, vocabulary, prompts, answers }, packed) {
  const model = opened(config, both(packed.map(unpackWeights)));
  const idOf = new Map(vocabulary.map((word, id) => [word, id]));
  const idsOf = (text) => text.split(" ").map((word) => idOf.get(word));
  const asked = prompts.map((prompt, i) => ({ ids: idsOf(prompt), answer: idOf.get(answers[i]) }));
  const lengths = [...new Set(asked.map(({ ids }) => ids.length))];
  const groups = lengths.map((length) => asked.filter(({ ids }) => ids.length === length));
  let own = [];

  function rightOf(group) {
    const { logits } = model.read(
      group.map(({ ids }) => ids),
      own,
    );
    return group.filter(({ answer }, i) => largest(logits[i]) === answer).length;
  }

  function story(words, head) {
    const [layer, number] = head;
    const { logits, maps } = model.read([words.map((word) => idOf.get(word))], own);
    const chances = softmax(logits[0]);
    const best = largest(chances);
    const map = maps[layer];
    const at = Math.min(number, map.shape[1] - 1); // a part may make fewer heads
    const weights = Float32Array.from(dense(call("select", [call("select", [map, 0, 0]), 0, at])));
    return { said: vocabulary[best], probability: chances[best], weights };
  }

  return {
    begin() {
      own = [];
    },
    get isEmpty() {
      return own.length === 0;
    },
    place(i, name, called, layer, head, takesMask) {
      const how = { i, name, takesMask };
      own.push({
        name,
        called,
        layer: layer ?? null,
        head: head ?? null,
        takesMask,
        call: (given, shape, axes) => resultsFor(how, [given], [shape], axes)[0],
        each: (...calls) => resultsFor(how, ...calls),
      });
    },
    ask({ words, head, onGroup }) {
      try {
        const found = story(words, head);
        let [right, of] = [0, 0];
        for (const group of groups) {
          right += rightOf(group);
          of += group.length;
          onGroup({ right, of, all: asked.length });
        }
        const parts = own.map(({ name, called }) => ({ name, called }));
        return { right, of, parts, ...found };
      } catch (error) {
        if (error instanceof Failed) return null;
        throw error;
      }
    },
  };
}

/** What a reader's function makes of each of some lists of arguments: see math/opened.js. */
function resultsFor({ i, name, takesMask }, calls, shapes, axes) {
  const lead = axes ? shapes[0].slice(0, axes[0]) : [];
  const flat = calls.map((given) => given.map((x, n) => (axes?.[n] ? flattened(x, axes[n]) : x)));
  const tensors = flat.flat().filter((x) => x instanceof Tensor);
  const versions = tensors.map((x) => x.storage.version);
  const many = (given) => given.map((x, n) => (axes?.[n] ? new Batched(x) : x));
  let results = resultsOf(i, flat.map(many));
  if (results === "single") {
    if (!axes || (name === "attention_weights" && !takesMask)) refuse(i, "asks_for_single_numbers");
    results = flat.map((given) => oneByOne(i, given, axes, count(lead)));
  }
  if (tensors.some((x, n) => x.storage.version !== versions[n])) refuse(i, "has_changed_the_given");
  const dtype = name === "causal_mask" ? "bool" : "float32";
  return results.map((result, n) => {
    const whole = unbatched(result, lead);
    if (!isFine(whole, shapes[n], dtype)) {
      const given = calls[n].filter((x) => x instanceof Tensor).map((x) => x.shape);
      if (!globalThis.afmFits(i, whole, shapes[n], given, lead.length)) throw new Failed();
    }
    return whole.dtype === dtype ? whole : call("to", [whole, dtype]);
  });
}

/** Whether nothing has to be looked at: the library's rules are in Python, which takes longer. */
const isFine = (x, shape, dtype) =>
  x.dtype === dtype && same(x.shape, shape) && dense(x).every((value) => Number.isFinite(value));

function refuse(i, what) {
  globalThis.afmRefuse(i, what);
  throw new Failed();
}

function resultsOf(i, calls) {
  globalThis.afmTensors.begin();
  const results = globalThis.afmOwn(i, calls);
  if (!results) throw new Failed();
  return results;
}

function oneByOne(i, given, axes, size) {
  const part = (x, n, p) => (axes[n] ? call("select", [x, 0, p]) : x);
  const calls = Array.from({ length: size }, (_, p) => given.map((x, n) => part(x, n, p)));
  return new Batched(call("stack", [resultsOf(i, calls), 0]));
}

const flattened = (x, axes) => call("reshape", [x, [-1, ...x.shape.slice(axes)]]);

function unbatched(result, lead) {
  if (result instanceof Batched) return call("reshape", [result.whole, [...lead, ...result.shape]]);
  return lead.length ? call("expand", [result, [...lead, ...result.shape]]) : result;
}

function largest(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i += 1) if (numbers[i] > numbers[best]) best = i;
  return best;
}

/** The sum of two sets of weights. */
function both([weights, rest]) {
  for (const [name, { data }] of weights) {
    const more = rest.get(name).data;
    for (let i = 0; i < data.length; i += 1) data[i] += more[i];
  }
  return weights;
}
