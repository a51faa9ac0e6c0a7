/* On a narrow page a picture shrinks only as far as its text can be read, and then scrolls. */
(() => {
  const LEAST = 0.7; // of its own size, at which text has 12 px or more
  const COLUMN = 640; // wider than this no picture need be
  for (const image of document.querySelectorAll(".bd-article .cell_output > img")) {
    const fit = () => {
      image.style.minWidth = `${Math.min(COLUMN, Math.round(LEAST * image.naturalWidth))}px`;
    };
    image.parentElement.classList.add("afm-scrolls");
    if (image.complete) fit();
    else image.addEventListener("load", fit);
  }
})();

/* What is too wide for the page scrolls inside itself; with a tab stop the keyboard can scroll it too.
 * The theme does so for code; equations and tables are left to this script. */
(() => {
  const WIDE =
    "main .katex-display, main .pst-scrollable-table-container, main .output, main pre, .afm-scrolls";

  function mark(element) {
    const scrolls = element.scrollWidth > element.clientWidth + 1;
    if (scrolls) element.tabIndex = 0;
    else if (element.tabIndex === 0) element.removeAttribute("tabindex");
  }

  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
  document.querySelectorAll(WIDE).forEach((element) => sizes.observe(element));
})();

/* Paper is light: the dark page prints in the light page's colors. */
(() => {
  const page = document.documentElement.dataset;
  let shown = page.theme;
  window.addEventListener("beforeprint", () => {
    shown = page.theme;
    page.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    page.theme = shown;
  });
})();

/* A folded section opens for a link that leads to it or into it, and on paper. */
(() => {
  const FOLDED = "details.afm-folded";

  function openAt(hash) {
    let target = null;
    try {
      target = document.getElementById(decodeURIComponent(hash.slice(1)));
    } catch {
      // A stray % in the address: nothing has such a name.
    }
    if (!target) return;
    const inside = target.querySelector(`:scope > ${FOLDED}`);
    if (inside) inside.open = true;
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) {
      part.open = true;
    }
  }

  openAt(location.hash);
  window.addEventListener("hashchange", () => openAt(location.hash));
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href*='#']");
    // Also where the address stays the same, and before the browser scrolls there.
    if (link && link.pathname === location.pathname) openAt(link.hash);
  });

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(`${FOLDED}:not([open])`)];
    for (const part of opened) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
    opened = [];
  });
})();

/* A notebook is downloaded, not shown as text. */
for (const link of document.querySelectorAll("a.btn-download-source-button")) link.download = "";
