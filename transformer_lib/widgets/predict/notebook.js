// In JupyterLab, started by `make lab`, the cells that give an answer away are out of sight until
// the guess: those tagged `reveal` right after the question. The page does the same in
// book/assets/afm-reveal.js; other notebooks let no figure know of its neighbors.

/** Hide or show what follows the question that is drawn in `el`. */
export function conceal(el, hidden) {
  for (const panel of globalThis.jupyterapp?.shell.widgets("main") ?? []) {
    const cells = [...(panel.content?.widgets ?? [])];
    const question = cells.findIndex(({ node }) => node.contains(el));
    if (question < 0) continue;
    for (const cell of cells.slice(question + 1)) {
      if (!cell.model.getMetadata("tags")?.includes("reveal")) return;
      cell.setHidden(hidden);
    }
  }
}
