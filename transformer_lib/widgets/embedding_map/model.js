// Who is near whom, and where names go that must not cover one another.

/** The other words by their cosine to word i, the largest first: [[word, cosine], ...]. */
export function nearest(cosines, count, i) {
  const row = Array.from({ length: count }, (_, j) => [j, cosines[i * count + j]]);
  return row.filter(([j]) => j !== i).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}

/** Coordinates of one pair of directions: [[x, y], ...] of `places` [words, width]. */
export function onMap(places, width, pair) {
  return Array.from({ length: places.length / width }, (_, i) => [
    places[i * width + 2 * pair],
    places[i * width + 2 * pair + 1],
  ]);
}

/**
 * For each point the middle of its name's baseline, or null where there is no room; those in `order`
 * that come first choose first. `points` in pixels, `widths` of the names, in a square of `size`.
 */
export function nameSpots(points, widths, order, size) {
  const taken = points.map(([x, y]) => [x - 5, y - 5, x + 5, y + 5]);
  const spots = points.map(() => null);
  const isFree = ([left, top, right, bottom]) =>
    left >= 0 &&
    top >= 0 &&
    right <= size &&
    bottom <= size &&
    taken.every((box) => right < box[0] || left > box[2] || bottom < box[1] || top > box[3]);
  for (const i of order) {
    const [[x, y], half] = [points[i], widths[i] / 2];
    const middles = [
      [x, y - 14],
      [x, y + 14],
      [x + half + 9, y],
      [x - half - 9, y],
      [x + half + 7, y - 11],
      [x - half - 7, y - 11],
      [x + half + 7, y + 11],
      [x - half - 7, y + 11],
    ];
    const boxes = middles.map(([at, line]) => [at - half, line - 7, at + half, line + 7]);
    const found = boxes.findIndex(isFree);
    if (found < 0) continue;
    taken.push(boxes[found]);
    spots[i] = [middles[found][0], middles[found][1] + 4.5];
  }
  return spots;
}
