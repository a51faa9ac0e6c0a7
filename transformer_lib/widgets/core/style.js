// The style that all figures share (widget.css): in a document once, before any figure's own.
//
// A notebook puts the `_css` of each kind at the end of the document when its first figure appears. If
// the shared style were part of it, it would come again after another kind's own style, and undo it.

const TEXT = ""; // widget.css (joining.py puts the text of that file here)
const ID = "afm-style";
const OWN = "/* afm: "; // so begins each figure's own style (joining.py)

/** See to it that a document has the shared style; `page` is the document. */
export function shareStyle(page) {
  const found = page.getElementById(ID);
  if (found?.textContent === TEXT) return;
  const style = found ?? page.createElement("style");
  style.id = ID;
  style.textContent = TEXT; // a newer one, if the library has been changed since
  const own = [...page.head.querySelectorAll("style")].find((one) =>
    one.textContent.startsWith(OWN),
  );
  if (own && !found) own.before(style);
  else if (!found) page.head.append(style);
}
