// Elements, and controls that have a name and work by mouse, touch and keyboard.
//
//   element("p", { class: "afm-note" }, "text", child)      svgElement("rect", { x: 1 }, child)
//   slider({ label, min, max, step, value, format, onInput })  -> { element, input, set(value) }
//   select({ label, options, value, onChange })                -> { element, input, set(value) }
//   choices({ label, options, value, onChange })   a row of radio buttons, value = index
//   toggle({ label, value, onChange })             a checkbox
//   textField({ label, lang: "kn-Latn" })          a line to write in -> { element, input }
//   button({ label, title, onClick })              -> { element }
//   setSize(svg, width, height)
//   phrase("text") or phrase({ text: "roses", role: "query" })   a part of a sentence
//   showToken(text): control characters made visible.  clip(text, 40)  characters(text)
//   textWidth(text)   fitText(text, width)      in font(13), or another: textWidth(text, font(12))
//   hatchPattern(id): what is masked or cut, as fill="url(#id)"
//   onKeys(node, { ArrowUp: -1 }, (move, event) => {}): keys that are the node's own
//   holdTouch(node): for what can be dragged inside an SVG, or the page scrolls instead
//
// Text from outside enters as a child or an attribute, never as markup.

// Figures that bring their own copy of this file count together.
const COUNT = Symbol.for("afm.ids");

/** An id that no other element of the page has. */
export function uniqueId(name) {
  globalThis[COUNT] = (globalThis[COUNT] ?? 0) + 1;
  return `afm-${name}-${globalThis[COUNT]}`;
}

export function element(tag, attributes = {}, ...children) {
  return withContent(document.createElement(tag), attributes, children);
}

export function svgElement(tag, attributes = {}, ...children) {
  return withContent(
    document.createElementNS("http://www.w3.org/2000/svg", tag),
    attributes,
    children,
  );
}

