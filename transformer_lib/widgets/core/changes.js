// Marks for a moment what has changed in a figure, by frames laid over it.
//
//   const changed = watchChanges(root);   ...set the figure...   changed.mark() -> the boxes of what has

import { element } from "./dom.js";

const MOMENT = 1800; // ms
const MANY = 6; // more than this in one picture are marked by one frame
const CHANGES = [
  "aria-label",
  "aria-valuetext",
  "aria-selected",
  "fill",
  "d",
  "points",
  "transform",
];
// What has a name of its own, and so can be pointed at.
const NAMED = '.afm-cell, [role="slider"], [role="listitem"], [role="button"], [role="option"]';

/** Remember how a figure is now. */
export function watchChanges(root) {
  const controls = () => [...root.querySelectorAll("input, select")];
  const shownIn = (input) => (/checkbox|radio/.test(input.type) ? input.checked : input.value);
  const before = new Map(controls().map((input) => [input, shownIn(input)]));
  const records = [];
  const observer = new MutationObserver((more) => records.push(...more)); // while a worker computes
  observer.observe(root, {
    subtree: true,
    childList: true,
    characterData: true,
    attributes: true,
    attributeOldValue: true,
    characterDataOldValue: true,
    attributeFilter: CHANGES,
  });

  function found() {
    const places = new Set();
    records.push(...observer.takeRecords());
    for (const record of firstOfEach(records).filter(isChange)) {
      const node = record.target.nodeType === 1 ? record.target : record.target.parentElement;
      const picture = node?.closest(".afm-picture");
      if (!picture) continue;
      const place = node.closest(NAMED) ?? node.closest("svg") ?? node.closest(".afm-part");
      if (place && root.contains(place)) places.add(place);
    }
    observer.disconnect();
    // A whole picture is marked only if nothing in it can be.
    for (const place of [...places]) {
      if ([...places].some((other) => other !== place && place.contains(other)))
        places.delete(place);
    }
    for (const input of controls()) {
      if (before.get(input) !== shownIn(input) && !(input.type === "radio" && !input.checked))
        places.add(input.closest(".afm-choice, .afm-control"));
    }
    return [...places].filter(Boolean);
  }

  return {
    mark() {
      const places = found();
      root.querySelector(":scope > .afm-changes")?.remove();
      const layer = element("div", { class: "afm-changes", "aria-hidden": "true" });
      const outer = root.getBoundingClientRect();
      const boxes = boxesOf(places);
      for (const box of boxes) {
        const frame = element("div", { class: "afm-change" });
        frame.style.left = `${box.left - outer.left - root.clientLeft - 3}px`;
        frame.style.top = `${box.top - outer.top - root.clientTop - 3}px`;
        frame.style.width = `${box.right - box.left + 6}px`;
        frame.style.height = `${box.bottom - box.top + 6}px`;
        layer.append(frame);
      }
      root.append(layer);
      setTimeout(() => layer.remove(), MOMENT);
      return boxes;
    },
  };
}

/** Of several records of one attribute or text, the first, which knows how it was before. */
function firstOfEach(records) {
  const seen = new Map();
  return records.filter(({ target, type, attributeName }) => {
    if (type === "childList") return true;
    const known = seen.get(target) ?? new Set();
    seen.set(target, known);
    return !known.has(attributeName) && known.add(attributeName);
  });
}

/** Not every record is a change: the same text may have been written again. */
function isChange({ type, target, attributeName, oldValue, removedNodes, addedNodes }) {
  if (type === "attributes") {
    const now = target.getAttribute(attributeName);
    return now !== oldValue && !(attributeName === "aria-selected" && now === "false");
  }
  if (type === "characterData") return target.data !== oldValue;
  const [before, after] = [removedNodes, addedNodes].map((nodes) => [...nodes]);
  const texts = [...before, ...after].every((node) => node.nodeType === 3);
  return !texts || !before.length || after[0]?.data !== before[0].data;
}

/** A box for each place; one around all of a picture's where there are many. */
function boxesOf(places) {
  const groups = new Map();
  for (const place of places) {
    const picture = place.closest("svg") ?? place;
    groups.set(picture, [...(groups.get(picture) ?? []), place.getBoundingClientRect()]);
  }
  return [...groups.values()].flatMap((boxes) => {
    const shown = boxes.filter(({ width, height }) => width && height);
    if (shown.length <= MANY) return shown;
    const edge = (name, pick) => pick(...shown.map((box) => box[name]));
    return [
      {
        left: edge("left", Math.min),
        top: edge("top", Math.min),
        right: edge("right", Math.max),
        bottom: edge("bottom", Math.max),
      },
    ];
  });
}
