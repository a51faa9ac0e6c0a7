import { startBertviz, weightRows } from "../core/bertviz.js";
import { ALONG, roving } from "../core/chips.js";
import { clip, element, showToken } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { fixed } from "../core/numbers.js";
import { readJson } from "../core/wire.js";

const HINT =
  "Try: click a small picture, one for each head, to make it large; a second click closes it.";

async function render({ model, el }) {
  const { attention, tokens } = readJson(model, "_data");
  const shown = tokens.map((token) => clip(showToken(token), 10));
  const fig = figure(el, { name: "All heads at once (bertviz)", hint: HINT });
  const heads = attention[0].length;
  const vis = element("div", { id: "vis" });
  const scroll = element(
    "div",
    { class: "afm-scroll", tabindex: "0", role: "region", "aria-label": "A picture of each head" },
    vis,
  );
  const root = element("div", { class: "afm-bertviz afm-bertviz-model" }, scroll);
  fig.picture.append(root);
  const rest = () =>
    fig.say(`${attention.length} layers of ${heads} heads, ${tokens.length} tokens in each.`);

  function read(layer, head) {
    const row = attention[layer][head].at(-1);
    const at = row.indexOf(Math.max(...row));
    fig.say(
      `Layer ${layer + 1}, head ${head + 1}: of the last token, `,
      { text: tokens.at(-1), role: "query" },
      ", the largest weight is on ",
      { text: tokens[at], role: "key" },
      ": ",
      { text: fixed(row[at]) },
    );
  }

  /** bertviz draws for the mouse: give its small pictures names, one tab stop and keys. */
  function makeAccessible() {
    const svg = vis.querySelector("svg");
    const regions = svg?.querySelectorAll(":scope > g > rect:not(.attn_background)") ?? [];
    if (!svg || svg.dataset.named || regions.length < attention.length * heads) return;
    svg.dataset.named = "yes";
    svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`);
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    let open = null;
    const keys = { ...ALONG, ArrowDown: heads, ArrowUp: -heads };
    const stopAt = roving(svg, keys, () => {}, "[role=button]");
    regions.forEach((region, index) => {
      const [layer, head] = [Math.floor(index / heads), index % heads];
      region.setAttribute("role", "button");
      region.setAttribute("aria-label", `layer ${layer + 1}, head ${head + 1}`);
      region.setAttribute("aria-pressed", "false");
      region.addEventListener("keydown", (event) => {
        if (![" ", "Enter"].includes(event.key)) return;
        event.preventDefault();
        region.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      });
      region.addEventListener("click", () => {
        open = open === index ? null : index;
        stopAt(index);
        regions.forEach((one, at) => one.setAttribute("aria-pressed", String(at === open)));
        if (open === null) rest();
        else read(layer, head);
      });
    });
    stopAt(0);
    rest();
  }

  fig.exports({ name: "heads", csv: () => weightRows(attention, tokens) });
  startBertviz(fig, model, {
    root,
    vis,
    onDrawn: makeAccessible,
    parameters: () => ({
      attention: [{ name: null, attn: attention, left_text: shown, right_text: shown }],
      default_filter: "0",
      display_mode: "light",
      include_layers: attention.map((_, index) => index + 1),
      include_heads: attention[0].map((_, index) => index + 1),
      total_heads: heads,
    }),
  });
  return fig.end;
}

export default { render };
