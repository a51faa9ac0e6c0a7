// A text of single letters, as a reader types it.
//
//   parseLetters("c a d", "abcde", 12) -> [2, 0, 3], or a sentence that says what is wrong with it

/** Letters to ids; a text that says what is wrong with them otherwise. */
export function parseLetters(text, letters, most) {
  const typed = [...text.toLowerCase()].filter((letter) => /\S/.test(letter));
  const stranger = typed.find((letter) => !letters.includes(letter));
  if (stranger) return `“${stranger}” is not one of the letters; write ${[...letters].join(", ")}.`;
  if (typed.length < 2) return "Write two letters at least.";
  if (typed.length > most) return `That is ${typed.length} letters; ${most} fit.`;
  return typed.map((letter) => letters.indexOf(letter));
}
