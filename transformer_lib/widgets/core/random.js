// Random numbers that are the same everywhere for the same seed.
//
//   const next = uniform(7);    next() -> 0 <= x < 1 (Mulberry32, Tommy Ettinger)
//   const draw = normal(7);     draw() -> mean 0, variance 1 (Box and Muller 1958)

export function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function normal(seed) {
  const next = uniform(seed);
  let spare = null;
  return () => {
    if (spare !== null) {
      const kept = spare;
      spare = null;
      return kept;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - next()));
    const angle = 2 * Math.PI * next();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}
