/* Mounts the book's widgets on a page without a kernel. A classic deferred script, so that it works
 * from file:// too, where modules and fetch are refused.
 *
 * It reads what Jupyter Book writes into a page: one script tag of the type
 * application/vnd.jupyter.widget-state+json and, at each widget's place, one of the type
 * application/vnd.jupyter.widget-view+json. A widget is an anywidget: its ES module is text in the
 * state (`_esm`), with `initialize` and `render`. Its model has get, set, on, off and save_changes,
 * and nothing else. A widget is mounted when it comes near the viewport, and the others one by one
 * while the browser has nothing else to do, so that all of them are there when the page is printed.
 *
 * window.afm:
 *   afm.load(path) -> Promise   Loads the classic script at `path`, relative to this file's folder,
 *                               once, if it can. Resolves to what the script has handed to afm.provide(path, value)
 *                               (text is taken as base64 and becomes a DataView), else to undefined.
 *                               For weights beside the page, and for third-party scripts.
 *   afm.provide(path, value)    Called by such a script.
 *   afm.whenVisible(element, callback)   Calls back once, when the element is near the viewport.
 *   afm.mountAll() -> Promise   Mounts what is not mounted yet; for printing and for tests.
 *
 * It also makes buttons of the phrases that set a figure (book/extensions/links.py), and mounts the
 * figure before the first click on one. The rest is the figures' own (widgets/core/state.js).
 */
