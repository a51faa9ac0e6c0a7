// A cell of the page that can be changed and run, with the names that the cells before it have made.

export function change() {
  return {};
}
