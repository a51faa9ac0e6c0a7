import { sequentialScale } from "../core/color.js";
import { choices, clip, element, select, showToken, toggle } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { grid } from "../core/grid.js";
import { fixed } from "../core/numbers.js";
import { drive, labels } from "../core/state.js";
import { readFloats, readJson, send } from "../core/wire.js";
import { wordLine } from "./words.js";

// With more heads than this, a list of names is easier to use than a row of small pictures.
const MAX_THUMBNAILS = 16;
const SMALL_CELL = 18; // below this, cells can be made larger
const LARGE_CELL = 26; // pixels: for a finger

function render({ model, el }) {
  const { title, queries, keys } = readJson(model, "_text");
  const [layers, heads] = model.get("_shape");
  const weights = readFloats(model, "_weights");
  const mask = readFlags(model, "_mask");
  const truth = readFlags(model, "_truth");
  const isTrue = (query, key) => Boolean(truth?.[query * keys.length + key]);
  const size = queries.length * keys.length;
  const headOf = (flat, layer, head) => {
    const start = (layer * heads + head) * size;
    return flat.subarray(start, start + size);
  };
  const rowsOf = (flat) =>
    queries.map((_, q) => flat.subarray(q * keys.length, (q + 1) * keys.length));
  const [queryNames, keyNames] = [queries, keys].map((list) =>
    list.map((token) => clip(showToken(token))),
  );

  const compare = heads > 1 ? " Then compare the heads: the small pictures show each of them." : "";
  const fig = figure(el, {
    name: title,
    hint: `Try: point at a cell (hold a finger still for a moment, then move it), or walk through the cells with the arrow keys.${compare}`,
  });
  const choose = (change) => {
    const [layer, head, query, key] = model.get("selection");
    const now = { layer, head, query, key, ...change };
    send(model, "selection", [now.layer, now.head, now.query, now.key]);
  };

  const layerChoice = select({
    label: "layer",
    value: 0,
    options: Array.from({ length: layers }, (_, i) => `layer ${i + 1}`),
    onChange: (layer) => choose({ layer }),
  });
  if (layers > 1) fig.controls.append(layerChoice.element);

  const headNames = Array.from({ length: heads }, (_, i) => `head ${i + 1}`);
  const small = { class: "afm-thumbnail", width: keys.length, height: queries.length };
  const thumbnails =
    heads > 1 && heads <= MAX_THUMBNAILS
      ? headNames.map(() => element("canvas", { ...small, "aria-hidden": "true" }))
      : [];
  const headChoice = (thumbnails.length ? choices : select)({
    label: "head",
    value: 0,
    onChange: (head) => choose({ head }),
    options: headNames.map((text, i) =>
      thumbnails.length ? { text, picture: thumbnails[i] } : text,
    ),
  });
  if (heads > 1) fig.controls.append(headChoice.element);

  const line = wordLine(queries, keys);
  fig.picture.before(line.element);
  const map = grid({
    rows: queries,
    columns: keys,
    label: title,
    cellName: (row, column, text) =>
      `${queryNames[row]} attends to ${keyNames[column]}: ${text}${isTrue(row, column) ? ", a true link" : ""}`,
    isTrue,
    onSelect: (query, key) => choose({ query, key }),
    onHover: read,
  });
  const large = toggle({
    label: "large cells",
    value: false,
    onChange: (on) => map.setCell(on ? LARGE_CELL : null),
  });
  fig.controls.append(large.element);
  fig.add({
    ...map,
    layout(width) {
      map.layout(width);
      large.element.hidden = map.fitting(width) >= SMALL_CELL;
      if (large.element.hidden && large.input.checked) {
        large.set(false);
        map.setCell(null);
      }
    },
  });

  /** The sentence and the line of words, for the cell with the cross. */
  function read() {
    const [layer, head, ...selected] = model.get("selection");
    const [query, key] = map.pointed ?? selected;
    line.mark(query, key);
    const at = query * keys.length + key;
    const open = !mask || headOf(mask, layer, head)[at];
    const weight = fixed(headOf(weights, layer, head)[at]);
    const [asking, asked] = [
      { text: queries[query], role: "query" },
      { text: keys[key], role: "key" },
    ];
    const link = isTrue(query, key) ? ", a true link" : "";
    if (open) fig.say(asking, " attends to ", asked, ": ", { text: weight }, link);
    else fig.say(asking, " may not attend to ", asked, ": the mask hides it");
  }

  function paintThumbnails(colors) {
    const scale = sequentialScale(colors);
    const [layer] = model.get("selection");
    thumbnails.forEach((canvas, head) => {
      const pen = canvas.getContext("2d");
      headOf(weights, layer, head).forEach((weight, at) => {
        pen.fillStyle = scale.fill(weight);
        pen.fillRect(at % keys.length, Math.floor(at / keys.length), 1, 1);
      });
    });
  }

  let shown = [null, null];
  function update() {
    const [layer, head, query, key] = model.get("selection");
    if (layer !== shown[0]) paintThumbnails(fig.colors);
    if (layer !== shown[0] || head !== shown[1]) {
      const open = mask && rowsOf(headOf(mask, layer, head));
      map.paint(rowsOf(headOf(weights, layer, head)), open);
    }
    shown = [layer, head];
    layerChoice.set(layer);
    headChoice.set(head);
    map.select(query, key);
    read();
  }

  fig.exports({
    name: "attention",
    csv: () => {
      const [layer, head] = model.get("selection");
      const rows = rowsOf(headOf(weights, layer, head));
      return [["query", ...keys], ...queries.map((token, q) => [token, ...rows[q]])];
    },
  });
  fig.listen(model, "change:selection", update);
  fig.onTheme(paintThumbnails);
  update();
  const largest = weights.reduce((most, weight) => Math.max(most, weight), 0);
  drive(fig, model, {
    set: {
      layer: (layer) => choose({ layer }),
      head: (head) => choose({ head }),
      query: (query) => choose({ query }),
      key: (key) => choose({ key }),
      cell: ([query, key]) => choose({ query, key }),
    },
    /** The numbers that a goal may ask for, by name (widget.py, Facts). */
    facts() {
      const [layer, head, query, key] = model.get("selection");
      const shown = headOf(weights, layer, head);
      const facts = { layer, head, query, key, "largest weight": largest };
      facts["selected weight"] = shown[query * keys.length + key];
      const [rows, columns] = [labels(queries), labels(keys)];
      shown.forEach((weight, at) => {
        const row = rows[Math.floor(at / keys.length)];
        facts[`weight ${row} ${columns[at % keys.length]}`] = weight;
      });
      return facts;
    },
  });
  return fig.end;
}

/** One byte for each cell, 0 or 1; null where none were given. */
function readFlags(model, name) {
  const view = model.get(name);
  return view.byteLength ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength) : null;
}

export default { render };
