// A row of words, each with notes below and a bar for its share; they can be chosen, if onSelect is given.
//
//   const row = chips({ label: "The translation", onSelect: (at) => {} });
//   row.paint([{ text: "gave", notes: ["99 %"], share: 0.6, pressed: true }]);

import { ALONG, roving } from "../core/chips.js";
import { element, setAttributes } from "../core/dom.js";

/** Whether the page or the system has letters for it: without them, all look like one another. */
export async function canDraw(one, other) {
  await document.fonts?.load(`24px "Noto Sans Kannada"`, one).catch(() => []);
  const pictures = [one, other].map((letter) => {
    const canvas = element("canvas", { width: 40, height: 40 });
    const pen = canvas.getContext("2d");
    pen.font = `24px system-ui, "Noto Sans Kannada", sans-serif`;
    pen.fillText(letter, 4, 30);
    return canvas.toDataURL();
  });
  return pictures[0] !== pictures[1];
}

export function chips({ label, lang = null, onSelect = null }) {
  const list = element("ol", { class: "afm-chips", "aria-label": label });
  const stopAt = onSelect ? roving(list, ALONG, onSelect) : () => {};
  let items = [];

  function make(at) {
    const text = element("bdi", { lang });
    const notes = [element("small", {}), element("small", {})];
    const bar = element("span", { class: "afm-share", "aria-hidden": "true" });
    const kind = onSelect ? "button" : "span";
    const chip = element(
      kind,
      { class: "afm-chip", type: onSelect && "button" },
      text,
      ...notes,
      bar,
    );
    if (onSelect) chip.addEventListener("click", () => onSelect(at));
    return { chip, text, notes, bar, item: element("li", {}, chip) };
  }

  return {
    element: list,
    paint(words) {
      while (items.length < words.length) {
        items.push(make(items.length));
        list.append(items.at(-1).item);
      }
      for (const { item } of items.slice(words.length)) item.remove();
      items = items.slice(0, words.length);
      words.forEach(({ text, notes, share = null, pressed = false }, i) => {
        const one = items[i];
        one.text.textContent = text;
        one.notes.forEach((note, n) => {
          note.textContent = notes[n] ?? "";
        });
        one.bar.style.width = `${Math.round(100 * (share ?? 0))}%`;
        one.bar.hidden = share === null;
        if (onSelect) setAttributes(one.chip, { "aria-pressed": String(pressed) });
      });
      const chosen = words.findIndex(({ pressed }) => pressed);
      stopAt(Math.max(0, chosen));
    },
  };
}
