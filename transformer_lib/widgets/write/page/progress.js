// Which exercises of the book this browser has seen answered, by the names of their checks.
//
//   note(id)             one more; tells the page
//   showProgress(page)   fills the page's line: { exercises: [{ id }], total }
//
// It is kept in this browser only. A file takes it to another one, with all that was written.

const KEY = "afm-answered"; // where it is kept, and the event
const WRITTEN = "afm-written:"; // what kept.js writes begins so
const FILE = "attention-you-can-touch.json";

const isText = (value) => typeof value === "string";

function answered() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(kept) ? kept.filter(isText) : []; // others may have written there
  } catch {
    return []; // a page may be forbidden to keep anything
  }
}

function store(ids) {
  try {
    localStorage.setItem(KEY, JSON.stringify(ids));
  } catch {
    return;
  }
  document.dispatchEvent(new CustomEvent(KEY));
}

export function note(id) {
  if (!answered().includes(id)) store([...answered(), id]);
}

/** A page's path within the book, so that a copy of the book elsewhere knows it, too. */
const within = (path) => path.split("/").slice(-2).join("/");

/** All that is kept, as the text of a file. */
export function exported(storage) {
  const keys = Object.keys(storage).filter((key) => key.startsWith(WRITTEN));
  const written = keys.map((key) => {
    const [, path, name] = /^afm-written:(.*):(.*)$/s.exec(key); // /C:/book/…
    return { page: within(path), name, text: storage.getItem(key) };
  });
  return JSON.stringify({ answered: answered(), written }, null, 1);
}

/** Takes in such a file, beside what is here already; an Error says what is wrong with another one. */
export function imported(text, storage, path) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("This is not a file that was saved here.");
  }
  const { answered: ids, written } = found ?? {};
  const isFine =
    Array.isArray(ids) &&
    ids.every(isText) &&
    Array.isArray(written) &&
    written.every((one) => [one?.page, one?.name, one?.text].every(isText));
  if (!isFine) throw new Error("This is not a file that was saved here.");
  const root = path.slice(0, path.length - within(path).length);
  for (const { page, name, text: own } of written) {
    const key = `${WRITTEN}${root}${page}:${name}`;
    if (storage.getItem(key) === null) storage.setItem(key, own);
  }
  store([...new Set([...answered(), ...ids])]);
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([exported(localStorage)], { type: "application/json" }));
  link.download = FILE;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function open(tell) {
  const input = Object.assign(document.createElement("input"), { type: "file", accept: ".json" });
  input.addEventListener("change", async () => {
    try {
      imported(await input.files[0].text(), localStorage, location.pathname);
      location.reload(); // so that what was written is shown
    } catch (error) {
      tell(error.message);
    }
  });
  input.click();
}

export function showProgress({ exercises, total }) {
  const line = document.querySelector(".afm-progress");
  if (!line) return;
  const ids = exercises.map(({ id }) => id);
  const text = document.createElement("span");
  text.setAttribute("role", "status");
  const tell = (words) => {
    text.textContent = words;
  };
  const button = (label, title, work) => {
    const one = Object.assign(document.createElement("button"), { type: "button", title });
    one.textContent = label;
    one.addEventListener("click", work);
    return one;
  };
  const saves = button("Save", "A file with your answers, for another browser", save);
  const opens = button("Open", "Read in a file that was saved with Save", () => open(tell));
  const forgets = "Forget which exercises were answered, on all pages of the book";
  const clears = button("Clear", forgets, () => store([]));
  line.append(text, " ", saves, " ", opens, " ", clears);
  const show = () => {
    const all = answered();
    const here = ids.filter((id) => all.includes(id)).length;
    const book = `${all.length} of the book's ${total} exercises`;
    const onPage = ids.length ? `${here} of ${ids.length} on this page, ` : "";
    const isNone = all.length === 0;
    tell(
      isNone ? "Answers saved in another browser?" : `Answered in this browser: ${onPage}${book}.`,
    );
    saves.hidden = clears.hidden = isNone;
    line.hidden = isNone && ids.length > 0; // the first page offers to open a file
  };
  document.addEventListener(KEY, show);
  show();
}