(() => {
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';
  const here = document.currentScript.src;
  const scripts = new Map();
  const provided = new Map();
  const modules = new Map();
  const styles = new Set();
  const models = new Map();
  const mounts = [];

  function load(path) {
    if (!scripts.has(path)) {
      const loaded = new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = new URL(path, here).href;
        script.onload = () => resolve(provided.get(path));
        script.onerror = () => {
          scripts.delete(path); // whoever asks again tries again
          reject(new Error(`could not load ${path}, which belongs beside this page`));
        };
        document.head.append(script);
      });
      scripts.set(path, loaded);
    }
    return scripts.get(path);
  }

  function provide(path, value) {
    provided.set(path, typeof value === "string" ? decode(value) : value);
  }

  function decode(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
    return new DataView(bytes.buffer);
  }

  function whenVisible(element, callback) {
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        callback();
      },
      { rootMargin: "600px" },
    );
    observer.observe(element);
  }

  // As in a notebook, setting an equal value again is not a change.
  function same(one, other) {
    if (Object.is(one, other)) return true;
    if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
    if (one instanceof DataView || other instanceof DataView) return false;
    return JSON.stringify(one) === JSON.stringify(other);
  }

  function makeModel(values) {
    const listeners = new Map();
    const tell = (event) => [...(listeners.get(event) ?? [])].forEach((callback) => callback());
    return {
      get: (name) => values[name],
      set(name, value) {
        if (same(values[name], value)) return;
        values[name] = value;
        tell(`change:${name}`);
        tell("change");
      },
      on(event, callback) {
        listeners.set(event, [...(listeners.get(event) ?? []), callback]);
      },
      off(event, callback) {
        const kept = (listeners.get(event) ?? []).filter((known) => callback && known !== callback);
        listeners.set(event, kept);
      },
      save_changes() {}, // there is no kernel to save to
    };
  }

  function importModule(text) {
    if (!modules.has(text)) {
      const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      modules.set(
        text,
        import(address).finally(() => URL.revokeObjectURL(address)),
      );
    }
    return modules.get(text);
  }

  function addStyle(text) {
    if (!text || styles.has(text)) return;
    styles.add(text);
    const style = document.createElement("style");
    style.textContent = text;
    document.head.append(style);
  }

  /** The model of one widget and its module, initialized: once, however many views it has. */
  function modelOf(id, states) {
    if (!models.has(id)) models.set(id, start(id, states));
    return models.get(id);
  }

  /** Each text is on the page once, and elsewhere its place (book/extensions/figures.py). */
  function partsOf(value, name, states) {
    const own = value.same_as ? states[value.same_as].state[name] : value;
    const textOf = (part) => {
      if (typeof part === "string") return part;
      const [id, trait, index] = part;
      return states[id].state[trait][index];
    };
    return [own].flat().map(textOf);
  }

  async function start(id, states) {
    const entry = states[id];
    if (!entry) throw new Error(`the page holds no state of the widget ${id}`);
    const values = { ...entry.state };
    for (const name of ["_esm", "_css", "_worker"]) {
      if (values[name]) values[name] = partsOf(values[name], name, states).join("");
    }
    addStyle(values._css);
    for (const { path, data } of entry.buffers ?? []) {
      const parent = path.slice(0, -1).reduce((node, key) => node[key], values);
      parent[path.at(-1)] = decode(data);
    }
    if (!values._esm)
      throw new Error(`${entry.model_name} needs a kernel: it has no module of its own`);
    const loaded = (await importModule(values._esm)).default;
    const widget = typeof loaded === "function" ? await loaded() : loaded;
    const model = makeModel(values);
    await widget.initialize?.({ model });
    return { model, widget };
  }

  function fail(place, error) {
    console.error("A figure of this page failed:", error);
    const note = document.createElement("p");
    note.className = "afm-failed";
    note.setAttribute("role", "alert");
    note.textContent = `This figure could not start: ${error.message ?? error}`;
    place.replaceChildren(note);
    place.style.minHeight = "";
    place.dispatchEvent(new CustomEvent("afm-failed", { bubbles: true }));
  }

  // A figure is seldom as high as its empty place, and it grows again when it is laid out to its
  // width or its weights have come. What the reader looks at must not move for that; browsers see
  // to it by themselves, all but WebKit (Safari).
  const anchors = CSS.supports("overflow-anchor", "auto");
  /** Make up for what a place above the reader grows by, or shrinks. */
  function holdStill(place) {
    let { height } = place.getBoundingClientRect();
    const changed = () => {
      const now = place.getBoundingClientRect();
      if (place.classList.contains("afm-pinned"))
        height = null; // beside the text (core/place.js)
      else if (height === null) height = now.height;
      if (height === null) return;
      const above = now.top < 0 && now.top + height < window.innerHeight / 2;
      if (above) window.scrollBy({ top: now.height - height, behavior: "instant" });
      height = now.height;
    };
    new ResizeObserver(changed).observe(place); // in the same frame, before it is painted
  }

  function prepare(tag) {
    const place = document.createElement("div");
    place.className = "afm-mount";
    place.style.minHeight = "20rem";
    tag.after(place);
    if (!anchors) holdStill(place);
    let mounted = null;
    const mount = () => {
      mounted ??= (async () => {
        const view = JSON.parse(tag.textContent);
        const { model, widget } = await modelOf(view.model_id, readStates());
        await widget.render({ model, el: place });
        place.style.minHeight = "";
      })().catch((error) => fail(place, error));
      return mounted;
    };
    mounts.push(mount);
    whenVisible(place, mount);
  }

  let states = null;
  function readStates() {
    states ??= Object.assign(
      {},
      ...[...document.querySelectorAll(STATE)].map((tag) => JSON.parse(tag.textContent).state),
    );
    return states;
  }

  const SETTER = "[data-afm-set]";
  const nameIn = (setter) => setter.dataset.afmSet.slice("#set:".length).split(";")[0];

  function prepareSetter(setter) {
    for (const [name, value] of Object.entries({
      role: "button",
      tabindex: "0",
      title: "Sets the figure",
    })) {
      setter.setAttribute(name, value);
    }
    setter.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      setter.click();
    });
  }

  // Captured, and so before the figures' own listener, which is there only after the first of them.
  async function mountFirst(event) {
    const setter = event.target.closest?.(SETTER);
    const name = setter && nameIn(setter);
    if (!setter || window.afmFigures?.has(name)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const at = [...document.querySelectorAll(VIEW)].findIndex((tag) => {
      const { model_id } = JSON.parse(tag.textContent);
      return readStates()[model_id]?.state.name === name;
    });
    const { top } = setter.getBoundingClientRect();
    if (at >= 0) await mounts[at]();
    // A figure above, in the same window, has pushed the text down as it grew.
    const moved = setter.getBoundingClientRect().top - top;
    if (Math.abs(moved) >= 1) window.scrollBy({ top: moved, behavior: "instant" });
    if (window.afmFigures?.has(name)) setter.click();
    else console.warn(`There is no figure ${name} on this page.`);
  }

  const mountAll = () => Promise.all(mounts.map((mount) => mount()));
  window.afm = Object.freeze({ load, provide, whenVisible, mountAll });
  window.addEventListener("beforeprint", mountAll);
  document.addEventListener("click", mountFirst, true);
  document.querySelectorAll(SETTER).forEach(prepareSetter);
  document.querySelectorAll(VIEW).forEach(prepare);

  // Printing does not wait for modules to be imported: by then all figures must be there.
  const idle = window.requestIdleCallback ?? ((callback) => setTimeout(callback, 200));
  async function mountRest() {
    for (const mount of mounts) {
      await new Promise((resolve) => idle(resolve, { timeout: 2000 }));
      await mount();
    }
  }
  if (document.readyState === "complete") mountRest();
  else window.addEventListener("load", mountRest);
})();
