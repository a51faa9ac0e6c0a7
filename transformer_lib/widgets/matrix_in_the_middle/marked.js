// A grid some of whose cells can be marked, those that have to do with a choice made elsewhere.
//
//   const map = marked(grid({ ... }));   fig.add(map);   map.mark([[1, 2], [4, 2]])

export function marked(inner) {
  let places = [];
  let known = [];

  function draw() {
    for (const cell of known) cell.classList.remove("afm-touched");
    known = places.map(([row, column]) => inner.cell(row, column)).filter(Boolean);
    for (const cell of known) cell.classList.add("afm-touched");
  }

  return {
    ...inner,
    get pointed() {
      return inner.pointed; // which a copy would not follow
    },
    layout(width) {
      inner.layout(width);
      draw();
    },
    mark(now) {
      places = now;
      draw();
    },
  };
}
