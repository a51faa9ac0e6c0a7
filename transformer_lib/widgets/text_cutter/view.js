import { button, element } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { grouped } from "../core/numbers.js";
import { FACE, ownText } from "../core/owntext.js";
import { drive } from "../core/state.js";
import { loadWeights } from "../core/weights.js";
import { readJson, send } from "../core/wire.js";
import { encoder, shown, splitAsGpt2 } from "../math/bpe.js";
import { cut } from "./cut.js";
import { idsOf } from "./model.js";

const MISSING =
  "GPT-2's vocabulary is not on this computer: the book's page has it, and in a notebook `make lab` brings it.";

function render({ model, el }) {
  const { label } = readJson(model, "_text");
  const known = encoder(idsOf(model.get("_merges")), { plain: true });
  let [gpt2, loading] = [null, null];

  const fig = figure(el, {
    name: "Your text in two vocabularies",
    hint: "Try: write a sentence of your own. Each piece is a token, with its id below.",
  });
  const own = ownText(model);
  fig.controls.append(...own.elements);
  const ask = button({ label: "Cut it with GPT-2's vocabulary", onClick: load });
  const note = element("p", { class: "afm-vocabulary-note", role: "status" }, ask.element);
  const theirs = cut(note);
  const ours = cut();
  fig.add(theirs, { basis: 640 });
  fig.add(ours, { basis: 640 });

  /** GPT-2's merges are a file beside the page, and are loaded when they are first asked for. */
  function load() {
    loading ??= fetched().then(() => {
      paint();
      send(model, "_ready", gpt2 !== null); // goals look again
    });
    return loading;
  }

  async function fetched() {
    if (model.get("_vocabulary")?.load) note.textContent = "Loading GPT-2's vocabulary …";
    try {
      const merges = idsOf(await loadWeights(model, "_vocabulary"));
      if (merges.length) gpt2 = encoder(merges, { split: splitAsGpt2 });
      else note.textContent = MISSING;
    } catch (error) {
      note.textContent = `GPT-2's vocabulary ${error.message}`;
    }
  }

  function look() {
    const text = own.show();
    return { text, ours: known.encode(text), theirs: gpt2?.encode(text) ?? null };
  }

  const count = (words) => words.flat().length;
  const nameIn =
    ({ bytesOf }) =>
    (id) =>
      shown(bytesOf(id));

  function paint() {
    const now = look();
    // One more than can be cut: the end of a text.
    const all = gpt2 && grouped(gpt2.size + 1);
    theirs.paint({
      title: now.theirs ? `GPT-2 (${all} tokens): ${count(now.theirs)} here` : "GPT-2",
      words: now.theirs,
      name: gpt2 && nameIn(gpt2),
    });
    ours.paint({
      title: `${label} (${grouped(known.size)} tokens): ${count(now.ours)} here`,
      words: now.ours,
      name: nameIn(known),
    });
    const { characters, bytes } = sizes(now.text);
    if (!now.text) fig.say("Write a text, and see where each vocabulary cuts it.");
    else
      fig.say(
        { text: String(characters) },
        ` characters, `,
        { text: String(bytes) },
        ` bytes: `,
        ...(now.theirs ? [{ text: String(count(now.theirs)) }, " tokens to GPT-2, "] : []),
        { text: String(count(now.ours)) },
        now.theirs ? ` to ${label}.` : ` tokens to ${label}.`,
      );
  }

  const sizes = (text) => ({
    characters: Array.from(text).length,
    bytes: new TextEncoder().encode(text).length,
  });

  fig.exports({
    name: "tokens",
    csv() {
      const now = look();
      const rows = (who, words, tokenizer) =>
        (words ?? []).flat().map((id) => [who, shown(tokenizer.bytesOf(id)), id]);
      return [
        ["vocabulary", "token", "id"],
        ...rows("GPT-2", now.theirs, gpt2),
        ...rows(label, now.ours, known),
      ];
    },
  });
  fig.listen(model, "change:_letters", () => {
    paint();
    load();
  });
  paint();
  if (!model.get("_vocabulary")?.load) load(); // a notebook has it, or never will
  // Letters that arrive later are of another width.
  document.fonts?.load(FACE, "ಕ").then(paint, () => {});
  drive(fig, model, {
    set: {
      sample(i) {
        own.setSample(i);
        load(); // for the text that is shown already, too
      },
    },
    settled: () => loading,
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const now = look();
      const tokens = now.theirs ? count(now.theirs) : Number.NaN;
      return { ...sizes(now.text), own: count(now.ours), tokens };
    },
  });
  return fig.end;
}

export default { render };
