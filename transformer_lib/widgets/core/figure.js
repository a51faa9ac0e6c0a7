// The frame that all widgets share: a caption that says what to try, controls, the picture, and one
// sentence of reading (a live region). It also ends everything that a widget starts.
//
//   const fig = figure(el, { name: "Attention map", hint: "Try: select a cell." });
//   fig.controls.append(slider({...}).element);
//   fig.add(part)             part = { element, layout?(width), theme?(colors) }, as grid() returns;
//                             laid out at once and whenever its width changes, in the theme's colors;
//                             with { stays: true } in sight on a phone while what sets it is used
//   fig.say("text ", { text: "roses", role: "query" }, " more")     role: query key value output
//   fig.exports({ name: "attention", csv: () => [["query", "key"], [1, 2]] })   SVG, PNG, CSV buttons
//   fig.listen(model, "change:selection", paint)
//   fig.onTheme((colors) => ...)     called at once, when light turns to dark, and when a view that was
//                                    rendered outside of the document has come into it
//   fig.onEnd(() => ...)             return fig.end from render
//
// The style that all figures share (widget.css) is in a document once, before any figure's own. A
// notebook puts the `_css` of each kind at the end of the document when its first figure appears; if the
// shared style were part of it, it would come again after another kind's own style, and undo it.

import { palette, themeOf, watchTheme } from "./color.js";
import { button, clip, element, phrase } from "./dom.js";

const TEXT = ""; // widget.css (joining.py puts the text of that file here)
const ID = "afm-style";
const OWN = "/*! afm: "; // so begins each figure's own style (joining.py)
const HEADER = 60; // pixels of the window that the page keeps for itself, at its top

/** A page on a slow machine has its turn between the parts of a figure that is built there. */
export const turn = () => new Promise((resolve) => setTimeout(resolve));

/** See to it that a document has the shared style; `page` is the document. */
function shareStyle(page) {
  const found = page.getElementById(ID);
  if (found?.textContent === TEXT) return;
  const style = found ?? page.createElement("style");
  style.id = ID;
  style.textContent = TEXT; // a newer one, if the library has been changed since
  const own = [...page.head.querySelectorAll("style")].find((one) =>
    one.textContent.startsWith(OWN),
  );
  if (own && !found) own.before(style);
  else if (!found) page.head.append(style);
}

export function figure(el, { name, hint }) {
  shareStyle(el.ownerDocument);
  const ends = [];
  const controls = element("div", { class: "afm-controls" });
  const picture = element("div", { class: "afm-picture" });
  const reading = element("p", { class: "afm-reading", "aria-live": "polite" });
  const foot = element("div", { class: "afm-foot" }, reading);
  const caption = element("figcaption", { class: "afm-caption" }, hint);
  const root = element(
    "figure",
    { class: "afm", "aria-label": clip(name, 200), "data-afm-theme": themeOf(el) },
    caption,
    controls,
    picture,
    foot,
  );
  el.append(root);
  tellApart(root, name);

  const fig = {
    element: root,
    controls,
    picture,
    reading,
    get colors() {
      return palette(root);
    },

    say(...parts) {
      reading.replaceChildren(...parts.map((part) => phrase(part)));
    },

    listen(model, event, callback) {
      model.on(event, callback);
      ends.push(() => model.off(event, callback));
    },

    onTheme(callback) {
      callback(palette(root));
      themeCallbacks.push(callback);
    },

    onEnd(callback) {
      ends.push(callback);
    },

    /** Put a part into the picture; `basis` is the width in pixels from which parts are side by side. */
    add(part, { basis = 280, stays = false } = {}) {
      const holder = element(
        "div",
        { class: stays ? "afm-part afm-stays" : "afm-part", style: `flex-basis:${basis}px` },
        part.element,
      );
      picture.append(holder);
      if (part.theme) fig.onTheme((colors) => part.theme(colors));
      if (!part.layout) return;
      let known = 0;
      const lay = () => {
        const width = Math.floor(holder.clientWidth);
        if (width <= 0 || width === known) return;
        known = width;
        part.layout(width);
      };
      lay();
      const observer = new ResizeObserver(lay);
      observer.observe(holder);
      ends.push(() => observer.disconnect());
    },

    exports(options) {
      foot.append(exportButtons({ picture, root, say: fig.say, ...options }));
    },

    end() {
      ends.splice(0).forEach((end) => end());
      root.remove();
    },
  };
  const themeCallbacks = [];
  // A notebook renders a view before it is in the document, where there are neither colors nor a
  // background to read, and may take it out and put it back. So they are read whenever it comes in.
  let read = root.isConnected ? root.dataset.afmTheme : null;
  function readColors() {
    if (!root.isConnected) read = null;
    else if (read !== themeOf(el)) {
      tellApart(root, name); // only now it counts
      read = themeOf(el);
      root.dataset.afmTheme = read;
      themeCallbacks.forEach((callback) => callback(palette(root)));
    }
  }
  const attached = new ResizeObserver(() => {
    readColors(); // out of the document, the size is 0
    root.classList.toggle("afm-tall", root.offsetHeight > window.innerHeight - HEADER);
  });
  attached.observe(root);
  ends.push(() => attached.disconnect(), watchTheme(el, readColors));
  keepKeys(root);
  return fig;
}

