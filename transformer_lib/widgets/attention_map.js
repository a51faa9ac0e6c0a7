import { sequentialScale } from "./core/color.js";
import { choices, clip, element, select, showToken } from "./core/dom.js";
import { figure } from "./core/figure.js";
import { grid } from "./core/grid.js";
import { readFloats, readJson, send } from "./core/wire.js";

const MAX_THUMBNAILS = 16;

function render({ model, el }) {
  const { title, queries, keys } = readJson(model, "_text");
  const [layers, heads] = model.get("_shape");
  const weights = readFloats(model, "_weights");
  const mask = model.get("_mask").byteLength ? new Uint8Array(model.get("_mask").buffer, model.get("_mask").byteOffset, weights.length) : null;
  const size = queries.length * keys.length;
  const start = (layer, head) => (layer * heads + head) * size;
  const rowsOf = (flat, layer, head) =>
    queries.map((_, q) => flat.subarray(start(layer, head) + q * keys.length, start(layer, head) + (q + 1) * keys.length));

  const fig = figure(el, {
    name: title,
    hint: `Try: select a cell with the mouse, a finger or the arrow keys. ${heads > 1 ? "Then compare the heads." : ""}`,
  });
  const choose = (change) => {
    const [layer, head, query, key] = model.get("selection");
    const now = { layer, head, query, key, ...change };
    send(model, "selection", [now.layer, now.head, now.query, now.key]);
  };

  const layerChoice = select({
    label: "layer", value: 0, options: Array.from({ length: layers }, (_, i) => `layer ${i}`),
    onChange: (layer) => choose({ layer }),
  });
  if (layers > 1) fig.controls.append(layerChoice.element);
  const headNames = Array.from({ length: heads }, (_, i) => `head ${i}`);
  const thumbnails = heads <= MAX_THUMBNAILS ? headNames.map(() => element("canvas", { class: "afm-thumbnail", width: keys.length, height: queries.length, "aria-hidden": "true" })) : [];
  const headChoice = thumbnails.length
    ? choices({
        label: "head", value: 0, onChange: (head) => choose({ head }),
        options: headNames.map((text, i) => ({ text, picture: thumbnails[i] })),
      })
    : select({ label: "head", value: 0, options: headNames, onChange: (head) => choose({ head }) });
  if (heads > 1) fig.controls.append(headChoice.element);

  const map = grid({
    rows: queries, columns: keys, label: title,
    cellName: (row, column, text) =>
      `${clip(showToken(queries[row]))} attends to ${clip(showToken(keys[column]))}: ${text}`,
    onSelect: (query, key) => choose({ query, key }),
    onHover: (query, key) => (query === null ? read() : read(query, key)),
  });
  fig.add(map);

  function read(query = model.get("selection")[2], key = model.get("selection")[3]) {
    const [layer, head] = model.get("selection");
    const at = start(layer, head) + query * keys.length + key;
    const pair = [{ text: queries[query], role: "query" }, " attends to ", { text: keys[key], role: "key" }];
    if (mask && !mask[at]) fig.say({ text: queries[query], role: "query" }, " may not attend to ", { text: keys[key], role: "key" }, ": masked");
    else fig.say(...pair, ": ", { text: weights[at].toFixed(2) });
  }

  function paintThumbnails(colors) {
    const scale = sequentialScale(colors);
    const { layer } = { layer: model.get("selection")[0] };
    thumbnails.forEach((canvas, head) => {
      const pen = canvas.getContext("2d");
      const from = start(layer, head);
      for (let at = 0; at < size; at += 1) {
        pen.fillStyle = scale.fill(weights[from + at]);
        pen.fillRect(at % keys.length, Math.floor(at / keys.length), 1, 1);
      }
    });
  }

  let shown = null;
  function update() {
    const [layer, head, query, key] = model.get("selection");
    if (shown !== start(layer, head)) {
      if (heads > 1) paintThumbnails(fig.colors);
      map.paint(rowsOf(weights, layer, head), mask && rowsOf(mask, layer, head));
      shown = start(layer, head);
    }
    layerChoice.set(layer);
    headChoice.set(head);
    map.select(query, key);
    read();
  }

  fig.exports({
    name: "attention",
    csv: () => {
      const [layer, head] = model.get("selection");
      const rows = rowsOf(weights, layer, head);
      return [["query \\ key", ...keys], ...queries.map((token, q) => [token, ...rows[q]])];
    },
  });
  fig.listen(model, "change:selection", update);
  fig.onTheme((colors) => heads > 1 && paintThumbnails(colors));
  update();
  return fig.end;
}

export default { render };
