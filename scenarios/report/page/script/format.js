/** Figures and names as text. Durations and sizes read as they do in the terminal, to the last digit. */

const TIMES = [["s", 1e9], ["ms", 1e6], ["us", 1e3]];
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];
const PREFIXES = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1]];

/**
 * A number with so many decimals. Python rounds ties to even digits, `toFixed` away from zero. A tie is a value that
 * binary fractions hold exactly: an odd number of half units of 2 ** -digits.
 * @param {number} value not negative
 * @param {number} digits
 */
function fixed(value, digits) {
  const unit = 10 ** digits;
  const tie = (value * 2 ** (digits + 1)) % 2 === 1;
  return tie && Math.floor(value * unit) % 2 === 0
    ? (Math.floor(value * unit) / unit).toFixed(digits)
    : value.toFixed(digits);
}

/** "54.502 us". @param {number} count nanoseconds, negative for a difference */
export function ns(count) {
  const size = Math.abs(count);
  const [unit, one] = TIMES.find(([, least]) => size >= least) ?? ["ns", 1];
  return `${count < 0 ? "-" : ""}${unit === "ns" ? Math.round(size) : fixed(size / one, 3)} ${unit}`;
}

/** "35.01 KiB". @param {number} size */
export function bytes(size) {
  let unit = 0;
  for (; size >= 1024 && unit < SIZES.length - 1; unit++) size /= 1024;
  return `${unit ? fixed(size, 2) : Math.round(size)} ${SIZES[unit]}`;
}

/** "19.50 TFLOP/s", "2.500 GB/s": four digits with a decimal prefix. @param {number} perSecond @param {string} unit */
export function rate(perSecond, unit = "B/s") {
  const [prefix, one] = PREFIXES.find(([, least]) => perSecond >= least) ?? ["", 1];
  return `${(perSecond / one).toPrecision(4)} ${prefix}${unit}`;
}

/** "35.8 %". @param {number} share 0 to 1 */
export const percent = (share) => `${fixed(Math.max(0, share) * 100, 1)} %`;

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

/** "3,200". @param {number} value */
export const count = (value) => grouped.format(value);

/** A cell as text: whole numbers in full, others with four digits. @param {number | string | null} value */
export function figure(value) {
  if (typeof value !== "number") return String(value ?? "–");
  return Number.isInteger(value) ? count(value) : value.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

/** Marks that would end a line or turn the text around them; a picture of each for those that have one. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** A text with a visible sign for every control character and mark of direction. @param {string} text */
export const visible = (text) =>
  text.replace(HIDDEN, (sign) => (sign < " " ? String.fromCharCode(0x2400 + sign.charCodeAt(0)) : "\ufffd"));
