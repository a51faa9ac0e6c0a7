// Colors come from CSS variables (core/widget.css), so that page, notebook and theme decide them.
//
//   const colors = palette(el);                 // { query, key, value, output, ink, surface, ... }
//   const scale = sequentialScale(colors);      // weights: 0 .. 1 from the surface to one full hue
//   const scale = divergingScale(colors, 4.2);  // scores: symmetric around 0
//   scale.fill(0.62) -> "rgb(...)"   scale.text(0.62) -> black or white, whichever reads better
//   themeOf(el) -> "light" | "dark"      watchTheme(el, callback) -> function that ends it

const SCALE_STEPS = 256;

const COLOR_VARIABLES = {
  query: "--afm-q",
  queryText: "--afm-q-text",
  key: "--afm-k",
  keyText: "--afm-k-text",
  value: "--afm-v",
  valueText: "--afm-v-text",
  output: "--afm-o",
  outputText: "--afm-o-text",
  masked: "--afm-m",
  maskedText: "--afm-m-text",
  weight: "--afm-weight-full",
  negative: "--afm-negative-full",
  surface: "--afm-surface",
  ink: "--afm-ink",
  soft: "--afm-soft",
  line: "--afm-line",
};

/** The colors in force at an element, as CSS text, by name. */
export function palette(el) {
  const style = getComputedStyle(el);
  return Object.fromEntries(
    Object.entries(COLOR_VARIABLES).map(([name, variable]) => [
      name,
      style.getPropertyValue(variable).trim() || "#777777",
    ]),
  );
}

/** [red, green, blue] of "#rgb", "#rrggbb" or "rgb(r, g, b)". */
export function parseColor(text) {
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(text);
  if (hex) {
    const digits = hex[1].length === 3 ? hex[1].replace(/./g, "$&$&") : hex[1];
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  }
  const rgb = /^rgba?\(([^)]*)\)$/.exec(text);
  if (!rgb) throw new Error(`not a color that can be mixed: ${text}`);
  return rgb[1]
    .split(/[\s,/]+/)
    .slice(0, 3)
    .map(Number);
}

/** Relative luminance as WCAG defines it, 0 for black and 1 for white. */
export function luminance([red, green, blue]) {
  const linear = (level) =>
    level <= 10.31475 ? level / 3294.6 : ((level / 255 + 0.055) / 1.055) ** 2.4;
  return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
}

/** Contrast ratio of two colors, 1 to 21. */
export function contrast(one, other) {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** A scale over [low, high] through a list of colors; values outside take the end's color. */
export function makeScale(stops, low, high) {
  const colors = stops.map(parseColor);
  const table = new Map(); // of the steps that are asked for
  const entry = (step) => {
    const place = (step / (SCALE_STEPS - 1)) * (colors.length - 1);
    const left = Math.min(Math.floor(place), colors.length - 2);
    const mixed = colors[left].map((level, channel) =>
      Math.round(level + (colors[left + 1][channel] - level) * (place - left)),
    );
    const white = contrast(mixed, [255, 255, 255]);
    const black = contrast(mixed, [0, 0, 0]);
    return { fill: `rgb(${mixed.join(", ")})`, text: white >= black ? "#ffffff" : "#000000" };
  };
  const at = (value) => {
    const step = Math.round(((value - low) / (high - low || 1)) * (SCALE_STEPS - 1));
    const held = Math.min(SCALE_STEPS - 1, Math.max(0, step || 0));
    if (!table.has(held)) table.set(held, entry(held));
    return table.get(held);
  };
  return { low, high, fill: (value) => at(value).fill, text: (value) => at(value).text };
}

export function sequentialScale(colors, low = 0, high = 1) {
  return makeScale([colors.surface, colors.weight], low, high);
}

export function divergingScale(colors, limit) {
  return makeScale([colors.negative, colors.surface, colors.weight], -limit, limit);
}

/** Light or dark: what the page or the notebook says, else its background, else the system. */
export function themeOf(el) {
  const { documentElement: html, body } = document;
  const said =
    html.dataset.theme ||
    body.dataset.vscodeThemeKind ||
    html.getAttribute("theme") ||
    { true: "light", false: "dark" }[body.dataset.jpThemeLight];
  if (said) return /dark|high-contrast$/.test(said) ? "dark" : "light";
  for (let node = el.parentElement; node; node = node.parentElement) {
    const background = getComputedStyle(node).backgroundColor;
    if (/^rgb\(/.test(background))
      return luminance(parseColor(background)) < 0.2 ? "dark" : "light";
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Call back with the theme whenever it may have changed. */
export function watchTheme(el, callback) {
  const tell = () => callback(themeOf(el));
  const observer = new MutationObserver(tell);
  for (const node of [document.documentElement, document.body]) {
    observer.observe(node, {
      attributeFilter: ["data-theme", "data-jp-theme-light", "data-vscode-theme-kind", "theme"],
    });
  }
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", tell);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", tell);
  };
}
