// Numbers as they are read: a true minus sign, no negative zero, −∞, and no more digits than needed.
//
//   fixed(-0.401) "−0.40"      reading(0.00412) "0.0041"     percent(0.0431) "4.3 %"
//   short(35333.4, 4) "35,333"  precise(1, 2) "1.0"           percentAmong(1, 30) "> 99.9 %"
//   grouped(35333) "35,333"

/** A whole number with commas. (Intl and toLocaleString take a slow telephone 85 ms the first time.) */
export const grouped = (whole) => String(whole).replace(/\B(?=(\d{3})+$)/g, ",");

const withMinus = (text) => text.replaceAll("-", "−").replace("e+", "e");
const power = (value, digits) => withMinus(value.toExponential(digits).replace(/\.0+e/, "e"));

/** So many decimals. */
export function fixed(value, digits = 2) {
  if (Math.abs(value) === Infinity) return value > 0 ? "∞" : "−∞";
  if (Math.abs(value) >= 1e15) return power(value, 1); // toFixed would write digits that are not there
  const text = value.toFixed(digits);
  return /^-0\.?0*$/.test(text) ? text.slice(1) : withMinus(text);
}

/** So many significant digits, zeros at the end included. */
export function precise(value, digits = 2) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return power(value, digits - 1);
  return withMinus(
    Number(size.toPrecision(digits)) < 10 ** digits ? value.toPrecision(digits) : value.toFixed(0),
  );
}

/** At most so many significant digits; a whole part keeps all of its own, up to millions. */
export function short(value, digits = 2) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 10 ** (digits + 5))) return power(value, 1);
  const decimals = size === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const [whole, ...rest] = String(Number(value.toFixed(decimals)) + 0).split(".");
  return withMinus([grouped(whole), ...rest].join("."));
}

/** A loss, an entropy, a width: two decimals, or two significant digits where those would be lost. */
export function reading(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.00095) return power(value, 0);
  if (size < 0.0995) return withMinus(String(Number(value.toPrecision(2))));
  return fixed(value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

/** A probability: 62 %, 4.3 %, < 0.1 %. */
export function percent(share, decimals = null) {
  const usual = share >= 1 || share === 0 || (share >= 0.0995 && share < 0.9) ? 0 : 1;
  const digits = decimals ?? usual;
  const least = 10 ** -digits; // that is written as it is
  if (share > 0 && share < least / 200) return `< ${least} %`;
  if (share < 1 && share >= 1 - least / 200) return `> ${(100 - least).toFixed(digits)} %`;
  return `${(100 * share).toFixed(digits)} %`;
}

/** A probability among several: never quite 0 or 100 %, even where the computer rounds to that. */
export function percentAmong(share, count) {
  return percent(count > 1 ? Math.min(1 - 1e-9, Math.max(1e-9, share)) : share);
}
