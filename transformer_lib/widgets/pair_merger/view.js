import { button, element, slider } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { FACE, ownText, pieces } from "../core/owntext.js";
import { drive } from "../core/state.js";
import { send } from "../core/wire.js";
import { after, learn, pairsOf, shown } from "../math/bpe.js";
import { mergeList, pairList } from "./lists.js";

const PLAY_MS = 700; // from one merge to the next

function render({ model, el }) {
  let [learned, known, pointed, timer] = [null, null, null, null];

  const fig = figure(el, {
    name: "Merging pairs",
    hint: "Try: press merge, again and again, and watch the words grow together. Then write a text of your own.",
  });
  const name = (id) => shown(learned.tokens[id]);
  const own = ownText(model, {
    onText() {
      stop();
      model.set("merges", 0);
    },
  });

  const back = button({ label: "back", title: "Undo a merge", onClick: () => step(-1) });
  const next = button({
    label: "merge",
    title: "Merge the most frequent pair",
    onClick: () => step(1),
  });
  const play = button({
    label: "play",
    title: "One merge after the other",
    onClick: () => (timer === null ? start() : stop()),
  });
  const along = slider({
    label: "merges",
    min: 0,
    max: 1,
    step: 1,
    value: 0,
    onInput(many) {
      stop();
      send(model, "merges", many);
    },
  });
  fig.controls.append(
    ...own.elements,
    element("div", { class: "afm-merging" }, next.element, back.element, play.element),
    along.element,
  );

  const text = pieces();
  const pairs = pairList((i) => {
    pointed = i;
    paint();
  });
  const list = mergeList();
  fig.add(text, { basis: 640 });
  fig.add(pairs, { basis: 260 });
  fig.add(list, { basis: 260 });

  const done = () => Math.min(model.get("merges"), learned.merges.length);

  function step(by) {
    stop();
    send(model, "merges", Math.min(learned.merges.length, Math.max(0, done() + by)));
  }

  function start() {
    if (!learned.merges.length) return;
    if (done() === learned.merges.length) send(model, "merges", 0);
    play.element.textContent = "pause";
    fig.reading.setAttribute("aria-live", "off");
    timer = setInterval(() => {
      send(model, "merges", done() + 1);
      if (done() === learned.merges.length) stop();
    }, PLAY_MS);
  }

  function stop() {
    if (timer === null) return;
    clearInterval(timer);
    timer = null;
    play.element.textContent = "play";
    fig.reading.setAttribute("aria-live", "polite");
  }
  fig.onEnd(stop);

  function look() {
    const now = own.show();
    if (now !== known) {
      known = now;
      learned = learn(now);
      pointed = null;
      along.input.max = String(Math.max(1, learned.merges.length));
      along.input.disabled = !learned.merges.length;
    }
    const words = after(learned, done());
    return { words, table: pairsOf(words), last: learned.merges[done() - 1] ?? null };
  }

  function paint() {
    const { words, table, last } = look();
    const [many, all] = [done(), learned.merges.length];
    along.set(many);
    back.element.disabled = many === 0;
    next.element.disabled = many === all;
    play.element.disabled = all === 0;
    const marked = table[pointed ?? 0] ?? null;
    text.paint({ words, name, fresh: last?.created ?? null, pair: marked?.pair ?? null });
    pairs.paint({ table, name, lit: pointed });
    list.paint({ merges: learned.merges.slice(0, many), name });
    say(words, last, many);
  }

  function say(words, last, many) {
    const counts = countsOf(words);
    const size = [
      " The text is ",
      { text: `${counts.tokens} tokens` },
      ` long, of ${counts.bytes} bytes; the vocabulary has `,
      { text: `256 + ${many}` },
      ".",
    ];
    if (!words.length) fig.say("Write a text: every letter, blank and sign is one byte or more.");
    else if (last === null) fig.say("No merge yet: every token is one byte.", ...size);
    else
      fig.say(
        `Merge ${many}: `,
        { text: name(last.pair[0]) },
        " and ",
        { text: name(last.pair[1]) },
        ` stood side by side ${times(last.count)}; `,
        { text: name(last.created), role: "output" },
        " is one token now.",
        ...size,
        ...(many === learned.merges.length ? [" No pair occurs twice any more."] : []),
      );
  }

  function countsOf(words) {
    const ids = words.flat();
    const sizes = ids.map((id) => learned.tokens[id].length);
    return {
      tokens: ids.length,
      bytes: sizes.reduce((sum, size) => sum + size, 0),
      longest: Math.max(0, ...sizes),
    };
  }

  fig.exports({
    name: "merged-pairs",
    csv: () => [
      ["merge", "left", "right", "token", "count"],
      ...learned.merges
        .slice(0, done())
        .map(({ pair, created, count }, i) => [
          i + 1,
          name(pair[0]),
          name(pair[1]),
          name(created),
          count,
        ]),
    ],
  });
  fig.listen(model, "change:_letters", paint);
  fig.listen(model, "change:merges", paint);
  paint();
  // Letters that arrive later are of another width.
  document.fonts?.load(FACE, "ಕ").then(paint, () => {});
  drive(fig, model, {
    set: { sample: own.setSample },
    reset: stop,
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const { words, table } = look();
      return {
        characters: model.get("_letters").length,
        words: words.length,
        merges: done(),
        next: table[0]?.count ?? 0,
        ...countsOf(words),
      };
    },
  });
  return fig.end;
}

const times = (count) => (count === 2 ? "twice" : `${count} times`);

export default { render };
