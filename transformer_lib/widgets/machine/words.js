// The words that may come next, as bars that can be chosen.
//
//   const list = nextWords({ onChoose: (id) => {} });
//   list.paint({ rows, touched, answer, drawn })                 rows: candidates() of model.js

import { DOWN, keyed, roving } from "../core/chips.js";
import { element, setAttributes } from "../core/dom.js";
import { percent, percentAmong } from "../core/numbers.js";

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
