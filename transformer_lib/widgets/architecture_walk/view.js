import { select, showToken } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed, percentAmong } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { loadWeights, unpackWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { encoderDecoder } from "../math/transformer.js";
import { drawing } from "./drawing.js";
import {
  chances,
  choicesOf,
  follow,
  idsOf,
  nextWords,
  open,
  readPart,
  translate,
} from "./model.js";
import { panel } from "./panel.js";
import { writing } from "./writing.js";

function render({ model, el }) {
  const { sentences, parts: names, ids, words, target, languages, code } = readJson(model, "_text");
  const config = readJson(model, "_config");
  const parts = names.map(readPart);
  const fig = figure(el, {
    name: "Encoder and decoder",
    hint: "Try: let it write, word by word. Then click a part of the drawing, and see what goes on in it.",
  });

  const chosen = select({
    label: "sentence",
    value: 0,
    options: sentences,
    onChange(at) {
      if (found && found.steps.done < found.steps.all) send(model, "written", 0);
      send(model, "sentence", at);
    },
  });
  fig.controls.append(chosen.element);

  const picture = drawing({
    parts,
    layers: config.n_layers,
    languages,
    onOpen(at) {
      send(model, "part", at);
      if (beside.element.getBoundingClientRect().top > window.innerHeight - 120)
        beside.element.scrollIntoView({ block: "center" }); // on a phone it stands below the drawing
    },
  });
  const beside = panel({
    languages,
    onRow: (row) => send(model, "row", row),
    onStep(step) {
      if (parts[model.get("part") + step]) send(model, "part", model.get("part") + step);
    },
  });
  const line = writing({
    label: `${languages[1]}, written so far`,
    onWrite(done) {
      const newest = Math.min(done, found.steps.all - (found.whole.ended ? 1 : 0));
      if (now().side === "decoder") send(model, "row", newest);
      send(model, "written", done);
    },
    onRow: (row) => {
      if (now().side === "decoder") send(model, "row", Math.min(row, found.ids.length - 1));
    },
  });
  fig.add(line, { basis: 600 });
  fig.add(picture, { basis: 250 });
  fig.add(beside, { basis: 360 });

  let weights = null;
  let machine = null;
  let found = null; // of the sentence that is chosen
  let known = ""; // which one that is, and how much of its translation

  const written = () => (found ? found.ids.map((id) => target[id]) : []);
  const source = () => words[model.get("sentence")];
  const now = () => parts[model.get("part")];
  /** What a side's rows have read; with what they are about to write: "Mary → gave". */
  const keysOf = (one) => (one.side === "encoder" ? source() : written());
  const rowsOf = (one) =>
    one.side === "encoder"
      ? source()
      : written().map((word, at) => `${showToken(word)} → ${showToken(target[found.next[at]])}`);

  function update() {
    chosen.set(model.get("sentence"));
    const [at, done] = [model.get("sentence"), model.get("written")];
    if (machine && known !== `${at} ${done}`) {
      const whole = found?.at === at ? found.whole : translate(machine, ids[at]);
      found = { ...follow(machine, ids[at], done, whole), at, whole };
      known = `${at} ${done}`;
    }
    picture.paint(model.get("part"), [source(), written()]);
    if (!found) return;
    const one = now();
    beside.show(one, open(one, found, config, weights), {
      rows: rowsOf(one),
      keys: keysOf(one),
      memory: source(),
      tokens: target,
      lines: linesOf(one),
      first: model.get("part") === 0,
      last: model.get("part") === parts.length - 1,
    });
    look();
  }

  function linesOf({ kind, side }) {
    if (kind === "norm") return code[side];
    if (kind === "cross_attention")
      return `${code[side]}\n\n# read, in which memory is given:\n${code.attention}`;
    if (kind === "attention") return `${code[side]}\n\n# attend:\n${code.attention}`;
    if (kind === "feed_forward") return `${code[side]}\n\n# think:\n${code.feed_forward}`;
    return code[kind];
  }

  const rowNow = () => Math.min(model.get("row"), idsOf(now(), found).length - 1);

  function look() {
    if (!found) return;
    beside.light(rowNow());
    line.paint({
      words: written(),
      row: now().side === "decoder" ? rowNow() : null,
      ended: found.ended,
      steps: found.steps,
      next: nextWords(found.logits.at(-1), target),
    });
    read();
  }

  /** One sentence about the row that is followed. */
  function read() {
    const one = now();
    const shown = open(one, found, config, weights);
    const row = rowNow();
    const rows = rowsOf(one);
    const word = { text: rows[row], role: "query" };
    if (shown.heads.length) {
      const keys = one.kind === "cross_attention" ? source() : keysOf(one);
      const heads = shown.heads.flatMap((weightsOf, head) => {
        const line = Array.from(weightsOf[row]);
        const top = line.indexOf(Math.max(...line));
        const comma = head ? ", " : "";
        return [
          `${comma}in head ${head + 1} most to `,
          { text: keys[top], role: "key" },
          " (",
          { text: fixed(line[top]) },
          ")",
        ];
      });
      const choices = choicesOf(one, row, shown);
      return fig.say(
        word,
        ` may attend to ${choices} of ${keys.length} words; it attends `,
        ...heads,
        ".",
      );
    }
    if (shown.logits) {
      const all = chances(shown.logits[row]);
      const top = all.indexOf(Math.max(...all));
      return fig.say(
        "After ",
        { text: written()[row], role: "query" },
        " it writes ",
        { text: target[top], role: "output" },
        ", ",
        { text: percentAmong(all[top], all.length) },
        ".",
      );
    }
    const size = (flat) => Math.hypot(...flat.subarray(row * shown.width, (row + 1) * shown.width));
    if (one.kind === "feed_forward") {
      const own = shown.hidden.subarray(row * shown.hiddenWidth, (row + 1) * shown.hiddenWidth);
      const lit = own.filter((value) => value > 0).length;
      return fig.say(
        word,
        ": of ",
        { text: `${shown.hiddenWidth}` },
        " hidden numbers ",
        { text: `${lit}` },
        " are above zero. What is added has length ",
        { text: fixed(size(shown.out)) },
        ".",
      );
    }
    if (one.kind === "norm") {
      return fig.say(
        word,
        ": length ",
        { text: fixed(size(shown.ins[0])) },
        " in the stream and ",
        { text: fixed(size(shown.ins[1])) },
        " added; ",
        { text: fixed(size(shown.out)) },
        " after the norm.",
      );
    }
    return fig.say(
      { text: keysOf(one)[row], role: "query" },
      " is row ",
      { text: `${idsOf(one, found)[row]}` },
      " of the table. With its place added, its vector has length ",
      { text: fixed(size(shown.out)) },
      ".",
    );
  }

  loadWeights(model, "_packed").then(
    (bytes) => {
      weights = unpackWeights(bytes);
      machine = encoderDecoder(config, weights);
      update();
    },
    (error) => fig.say(`The model could not be read: ${error.message}`),
  );
  fig.exports({
    name: "encoder-decoder",
    csv: () => {
      const one = now();
      if (!found) return [["part"], [one.name]];
      const shown = open(one, found, config, weights);
      const rows = keysOf(one);
      const lines = (name, flat, labels) =>
        labels.map((label, r) => [
          name,
          label,
          ...flat.subarray(r * shown.width, (r + 1) * shown.width),
        ]);
      return [
        ["what", "word", "numbers"],
        ...shown.ins.flatMap((flat, i) =>
          lines(`in ${i + 1}`, flat, i === 1 && one.kind === "cross_attention" ? source() : rows),
        ),
        ...(shown.out ? lines("out", shown.out, rows) : []),
        ...shown.heads.flatMap((map, head) =>
          map.map((line, r) => [`head ${head + 1}`, rows[r], ...line]),
        ),
        ...(shown.logits ?? []).map((line, r) => ["logits", rows[r], ...line]),
      ];
    },
  });
  for (const name of ["sentence", "part", "written"]) fig.listen(model, `change:${name}`, update);
  fig.listen(model, "change:row", look);
  update();
  drive(fig, model, {
    facts() {
      const one = now();
      const shown = found ? open(one, found, config, weights) : null;
      return {
        written: found ? found.steps.done : 0,
        ended: found?.ended ? 1 : 0,
        block: one.layer === null ? 0 : one.layer + 1,
        cross: one.kind === "cross_attention" ? 1 : 0,
        masked: one.kind === "attention" && one.side === "decoder" ? 1 : 0,
        choices: shown ? choicesOf(one, rowNow(), shown) : 0,
        parameters: shown ? shown.parameters : 0,
      };
    },
  });
  return fig.end;
}

export default { render };
