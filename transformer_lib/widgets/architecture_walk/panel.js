// The panel beside the drawing: the part that is open, its numbers, its code.
//
//   const beside = panel({ languages, onRow(row) });
//   beside.show(part, shown, { rows, keys, memory, tokens, lines, first, last })   anew, for another
//                                         part; rows and keys: what the rows and columns of its maps are called
//   beside.light(row)                                                          fig.add(beside)

import { divergingScale } from "../core/color.js";
import { button, element, showToken } from "../core/dom.js";
import { grid } from "../core/grid.js";
import { grouped } from "../core/numbers.js";
import { inRows, nextWords, purposeOf, shapesOf, titleOf } from "./model.js";
import { listed } from "./writing.js";

const SIDE_BY_SIDE = 352; // pixels from which two heads are side by side

export function panel({ languages, onRow, onStep }) {
  const title = element("p", { class: "afm-walk-title" });
  const before = button({ label: "‹", title: "the part before", onClick: () => onStep(-1) });
  const next = button({ label: "›", title: "the next part", onClick: () => onStep(1) });
  before.element.setAttribute("aria-label", "part before");
  next.element.setAttribute("aria-label", "next part");
  const head = element("div", { class: "afm-walk-head" }, title, before.element, next.element);
  const purpose = element("p", { class: "afm-walk-purpose" });
  const facts = element("dl", { class: "afm-walk-facts" });
  const maps = element("div", {});
  const open = element("div", {}); // where numbers are all that there is to see
  const folded = element("div", {});
  const inside = element("details", {}, element("summary", {}, "What goes in and out"), folded);
  const listing = element("pre", { tabindex: "0", "aria-label": "The code of this part" });
  const code = element("details", {}, element("summary", {}, "Its code"), listing);
  const root = element("div", { class: "afm-walk-panel" }, head, purpose, facts, maps);
  root.append(open, inside, code);
  let [width, colors, grids, list, known, numbers] = [0, null, [], null, null, open];

  function add(caption, part, { followed, row = null }) {
    const name = element("p", { class: "afm-walk-caption" }, caption);
    if (row) row.append(element("div", {}, name, part.element));
    else numbers.append(name, part.element);
    const share = row ? 2 : 1; // two heads side by side, where there is room
    grids.push({ part, followed, share });
    if (colors) part.theme(colors);
    if (width) part.layout(room(share));
  }

  const room = (share) => (share > 1 && width >= SIDE_BY_SIDE ? (width - 8) / 2 : width);

  /** Vectors as rows of colored cells, in one scale for all of a part. */
  function vectors(caption, flat, words, size, reach, chooses) {
    const part = grid({
      rows: words,
      columns: Array.from({ length: size }, (_, i) => String(i + 1)),
      label: caption,
      rowTitle: "",
      columnTitle: "",
      scale: (theme) => divergingScale(theme, reach),
      cellName: (r, c, text) => `${showToken(words[r])}, number ${c + 1}: ${text}`,
      tip: (r, c, text) => [{ text: words[r] }, `, number ${c + 1}: `, { text }],
      onSelect: (r) => chooses && onRow(r),
      maxCell: 18,
    });
    add(caption, part, { followed: chooses });
    part.paint(inRows(flat, size));
  }

  function show(part, shown, { rows, keys: own, memory, tokens, lines, first, last }) {
    title.textContent = titleOf(part);
    before.element.disabled = first;
    next.element.disabled = last;
    purpose.textContent = purposeOf(part, languages);
    grids = [];
    list = null;
    for (const place of [maps, open, folded]) place.replaceChildren();
    inside.hidden = !shown.heads.length;
    numbers = shown.heads.length ? folded : open;
    const [comes, goes] = shapesOf(part, shown);
    const counted = shown.parameters
      ? grouped(shown.parameters)
      : "none of its own: it uses the table of the embedding";
    facts.replaceChildren(
      ...[
        ["in", comes],
        ["out", goes],
        ["parameters", counted],
      ].map(([name, value]) =>
        element("div", {}, element("dt", {}, name), element("dd", {}, value)),
      ),
    );
    const keys = part.kind === "cross_attention" ? memory : own;
    const row = element("div", { class: "afm-walk-heads" });
    if (shown.heads.length) maps.append(row);
    shown.heads.forEach((weights, head) => {
      const map = grid({
        rows,
        columns: keys,
        label: `Weights of head ${head + 1}`,
        onSelect: (at) => onRow(at),
        maxCell: 26,
        rowShare: 0.54,
      });
      add(`weights of head ${head + 1}`, map, { followed: true, row });
      const masked = part.kind === "attention" && part.side === "decoder";
      map.paint(weights, masked ? rows.map((_, r) => keys.map((_, c) => c <= r)) : null);
    });
    const all = [...shown.ins, ...(shown.out ? [shown.out] : [])];
    const reach = Math.max(1e-6, ...all.flatMap((flat) => Array.from(flat, Math.abs)));
    const names = {
      norm: ["the stream before", "what is added to it"],
      cross_attention: [
        "in: the stream, which makes the queries",
        "in: the memory, which makes keys and values",
      ],
    }[part.kind] ?? ["in: the stream"];
    shown.ins.forEach((flat, i) => {
      const words = i === 1 && part.kind === "cross_attention" ? memory : rows;
      vectors(names[i], flat, words, shown.width, reach, words === rows);
    });
    if (shown.out) {
      const name = ["norm", "embedding"].includes(part.kind)
        ? "out: the stream"
        : "out: what will be added to the stream";
      vectors(name, shown.out, rows, shown.width, reach, true);
    }
    if (shown.logits) {
      list = element("ol", { class: "afm-walk-chances" });
      numbers.append(element("p", { class: "afm-walk-caption" }, "out: the next word"), list);
    }
    listing.textContent = lines;
    known = { shown, tokens };
  }

  /** The row that is followed; for the output, what it predicts. */
  function light(row) {
    for (const { part, followed } of grids) if (followed) part.light(row, null, false);
    if (!list) return;
    list.replaceChildren(...listed(nextWords(known.shown.logits[row], known.tokens, 5)));
  }

  return {
    element: root,
    show,
    light,
    layout(now) {
      width = Math.min(now, 480);
      for (const { part, share } of grids) part.layout(room(share));
    },
    theme(now) {
      colors = now;
      for (const { part } of grids) part.theme(now);
    },
  };
}
