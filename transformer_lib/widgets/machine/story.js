// The text that the machine reads: as words, as stories to choose, as buttons and a field, and what
// may be said of it.
//
//   const story = storyPanel({ model, known, context, grammar, draw, stopped });   known: the widget's _text
//   fig.controls.append(...story.controls);   fig.picture.before(...story.parts);   story.bar.append(more)
//   story.paint(state, shares);               state: story.state(); shares: weights of the words, or null
//   story.write(ids)   story.say(id)   story.askFor(gift)   story.look(place)   story.stop()
//   draw() is asked for the next word's id while the machine writes; null: not yet
//   story.isWithin()     where less motion is asked for: it writes, and not yet to a sentence's end

import { chips } from "../core/chips.js";
import { button, clip, element, select, textField } from "../core/dom.js";
import { send } from "../core/wire.js";
import { asked, asking, readWords, titles } from "./model.js";
import { verdictOf } from "./said.js";
import { slowly } from "./writer.js";

const SENTENCE = 1500; // milliseconds for each, where less motion is asked for
const isCalm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export function storyPanel({ model, known, context, grammar, draw, stopped }) {
  const { vocabulary, stories, texts } = known;
  const begin = [vocabulary.indexOf("<story>")];
  const ids = () => model.get("text");
  const words = (some = ids()) => some.map((id) => vocabulary[id]);
  const room = () => context - ids().length;
  const here = () => {
    const [at, last] = [model.get("word"), ids().length - 1];
    return at < 0 ? last : Math.min(at, last);
  };

  const example = select({
    label: "story",
    value: 0,
    options: titles(stories),
    onChange: (at) => write(texts[at]),
  });
  const line = chips({ label: "The story", onSelect: look });
  const ask = element("div", { class: "afm-asks", role: "group", "aria-label": "Ask who has it" });
  const bar = element("div", { class: "afm-controls afm-machine-bar" }, ask);
  const undo = button({ label: "⌫ last word", onClick: () => write(ids().slice(0, -1)) });
  const again = button({ label: "new story", onClick: () => write(begin) });
  const go = button({
    label: "let it write",
    onClick: () => (writer.isRunning ? writer.stop() : run()),
  });
  const field = textField({ label: "or write, and press Enter", autocapitalize: "off" });
  field.element.classList.add("afm-machine-write");
  field.input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") writeField();
  });
  const verdict = element("p", { class: "afm-machine-verdict", role: "status" });

  const writer = slowly({
    next: writeNext,
    pause: isCalm() ? () => (isWithin() ? 0 : SENTENCE) : undefined,
    onChange(isRunning) {
      go.element.textContent = isRunning ? "stop" : "let it write";
      if (!isRunning) stopped();
    },
  });

  function isWithin() {
    return writer.isRunning && isCalm() && words().at(-1) !== ".";
  }

  function run() {
    if (room() === 0 || grammar.read(words()).allowed.has("<story>")) put(begin);
    writer.start();
  }

  /** One word more, if it is known; whether there may be another one. */
  function writeNext() {
    const id = draw();
    if (id === null) return true;
    if (vocabulary[id] === "<story>" || room() === 0) return false;
    put([...ids(), id]);
    return true;
  }

  function write(next) {
    writer.stop();
    put(next);
  }

  function put(next) {
    const kept = next.length ? next.slice(0, context) : begin;
    model.set("word", -1);
    model.set(
      "patches",
      model.get("patches").filter(([, at]) => at < kept.length),
    );
    send(model, "text", kept);
  }

  /** Another word: at the end, or after the word that is looked at, where the story takes another way. */
  function say(id) {
    write([...ids().slice(0, here() + 1), id]);
  }

  function writeField() {
    const read = readWords(field.input.value, vocabulary);
    if (read.unknown !== undefined) {
      verdict.textContent = `The machine does not know the word ${clip(read.unknown, 30)}. It knows: ${vocabulary.slice(1).join(", ")}.`;
      return;
    }
    field.input.value = "";
    if (read.words.length > room()) {
      verdict.textContent = `The machine reads at most ${context} words; there is room for ${room()} more.`;
    } else write([...ids(), ...read.words.map((word) => vocabulary.indexOf(word))]);
  }

  function askFor(gift) {
    const now = words();
    const { start, problem } = grammar.read(now);
    const from = problem ? now.lastIndexOf(".") + 1 : start;
    const question = asking(now, gift, Math.max(from, 1));
    write(question.map((word) => vocabulary.indexOf(word)));
  }

  function look(at) {
    send(model, "word", at === ids().length - 1 ? -1 : at);
  }

  /** The text as the grammar reads it: the gift that is asked for, and who has it. */
  function state() {
    const now = words();
    const read = grammar.read(now);
    const gift = asked(now, read.start, known.grammar.gifts);
    return { now, read, gift, answer: gift === null ? null : (read.owners.get(gift) ?? null) };
  }

  /** A button for each gift that has an owner. */
  function offer(gifts) {
    if (ask.dataset.gifts === gifts.join()) return;
    ask.dataset.gifts = gifts.join();
    const label = element("span", { class: "afm-label" }, gifts.length ? "ask: who has" : "");
    const buttons = gifts.map((one) => button({ label: `${one} ?`, onClick: () => askFor(one) }));
    ask.replaceChildren(label, ...buttons.map((one) => one.element));
  }

  return {
    controls: [
      ...(stories.length > 1 ? [example.element] : []),
      undo.element,
      again.element,
      go.element,
      field.element,
    ],
    parts: [line.element, bar, verdict],
    bar,
    words,
    here,
    state,
    write,
    say,
    askFor,
    look,
    stop: writer.stop,
    isWithin,
    /** Say what went wrong. */
    fail: (message) => (verdict.textContent = message),
    /** The controls, as soon as the text is another one. */
    follow() {
      const at = texts.findIndex((one) => String(one) === String(ids()));
      if (at >= 0) example.set(at);
      undo.element.disabled = ids().length < 2;
    },
    paint({ now, read }, shares) {
      line.paint({ words: now, selected: here(), shares, wrong: read.problem?.at ?? null });
      offer([...read.owners.keys()]);
      verdict.textContent = verdictOf(read, { room: room(), context });
    },
  };
}
