import { choices, select, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { short } from "../core/numbers.js";
import { drive } from "../core/state.js";
import { readJson, send } from "../core/wire.js";
import { chart } from "./chart.js";
import { asRatio, ratio, shownLines } from "./model.js";

const WHAT = { gradient: "gradient", stream: "size of the stream" };

function render({ model, el }) {
  const { lines, depths, starts } = readJson(model, "_text");
  const { arrangements, quantities } = readJson(model, "_limits");
  const keys = Object.keys(arrangements);
  const fig = figure(el, {
    name: "Gradient by depth",
    hint: "Try: switch a line on, then another number of blocks. Point at a block to read its numbers.",
  });
  const switches = keys.map((key) =>
    toggle({
      label: arrangements[key],
      value: model.get(key),
      onChange: (value) => send(model, key, value),
    }),
  );
  const depth = choices({
    label: "blocks",
    options: depths.map(String),
    value: depths.indexOf(model.get("depth")),
    onChange: (at) => send(model, "depth", depths[at]),
  });
  const start = select({
    label: "matrices start as",
    options: starts,
    value: model.get("start"),
    onChange: (at) => send(model, "start", at),
  });
  const quantity = select({
    label: "show",
    options: quantities.map((name) => WHAT[name]),
    value: quantities.indexOf(model.get("quantity")),
    onChange: (at) => send(model, "quantity", quantities[at]),
  });
  fig.controls.append(
    ...switches.map((one) => one.element),
    depth.element,
    start.element,
    quantity.element,
  );
  const picture = chart({ onPoint: say });
  fig.add(picture);

  function now() {
    const on = Object.fromEntries(keys.map((key) => [key, model.get(key)]));
    const [deep, from, what] = ["depth", "start", "quantity"].map((name) => model.get(name));
    return {
      depth: deep,
      quantity: what,
      shown: shownLines(lines, arrangements, { depth: deep, start: from, quantity: what, on }),
    };
  }

  function update() {
    const { depth: deep, quantity: what, shown } = now();
    keys.forEach((key, i) => switches[i].set(model.get(key)));
    depth.set(depths.indexOf(deep));
    start.set(model.get("start"));
    quantity.set(quantities.indexOf(what));
    picture.paint(shown, deep, WHAT[what]);
    say();
  }

  /** The block that is pointed at, or else the ends of each line. */
  function say() {
    const { depth: deep, quantity: what, shown } = now();
    if (!shown.length) {
      fig.say("Nothing is shown: switch a line on.");
      return;
    }
    const at = picture.pointed;
    const parts = shown.flatMap(({ name, values }, i) => [
      i ? "; " : "",
      `${name} `,
      { text: at === null ? asRatio(ratio(values)) : short(values[at]) },
    ]);
    if (at === null)
      fig.say(
        what === "gradient"
          ? `The first block's gradient compared with the last one's, of ${deep}: `
          : `The stream after the first block compared with that after the last of ${deep}: `,
        ...parts,
        ".",
      );
    else fig.say(`Block ${at + 1} of ${deep}, ${WHAT[what]}: `, ...parts, ".");
  }

  fig.exports({
    name: "depth",
    csv: () => {
      const { depth: deep, shown } = now();
      return [
        ["block", ...shown.map(({ name }) => name)],
        ...Array.from({ length: deep }, (_, i) => [i + 1, ...shown.map((l) => l.values[i])]),
      ];
    },
  });
  for (const name of ["depth", "start", "quantity", ...keys])
    fig.listen(model, `change:${name}`, update);
  update();
  drive(fig, model, {
    facts() {
      const { quantity: what, shown } = now();
      const ratios = shown.map(({ key, values }) => [`ratio ${key}`, ratio(values)]);
      const gradient = Number(what === "gradient");
      return { lines: shown.length, gradient, ...Object.fromEntries(ratios) };
    },
  });
  return fig.end;
}

export default { render };
