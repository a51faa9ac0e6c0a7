// At the exercises and cells of a page, before a reader answers: a field or options,
// and a button. An extension of Sphinx has left the places (book/extensions/exercises.py). Bundled by
// esbuild; small, since every reader loads it. The rest (index.js) is loaded by the first touch.

import { keep, nameOfCell, recall } from "../kept.js";
import { showProgress } from "./progress.js";

let page, files; // what the extension has written into the page

const make = (tag, attributes, ...children) => {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
};
const button = (label) => make("button", { type: "button", className: "afm-button" }, label);

/** Makes a part of the page's script once, and calls it however often; says so if it is not there. */
function wakes(name, place, ...given) {
  const told = make("p", { role: "alert" });
  let part = null;
  return async (how) => {
    told.remove();
    try {
      const parts = await window.afm.load(files.page);
      part ??= parts[name](place, ...given);
      await part[how]?.();
    } catch (error) {
      told.textContent = `That did not work: ${error.message}. Try again.`;
      place.append(told);
      throw error;
    }
  };
}

function field(place, asked) {
  const lines = place.closest(".cell").querySelector("pre").textContent.split("\n");
  const stub = `${lines.slice(0, asked.lines).join("\n")}\n`;
  const text = make("textarea", {
    className: "afm-write-field",
    value: recall(asked.id) ?? stub,
    spellcheck: false,
    wrap: "off",
    ariaLabel: "Your answer in Python",
  });
  text.rows = text.value.split("\n").length;
  const check = button("Check");
  check.classList.add("afm-write-run");
  place.append(make("div", { className: "afm-write-pad" }, text), make("p", {}, check));
  place.lastChild.className = "afm-ask-row";
  const wake = wakes("exercise", place, { ...asked, stub }, files);
  text.addEventListener("focus", () => wake("focus"), { once: true });
  text.addEventListener("input", () => keep(asked.id, text.value));
  check.addEventListener("click", () => wake("check"));
}

function options(place, asked) {
  const chosen = (recall(asked.id) ?? "").split(",");
  const labels = asked.options.map((value) => {
    const type = asked.several ? "checkbox" : "radio";
    const input = make("input", { type, name: asked.id, value, checked: chosen.includes(value) });
    return make("label", {}, input, ` ${asked.written[value]}`);
  });
  const legend = make("legend", {}, asked.several ? "Choose all that fit" : "Choose one");
  const check = button("Check");
  check.classList.add("afm-write-run");
  place.append(
    make("fieldset", {}, legend, ...labels),
    make("p", { className: "afm-ask-row" }, check),
  );
  const wake = wakes("choice", place, asked, files);
  place.addEventListener("change", () => wake("changed"));
  check.addEventListener("click", () => wake("check"));
}

function begin() {
  page = JSON.parse(document.getElementById("afm-asked").textContent);
  files = page.files;
  for (const place of document.querySelectorAll("[data-afm-ask]")) {
    const asked = page.exercises[place.dataset.afmAsk];
    (asked.options ? options : field)(place, asked);
    place.closest(".cell").classList.add("afm-asked"); // its text is for paper
  }
  for (const place of document.querySelectorAll("[data-afm-change]")) {
    const code = place.closest(".cell").querySelector(".cell_input pre").textContent.trimEnd();
    const isKept = recall(nameOfCell(code)) !== null;
    const change = button(isKept ? "Open your change" : "Change it");
    place.append(change);
    const wake = wakes("change", place, files);
    change.addEventListener("click", () => wake("open"));
  }
  for (const place of document.querySelectorAll("[data-afm-yours]")) {
    const opens = button("Put in a part of your own");
    place.append(opens);
    const wake = wakes("yours", place, files);
    opens.addEventListener("click", () => wake("open"));
  }
  showProgress(page);
}

if (globalThis.document) begin(); // under node, which only imports it, there is no page
