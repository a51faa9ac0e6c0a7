// Translations by greedy and beam search, equal to transformer_lib/beam.py (tested).
//
//   const best = translate(model, [5, 6, 7], { width: 4, lengthPenalty: 0.6 });
//   best   [{ ids: [3, 4], score: -0.02 }, ...], the best first; ids without begin and end

export const BEGIN = 1;
export const END = 2;

function logSoftmax(logits) {
  const top = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
  return Array.from(logits, (logit) => logit - top - Math.log(total));
}

const penalty = (length, exponent) => ((5 + length) / 6) ** exponent;

/** The `width` best translations of a source; with width 1, without a length penalty: greedy. */
export function translate(model, source, { width = 1, lengthPenalty = 0.6 } = {}) {
  const alpha = width === 1 ? 0 : lengthPenalty;
  const limit = Math.min(2 * source.length + 10, model.config.context - 1);
  let beams = [{ text: model.start(source), ids: [], score: 0, next: BEGIN }];
  let finished = [];
  for (let step = 1; step <= limit; step += 1) {
    const candidates = beams.flatMap((beam) =>
      logSoftmax(beam.text.read([beam.next]).logits[0]).map((log, token) => ({
        beam,
        token,
        score: beam.score + log,
      })),
    );
    const allowed = candidates.filter(({ token }) => step < limit || token === END);
    allowed.sort((one, other) => other.score - one.score);
    finished.push(
      ...allowed
        .slice(0, width)
        .filter(({ token }) => token === END)
        .map(({ beam, score }) => ({ ids: beam.ids, score: score / penalty(step, alpha) })),
    );
    finished.sort((one, other) => other.score - one.score);
    finished = finished.slice(0, width);
    const going = allowed.filter(({ token }) => token !== END).slice(0, width);
    if (going.length === 0) break;
    const possible = going[0].score / penalty(limit, alpha);
    if (finished.length === width && finished.at(-1).score >= possible) break;
    beams = going.map(({ beam, token, score }) => ({
      text: beam.text.fork(),
      ids: [...beam.ids, token],
      score,
      next: token,
    }));
  }
  return finished;
}
