// The sentence on one word of the head view, as parts for figure.say.
//
//   headReading(tokens, "left", index, along, heads)    left: a query and its weights on the keys;
//       right: a key and the weights that the queries give it; `along` is their mean over the heads
//
// "Most" is said of one head and one word only: a mean attends to nobody, and a tie has no first.

import { leaders, listed } from "../core/leaders.js";
import { fixed } from "../core/numbers.js";

export function headReading(tokens, side, index, along, heads) {
  const first = leaders(along);
  const [own, other] = side === "left" ? ["query", "key"] : ["key", "query"];
  const word = { text: tokens[index], role: own };
  const others = listed(
    first.map((at) => tokens[at]),
    other,
  );
  const most = { text: fixed(along[first[0]]) };
  const each = first.length > 1 ? " each" : "";
  if (heads > 1) {
    const weight = first.length > 1 ? "weights are" : "weight is";
    const where = side === "left" ? " on " : " from ";
    const whose = side === "left" ? "its" : "the";
    const told = `: on average over ${heads} heads, ${whose} largest ${weight}${where}`;
    return [word, told, ...others, ": ", most, each];
  }
  if (first.length > 1) {
    const verb = side === "left" ? " attends alike to " : " gets as much attention from ";
    return [word, verb, ...others, ": ", most, each];
  }
  const verb = side === "left" ? " attends most to " : " gets most attention from ";
  return [word, verb, ...others, ": ", most];
}