/** Figures of one name are numbered, in the order of the page. */
function tellApart(root, name) {
  root.dataset.afmName = name;
  const all = [...root.ownerDocument.querySelectorAll(".afm")];
  const same = all.filter(({ dataset }) => dataset.afmName === name);
  if (same.length < 2) return;
  same.forEach((one, at) => one.setAttribute("aria-label", `${clip(name, 200)} ${at + 1}`));
}

/** Keys that a figure's controls use do not reach a notebook, which has commands on single letters
 * and arrows. Keys that run a cell, leave it or belong to the browser do. */
function keepKeys(root) {
  root.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    const runs = key === "Enter" && shiftKey;
    if (ctrlKey || metaKey || altKey || runs || key === "Escape" || key === "Tab") return;
    event.stopPropagation();
  });
}

// The figure as a file: the picture's SVG elements side by side (SVG, PNG) and a table (CSV).
//
//   exportButtons({ picture, root, say, name: "attention", csv: () => rows }) -> element  (see figure.js)
//       images: false where nothing is drawn
//   pictureSvg(picture, background) -> text      csvText(rows) -> text

const EXPORTED_STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-opacity",
  "stroke-linecap",
  "stroke-linejoin",
  "paint-order",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-anchor",
  "dominant-baseline",
  "visibility",
  "display",
];

function exportButtons({ picture, root, say, name, csv, images = true }) {
  const background = () => getComputedStyle(root).backgroundColor;
  const formats = {
    SVG: () => download(`${name}.svg`, pictureSvg(picture, background()), "image/svg+xml"),
    PNG: () => downloadPng(`${name}.png`, pictureSvg(picture, background()), say),
    CSV: () => download(`${name}.csv`, csvText(csv()), "text/csv"),
  };
  const offered = Object.entries(formats).filter(([format]) => images || format === "CSV");
  const buttons = offered.map(
    ([format, onClick]) =>
      button({ label: format, title: `Download what is shown as ${format}`, onClick }).element,
  );
  return element(
    "div",
    { class: "afm-exports", role: "group", "aria-label": "Download" },
    ...buttons,
  );
}

/** Rows as CSV: quoted where needed; a text that a spreadsheet would run as a formula stays text. */
export function csvText(rows) {
  const cell = (value) => {
    if (typeof value === "number") return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${rows.map((row) => Array.from(row, cell).join(",")).join("\r\n")}\r\n`;
}

/** One SVG text that shows the picture's SVG elements in their places. */
function pictureSvg(picture, background) {
  const frame = picture.getBoundingClientRect();
  const shown = [...picture.querySelectorAll("svg")].filter(
    (svg) => !svg.parentElement.closest("svg"),
  );
  const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  let [width, height] = [0, 0];
  for (const svg of shown) {
    const box = svg.getBoundingClientRect();
    if (!box.width) continue;
    const copy = svg.cloneNode(true);
    inlineStyles(svg, copy);
    for (const part of copy.querySelectorAll("[data-afm-screen]")) part.remove(); // for scrolling only
    const scrolled = svg.parentElement.scrollLeft; // all of it, not only what is in view
    const [x, y] = [box.left + scrolled - frame.left + 12, box.top - frame.top + 12];
    for (const [key, value] of Object.entries({ x, y, width: box.width, height: box.height })) {
      copy.setAttribute(key, value);
    }
    [width, height] = [Math.max(width, x + box.width + 12), Math.max(height, y + box.height + 12)];
    whole.append(copy);
  }
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", background);
  whole.prepend(ground);
  whole.setAttribute("width", Math.ceil(width));
  whole.setAttribute("height", Math.ceil(height));
  return new XMLSerializer().serializeToString(whole);
}

function inlineStyles(from, to) {
  const style = getComputedStyle(from);
  to.setAttribute(
    "style",
    EXPORTED_STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"),
  );
  for (let i = 0; i < from.children.length; i += 1) inlineStyles(from.children[i], to.children[i]);
}

function download(name, content, type) {
  const address = URL.createObjectURL(
    content instanceof Blob ? content : new Blob([content], { type }),
  );
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function downloadPng(name, svg, say) {
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  const fail = () => {
    URL.revokeObjectURL(address);
    say("This browser could not draw the picture as PNG. SVG works.");
  };
  image.addEventListener("load", () => {
    URL.revokeObjectURL(address);
    const canvas = element("canvas", { width: 2 * image.width, height: 2 * image.height });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.drawImage(image, 0, 0);
    canvas.toBlob((blob) => (blob ? download(name, blob, "image/png") : fail()), "image/png");
  });
  image.addEventListener("error", fail);
  image.src = address;
}
