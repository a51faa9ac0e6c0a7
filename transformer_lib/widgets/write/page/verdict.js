// The verdict on an answer, as the notebook shows it, and the way to the solution.
//
//   const said = verdict();  place.append(said.element)
//   said.show({ passed, text })   said.wait("Checking …")   said.clear()
//   const after = solutionOf(place);  place.append(after.element)   after.show(true)

import { element } from "../../core/dom.js";
import { rich } from "../../core/markup.js";

const LOOK = { true: ["✓", "right"], false: ["✗", "wrong"], null: ["○", "open"] };

export function verdict() {
  const box = element("div", { role: "status" });
  return {
    element: box,
    show({ passed, text }) {
      const [sign, name] = LOOK[passed];
      const mark = element("strong", { role: "img", "aria-label": name }, sign);
      const look = `afm-verdict afm-verdict-${name}`;
      box.replaceChildren(element("p", { class: look }, mark, " ", ...rich(text)));
    },
    wait(text) {
      box.replaceChildren(element("p", { class: "afm-verdict afm-verdict-open" }, text));
    },
    clear: () => box.replaceChildren(),
  };
}

/** A button that opens the solution of the exercise around a place; after an attempt it is shown. */
export function solutionOf(place) {
  const fold = place.closest("section")?.querySelector(".tag_solution details");
  const link = element("button", { type: "button", class: "afm-ask-solution" });
  link.textContent = "Compare with the solution";
  link.addEventListener("click", () => {
    fold.open = true;
    fold.scrollIntoView({ block: "nearest" });
    fold.querySelector("summary").focus();
  });
  const line = element("p", { class: "afm-ask-after", hidden: true }, link);
  return {
    element: line,
    show(isTried) {
      line.hidden = !isTried || !fold;
    },
  };
}
