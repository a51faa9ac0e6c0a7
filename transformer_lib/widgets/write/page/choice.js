// An exercise that is answered by a letter, a number or several: clicked, without Python. start.js has
// shown the options. What each means was evaluated when the book was built, by the check itself.

import { drop, keep } from "../kept.js";
import { note } from "./progress.js";
import { solutionOf, verdict } from "./verdict.js";

export function choice(place, { id }, files) {
  const said = verdict();
  const after = solutionOf(place);
  place.append(said.element, after.element);
  const chosen = () => [...place.querySelectorAll("input:checked")].map(({ value }) => value);
  return {
    changed() {
      if (chosen().length) keep(id, chosen().join(","));
      else drop(id);
      said.clear();
    },
    async check() {
      try {
        const { exercises } = await window.afm.load(files.asked);
        const found = judge(exercises[id].choice, chosen());
        said.show(found);
        after.show(found.passed !== null);
        if (found.passed) note(id);
      } catch (error) {
        said.show({ passed: null, text: error.message });
      }
    },
  };
}

/** The verdict on some options: { passed, text }. */
export function judge({ right, said, missing, praise }, chosen) {
  if (!chosen.length) return { passed: null, text: "not attempted yet" };
  const wrong = chosen.find((option) => !right.includes(option));
  if (wrong) return { passed: false, text: said[wrong] };
  const lacking = right.find((option) => !chosen.includes(option));
  if (lacking) return { passed: false, text: missing[lacking] };
  return { passed: true, text: praise };
}
