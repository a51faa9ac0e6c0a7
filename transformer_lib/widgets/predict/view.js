// A question, the guess, and what becomes of it. Before the guess nothing on the page tells the
// answer; with it, the figure sends the event `afm-revealed`, which opens the cells that follow on
// the page (book/assets/afm-reveal.js).

import { button, element, uniqueId } from "../core/dom.js";
import { figure } from "../core/figure.js";
import { plain, rich } from "../core/markup.js";
import { readJson, send } from "../core/wire.js";
import { askCell, askNumber, askOptions } from "./asking.js";
import { answerOf, isRight, sentenceFor, tolerance, wordsOf } from "./model.js";
import { conceal } from "./notebook.js";

const ASK = { options: askOptions, number: askNumber, cell: askCell };

function render({ model, el }) {
  const question = readJson(model, "_text");
  const answer = answerOf(question);
  const fig = figure(el, {
    name: `Question: ${plain(question.question)}`,
    hint: "Guess before you read on. You have one guess.",
  });
  fig.element.classList.add("afm-predict");
  let [revealed, printing] = [false, false];

  const id = uniqueId("question");
  const words = element("p", { class: "afm-question", id }, ...rich(question.question));
  const ask = ASK[question.kind](question, id, commit);
  const guessed = button({ label: "That is my guess", onClick: commit }).element;
  guessed.classList.add("afm-commit");
  const look = button({
    label: "show me without guessing",
    onClick: () => isOpen() || send(model, "_shown", true),
  }).element;
  look.classList.add("afm-look");
  const actions = element("div", { class: "afm-actions" }, guessed, look);
  for (const part of [{ element: words }, ...ask.parts, { element: actions }]) fig.add(part);

  const isOpen = () => model.get("_guess").length > 0 || model.get("_shown");

  function commit() {
    if (isOpen()) return;
    const guess = ask.read();
    if (guess) send(model, "_guess", Array.from(guess));
    else fig.say(ask.problem());
  }

  function update() {
    if (!isOpen() && !printing) return;
    const guess = model.get("_guess").length ? Array.from(model.get("_guess")) : null;
    ask.lock(guess, answer);
    fig.reading.replaceChildren(...verdict(guess));
    fig.element.classList.add("afm-locked");
    if (revealed || !isOpen()) return;
    revealed = true;
    conceal(el, false);
    // The button stays, so that the keyboard stays where it is.
    guessed.setAttribute("aria-disabled", "true");
    guessed.textContent = guess ? "Your guess stands." : "Shown without a guess.";
    if (document.activeElement === look) guessed.focus({ preventScroll: true });
    look.remove();
    fig.element.dispatchEvent(new CustomEvent("afm-revealed", { bubbles: true, composed: true }));
  }

  function verdict(guess) {
    const line = (...parts) => element("span", { class: "afm-said" }, ...parts);
    const told = (name, what) => [
      `${name}: `,
      element("bdi", { class: "afm-told" }, ...rich(wordsOf(question, what))),
      /[.?!…]$/.test(plain(wordsOf(question, what))) ? " " : ". ",
    ];
    const near = tolerance(question);
    const about = near ? [`(${near[0].toUpperCase()}${near.slice(1)}.)`] : [];
    const right = guess && isRight(question, guess);
    const sign = (kind, text) => element("strong", { class: `afm-${kind}` }, text);
    const same = question.kind !== "number" && right;
    const first = !guess
      ? line(...told("The answer", answer))
      : line(
          right ? sign("right", "✓ Right.") : sign("wrong", "✗ Not right."),
          " ",
          ...told("Your guess", guess),
          ...(same ? [] : told("The answer", answer)),
          ...about,
        );
    const sentence = sentenceFor(question, guess ?? answer);
    const rest = [sentence, question.then].filter(Boolean);
    return [first, ...rest.map((text) => line(...rich(text)))];
  }

  // On paper there is nobody to guess.
  const print = (now) => {
    if (isOpen() || printing === now) return;
    printing = now;
    if (now) return update();
    ask.unlock();
    fig.reading.replaceChildren();
    fig.element.classList.remove("afm-locked");
  };
  const [before, after] = [() => print(true), () => print(false)];
  window.addEventListener("beforeprint", before);
  window.addEventListener("afterprint", after);
  fig.onEnd(() => {
    window.removeEventListener("beforeprint", before);
    window.removeEventListener("afterprint", after);
  });

  // Each time that the question comes into view: JupyterLab shows a cell again when it runs.
  const seen = new IntersectionObserver(() => isOpen() || conceal(el, true));
  seen.observe(el);
  fig.onEnd(() => seen.disconnect());

  fig.listen(model, "change:_guess", update);
  fig.listen(model, "change:_shown", update);
  update();
  return fig.end;
}

export default { render };
