// The figure as a file: the picture's SVG elements side by side (SVG, PNG) and a table (CSV).
//
//   exportButtons({ picture, root, say, name: "attention", csv: () => rows }) -> element  (see figure.js)
//       images: false where nothing is drawn
//   pictureSvg(picture, background) -> text      csvText(rows) -> text

import { button, element } from "./dom.js";

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

export function exportButtons({ picture, root, say, name, csv, images = true }) {
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
export function pictureSvg(picture, background) {
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
  image.addEventListener("load", () => {
    URL.revokeObjectURL(address);
    const canvas = element("canvas", { width: 2 * image.width, height: 2 * image.height });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.drawImage(image, 0, 0);
    canvas.toBlob((blob) => download(name, blob, "image/png"), "image/png");
  });
  image.addEventListener("error", () => {
    URL.revokeObjectURL(address);
    say("This browser could not draw the picture as PNG. SVG works.");
  });
  image.src = address;
}
