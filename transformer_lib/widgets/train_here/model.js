// A run beside its picture: its numbers, its maps, what is to be said of it.

export const WINDOW = 20; // steps that a number is the mean of
const FRAMES = 300; // maps that are kept: of every step at first, then of every second, fourth, …
const NEAR = 0.05; // nats above the floor: reached
const BEYOND = 1.005; // times chance: the model is worse than one that knows nothing
const ENOUGH = 40; // steps before a run is judged
const LONG = 100; // steps in which a run that is not stuck gets better ...
const LITTLE = 0.05; // ... by more than this

/** The numbers of all steps, the maps of some. */
export function history({ chance, floor }) {
  const [losses, rights] = [[], []];
  let frames = [];
  let every = 1;
  let [reachedAt, lostAt] = [null, null];

  function recent(values, step = values.length - 1) {
    const some = values.slice(Math.max(0, step - WINDOW + 1), step + 1);
    return some.reduce((sum, value) => sum + value, 0) / some.length;
  }

  const isLost = (loss) => !(loss <= BEYOND * chance); // NaN as well

  function judge(step) {
    if (step < ENOUGH) return;
    const loss = recent(losses, step);
    if (reachedAt === null && loss - floor < NEAR) reachedAt = step;
    if (lostAt === null && isLost(loss)) lostAt = step;
  }

  return {
    losses,
    rights,
    /** Steps so far. */
    get last() {
      return losses.length - 1;
    },
    /** Maps are wanted of steps that this divides. */
    get every() {
      return every;
    },
    get reachedAt() {
      return reachedAt;
    },
    get lostAt() {
      return lostAt;
    },
    add({ losses: more, rights: shares, frames: maps }) {
      more.forEach((loss, i) => {
        losses.push(loss);
        rights.push(shares[i]);
        judge(losses.length - 1);
      });
      frames.push(...maps);
      while (frames.length > FRAMES) {
        every *= 2;
        frames = frames.filter(({ step }) => step % every === 0);
      }
    },
    /** The newest maps that are not of a later step. */
    frameAt(step) {
      const at = frames.findLastIndex((frame) => frame.step <= step);
      return frames[Math.max(0, at)];
    },
    loss: (step) => recent(losses, step),
    right: (step) => recent(rights, step),
    /** "reached", "lost", "stuck" or "learning", as of a step. */
    verdict(step) {
      if (lostAt !== null && step >= lostAt && isLost(recent(losses, step))) return "lost";
      if (reachedAt !== null && step >= reachedAt) return "reached";
      if (step < LONG + ENOUGH) return "learning";
      const gain = recent(losses, step - LONG) - recent(losses, step);
      return gain > LITTLE ? "learning" : "stuck";
    },
  };
}

/** How much of a map's attention lies on the word before, and on the words that hold the answer. */
export function scores(map, { known, sources }) {
  const n = known.length;
  let [before, answer, asked] = [0, 0, 0];
  for (let t = 1; t < n; t += 1) before += map[t * n + t - 1];
  for (let t = 0; t + 1 < n; t += 1) {
    if (!known[t + 1]) continue;
    asked += 1;
    for (const s of sources[t + 1]) answer += map[t * n + s];
  }
  return { before: before / (n - 1), answer: answer / asked };
}

/** A flat map as rows. */
export function asRows(map, n) {
  return Array.from({ length: n }, (_, t) => Array.from(map.subarray(t * n, (t + 1) * n)));
}

/** For each word of the text: what the model expected there, if it can be known; null if not. */
export function guesses({ chances }, { ids, known }, words) {
  return ids.map((id, t) => {
    if (!known[t]) return null;
    const row = chances.subarray((t - 1) * words.length, t * words.length);
    const top = row.reduce((best, chance, word) => (chance > row[best] ? word : best), 0);
    const tied = row.some((chance, word) => word !== top && chance === row[top]);
    return { word: words[top], share: row[top], right: top === id && !tied };
  });
}
