// Loaded by start.js when a reader begins to answer an exercise or to change a cell.

export { change } from "./change.js";
export { choice } from "./choice.js";
export { exercise } from "./exercise.js";
export { yours } from "./yours.js";
