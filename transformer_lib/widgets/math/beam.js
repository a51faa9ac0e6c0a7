// Greedy and beam search, equal to transformer_lib/beam.py (tested).
//
//   const { finished, steps } = beamSearch({ first, read, grow, width: 3, limit: 9, end: 2 });
//   finished   [{ ids: [3, 4], log: -0.1, score: -0.1 }, ...], the best first; ids without the end
//   const best = translate(model, [5, 6, 7], { width: 4, lengthPenalty: 0.6 });
//   best       the same, of a translator's model

export const BEGIN = 1;
export const END = 2;

function logSoftmax(logits) {
  const top = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
  return Array.from(logits, (logit) => logit - top - Math.log(total));
}

/** The divisor of a text's log-probability. */
export const penalty = (length, exponent) => ((5 + length) / 6) ** exponent;

const byScore = (one, other) => other.score - one.score;

/**
 * The search, with what it tried. `read(state)` gives [[token, its log-probability], ...] for all
 * that may follow (or for enough of it: the `width` best and the end), `grow(state, token)` the state
 * one token later. A text has at most `limit` tokens, its end included.
 *
 * Of each step: `candidates`, the best first; those that have `ended` here; those that are `going`
 * on; and all that are `finished` so far.
 */
export function beamSearch({ first, read, grow, width, limit, end, lengthPenalty = 0 }) {
  let beams = [{ state: first, ids: [], score: 0 }];
  let finished = [];
  const steps = [];
  for (let step = 1; step <= limit; step += 1) {
    const candidates = beams
      .flatMap((beam) =>
        read(beam.state).map(([token, log]) => ({ beam, token, log, score: beam.score + log })),
      )
      .filter(({ token }) => step < limit || token === end);
    candidates.sort(byScore);
    const ended = candidates.slice(0, width).filter(({ token }) => token === end);
    const judged = ended.map(({ beam, score }) => ({
      ids: beam.ids,
      log: score,
      score: score / penalty(step, lengthPenalty),
    }));
    finished = [...finished, ...judged].sort(byScore).slice(0, width);
    const going = candidates.filter(({ token }) => token !== end).slice(0, width);
    steps.push({ candidates, ended, going, finished });
    if (going.length === 0) break;
    const possible = going[0].score / penalty(limit, lengthPenalty);
    if (finished.length === width && finished.at(-1).score >= possible) break;
    beams = going.map(({ beam, token, score }) => ({
      state: grow(beam.state, token),
      ids: [...beam.ids, token],
      score,
    }));
  }
  return { finished, steps };
}

/** The `width` best translations of a source; with width 1, without a length penalty: greedy. */
export function translate(model, source, { width = 1, lengthPenalty = 0.6 } = {}) {
  return beamSearch({
    first: { text: model.start(source), next: BEGIN },
    read: ({ text, next }) => [...logSoftmax(text.read([next]).logits[0]).entries()],
    grow: ({ text }, token) => ({ text: text.fork(), next: token }),
    width,
    limit: Math.min(2 * source.length + 10, model.config.context - 1),
    end: END,
    lengthPenalty: width === 1 ? 0 : lengthPenalty,
  }).finished;
}
