// The frame that all widgets share: a caption that says what to try, controls, the picture, and one
// sentence of reading (a live region). It also ends everything that a widget starts.
//
//   const fig = figure(el, { name: "Attention map", hint: "Try: select a cell." });
//   fig.controls.append(slider({...}).element);
//   fig.add(part)             part = { element, layout?(width), theme?(colors) }, as grid() returns;
//                             laid out at once and whenever its width changes, in the theme's colors
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
import { clip, element, phrase } from "./dom.js";
import { exportButtons } from "./export.js";

const TEXT = ""; // widget.css (joining.py puts the text of that file here)
const ID = "afm-style";
const OWN = "/* afm: "; // so begins each figure's own style (joining.py)

/** See to it that a document has the shared style; `page` is the document. */
export function shareStyle(page) {
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
    add(part, { basis = 280 } = {}) {
      const holder = element(
        "div",
        { class: "afm-part", style: `flex-basis:${basis}px` },
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
      read = themeOf(el);
      root.dataset.afmTheme = read;
      themeCallbacks.forEach((callback) => callback(palette(root)));
    }
  }
  const attached = new ResizeObserver(() => {
    readColors(); // out of the document, the size is 0
    root.classList.toggle("afm-tall", picture.offsetHeight > window.innerHeight);
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
