// A text as small chips, a word each, and lists of buttons with one tab stop.
//
//   const line = chips({ label: "The story", onSelect: (at) => {} });
//   line.paint({ words, selected, shares, wrong })       shares: a bar under each word, or null
//   const fill = keyed(list, (at) => ({ item }));   fill(count) -> the items, made once and kept
//   const stopAt = roving(list, DOWN);              arrow keys go from one button to the next

import { element, onKeys, setAttributes } from "./dom.js";
import { percent } from "./numbers.js";

/** As many items as there are things to show, made once and kept. */
export function keyed(list, make) {
  const items = [];
  return (count) => {
    while (items.length < count) {
      items.push(make(items.length));
      list.append(items.at(-1).item);
    }
    for (const { item } of items.splice(count)) item.remove();
    return items;
  };
}

export const ALONG = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
export const DOWN = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** One tab stop for a list of buttons; arrow keys go from one to the next, which `onMove` is told. */
export function roving(list, keys, onMove = () => {}, which = "button") {
  const buttons = () => [...list.querySelectorAll(which)];
  onKeys(list, keys, (move) => {
    const all = buttons();
    const now = all.indexOf(document.activeElement);
    const to = Math.min(all.length - 1, Math.max(0, now + move));
    stopAt(to);
    all[to].focus();
    onMove(to);
  });
  function stopAt(to) {
    buttons().forEach((one, at) => setAttributes(one, { tabindex: at === to ? "0" : "-1" }));
  }
  return stopAt;
}

export function chips({ label, onSelect = null }) {
  const list = element("ol", { class: "afm-tokens", "aria-label": label });
  const fill = keyed(list, (at) => {
    const text = element("bdi", {});
    const bar = element("span", { class: "afm-token-share", "aria-hidden": "true" });
    const kind = { class: "afm-token-chip", type: onSelect && "button" };
    const chip = element(onSelect ? "button" : "span", kind, text, bar);
    if (onSelect) chip.addEventListener("click", () => onSelect(at));
    return { item: element("li", {}, chip), chip, text };
  });
  const stopAt = onSelect ? roving(list, ALONG, onSelect) : () => {};
  return {
    element: list,
    paint({ words, selected = null, shares = null, wrong = null, marked = [] }) {
      fill(words.length).forEach(({ chip, text }, at) => {
        text.textContent = words[at];
        chip.style.setProperty("--afm-share", shares?.[at] ?? 0);
        chip.classList.toggle("afm-wrong", at === wrong);
        chip.classList.toggle("afm-exchanged", marked.includes(at));
        if (!onSelect) return;
        const told = shares?.[at] >= 0.005 ? `${words[at]}, weight ${percent(shares[at])}` : null;
        setAttributes(chip, { "aria-pressed": String(at === selected), "aria-label": told });
      });
      stopAt(selected ?? 0);
    },
  };
}