/** Set attributes; null or false removes one. */
export function setAttributes(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

/** An SVG element's size in pixels, which are also its units. */
export function setSize(svg, width, height) {
  return setAttributes(svg, { width, height, viewBox: `0 0 ${width} ${height}` });
}

function withContent(node, attributes, children) {
  setAttributes(node, attributes);
  node.append(...children);
  return node;
}

function labeled(label, kind, ...children) {
  const name = element("span", { class: "afm-label" }, label);
  return element("label", { class: `afm-control afm-${kind}` }, name, ...children);
}

export function slider({ label, min, max, step, value, format = String, onInput }) {
  const input = element("input", { type: "range", min, max, step });
  const shown = element("output", { class: "afm-value", "aria-live": "off" });
  const set = (now) => {
    if (Number(input.value) !== now) input.value = String(now);
    shown.textContent = format(now);
    input.setAttribute("aria-valuetext", format(now));
  };
  set(value);
  input.addEventListener("input", () => {
    set(Number(input.value));
    onInput(Number(input.value));
  });
  return { element: labeled(label, "slider", input, shown), input, set };
}

export function select({ label, options, value, onChange }) {
  const names = options.map((text, index) => element("option", { value: index }, clip(text, 60)));
  const input = element("select", {}, ...names);
  const set = (now) => (input.value = String(now));
  set(value);
  input.addEventListener("change", () => onChange(Number(input.value)));
  return { element: labeled(label, "select", input), input, set };
}

export function toggle({ label, value, onChange }) {
  const input = element("input", { type: "checkbox" });
  const set = (now) => (input.checked = Boolean(now));
  set(value);
  input.addEventListener("change", () => onChange(input.checked));
  return { element: labeled(label, "toggle", input), input, set };
}

/** A row of radio buttons; an option is a text or { text, picture: element, title }. */
export function choices({ label, options, value, onChange }) {
  const group = uniqueId("choices");
  const inputs = options.map((_, index) =>
    element("input", { type: "radio", name: group, value: index }),
  );
  const set = (now) => inputs.forEach((input, index) => (input.checked = index === now));
  // Not a legend: those do not take part in the row's layout.
  const title = element("span", { class: "afm-label", id: `${group}-label` }, label);
  const items = options.map((option, index) => {
    const {
      text,
      picture = null,
      title: hint = null,
    } = typeof option === "string" ? { text: option } : option;
    inputs[index].addEventListener("change", () => onChange(index));
    const name = element("span", { class: "afm-choice-name", dir: "auto" }, clip(text, 40));
    return element(
      "label",
      { class: "afm-choice", title: hint },
      inputs[index],
      ...(picture ? [picture] : []),
      name,
    );
  });
  set(value);
  const row = element("div", { class: "afm-choice-row" }, ...items);
  const frame = { class: "afm-control afm-choices", "aria-labelledby": `${group}-label` };
  return { element: element("fieldset", frame, title, row), inputs, set };
}

/** A line to write in; all but the label are attributes. When it is read, the caller says. */
export function textField({ label, ...attributes }) {
  const input = element("input", { type: "text", spellcheck: "false", ...attributes });
  return { element: labeled(label, "field", input), input };
}

export function button({ label, title = null, onClick }) {
  const node = element("button", { type: "button", class: "afm-button", title }, label);
  node.addEventListener("click", onClick);
  return { element: node };
}

/** A token as it can be shown: line ends, tabs and spaces at the ends made visible. */
export function showToken(text) {
  if (text === "") return "(empty)";
  return text
    .replace(/\r?\n/g, "↵")
    .replace(/\t/g, "⇥")
    .replace(/[\p{Cs}\p{Cc}]/gu, "�")
    .replace(/^ +| +$/g, (spaces) => "␣".repeat(spaces.length));
}

/** A part of a sentence: text as it is, or a token or number in the color of its role. */
export function phrase(part, length = 40) {
  if (typeof part === "string") return part;
  const kind = part.role ? `afm-token afm-${part.role}` : "afm-number";
  return element("bdi", { class: kind }, clip(showToken(part.text), length));
}

/** The characters of a text as readers count them. */
export function characters(text) {
  // Latin letters, signs and arrows are one each and need no segmenter, which is slow to make.
  if (/^[ -~\u00a0-\u02ff\u1e00-\u1eff\u2010-\u2027\u2190-\u23ff]*$/.test(text)) return [...text];
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

/** At most `length` characters, with … where some were left out. */
export function clip(text, length = 40) {
  if (text.length <= length) return text;
  const parts = characters(text.slice(0, 16 * length));
  return parts.length <= length ? parts.join("") : `${parts.slice(0, length - 1).join("")}…`;
}

/** The hatch of what is masked, cut or out of reach: fill="url(#id)". */
export function hatchPattern(id) {
  const pattern = svgElement("pattern", {
    id,
    width: 6,
    height: 6,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  pattern.append(
    svgElement("rect", { class: "afm-hatch-ground", width: 6, height: 6 }),
    svgElement("rect", { class: "afm-hatch-line", width: 2, height: 6 }),
  );
  return svgElement("defs", {}, pattern);
}

/** The keys of `moves` are the node's: the page does not scroll, nor a notebook move on. With Ctrl,
 * Alt or Meta they belong to the browser. */
export function onKeys(node, moves, onMove) {
  node.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    onMove(move, event);
  });
}

/** A finger that starts here drags this instead of the page (touch-action fails inside an SVG). */
export function holdTouch(node) {
  node.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
}

let ruler = null;

/** The figures' font (see widget.css) at a size, as `textWidth` measures it. */
export const font = (size = 13, weight = "normal") => `${weight} ${size}px system-ui, sans-serif`;

/** The width of a text in pixels, without a layout. */
export function textWidth(text, face = font()) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = face;
  return ruler.measureText(text).width;
}

/** The text, shortened until it is at most `width` pixels wide. */
export function fitText(text, width, face = font()) {
  let fitted = clip(text, 60);
  for (let length = 59; length > 0 && textWidth(fitted, face) > width; length -= 1) {
    fitted = clip(text, length);
  }
  return fitted;
}
