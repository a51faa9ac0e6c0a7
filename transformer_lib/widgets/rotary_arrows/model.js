// The two arrows' numbers, computed from the settings: pure functions, no page.
//
//   standing([x, y], position, { speed, add })  the arrow as it is turned at a position
//   compute({ arrows, query_position, key_position, before, speed, add }, farthest)
//       .query, .key, .score, .angle (radians, 0 to π), .offset
//       .scores   the score with 0, 1, ... farthest words before the text

import { dot } from "../math/linear.js";
import { applyRotary } from "../math/positions.js";

/** Turned by its position's angle, or with a clock hand of that angle added. */
function standing(arrow, position, { speed, add }) {
  const angle = position * speed;
  if (add) return [arrow[0] + Math.sin(angle), arrow[1] + Math.cos(angle)];
  return applyRotary([arrow], [[angle]])[0];
}

export function compute(settings, farthest) {
  const { arrows, query_position, key_position, before } = settings;
  const both = (words) =>
    [query_position, key_position].map((place, at) =>
      standing(arrows[at], place + words, settings),
    );
  const [query, key] = both(before);
  return {
    query,
    key,
    score: dot(query, key),
    angle: between(query, key),
    offset: key_position - query_position,
    scores: Array.from({ length: farthest + 1 }, (_, words) => dot(...both(words))),
  };
}

/** The angle between two arrows, from 0 to π; 0 if one of them has no length. */
export function between([ax, ay], [bx, by]) {
  return Math.abs(Math.atan2(ax * by - ay * bx, ax * bx + ay * by));
}
