/* What is too wide for the page scrolls inside itself; with a tab stop the keyboard can scroll it too.
 * The theme does so for code; equations and tables are left to this script. */
(() => {
  const WIDE = "main .katex-display, main .pst-scrollable-table-container, main .output, main pre";

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
