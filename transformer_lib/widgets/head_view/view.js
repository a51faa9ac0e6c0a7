import { startBertviz, weightRows } from "../core/bertviz.js";
import { ALONG, roving } from "../core/chips.js";
import { clip, element, showToken, svgElement } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed } from "../core/numbers.js";
import { readJson } from "../core/wire.js";

const HINT =
  "Try: point at a word on the left to see which keys it attends to. Click a colored square " +
  "to show or hide its head; a double click shows that head alone.";
const LISTED = 3; // heads that one sentence can name

/** The largest weight, and every place that has it, rounding aside. */
function largest(weights) {
  const top = Math.max(...weights);
  return { top, at: weights.flatMap((weight, i) => (weight > top - 5e-4 ? [i] : [])) };
}

async function render({ model, el }) {
  const { attention, tokens } = readJson(model, "_data");
  const shown = tokens.map((token) => clip(showToken(token), 12));
  const fig = figure(el, { name: "Attention by heads (bertviz)", hint: HINT });
  const layer = element("select", { id: "layer", "aria-label": "Layer" });
  const vis = element("div", { id: "vis" });
  if (attention.length > 1) {
    fig.controls.append(
      element(
        "label",
        { class: "afm-control" },
        element("span", { class: "afm-label" }, "layer"),
        layer,
      ),
    );
  } else layer.hidden = true;
  const scroll = element(
    "div",
    {
      class: "afm-scroll",
      tabindex: "0",
      role: "region",
      "aria-label": "Lines from queries to keys",
    },
    vis,
  );
  const root = element(
    "div",
    { class: "afm-bertviz afm-bertviz-heads" },
    fig.controls,
    ...(layer.hidden ? [layer] : []),
    scroll,
  );
  fig.picture.append(root);

  const heads = () =>
    [...vis.querySelectorAll("rect[role=checkbox]")].map((box) => Boolean(box.__data__));
  const rest = () =>
    fig.say(
      `${tokens.length} tokens, ${attention[0].length} heads: a line is stronger the larger the weight.`,
    );

  function read(side, index) {
    const open = heads();
    const all = attention[(Number(layer.value) || 1) - 1];
    const found = all
      .map((weights, head) => ({
        head,
        along: tokens.map((_, other) =>
          side === "left" ? weights[index][other] : weights[other][index],
        ),
      }))
      .filter(({ head }) => open[head])
      .map(({ head, along }) => ({ head, ...largest(along) }));
    const said = found.length <= LISTED ? found : [found.reduce((a, b) => (b.top > a.top ? b : a))];
    const rest = found.length - said.length;
    const tied = said.some(({ at }) => at.length > 1); // of a tie none is the most
    const alike = said.every(({ at }) => at.length === tokens.length);
    const verb =
      side === "right"
        ? tied
          ? " gets its largest weights from "
          : " gets most attention from "
        : alike
          ? " attends to "
          : tied
            ? " has its largest weights on "
            : " attends most to ";
    fig.say(
      { text: tokens[index], role: side === "left" ? "query" : "key" },
      verb,
      ...said.flatMap(({ head, top, at }, n) => [
        ...(n ? ["; "] : []),
        ...named(at, side === "left" ? "key" : "query"),
        ": ",
        { text: fixed(top) },
        ...(at.length > 1 ? [" each"] : []),
        ...(all.length > 1 ? [` in head ${head + 1}`] : []),
      ]),
      ...(rest ? [`, the largest weight of ${found.length} heads`] : []),
    );
  }

  /** The words at these places, as parts of a sentence; "all alike" if there is no other. */
  function named(places, role) {
    if (places.length === tokens.length && places.length > 1) return ["all alike"];
    return places.flatMap((at, n) => [
      ...(n ? [n === places.length - 1 ? " and " : ", "] : []),
      { text: tokens[at], role },
    ]);
  }

  /** bertviz draws for the mouse: give what it drew names, tab stops and keys. */
  function makeAccessible() {
    const svg = vis.querySelector("svg");
    if (!svg || svg.dataset.named) return;
    svg.dataset.named = "yes";
    const boxes = svg.querySelectorAll(":scope > g:not([id]) > rect");
    const check = () =>
      boxes.forEach((box) => box.setAttribute("aria-checked", String(Boolean(box.__data__))));
    boxes.forEach((box, head) => {
      box.setAttribute("role", "checkbox");
      box.setAttribute("aria-label", `head ${head + 1}`);
      const place = ["x", "y"].map((name) => Number(box.getAttribute(name)));
      const middle = Number(box.getAttribute("width")) / 2;
      box.parentNode.append(
        svgElement(
          "text",
          { class: "afm-head-name", x: place[0] + middle, y: place[1] + middle },
          String(head + 1),
        ),
      );
      box.addEventListener("keydown", (event) => {
        if (![" ", "Enter"].includes(event.key)) return;
        event.preventDefault();
        box.dispatchEvent(new MouseEvent(event.shiftKey ? "dblclick" : "click", { bubbles: true }));
      });
      for (const kind of ["click", "dblclick"])
        box.addEventListener(kind, () => {
          check();
          rest();
        });
    });
    check();
    roving(boxes[0].parentNode, ALONG, () => {}, "[role=checkbox]")(0);
    for (const side of ["left", "right"]) {
      const group = svg.querySelector(`#${side}`);
      const words = [...group.querySelectorAll("text")].map((text) => text.parentNode);
      words[0]?.parentNode.setAttribute("role", "listbox");
      words[0]?.parentNode.setAttribute("aria-label", side === "left" ? "Queries" : "Keys");
      const choose = (index) =>
        words.forEach((word, at) => {
          word.setAttribute("tabindex", at === index ? "0" : "-1");
          word.setAttribute("aria-selected", String(at === index));
        });
      words.forEach((word, index) => {
        word.setAttribute("role", "option");
        word.setAttribute("aria-label", `${side === "left" ? "query" : "key"} ${shown[index]}`);
        word.addEventListener("mouseover", () => read(side, index));
        word.addEventListener("focus", () => {
          choose(index);
          word.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
        });
        word.addEventListener("blur", () => group.dispatchEvent(new MouseEvent("mouseleave")));
        word.addEventListener("keydown", (event) => {
          const last = words.length - 1;
          const to = {
            ArrowUp: Math.max(index - 1, 0),
            ArrowDown: Math.min(index + 1, last),
            Home: 0,
            End: last,
          }[event.key];
          if (to === undefined) return;
          event.preventDefault();
          words[to].focus();
        });
      });
      choose(0);
      group.addEventListener("mouseleave", rest);
    }
    rest();
  }

  fig.exports({ name: "heads", csv: () => weightRows(attention, tokens) });
  const view = { name: null, attn: attention, left_text: shown, right_text: shown };
  startBertviz(fig, model, {
    root,
    vis,
    onDrawn: makeAccessible,
    parameters: () => ({
      attention: [view],
      default_filter: "0",
      layer: null,
      heads: null,
      include_layers: attention.map((_, index) => index + 1),
    }),
  });
  return fig.end;
}

export default { render };
