/* A long page is laid out from top to bottom, some 200 elements at a time (afm-cells.css leaves out what
 * is out of sight while .afm-arriving): all at once is half a second on a slow telephone, in which nothing
 * answers. */
(async () => {
  const html = document.documentElement;
  if (!html.classList.contains("afm-arriving")) return;
  const turn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const blocks = [...document.querySelectorAll("article section > :not(section)")];
  await turn();
  await turn();
  for (let most = 200; blocks.length; ) {
    const start = performance.now();
    for (let room = most; room > 0 && blocks.length; ) {
      const block = blocks.shift();
      block.classList.add("afm-arrived");
      room -= 5 + block.querySelectorAll("*").length;
    }
    await turn();
    most = performance.now() - start < 40 ? 2 * most : 200; // a quick machine takes more at a time
  }
  html.classList.remove("afm-arriving");
})();

/* A picture is as wide as the page. Where its text is then too small to read, a button below it, or a
 * touch, shows it in its own size. */
(() => {
  const LEAST = 0.7; // of its own size, at which text has 12 px or more

  function enlarge(image) {
    const whole = document.createElement("dialog");
    whole.className = "afm-enlarged";
    whole.setAttribute("aria-label", "The picture in its own size");
    const close = document.createElement("button");
    close.textContent = "Close";
    const copy = image.cloneNode();
    copy.removeAttribute("class");
    copy.style.width = `${image.naturalWidth}px`;
    whole.append(close, copy);
    whole.addEventListener("click", () => whole.close());
    whole.addEventListener("close", () => whole.remove());
    document.body.append(whole);
    whole.showModal();
  }

  for (const image of document.querySelectorAll(".bd-article .cell_output > img")) {
    const button = document.createElement("button");
    button.className = "afm-enlarge";
    button.textContent = "Enlarge the picture";
    button.hidden = true;
    image.after(button);
    const fit = () => {
      button.hidden = image.clientWidth >= LEAST * image.naturalWidth;
      image.classList.toggle("afm-small", !button.hidden);
    };
    new ResizeObserver(fit).observe(image); // also when it has been loaded
    for (const part of [image, button])
      part.addEventListener("click", () => {
        if (!button.hidden) enlarge(image);
      });
  }
})();

/* What is too wide for the page scrolls inside itself; with a tab stop the keyboard can scroll it too.
 * The theme does so for code; equations and tables are left to this script. */
(() => {
  const WIDE = "main .katex-display, main .pst-scrollable-table-container, main .output, main pre";

  function mark(element, scrolls) {
    if (scrolls) element.tabIndex = 0;
    else if (element.tabIndex === 0) element.removeAttribute("tabindex");
  }

  // First all are asked, and then changed: to ask after a change costs another layout.
  const sizes = new ResizeObserver((entries) => {
    const wide = entries.map(({ target }) => target.scrollWidth > target.clientWidth + 1);
    entries.forEach(({ target }, at) => mark(target, wide[at]));
  });
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
    if (hash.length < 2) return; // nothing is named
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
