// The story as small chips, and the words that may come next as bars that can be chosen.
//
//   const line = chips({ label: "The story", onSelect: (at) => {} });
//   line.paint({ words, selected, shares, wrong })       shares: a bar under each word, or null
//   const list = nextWords({ onChoose: (id) => {} });
//   list.paint({ rows, touched, answer, drawn })                 rows: candidates() of model.js

import { element, onKeys, setAttributes } from "../core/dom.js";
import { percent, percentAmong } from "../core/numbers.js";

/** As many items as there are things to show, made once and kept. */
function keyed(list, make) {
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

const ALONG = { ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };
const DOWN = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** One tab stop for a list of buttons; arrow keys go from one to the next, which `onMove` is told. */
function roving(list, keys, onMove = () => {}) {
  const buttons = () => [...list.querySelectorAll("button")];
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

export function nextWords({ onChoose }) {
  const list = element("ol", { class: "afm-next", "aria-label": "What may come next" });
  const title = element("p", { class: "afm-next-title" });
  const key = element("p", { class: "afm-next-key" });
  let rows = [];
  const fill = keyed(list, (at) => {
    const name = element("span", { class: "afm-next-word" });
    const bar = element("span", { class: "afm-next-bar" });
    const before = element("span", { class: "afm-next-before" });
    const exact = element("span", { class: "afm-next-exact" });
    const track = element(
      "span",
      { class: "afm-next-track", "aria-hidden": "true" },
      bar,
      before,
      exact,
    );
    const share = element("span", { class: "afm-next-share" });
    const kind = { class: "afm-next-row", type: "button" };
    const chip = element("button", kind, name, track, " ", share);
    chip.addEventListener("click", () => onChoose(rows[at].id));
    return { item: element("li", {}, chip), chip, name, bar, before, exact, share };
  });
  const stopAt = roving(list, DOWN);
  let stop = 0;
  list.addEventListener("focusin", ({ target }) => {
    stop = rows.findIndex((_, at) => list.children[at].contains(target));
  });
  return {
    element: element("div", { class: "afm-part-of-next" }, title, list, key),
    paint({ rows: now, count, touched, answer, after }) {
      rows = now;
      title.replaceChildren("after ", element("bdi", { class: "afm-token" }, after), ":");
      key.replaceChildren(
        element("span", { class: "afm-key-bar", "aria-hidden": "true" }),
        " the machine ",
        element("span", { class: "afm-key-exact", "aria-hidden": "true" }),
        " the true chance",
        ...(touched
          ? [
              " ",
              element("span", { class: "afm-key-before", "aria-hidden": "true" }),
              " before you changed it",
            ]
          : []),
      );
      fill(rows.length).forEach(({ chip, name, bar, before, exact, share }, at) => {
        const row = rows[at];
        const right = row.word === answer;
        name.textContent = right ? `${row.word} ✓` : row.word;
        chip.classList.toggle("afm-not-allowed", row.exact === 0);
        bar.style.width = `${100 * row.now}%`;
        before.style.width = `${100 * row.whole}%`;
        before.hidden = !touched;
        exact.style.left = `${100 * row.exact}%`;
        exact.hidden = row.exact === 0;
        share.textContent = percentAmong(row.now, count);
        const parts = [
          `${name.textContent} ${percentAmong(row.now, count)}`,
          ...(touched ? [`before ${percentAmong(row.whole, count)}`] : []),
          row.exact > 0 ? `true chance ${percent(row.exact)}` : "outside of its language",
          ...(right ? ["the right answer"] : []),
        ];
        setAttributes(chip, { "aria-label": parts.join(", ") });
      });
      stopAt(Math.min(Math.max(stop, 0), rows.length - 1));
    },
  };
}
