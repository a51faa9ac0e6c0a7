import { startBertviz, weightRows } from "../core/bertviz.js";
import { DOWN, roving } from "../core/chips.js";
import { themeOf } from "../core/color.js";
import { clip, element, showToken } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed } from "../core/numbers.js";
import { readJson } from "../core/wire.js";

const HINT =
  "Try: point at a word on the left, which asks. Each row shows a key, its products with the " +
  "query, and their sum. The sign beside the word folds and unfolds the numbers.";
const WIDTH = 1024; // of bertviz's drawing

async function render({ model, el }) {
  const data = readJson(model, "_data");
  const { attention, queries, keys, tokens } = data;
  const shown = tokens.map((token) => clip(showToken(token), 10));
  const fig = figure(el, { name: "From queries and keys to weights (bertviz)", hint: HINT });
  const layer = element("select", { id: "layer", "aria-label": "Layer" });
  const head = element("select", { id: "att_head", "aria-label": "Head" });
  const labeled = (text, control) =>
    element(
      "label",
      { class: "afm-control" },
      element("span", { class: "afm-label" }, text),
      control,
    );
  const vis = element("div", { id: "vis" });
  fig.controls.append(labeled("layer", layer), labeled("head", head));
  const scroll = element(
    "div",
    { class: "afm-scroll", tabindex: "0", role: "region", "aria-label": "Queries, keys, products" },
    vis,
  );
  const root = element("div", { class: "afm-bertviz afm-bertviz-neuron" }, fig.controls, scroll);
  fig.picture.append(root);
  let asking = data.query; // the word whose numbers are shown
  let expanded = true;

  const words = (group) => [...vis.querySelectorAll(`#${group} #leftText > g`)];
  const press = (word) =>
    word.querySelector("rect:not(.highlight)").dispatchEvent(new MouseEvent("click"));
  const point = (word) => word.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));

  function read() {
    const [l, h] = [Number(layer.value) || 0, Number(head.value) || 0];
    const row = attention[l][h][asking];
    const at = row.indexOf(Math.max(...row));
    const q = queries[l][h][asking];
    const sum = q.reduce((total, x, i) => total + x * keys[l][h][at][i], 0) / Math.sqrt(q.length);
    fig.say(
      { text: tokens[asking], role: "query" },
      " attends most to ",
      { text: tokens[at], role: "key" },
      `: ${fixed(row[at])}, from a score of ${fixed(sum)}.`,
    );
  }

  /** bertviz draws for the mouse: give its words names, one tab stop and keys. */
  function makeAccessible() {
    const svg = vis.querySelector("svg");
    if (!svg || svg.dataset.named || words("collapsed").length < tokens.length) return;
    svg.dataset.named = "yes";
    // bertviz numbers its choices from 0. Their values stay: it computes with them.
    for (const { options } of [layer, head])
      for (const option of options) option.textContent = String(Number(option.value) + 1);
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${Number.parseFloat(svg.getAttribute("height"))}`);
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    const groups = ["expanded", "collapsed"];
    const stops = groups.map((group) =>
      roving(vis.querySelector(`#${group} #leftText`), DOWN, () => {}, ":scope > g"),
    );
    for (const group of groups)
      words(group).forEach((word, index) => {
        word.setAttribute("role", "button");
        word.setAttribute("aria-label", `query ${shown[index]}`);
        word.addEventListener("mouseover", () => {
          asking = index;
          for (const stopAt of stops) stopAt(index);
          read();
        });
        word.addEventListener("focus", () => point(word));
        word.addEventListener("keydown", (event) => {
          if (![" ", "Enter"].includes(event.key)) return;
          event.preventDefault();
          press(word);
          words(expanded ? "expanded" : "collapsed")[index].focus();
        });
        word.querySelector("rect:not(.highlight)").addEventListener("click", () => {
          expanded = group === "collapsed";
        });
      });
    queueMicrotask(open);
  }

  /** Show the numbers of the word that asks: at first, and of another head. */
  function open() {
    const from = expanded ? "expanded" : "collapsed";
    if (expanded) press(words("collapsed")[asking]);
    point(words(from)[asking]);
    read();
  }

  fig.exports({ name: "neurons", csv: () => weightRows(attention, tokens) });
  const view = { attn: attention, queries, keys, left_text: shown, right_text: shown };
  startBertviz(fig, model, {
    root,
    vis,
    onDrawn: makeAccessible,
    parameters: () => ({
      attention: { all: view },
      default_filter: "all",
      bidirectional: false,
      display_mode: themeOf(root),
      layer: data.layer,
      head: data.head,
    }),
  });
  return fig.end;
}

export default { render };
