// The largest of several numbers, all of them in a tie, and a list of names for a sentence.
//
//   leaders([0.4, 0.2, 0.4]) -> [0, 2]        several, if they are equal but for rounding
//   listed(["a", "b"], "key") -> [{ text: "a", role: "key" }, " and ", { text: "b", role: "key" }]

export function leaders(values) {
  const most = Math.max(...values);
  return Array.from(values).flatMap((value, i) => (most - value < 1e-9 ? [i] : []));
}

export function listed(names, role) {
  return names.flatMap((text, i) => {
    const before = i === 0 ? [] : [i === names.length - 1 ? " and " : ", "];
    return [...before, { text, role }];
  });
}
