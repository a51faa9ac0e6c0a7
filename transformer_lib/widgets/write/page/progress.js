// Which exercises of the book this browser has seen answered, by the names of their checks.
//
//   note(id)             one more; tells the page
//   showProgress(page)   fills the page's line: { exercises: [{ id }], total }

const KEY = "afm-answered"; // where it is kept, and the event

function answered() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
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

export function showProgress({ exercises, total }) {
  const line = document.querySelector(".afm-progress");
  if (!line) return;
  const ids = exercises.map(({ id }) => id);
  const [text, clear] = ["span", "button"].map((tag) => document.createElement(tag));
  clear.textContent = "Clear";
  clear.title = "Forget which exercises were answered, on all pages of the book";
  clear.addEventListener("click", () => store([]));
  text.setAttribute("role", "status");
  line.append(text, " ", clear);
  const show = () => {
    const all = answered();
    const here = ids.filter((id) => all.includes(id)).length;
    const book = `${all.length} of the book's ${total} exercises`;
    const onPage = ids.length ? `${here} of ${ids.length} on this page, ` : "";
    text.textContent = `Answered in this browser: ${onPage}${book}.`;
    line.hidden = !all.length;
  };
  document.addEventListener(KEY, show);
  show();
}
