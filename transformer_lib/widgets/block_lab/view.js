import { chips } from "../core/chips.js";
import { element, select, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { percentAmong } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { readBlock } from "../math/block.js";
import { machine } from "./machine.js";
import { askAll, best, choiceOf, leaning, PARTS, storyOf, unpack } from "./model.js";

const NAMES = {
  norm_1: "norm 1",
  attention: "attention",
  residual_1: "residual 1",
  norm_2: "norm 2",
  feed_forward: "feed-forward",
  residual_2: "residual 2",
};

function render({ model, el }) {
  const { choices, texts, groups, classes, ids, answers, shapes, heads, eps } = readJson(
    model,
    "_text",
  );
  const weights = unpack(readFloats(model, "_arrays"), shapes, heads, eps);
  const sizes = choices.map(([, options]) => options.length);
  const flip = (part) => send(model, part, !model.get(part));

  const fig = figure(el, {
    name: "Block",
    hint: "Try: click a part, and it is off. Click it again, and it is on. Then change the story.",
  });
  const chosen = choices.map(([label, options], at) =>
    select({
      label,
      options,
      value: 0,
      onChange(option) {
        const now = choiceOf(sizes, model.get("story"));
        now[at] = option;
        send(model, "story", storyOf(sizes, now));
      },
    }),
  );
  const switches = PARTS.map((part) =>
    toggle({ label: NAMES[part], value: true, onChange: (value) => send(model, part, value) }),
  );
  fig.controls.append(...chosen.map((one) => one.element), ...switches.map((one) => one.element));
  const picture = machine({ names: NAMES, classes, onFlip: flip });
  const line = chips({ label: "The story" });
  const note = element("p", { class: "afm-block-note" }, "bars: where ? looks");
  fig.add({ element: element("div", {}, line.element, note) }, { basis: 600 });
  fig.add(picture, { basis: 600 });

  const state = () => Object.fromEntries(PARTS.map((part) => [part, model.get(part)]));
  let known = [null, null];
  /** All stories; asked again only if a switch has moved. */
  function all(on) {
    const key = JSON.stringify(on);
    if (known[0] !== key) known = [key, askAll(weights, ids, answers, groups, on)];
    return known[1];
  }

  function now() {
    const on = state();
    const story = model.get("story");
    return { on, story, found: readBlock(weights, ids[story], on), asked: all(on) };
  }

  function update() {
    const { on, story, found, asked } = now();
    choiceOf(sizes, story).forEach((option, at) => chosen[at].set(option));
    PARTS.forEach((part, at) => switches[at].set(on[part]));
    const adds = {
      start: leaning(weights, found.start),
      attended: leaning(weights, found.attended),
      thought: leaning(weights, found.thought),
    };
    const words = texts[story].split(" ");
    const looks = words.map((_, i) => found.weights.reduce((sum, row) => sum + row[i], 0) / heads);
    line.paint({ words, shares: on.attention ? looks : null });
    note.hidden = !on.attention;
    picture.paint({ on, found, asked, adds, words });
    const said = best(found.scores);
    const off = PARTS.filter((part) => !on[part]).map((part) => NAMES[part]);
    fig.say(
      off.length ? `Without ${off.join(" and ")} it` : "It",
      " says ",
      { text: classes[said], role: "output" },
      ", ",
      { text: percentAmong(found.chances[said], classes.length) },
      said === answers[story] ? ": right. " : ": wrong. ",
      "Of all stories ",
      { text: `${asked.right} of ${asked.count}` },
      " are right.",
    );
  }

  fig.exports({
    name: "block",
    csv: () => {
      const { found } = now();
      const rows = Object.entries(found).filter(([name]) => name !== "weights");
      return [
        ["weights", ...found.weights.flat()],
        ...rows.map(([name, values]) => [name, ...values]),
      ];
    },
  });
  for (const name of ["story", ...PARTS]) fig.listen(model, `change:${name}`, update);
  update();
  drive(fig, model, {
    facts() {
      const { on, asked } = now();
      return { off: PARTS.filter((part) => !on[part]).length, right: asked.right };
    },
  });
  return fig.end;
}

export default { render };
