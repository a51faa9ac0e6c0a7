/* Hides what gives an answer away (.afm-reveal) until the reader has guessed (.afm-guess): the figure
 * that asks sends the event `afm-revealed` (widgets/predict/view.js). book/extensions/reveal.py writes
 * the classes and loads this script, which runs while the page is still being read, so that nothing is
 * seen for a moment.
 *
 * What is hidden cannot be reached by tab; searching the page and links find it, and then open it. It
 * is shown where the figure fails, without this script, and on paper (afm-cells.css).
 */
(() => {
  const html = document.documentElement;
  html.classList.add("afm-asking"); // afm-cells.css hides by it until each part is hidden by itself

  /** The number of a question, from the class afm-guess-3 or afm-reveal-3. */
  const numberOf = (node, name) =>
    [...node.classList].find((text) => text.startsWith(`${name}-`))?.slice(name.length + 1);

  function open(number) {
    for (const part of document.querySelectorAll(`.afm-reveal-${number}`)) part.hidden = false;
  }

  function openFor(cell) {
    if (cell) open(numberOf(cell, "afm-guess"));
  }

  function openAround(part) {
    if (part) open(numberOf(part, "afm-reveal"));
  }

  /** A link to something hidden, or to a section whose heading is, opens it. */
  function openTarget() {
    if (!location.hash) return;
    let target = null;
    try {
      target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    } catch {
      return; // a stray % in the address
    }
    const heading = ":scope > :is(h1, h2, h3, h4, h5, h6).afm-reveal"; // the section has the id
    const part = target?.closest(".afm-reveal") ?? target?.querySelector(heading);
    if (!part?.hidden) return;
    openAround(part);
    target.scrollIntoView();
  }

  function start() {
    // Where browsers can search what is hidden, they open what they find.
    const hidden = "onbeforematch" in html ? "until-found" : "";
    for (const part of document.querySelectorAll(".afm-reveal")) {
      part.setAttribute("hidden", hidden);
      part.addEventListener("beforematch", () => openAround(part));
    }
    html.classList.remove("afm-asking");
    for (const name of ["afm-revealed", "afm-failed"]) {
      document.addEventListener(name, (event) => openFor(event.target.closest(".afm-guess")));
    }
    for (const cell of document.querySelectorAll(".afm-guess")) {
      const asked = cell.querySelector('script[type="application/vnd.jupyter.widget-view+json"]');
      if (!asked || !window.afm || cell.querySelector(".afm-failed")) openFor(cell);
    }
    openTarget();
    window.addEventListener("hashchange", openTarget);
  }

  document.addEventListener("DOMContentLoaded", start);
})();
